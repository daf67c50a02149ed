package invoke

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

const (
	// Timeout bounds a call whose tool says nothing else.
	Timeout = 60 * time.Second
	// MaxTimeout is the longest a caller may ask for.
	MaxTimeout = time.Hour
)

// A Call is what is asked for.
type Call struct {
	Caller store.Caller
	Tool   string         // wire name
	Args   jsontext.Value // a JSON object; nil means {}
	Client catalog.Client // nil means catalog.Nobody
	// Timeout bounds the run, and is itself bounded by MaxTimeout; 0 is the tool's own.
	Timeout time.Duration
	// Began is told, before the tool runs, the id under which the call is found should it become a run; nil is nobody.
	Began func(store.RunID)
}

// Config is what an Invoker needs. All of it is required.
type Config struct {
	Catalog *catalog.Catalog
	DB      *store.DB
	Desk    *approval.Desk
	Keys    *vault.Keyring // what runs and results are sealed under
	Audit   *audit.Writer
	Log     *slog.Logger
	// Healthy is a Bus's: while it is false standing answers are read anew for every call that can change things.
	Healthy func() bool
	// Now is the clock of the audit.
	Now func() time.Time
}

// An Invoker runs calls. It is a bus listener.
type Invoker struct {
	c        Config
	standing *bus.Cache[store.AgentID, approval.Standing]
	runs     *runs
}

// maxStanding bounds the agents whose standing answers a replica remembers.
const maxStanding = 20_000

// New makes an Invoker.
func New(c Config) (*Invoker, error) {
	standing, err := bus.NewCache[store.AgentID, approval.Standing](maxStanding, c.Healthy)
	return &Invoker{c: c, standing: standing, runs: newRuns()}, err
}

// A Done is a call that was carried out.
type Done struct {
	Result jsontext.Value // a CallToolResult
	a      *attempt
}

// Do carries one call out. A refusal is a *reason.Refusal: tool_not_found, input_invalid, tool_denied,
// awaiting_approval, approval_declined, unavailable, timeout, cancelled, or the tool's own.
func (i *Invoker) Do(ctx context.Context, call Call) (Done, error) {
	a := i.attempt(call)
	life, end, err := a.begin(ctx)
	defer end()
	if err == nil {
		err = a.admit(life)
	}
	var result jsontext.Value
	if err == nil {
		result, err = a.finish(life)
	}
	result, err = a.record(result, err)
	return Done{result, a}, err
}

// Refusal is what may be told about an error of a call. A client that cannot ask its person, or has left, is no fault of
// ours.
func Refusal(err error) *reason.Refusal {
	var r *reason.Refusal
	var needs *catalog.NeedInput
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, context.Canceled):
		return reason.Refuse(reason.Cancelled, "The request was cancelled.")
	case errors.Is(err, catalog.ErrCannotAsk), errors.As(err, &needs):
		return reason.Refuse(reason.AskUnavailable, "This tool asks its person a question, and the client cannot show one.")
	}
	return reason.Of(err)
}

// Keep keeps how a call ended, for whoever asked for it and left before it did: failed is the error of Do. A call that
// was not let through leaves nothing to come back for.
func (d Done) Keep(ctx context.Context, failed error) error {
	if !d.a.ran {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	d.a.logFailure(ctx, failed)
	row, err := d.a.ended(ctx, d.Result, failed)
	if err != nil {
		return err
	}
	return d.a.c.DB.As(ctx, d.a.call.Caller, func(tx *store.Tx) error { return tx.KeepRun(ctx, row) })
}

// Hear implements bus.Listener.
func (i *Invoker) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Agent, bus.Revoked:
		if agent, err := store.ParseID[store.AgentKind](e.ID); err == nil {
			i.standing.Forget(agent)
			if e.Topic == bus.Revoked {
				i.runs.endAgent(agent)
			}
		}
	case bus.Member:
		i.standing.Reset()
		i.runs.movedAll() // whose agent went with its member finds out
	case bus.Run:
		if run, err := store.ParseID[store.RunKind](e.ID); err == nil {
			i.runs.moved(run)
		}
	}
}

// Reset implements bus.Listener.
func (i *Invoker) Reset() {
	i.standing.Reset()
	i.runs.movedAll()
}
