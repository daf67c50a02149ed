package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// list answers tools/list: the meta-tools in their fixed order, then the agent's working set by name.
func (h *Handler) list(ctx context.Context, c store.Caller, m rpc.Message) (jsontext.Value, *rpc.Error) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if failed := rpc.Params(m.Params, &p); failed != nil {
		return nil, failed
	}
	if p.Cursor != "" { // one page holds everything, so no cursor was ever given out
		return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "params.cursor is not one of ours."}
	}
	tools, err := h.listed(ctx, c)
	if err != nil {
		r := reason.Of(err)
		if r.Word == reason.Internal {
			h.c.Log.ErrorContext(ctx, "list failed", slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)))
			r = r.With("requestId", h.c.RequestID(ctx))
		}
		return nil, rpc.FromRefusal(r)
	}
	result, err := json.Marshal(mcpgo.ListToolsResult{Tools: tools})
	if err != nil {
		return nil, rpc.FromRefusal(reason.Of(err))
	}
	return result, nil
}

func (h *Handler) listed(ctx context.Context, c store.Caller) ([]mcpgo.Tool, error) {
	var tools []mcpgo.Tool
	for _, t := range metaTools {
		tools = append(tools, wireTool(t.Name, t.Tool))
	}
	promoted, err := h.promoted(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err := h.c.Catalog.All(ctx, c)
	if err != nil {
		return nil, err
	}
	byName := map[string]catalog.Tool{}
	for _, e := range all {
		byName[e.Wire()] = e.Tool
	}
	for _, p := range promoted {
		if t, ok := byName[p.Tool]; ok { // a promoted tool that is gone is left out
			tools = append(tools, wireTool(t.Wire(), t))
		}
	}
	return tools, nil
}

func (h *Handler) promoted(ctx context.Context, c store.Caller) (set []store.Promotion, err error) {
	err = h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		set, err = tx.WorkingSet(ctx, c.Agent)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load working set of %s: %w", c.Agent, err)
	}
	return set, nil
}

// wireTool is a tool as tools/list shows it. Both hints are always set: a client takes an absent one for destructive.
func wireTool(name string, t catalog.Tool) mcpgo.Tool {
	w := mcpgo.NewToolWithRawSchema(name, t.Description, json.RawMessage(t.InputSchema))
	w.Title = t.Title
	w.Annotations = annotations(t)
	return w
}

func annotations(t catalog.Tool) mcpgo.ToolAnnotation {
	return mcpgo.ToolAnnotation{Title: t.Title, ReadOnlyHint: &t.ReadOnly, DestructiveHint: &t.Destructive}
}

// served names every tool and feature that the instructions may speak of.
func (h *Handler) served() map[string]bool {
	served := map[string]bool{}
	for _, t := range metaTools {
		served[t.Name] = true
	}
	return served
}
