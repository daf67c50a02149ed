package invoke

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
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
}

// An Invoker runs calls.
type Invoker struct {
	catalog *catalog.Catalog
	schemas sync.Map // string(input schema) → *catalog.Schema
}

// New makes an Invoker over a catalog.
func New(c *catalog.Catalog) *Invoker { return &Invoker{catalog: c} }

// Do runs one call and returns its CallToolResult as raw JSON. A refusal is a *reason.Refusal: tool_not_found,
// input_invalid, forbidden, timeout, or the tool's own.
func (i *Invoker) Do(ctx context.Context, call Call) (jsontext.Value, error) {
	entry, err := i.catalog.Resolve(ctx, call.Caller, call.Tool)
	if err != nil {
		return nil, err
	}
	if call.Args == nil {
		call.Args = jsontext.Value("{}")
	}
	schema, err := i.schema(entry.Tool)
	if err != nil {
		return nil, err
	}
	if err := schema.Check(call.Args); err != nil {
		return nil, err
	}
	if !entry.ReadOnly {
		return nil, reason.Refuse(reason.Forbidden, "%s can change things, and nobody can be asked for approval yet.", call.Tool)
	}
	value, err := run(ctx, entry, call)
	if err != nil {
		return nil, err
	}
	return rpc.ToolResult(Bound(value)), nil
}

func (i *Invoker) schema(t catalog.Tool) (*catalog.Schema, error) {
	key := string(t.InputSchema)
	if s, ok := i.schemas.Load(key); ok {
		return s.(*catalog.Schema), nil
	}
	s, err := catalog.CompileSchema(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Wire(), err)
	}
	i.schemas.Store(key, s)
	return s, nil
}

// run calls the source under the deadline, and turns a panic into an error that only the log sees.
func run(ctx context.Context, e catalog.Entry, call Call) (value jsontext.Value, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("run %s: panic: %v\n%s", call.Tool, p, debug.Stack())
		}
	}()
	value, err = e.Source.Run(ctx, call.Caller, e.Tool, call.Args)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, reason.Refuse(reason.Timeout, "%s did not finish within %d seconds.", call.Tool, int(Timeout.Seconds()))
	}
	return value, err
}
