package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// pageSize is how many tools one page of tools/list holds.
const pageSize = 200

// list answers tools/list from the view's bytes.
func (q *request) list(ctx context.Context) (jsontext.Value, *rpc.Error) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if failed := rpc.Params(q.m.Params, &p); failed != nil {
		return nil, failed
	}
	v, err := q.h.view(ctx, q.caller)
	if err != nil {
		return nil, q.h.failed(ctx, "list tools", err)
	}
	after := ""
	if p.Cursor != "" {
		plain, err := openText(q.h.c.Sessions, cursorPlace(q.caller), p.Cursor)
		if err != nil {
			return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "params.cursor is not one of ours."}
		}
		after = string(plain)
	}
	return pageAfter(v.pages[q.era], after), nil
}

// pageAfter is the first page that begins at or after a name. The list may have moved since the cursor was given; what
// stands at the seam is then listed again rather than left out.
func pageAfter(pages []page, after string) jsontext.Value {
	at := 0
	for i, p := range pages {
		if p.after <= after {
			at = i
		}
	}
	return pages[at].result
}

func cursorPlace(c store.Caller) []byte { return []byte("tools/list " + c.Agent.String()) }

// workingTools are what an agent is shown: the meta-tools in their fixed order, then its working set and all tools of the
// upstreams it is shown whole, by name. A promoted tool that is gone is left out.
func (h *Handler) workingTools(known *catalog.Snapshot, promoted, whole []string) []mcpgo.Tool {
	names := slices.Clone(promoted)
	for _, e := range known.All() {
		if e.Kind == catalog.KindUpstream && slices.Contains(whole, e.Vendor) {
			names = append(names, e.Wire())
		}
	}
	slices.Sort(names)
	tools := make([]mcpgo.Tool, 0, len(h.meta)+len(names))
	for _, t := range h.meta {
		tools = append(tools, wireTool(t.Name, t.Tool))
	}
	for _, name := range slices.Compact(names) {
		if e, err := known.Resolve(name); err == nil {
			tools = append(tools, wireTool(name, e.Tool))
		}
	}
	return tools
}

// boundTools are what an agent that is bound to one upstream is shown: that upstream's tools under their own names. It
// has no meta-tools, and no name but those.
func boundTools(known *catalog.Snapshot, upstream string) (tools []mcpgo.Tool, names map[string]string) {
	names = map[string]string{}
	for _, e := range known.All() {
		if e.Kind == catalog.KindUpstream && e.Vendor == upstream {
			names[e.Known()] = e.Wire()
			tools = append(tools, wireTool(e.Known(), e.Tool))
		}
	}
	slices.SortFunc(tools, func(a, b mcpgo.Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools, names
}

// render draws every page of a list for both eras. The digest tells one list from another.
func (h *Handler) render(c store.Caller, tools []mcpgo.Tool) (pages map[era][]page, digest []byte, err error) {
	pages = map[era][]page{}
	sum := sha256.New()
	after := ""
	for first := true; first || len(tools) > 0; first = false {
		n := min(pageSize, len(tools))
		drawn := mcpgo.ListToolsResult{Tools: append([]mcpgo.Tool{}, tools[:n]...)}
		next := ""
		if tools = tools[n:]; len(tools) > 0 {
			next = drawn.Tools[n-1].Name
			drawn.NextCursor = mcpgo.Cursor(sealText(h.c.Sessions, cursorPlace(c), []byte(next)))
		}
		result, err := json.Marshal(drawn)
		if err != nil {
			return nil, nil, fmt.Errorf("draw tools/list: %w", err)
		}
		_, _ = sum.Write(bytes.Replace(result, []byte(drawn.NextCursor), nil, 1)) // a cursor is sealed anew each time
		cached := append([]byte(fmt.Sprintf(`{"ttlMs":%d,"cacheScope":"private",`, ttl)), result[1:]...)
		pages[sessions] = append(pages[sessions], page{after, result})
		pages[stateless] = append(pages[stateless], page{after, h.complete(cached)})
		after = next
	}
	return pages, sum.Sum(nil), nil
}

// wireTool is a tool as tools/list shows it. Both hints are always set: a client takes an absent one for destructive.
func wireTool(name string, t catalog.Tool) mcpgo.Tool {
	w := mcpgo.NewToolWithRawSchema(name, t.Description, json.RawMessage(t.InputSchema))
	w.Title = t.Title
	w.Annotations = annotations(t)
	w.RawOutputSchema = json.RawMessage(t.OutputSchema)
	if t.Stale {
		w.Meta = mcpgo.NewMetaFromMap(map[string]any{"graft/stale": true})
	}
	return w
}

func annotations(t catalog.Tool) mcpgo.ToolAnnotation {
	a := mcpgo.ToolAnnotation{Title: t.Title, ReadOnlyHint: &t.ReadOnly, DestructiveHint: &t.Destructive}
	if t.Idempotent {
		a.IdempotentHint = &t.Idempotent
	}
	var said struct {
		OpenWorld *bool `json:"openWorldHint"`
	}
	if json.Unmarshal(t.Annotations, &said) == nil {
		a.OpenWorldHint = said.OpenWorld
	}
	return a
}

// served names every tool and feature that the instructions to an agent may speak of.
func (h *Handler) served(v *view) map[string]bool {
	served := map[string]bool{featureAsks: true}
	if v.bound != nil {
		return served
	}
	for _, t := range h.meta {
		served[t.Name] = true
	}
	return served
}
