package catalog

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// maxSnapshots bounds the organisations a replica keeps the tools of; the least active are read again.
	maxSnapshots = 5_000
	// maxSchemas bounds the compiled schemas that are kept, those of tools in a snapshot apart.
	maxSchemas = 4_096
)

// A Catalog is all sources as one. It is a bus listener.
type Catalog struct {
	sources   []Source
	snapshots *bus.Cache[store.OrgID, *Snapshot]
	schemas   *lru.Cache[string, *Schema] // by the text of an input schema
}

// New makes a catalog of sources. Where two have a tool of one wire name, the source that stands first has it. healthy
// is a Bus's: while it is false tools are read anew for every call.
func New(healthy func() bool, sources ...Source) (*Catalog, error) {
	snapshots, err := bus.NewCache[store.OrgID, *Snapshot](maxSnapshots, healthy)
	if err != nil {
		return nil, err
	}
	schemas, err := lru.New[string, *Schema](maxSchemas)
	return &Catalog{sources: sources, snapshots: snapshots, schemas: schemas}, err
}

// Of is what the caller's organisation has, from memory where it is known.
func (c *Catalog) Of(ctx context.Context, caller store.Caller) (*Snapshot, error) {
	return c.snapshots.Get(ctx, caller.Org, func(ctx context.Context) (*Snapshot, error) { return c.read(ctx, caller) })
}

func (c *Catalog) read(ctx context.Context, caller store.Caller) (*Snapshot, error) {
	s := &Snapshot{byWire: map[string]*Entry{}}
	for _, source := range c.sources {
		tools, err := source.Tools(ctx, caller)
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		for _, t := range tools {
			if w := t.Wire(); s.byWire[w] == nil {
				e := &Entry{Tool: t, Source: source, catalog: c, wire: w}
				s.byWire[w] = e
				s.entries = append(s.entries, e)
			}
		}
	}
	s.index = sync.OnceValue(func() *Index { return NewIndex(s.entries) })
	return s, nil
}

// Hear implements bus.Listener.
func (c *Catalog) Hear(e bus.Event) {
	if e.Topic != bus.Tools {
		return
	}
	if org, err := store.ParseID[store.OrgKind](e.ID); err == nil {
		c.snapshots.Forget(org)
	}
}

// Reset implements bus.Listener.
func (c *Catalog) Reset() { c.snapshots.Reset() }

// A Snapshot is an organisation's tools at one moment. It never changes.
type Snapshot struct {
	entries []*Entry
	byWire  map[string]*Entry
	index   func() *Index // made when it is first searched
}

// All lists every tool, in the order of the sources.
func (s *Snapshot) All() []*Entry { return s.entries }

// Resolve finds the tool of that wire name, or refuses with tool_not_found.
func (s *Snapshot) Resolve(wire string) (*Entry, error) {
	if e := s.byWire[wire]; e != nil {
		return e, nil
	}
	vendor, name, _ := strings.Cut(wire, "__")
	return nil, reason.Refuse(reason.ToolNotFound, "There is no tool %q of vendor %q. Search with find_tool.", name, vendor)
}

// Find ranks the tools that fit a question, the best first. A question without a usable word is refused as input_invalid.
func (s *Snapshot) Find(question string, promoted map[string]bool) ([]Hit, error) {
	return s.index().Find(question, promoted)
}

// Named finds a tool by its vendor and its name, which is the one on the wire or the one its source knows it by.
func (s *Snapshot) Named(vendor, name string) (*Entry, error) {
	wire := Tool{Vendor: vendor, Name: name}.Wire()
	if e := s.byWire[wire]; e != nil {
		return e, nil
	}
	for _, e := range s.entries {
		if e.Vendor == vendor && e.Original == name && name != "" {
			return e, nil
		}
	}
	return s.Resolve(wire)
}

// An Entry is a tool together with the source that runs it.
type Entry struct {
	Tool
	Source Source

	catalog *Catalog
	wire    string
	once    sync.Once
	schema  *Schema
	err     error
}

// Wire is the tool's wire name.
func (e *Entry) Wire() string {
	if e.wire == "" {
		return e.Tool.Wire()
	}
	return e.wire // made once: every call asks for it
}

// Schema is the tool's input schema, compiled when it is first wanted. Tools of one text share it.
func (e *Entry) Schema() (*Schema, error) {
	e.once.Do(func() {
		if e.schema, e.err = e.catalog.compile(e.InputSchema); e.err != nil {
			e.err = fmt.Errorf("tool %s: %w", e.wire, e.err)
		}
	})
	return e.schema, e.err
}

func (c *Catalog) compile(raw jsontext.Value) (*Schema, error) {
	if s, ok := c.schemas.Get(string(raw)); ok {
		return s, nil
	}
	s, err := CompileSchema(raw)
	if err == nil {
		c.schemas.Add(string(raw), s)
	}
	return s, err
}
