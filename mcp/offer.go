package mcp

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// An Offer finds what is served to a caller beside tools: prompts, resources, completion. A nil server is nothing.
type Offer func(context.Context, store.Caller) (*mcpserver.MCPServer, error)

// An offer is what is served to one caller beside tools. mcp-go answers it: it is given the method and the params
// under an id of ours and a session of ours, and never sees the client's envelope.
type offer struct{ server *mcpserver.MCPServer }

// offer is the caller's, or nil.
func (h *Handler) offer(ctx context.Context, c store.Caller) (*offer, error) {
	if h.c.Offer == nil {
		return nil, nil //nolint:nilnil // no offer is the common case, and not an error
	}
	s, err := h.c.Offer(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	return &offer{s}, nil
}

// capabilities are what the offer says it has.
func (o *offer) capabilities(ctx context.Context) (mcpgo.ServerCapabilities, error) {
	result, failed, err := o.handle(ctx, string(mcpgo.MethodInitialize),
		jsontext.Value(`{"protocolVersion":"`+versions[len(versions)-1]+`","capabilities":{},"clientInfo":{"name":"graft","version":"1"}}`))
	if err != nil || failed != nil {
		return mcpgo.ServerCapabilities{}, err
	}
	var init mcpgo.InitializeResult
	err = json.Unmarshal(result, &init)
	return init.Capabilities, err
}

// handle sends one request through mcp-go.
func (o *offer) handle(ctx context.Context, method string, params jsontext.Value) (jsontext.Value, *rpc.Error, error) {
	raw, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      int            `json:"id"`
		Method  string         `json:"method"`
		Params  jsontext.Value `json:"params,omitempty"`
	}{"2.0", 1, method, params})
	if err != nil {
		return nil, nil, err
	}
	answer := o.server.HandleMessage(o.server.WithContext(ctx, newOfferSession()), raw)
	b, err := json.Marshal(answer)
	if err != nil {
		return nil, nil, err
	}
	var m struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, nil, err
	}
	if m.Error != nil {
		return nil, &rpc.Error{Code: m.Error.Code, Message: m.Error.Message}, nil
	}
	return m.Result, nil, nil
}

// offerMethods are what mcp-go is asked. Everything else about the protocol is ours.
var offerMethods = map[mcpgo.MCPMethod]bool{
	mcpgo.MethodPromptsList: true, mcpgo.MethodPromptsGet: true, mcpgo.MethodResourcesList: true,
	mcpgo.MethodResourcesRead: true, mcpgo.MethodResourcesTemplatesList: true, mcpgo.MethodCompletionComplete: true,
}

// offered answers a method that is served only where there is an offer.
func (q *request) offered(ctx context.Context) (jsontext.Value, *rpc.Error) {
	if !offerMethods[mcpgo.MCPMethod(q.m.Method)] {
		return nil, q.unknownMethod()
	}
	o, err := q.h.offer(ctx, q.caller)
	if err != nil {
		return nil, q.h.failed(ctx, "read offer", err)
	}
	if o == nil {
		return nil, q.unknownMethod()
	}
	result, failed, err := o.handle(ctx, q.m.Method, q.m.Params)
	if err != nil {
		return nil, q.h.failed(ctx, "answer "+q.m.Method, err)
	}
	if failed != nil && failed.Code == rpc.InternalError { // mcp-go answers with the text of whatever went wrong
		return nil, q.h.failed(ctx, "answer "+q.m.Method, errOffer{failed.Message})
	}
	if failed != nil && q.m.Method == string(mcpgo.MethodResourcesRead) {
		failed.Details = whichResource(q.m.Params)
	}
	return result, failed
}

// whichResource is the data of the error about a resource that is not there (Resources, Error Handling).
func whichResource(params jsontext.Value) map[string]any {
	var p struct {
		URI string `json:"uri"`
	}
	if failed := rpc.Params(params, &p); failed != nil {
		return nil
	}
	return map[string]any{"uri": p.URI}
}

// errOffer is an error of what is offered; its text is for the log.
type errOffer struct{ text string }

func (e errOffer) Error() string { return e.text }

// offerSession is the session mcp-go sees: one request long, with nobody to notify.
type offerSession struct {
	notifications chan mcpgo.JSONRPCNotification
}

func newOfferSession() *offerSession {
	return &offerSession{notifications: make(chan mcpgo.JSONRPCNotification, 16)}
}

func (*offerSession) Initialize()       {}
func (*offerSession) Initialized() bool { return true }
func (*offerSession) SessionID() string { return "" }
func (s *offerSession) NotificationChannel() chan<- mcpgo.JSONRPCNotification {
	return s.notifications
}
