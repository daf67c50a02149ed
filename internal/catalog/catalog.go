package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A Catalog is all sources as one.
type Catalog struct{ sources []Source }

// New makes a catalog of sources. Where two have a tool of one wire name, the source that stands first has it.
func New(sources ...Source) *Catalog { return &Catalog{sources} }

// An Entry is a tool together with the source that runs it.
type Entry struct {
	Tool
	Source Source
}

// All lists every tool the caller's organisation has.
func (c *Catalog) All(ctx context.Context, caller store.Caller) ([]Entry, error) {
	var list []Entry
	seen := map[string]bool{}
	for _, s := range c.sources {
		tools, err := s.Tools(ctx, caller)
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		for _, t := range tools {
			if w := t.Wire(); !seen[w] {
				seen[w] = true
				list = append(list, Entry{t, s})
			}
		}
	}
	return list, nil
}

// Resolve finds the tool of that wire name, or refuses with tool_not_found.
func (c *Catalog) Resolve(ctx context.Context, caller store.Caller, wire string) (Entry, error) {
	list, err := c.All(ctx, caller)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range list {
		if e.Wire() == wire {
			return e, nil
		}
	}
	vendor, name, _ := strings.Cut(wire, "__")
	return Entry{}, reason.Refuse(reason.ToolNotFound, "There is no tool %q of vendor %q. Search with find_tool.", name, vendor)
}
