package invoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// An attempt is one call on its way down and back.
type attempt struct {
	*Invoker
	call   Call
	run    store.RunID
	began  time.Time
	entry  *catalog.Entry // nil until the tool is known
	digest []byte         // of the arguments
	ran    bool           // it was let through
	failed bool           // the tool ran and says that it failed
	cancel context.CancelCauseFunc
	look   chan struct{} // holds one where somebody may want the run to end, or has answered it
}

func (i *Invoker) attempt(call Call) *attempt {
	if call.Args == nil {
		call.Args = jsontext.Value("{}")
	}
	if call.Client == nil {
		call.Client = catalog.Nobody{}
	}
	now := i.c.Now()
	return &attempt{Invoker: i, call: call, run: store.NewID[store.RunKind](now), began: now, look: make(chan struct{}, 1)}
}

// begin notes that the call is under way, until end is called. Its context ends when its agent does, or the gateway.
func (a *attempt) begin(ctx context.Context) (life context.Context, end func(), err error) {
	life, a.cancel = context.WithCancelCause(ctx)
	if !a.runs.add(a) {
		a.cancel(nil)
		return life, func() {}, reason.Refuse(reason.Unavailable, "This replica is about to stop. Call again.")
	}
	return life, func() {
		a.cancel(nil)
		a.runs.remove(a)
	}, nil
}

// admit is the first half of the way of a call: resolve, validate, decide, write down what is about to happen. Nothing
// has left when it returns an error.
func (a *attempt) admit(ctx context.Context) error {
	if err := a.resolve(ctx); err != nil {
		return err
	}
	if err := a.validate(); err != nil {
		return err
	}
	if err := a.decide(ctx); err != nil {
		return err
	}
	return a.intend(ctx)
}

// finish is the second half: run, shape. A panic becomes an error that only the log sees.
func (a *attempt) finish(ctx context.Context) (result jsontext.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("run %s: panic: %v\n%s", a.call.Tool, p, debug.Stack())
		}
	}()
	a.ran = true
	out, err := a.runTool(ctx)
	if err != nil {
		return nil, err
	}
	return a.shape(ctx, out)
}

func (a *attempt) resolve(ctx context.Context) error {
	known, err := a.c.Catalog.Of(ctx, a.call.Caller)
	if err != nil {
		return err
	}
	a.entry, err = known.Resolve(a.call.Tool)
	return err
}

func (a *attempt) validate() error {
	schema, err := a.entry.Schema()
	if err != nil {
		return err
	}
	if err := schema.Check(a.call.Args); err != nil {
		return err
	}
	a.digest = rpc.Digest(a.call.Args)
	return nil
}

// decide lets the call pass or refuses it. What a person does by their own click needs nobody else's yes.
func (a *attempt) decide(ctx context.Context) error {
	if a.entry.ReadOnly || a.call.Caller.Via == store.ViaSession {
		return nil
	}
	standing, err := a.standing.Get(ctx, a.call.Caller.Agent, a.readStanding)
	if err != nil {
		return err
	}
	subject := approval.Subject{
		Tool: a.entry.Wire(), Version: a.entry.Version, Connection: a.entry.Connection, ReadOnly: a.entry.ReadOnly,
	}
	if approval.Decide(subject, standing) == approval.Pass {
		return nil
	}
	return a.c.Desk.Settle(ctx, a.call.Caller, approval.Call{Subject: subject, Run: a.run, Digest: a.digest, Shown: approval.Shown{
		Title: a.entry.Title, Description: a.entry.Description, Kind: string(a.entry.Kind), Vendor: a.entry.Vendor,
		Name: a.entry.Known(), Destructive: a.entry.Destructive, Arguments: a.call.Args,
	}})
}

func (a *attempt) readStanding(ctx context.Context) (approval.Standing, error) {
	var list []store.Approval
	err := a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) (err error) {
		list, err = tx.Approvals(ctx, a.call.Caller.Agent)
		return err
	})
	return approval.NewStanding(list), err
}

// intend makes durable that a call which can change things is about to be made, before anything of it leaves.
func (a *attempt) intend(ctx context.Context) error {
	if a.entry.ReadOnly {
		return nil
	}
	return a.c.Audit.Commit(ctx, a.line(audit.Intent, ""))
}

// runTool calls the source under the deadline.
func (a *attempt) runTool(ctx context.Context) (catalog.Output, error) {
	if a.call.Began != nil {
		a.call.Began(a.run)
	}
	timeout := cmp.Or(min(a.call.Timeout, MaxTimeout), a.entry.Timeout, Timeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := a.entry.Source.Run(limited, catalog.Run{Caller: a.call.Caller, Tool: a.entry.Tool, Args: a.call.Args, Client: a.call.Client})
	word := reason.Of(err).Word
	var why *reason.Refusal
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &why):
		return out, why
	case word == reason.Cancelled || word == reason.Timeout:
		return out, err // the source says more: who did not answer, and whether the call may have been carried out
	case ctx.Err() != nil:
		return out, reason.Refuse(reason.Cancelled, "%s was cancelled.", a.call.Tool)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		return out, reason.Refuse(reason.Timeout, "%s did not finish within %d seconds.", a.call.Tool, int(timeout.Seconds()))
	}
	return out, err
}

// record writes down how the call went. What cannot be written down is not answered, except where a write was carried
// out: its intent stands in the log, and whoever is told to call again would carry it out twice.
func (a *attempt) record(result jsontext.Value, err error) (jsontext.Value, error) {
	var needs *catalog.NeedInput
	outcome := audit.OK
	switch {
	case errors.As(err, &needs):
		outcome = audit.Asked
	case err != nil:
		outcome = string(Refusal(err).Word)
	case a.failed:
		outcome = audit.Failed
	}
	full := a.c.Audit.Record(a.line(audit.Call, outcome))
	switch {
	case full == nil || err != nil:
		return result, err
	case a.ran && !a.entry.ReadOnly:
		a.c.Log.Error("outcome of a call not written down", slog.Any("err", full), slog.String("run", a.run.String()), slog.String("outcome", outcome))
		return result, nil
	}
	return nil, full
}

func (a *attempt) line(kind audit.Kind, outcome string) audit.Entry {
	c := a.call.Caller
	e := audit.Entry{
		Org: c.Org, Run: a.run, Kind: kind, At: a.c.Now(), Via: c.Via, Agent: c.Agent, User: c.User, Tool: a.call.Tool, Digest: a.digest, Outcome: outcome,
	}
	if kind == audit.Call {
		e.Took = e.At.Sub(a.began)
	}
	if a.entry != nil {
		e.Tool, e.Version, e.Source, e.Connection = a.entry.Wire(), a.entry.Version, string(a.entry.Kind), a.entry.Connection
	}
	return e
}
