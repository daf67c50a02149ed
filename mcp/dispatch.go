package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// initializeParams is the part of InitializeRequest that we act on. A client's other capabilities are its own.
type initializeParams struct {
	ProtocolVersion string `json:"protocolVersion"`
	Capabilities    struct {
		Elicitation *mcpgo.ElicitationCapability `json:"elicitation"`
	} `json:"capabilities"`
	ClientInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"clientInfo"`
}

// initialize opens a session (MCP 2025-11-25, Lifecycle, Initialization). A session id that comes along is passed
// over: a client that starts anew may still hold an old one.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, c store.Caller, as string, m rpc.Message) error {
	if m.IsNotification() {
		return h.fail(w, m.ID, &rpc.Error{Code: rpc.InvalidRequest, Message: "initialize needs an id."})
	}
	var p initializeParams
	failed := rpc.Params(m.Params, &p)
	if failed == nil && p.ProtocolVersion == "" {
		failed = &rpc.Error{Code: rpc.InvalidParams, Message: "params.protocolVersion is missing."}
	}
	if failed != nil {
		h.write(w, as, rpc.AppendError(nil, m.ID, failed))
		return nil
	}
	now := h.now()
	s := session{
		id:      store.NewID[store.SessionKind](now),
		agent:   c.Agent,
		version: negotiate(p.ProtocolVersion),
		can:     elicits(p.Capabilities.Elicitation),
	}
	h.usage.opened(c, store.MCPSession{
		ID: s.id, AgentID: c.Agent, Protocol: s.version, Address: h.c.Address(r), OpenedAt: s.id.Time(), LastSeenAt: now,
		ClientName: printable(p.ClientInfo.Name), ClientVersion: printable(p.ClientInfo.Version),
	})
	result, err := json.Marshal(mcpgo.InitializeResult{
		ProtocolVersion: s.version,
		Capabilities: mcpgo.ServerCapabilities{Tools: &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{ListChanged: true}},
		ServerInfo:   mcpgo.Implementation{Name: "graft", Title: "Graft", Version: h.c.Version},
		Instructions: instructions(h.served()),
	})
	if err != nil {
		return err
	}
	w.Header().Set(headerSession, h.sealSession(s))
	h.write(w, as, rpc.AppendResult(nil, m.ID, result))
	return nil
}

// answer carries out one request of a session and returns its whole response.
func (h *Handler) answer(ctx context.Context, c store.Caller, m rpc.Message) []byte {
	result, failed := h.dispatch(ctx, c, m)
	if failed != nil {
		return rpc.AppendError(nil, m.ID, failed)
	}
	return rpc.AppendResult(nil, m.ID, result)
}

var empty = jsontext.Value(`{}`)

func (h *Handler) dispatch(ctx context.Context, c store.Caller, m rpc.Message) (jsontext.Value, *rpc.Error) {
	switch mcpgo.MCPMethod(m.Method) {
	case mcpgo.MethodPing:
		return empty, nil
	case mcpgo.MethodToolsList:
		return h.list(ctx, c, m)
	case mcpgo.MethodToolsCall:
		return h.call(ctx, c, m)
	}
	return nil, &rpc.Error{Code: rpc.MethodNotFound, Message: "There is no method " + clip(m.Method) + " here."}
}

// callParams are the params of tools/call.
type callParams struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// call runs a tool. Only a name that nothing has is a JSON-RPC error; whatever else goes wrong is a result that the
// model can read (MCP 2025-11-25, Tools, Error Handling).
func (h *Handler) call(ctx context.Context, c store.Caller, m rpc.Message) (jsontext.Value, *rpc.Error) {
	var p callParams
	if failed := rpc.Params(m.Params, &p); failed != nil {
		return nil, failed
	}
	args, failed := arguments(p.Arguments)
	if failed != nil {
		return nil, failed
	}
	result, err := h.run(ctx, c, p.Name, args)
	var r *reason.Refusal
	if errors.As(err, &r) && r.Word == reason.ToolNotFound && h.tools[p.Name].run == nil {
		return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "Unknown tool: " + clip(p.Name) + ".", Reason: reason.ToolNotFound}
	}
	if err != nil {
		return h.refused(ctx, c, err), nil
	}
	return result, nil
}

// arguments takes an absent or null value for {}: they are optional in a CallToolRequest.
func arguments(v jsontext.Value) (jsontext.Value, *rpc.Error) {
	switch v.Kind() {
	case 0, 'n':
		return empty, nil
	case '{':
		return v, nil
	}
	return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "params.arguments must be an object."}
}

func (h *Handler) run(ctx context.Context, c store.Caller, name string, args jsontext.Value) (jsontext.Value, error) {
	if t, ok := h.tools[name]; ok {
		return t.call(ctx, h, c, args)
	}
	return h.c.Invoker.Do(ctx, invoke.Call{Caller: c, Tool: name, Args: args})
}

// refused is the result of a call that did not run. An error that is no refusal is logged here, at the edge, and
// its text withheld.
func (h *Handler) refused(ctx context.Context, c store.Caller, err error) jsontext.Value {
	r := reason.Of(err)
	if r.Word == reason.Internal {
		h.c.Log.ErrorContext(ctx, "tool call failed", slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)), slog.String("agent", c.Agent.String()))
	}
	return rpc.ToolRefusal(r, h.c.RequestID(ctx))
}
