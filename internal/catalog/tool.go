package catalog

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/store"
)

// A Tool is a callable thing.
type Tool struct {
	Vendor      string // "builtin" for our own
	Name        string // what follows <vendor>__ on the wire
	Title       string
	Description string
	InputSchema jsontext.Value // a JSON Schema whose root is an object
	ReadOnly    bool
	Destructive bool
}

// Wire is the name the tool is listed and called under.
func (t Tool) Wire() string { return t.Vendor + "__" + t.Name }

// A Source is where tools come from.
type Source interface {
	// Tools lists what the source has for the caller's organisation, in a stable order.
	Tools(ctx context.Context, c store.Caller) ([]Tool, error)
	// Run calls one of its tools with arguments that fit the tool's schema, and returns a JSON value. A
	// *reason.Refusal is for the agent to read; any other error is ours.
	Run(ctx context.Context, c store.Caller, t Tool, args jsontext.Value) (jsontext.Value, error)
}
