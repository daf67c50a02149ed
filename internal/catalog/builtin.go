package catalog

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/store"
)

// Builtins is the source of our own tools: builtin__<name>.
type Builtins struct{}

var reshape = Tool{
	Vendor: "builtin",
	Name:   "reshape",
	Title:  "Reshape",
	Description: "Returns the JSON value given as shape, exactly as given. Used to build the value a task needs out of parts at hand, " +
		"and to check that a connection to the gateway works. Reads nothing and changes nothing.",
	InputSchema: jsontext.Value(`{"type":"object","properties":{"shape":{"description":"Any JSON value."}},"required":["shape"],"additionalProperties":false}`),
	ReadOnly:    true,
	Kind:        KindBuiltin,
	Version:     1,
}

// Tools implements Source.
func (Builtins) Tools(context.Context, store.Caller) ([]Tool, error) { return []Tool{reshape}, nil }

// Run implements Source.
func (Builtins) Run(_ context.Context, r Run) (Output, error) {
	if r.Tool.Name != reshape.Name {
		return Output{}, fmt.Errorf("no builtin %q", r.Tool.Name)
	}
	var in struct {
		Shape jsontext.Value `json:"shape"`
	}
	if err := json.Unmarshal(r.Args, &in); err != nil {
		return Output{}, fmt.Errorf("read arguments of reshape: %w", err)
	}
	return Output{Value: in.Shape}, nil
}
