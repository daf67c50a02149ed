package invoke

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// Timeout bounds one call.
const Timeout = 60 * time.Second

// A Call is what is asked for.
type Call struct {
	Caller store.Caller
	Tool   string         // wire name
	Args   jsontext.Value // a JSON object; nil means {}
	Client catalog.Client // nil means catalog.Nobody
}

// An Invoker runs calls.
type Invoker struct{ catalog *catalog.Catalog }

// New makes an Invoker over a catalog.
func New(c *catalog.Catalog) (*Invoker, error) { return &Invoker{catalog: c}, nil }

// Do runs one call and returns its CallToolResult as raw JSON. A refusal is a *reason.Refusal: tool_not_found,
// input_invalid, forbidden, timeout, or the tool's own.
func (i *Invoker) Do(ctx context.Context, call Call) (jsontext.Value, error) {
	known, err := i.catalog.Of(ctx, call.Caller)
	if err != nil {
		return nil, err
	}
	entry, err := known.Resolve(call.Tool)
	if err != nil {
		return nil, err
	}
	if call.Args == nil {
		call.Args = jsontext.Value("{}")
	}
	if call.Client == nil {
		call.Client = catalog.Nobody{}
	}
	schema, err := entry.Schema()
	if err != nil {
		return nil, err
	}
	if err := schema.Check(call.Args); err != nil {
		return nil, err
	}
	if !entry.ReadOnly {
		return nil, reason.Refuse(reason.Forbidden, "%s can change things, and nobody can be asked for approval yet.", call.Tool)
	}
	out, err := run(ctx, entry, call)
	if err != nil {
		return nil, err
	}
	if out.Raw != nil {
		return rpc.OneLine(out.Raw), nil
	}
	return rpc.ToolResult(Bound(out.Value)), nil
}

// run calls the source under the deadline, and turns a panic into an error that only the log sees.
func run(ctx context.Context, e *catalog.Entry, call Call) (out catalog.Output, err error) {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("run %s: panic: %v\n%s", call.Tool, p, debug.Stack())
		}
	}()
	out, err = e.Source.Run(limited, catalog.Run{Caller: call.Caller, Tool: e.Tool, Args: call.Args, Client: call.Client})
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, reason.Refuse(reason.Cancelled, "%s was cancelled.", call.Tool)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		return out, reason.Refuse(reason.Timeout, "%s did not finish within %d seconds.", call.Tool, int(Timeout.Seconds()))
	}
	return out, err
}
