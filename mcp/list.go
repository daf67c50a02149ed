package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

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

// render draws every page of an agent's list for both eras: the meta-tools in their fixed order, then its working set
// by name. A promoted tool that is gone is left out. The digest tells one list from another.
func (h *Handler) render(ctx context.Context, c store.Caller, promoted []string) (pages map[era][]page, digest []byte, err error) {
	var tools []mcpgo.Tool
	for _, t := range h.meta {
		tools = append(tools, wireTool(t.Name, t.Tool))
	}
	known, err := h.c.Catalog.Of(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range promoted {
		if e, err := known.Resolve(name); err == nil {
			tools = append(tools, wireTool(name, e.Tool))
		}
	}
	pages = map[era][]page{}
	sum := sha256.New()
	after := ""
	for len(tools) > 0 {
		n := min(pageSize, len(tools))
		drawn := mcpgo.ListToolsResult{Tools: tools[:n]}
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
	return w
}

func annotations(t catalog.Tool) mcpgo.ToolAnnotation {
	a := mcpgo.ToolAnnotation{Title: t.Title, ReadOnlyHint: &t.ReadOnly, DestructiveHint: &t.Destructive}
	if t.Idempotent {
		a.IdempotentHint = &t.Idempotent
	}
	return a
}

// served names every tool and feature that the instructions may speak of.
func (h *Handler) served() map[string]bool {
	served := map[string]bool{featureAsks: true}
	for _, t := range h.meta {
		served[t.Name] = true
	}
	return served
}
