package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/store"
)

// A Tool is a callable thing.
type Tool struct {
	Vendor       string   // "builtin" for our own; "" where the name stands alone
	VendorNames  []string // what people call the vendor, where that is not Vendor
	Name         string   // what follows <vendor>__ on the wire
	Title        string
	Description  string
	InputSchema  jsontext.Value // a JSON Schema whose root is an object
	OutputSchema jsontext.Value // likewise; nil for none
	Annotations  jsontext.Value // beside the two hints, which are ours: what an MCP server said; nil for nothing
	Kind         Kind           // "" is KindBuiltin
	Version      int            // counts up when the tool changes: an approval is for one version
	Original     string         // the name its source knows it by; "" where that is Name
	Connection   store.ConnectionID
	ReadOnly     bool
	Destructive  bool
	Idempotent   bool
	Timeout      time.Duration // of one call; 0: invoke's own
	Stale        bool          // its source cannot be reached; this is the last that was known
}

// Kind is what sort of source a tool comes from.
type Kind string

// The kinds.
const (
	KindBuiltin  Kind = "builtin"
	KindAuthored Kind = "authored"
	KindUpstream Kind = "upstream"
	KindPlan     Kind = "plan"
)

// Wire is the name the tool is listed and called under.
func (t Tool) Wire() string {
	if t.Vendor == "" {
		return t.Name
	}
	return t.Vendor + "__" + t.Name
}

// Known is the name that the tool's source knows it by.
func (t Tool) Known() string { return cmp.Or(t.Original, t.Name) }

// A Source is where tools come from.
type Source interface {
	// Tools lists what the source has for the caller's organisation, in a stable order.
	Tools(ctx context.Context, c store.Caller) ([]Tool, error)
	// Run runs one of its tools. A *reason.Refusal is for the agent to read, a *NeedInput is for its person to
	// answer; any other error is ours.
	Run(ctx context.Context, r Run) (Output, error)
}

// A Run is one run of a tool: what it is given, and whom it can talk to while it runs.
type Run struct {
	Caller store.Caller
	Tool   Tool
	Args   jsontext.Value // an object that fits the tool's schema
	Client Client         // never nil
}

// Output is what a tool returns: one of the two.
type Output struct {
	Value jsontext.Value // a JSON value, which becomes text and structured content
	Raw   jsontext.Value // a whole CallToolResult of an MCP server, which passes through
}

// A Client is the other end of a call: an agent's client over MCP, or nobody.
type Client interface {
	// Progress tells how far the run is, if the client asked to be told. It never waits.
	Progress(p Progress)
	// Log sends a log message, if the client wants that level. It never waits.
	Log(level, logger string, data jsontext.Value)
	// Ask asks the person at the client to fill a form. Where the question can only be answered by calling again,
	// the error is a *NeedInput, which the tool returns as it is.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Progress is how far a run is (MCP, Progress).
type Progress struct {
	Done    float64
	Total   float64 // 0: not known
	Message string
}

// A Question is a form for a person (MCP, Elicitation, form mode).
type Question struct {
	Key     string // tells this question from the tool's others
	Message string
	Schema  jsontext.Value // requestedSchema: a flat object of primitives
}

// An Answer is what a person did with a form.
type Answer struct {
	Action  string // accept, decline or cancel
	Content jsontext.Value
}

// NeedInput is the error of a question that is answered by calling the tool again.
type NeedInput struct{ Questions []Question }

// Error implements error.
func (e *NeedInput) Error() string {
	return fmt.Sprintf("needs the answer to %d questions", len(e.Questions))
}

// ErrCannotAsk says that the client has no way to ask its person: it did not declare one, or has gone.
var ErrCannotAsk = errors.New("the client cannot ask its person")

// Nobody is the Client of a call that no client waits for: what it is told is dropped, and what it is asked cannot be
// answered.
type Nobody struct{}

// Progress implements Client.
func (Nobody) Progress(Progress) {}

// Log implements Client.
func (Nobody) Log(string, string, jsontext.Value) {}

// Ask implements Client.
func (Nobody) Ask(context.Context, Question) (Answer, error) { return Answer{}, ErrCannotAsk }
