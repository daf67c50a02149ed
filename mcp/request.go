package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// A request is one JSON-RPC request being answered, in either era. It is the catalog.Client of the tool it calls.
type request struct {
	h       *Handler
	era     era
	caller  store.Caller
	session session    // of the sessions era
	can     capability // what the client declared
	m       rpc.Message
	x       *exchange
	left    <-chan struct{} // of the sessions era: closed when the client's connection has gone

	progressToken jsontext.Value // of a call; nil: nobody wants to know
	logLevel      string         // at 2026-07-28: the level asked for; "" is none
	answers       map[string]catalog.Answer
}

// levels of log messages, from least to most (RFC 5424 §6.2.1).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Progress implements catalog.Client.
func (q *request) Progress(p catalog.Progress) {
	if q.progressToken == nil {
		return
	}
	params := struct {
		Token   jsontext.Value `json:"progressToken"`
		Done    float64        `json:"progress"`
		Total   float64        `json:"total,omitzero"`
		Message string         `json:"message,omitzero"`
	}{q.progressToken, p.Done, p.Total, p.Message}
	q.notify(string(mcpgo.MethodNotificationProgress), params)
}

// Log implements catalog.Client.
func (q *request) Log(level, logger string, data jsontext.Value) {
	wanted := q.logLevel
	if q.era == sessions {
		wanted = q.sessionLevel()
	}
	if wanted == "" || slices.Index(levels, level) < slices.Index(levels, wanted) {
		return
	}
	q.notify(string(mcpgo.MethodNotificationMessage), struct {
		Level  string         `json:"level"`
		Logger string         `json:"logger,omitzero"`
		Data   jsontext.Value `json:"data"`
	}{level, logger, data})
}

// sessionLevel is the level the session's client set, or info while it set none.
func (q *request) sessionLevel() string {
	if v, err := q.h.view(context.Background(), q.caller); err == nil && v.levels[q.session.id] != "" {
		return v.levels[q.session.id]
	}
	return "info"
}

func (q *request) notify(method string, params any) {
	b, err := jsonv2.Marshal(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	if err == nil {
		q.x.send(b)
	}
}

// elicitParams are the params of elicitation/create in form mode.
type elicitParams struct {
	Mode    string         `json:"mode,omitzero"` // absent before 2025-11-25
	Message string         `json:"message"`
	Schema  jsontext.Value `json:"requestedSchema"`
}

func (q *request) elicitation(question catalog.Question) elicitParams {
	p := elicitParams{Message: question.Message, Schema: question.Schema}
	if q.era == stateless || q.session.version >= mcpgo.ProtocolVersion20251125 {
		p.Mode = "form"
	}
	return p
}

// Ask implements catalog.Client.
func (q *request) Ask(ctx context.Context, question catalog.Question) (catalog.Answer, error) {
	if q.can&canElicitForm == 0 {
		return catalog.Answer{}, catalog.ErrCannotAsk
	}
	if q.era == stateless {
		if a, ok := q.answers[question.Key]; ok {
			return a, nil
		}
		return catalog.Answer{}, &catalog.NeedInput{Questions: []catalog.Question{question}}
	}
	return q.elicit(ctx, question)
}

// elicit asks on the stream of the call itself, and waits for the answer, which may reach any replica.
func (q *request) elicit(ctx context.Context, question catalog.Question) (catalog.Answer, error) {
	id, answer, done := q.h.waiting.ask(q.caller, q.session.id)
	defer done()
	b, err := jsonv2.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  string         `json:"method"`
		Params  elicitParams   `json:"params"`
	}{"2.0", jsontext.Value(id), string(mcpgo.MethodElicitationCreate), q.elicitation(question)})
	if err != nil {
		return catalog.Answer{}, err
	}
	if !q.x.send(b) {
		return catalog.Answer{}, catalog.ErrCannotAsk
	}
	select {
	case m := <-answer:
		return readAnswer(m.Result)
	case <-q.x.left:
		return catalog.Answer{}, catalog.ErrCannotAsk
	case <-ctx.Done():
		return catalog.Answer{}, ctx.Err()
	}
}

// readAnswer reads an ElicitResult. Anything else, an error of the client's among it, is no answer.
func readAnswer(result jsontext.Value) (catalog.Answer, error) {
	var a struct {
		Action  string         `json:"action"`
		Content jsontext.Value `json:"content"`
	}
	if result == nil || jsonv2.Unmarshal(result, &a) != nil || !slices.Contains([]string{"accept", "decline", "cancel"}, a.Action) {
		return catalog.Answer{}, catalog.ErrCannotAsk
	}
	return catalog.Answer{Action: a.Action, Content: a.Content}, nil
}

// answer carries the request out and returns its whole response, and the HTTP status of an answer that is JSON.
func (q *request) answer(ctx context.Context) (response []byte, status int) {
	result, failed := q.dispatch(ctx)
	if failed != nil {
		status := http.StatusOK
		if q.era == stateless {
			status = statusStateless(failed)
		}
		return rpc.AppendError(nil, q.m.ID, failed), status
	}
	if q.era == stateless {
		result = q.h.complete(result)
	}
	return rpc.AppendResult(nil, q.m.ID, result), http.StatusOK
}

var empty = jsontext.Value(`{}`)

// dispatch answers a method. Which methods there are depends on the era.
func (q *request) dispatch(ctx context.Context) (jsontext.Value, *rpc.Error) {
	method := mcpgo.MCPMethod(q.m.Method)
	switch {
	case method == mcpgo.MethodToolsList:
		return q.list(ctx)
	case method == mcpgo.MethodToolsCall:
		return q.call(ctx)
	case method == mcpgo.MethodPing && q.era == sessions:
		return empty, nil
	case method == mcpgo.MethodSetLogLevel && q.era == sessions:
		return q.setLevel(ctx)
	case method == mcpgo.MethodServerDiscover && q.era == stateless:
		return q.discover(ctx)
	}
	return q.offered(ctx)
}

func (q *request) unknownMethod() *rpc.Error {
	return &rpc.Error{Code: rpc.MethodNotFound, Message: "There is no method " + clip(q.m.Method) + " here."}
}

// setLevel keeps the level of a session's log messages (MCP 2025-11-25, Logging).
func (q *request) setLevel(ctx context.Context) (jsontext.Value, *rpc.Error) {
	var p struct {
		Level string `json:"level"`
	}
	if failed := rpc.Params(q.m.Params, &p); failed != nil {
		return nil, failed
	}
	if !slices.Contains(levels, p.Level) {
		return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "params.level is not a level."}
	}
	err := q.h.c.DB.As(ctx, q.caller, func(tx *store.Tx) error { return tx.SetLevel(ctx, q.session.id, p.Level) })
	if err != nil {
		return nil, q.h.failed(ctx, "set log level", err)
	}
	q.h.views.Forget(q.caller.Agent)
	return empty, nil
}

// capabilitiesFor are what the gateway says it can, to one caller.
func (h *Handler) capabilitiesFor(ctx context.Context, c store.Caller) (mcpgo.ServerCapabilities, error) {
	caps := mcpgo.ServerCapabilities{
		Logging: &struct{}{},
		Tools: &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{ListChanged: true},
	}
	offer, err := h.offer(ctx, c)
	if err != nil || offer == nil {
		return caps, err
	}
	theirs, err := offer.capabilities(ctx)
	if err != nil {
		return caps, err
	}
	caps.Prompts, caps.Resources, caps.Completions = theirs.Prompts, theirs.Resources, theirs.Completions
	return caps, nil
}

// serverInfo is who we are.
func (h *Handler) serverInfo() mcpgo.Implementation {
	return mcpgo.Implementation{Name: "graft", Title: "Graft", Version: h.c.Version}
}

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
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, c store.Caller, m rpc.Message) error {
	if m.IsNotification() {
		return h.fail(w, r, http.StatusBadRequest, m.ID, &rpc.Error{Code: rpc.InvalidRequest, Message: "initialize needs an id."})
	}
	x := h.exchange(w, r.Header)
	defer x.close()
	var p initializeParams
	failed := rpc.Params(m.Params, &p)
	if failed == nil && p.ProtocolVersion == "" {
		failed = &rpc.Error{Code: rpc.InvalidParams, Message: "params.protocolVersion is missing."}
	}
	if failed != nil {
		x.finish(http.StatusOK, rpc.AppendError(nil, m.ID, failed))
		return nil
	}
	caps, err := h.capabilitiesFor(r.Context(), c)
	if err != nil {
		x.finish(http.StatusOK, rpc.AppendError(nil, m.ID, h.failed(r.Context(), "read capabilities", err)))
		return nil
	}
	v, err := h.view(r.Context(), c)
	if err != nil {
		x.finish(http.StatusOK, rpc.AppendError(nil, m.ID, h.failed(r.Context(), "read view", err)))
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
		ProtocolVersion: s.version, Capabilities: caps, ServerInfo: h.serverInfo(), Instructions: instructions(h.served(v)),
	})
	if err != nil {
		return err
	}
	w.Header().Set(headerSession, h.sealSession(s))
	x.finish(http.StatusOK, rpc.AppendResult(nil, m.ID, result))
	return nil
}

// failed is the error object of a request that failed for a reason of ours. It is logged here, at the edge.
func (h *Handler) failed(ctx context.Context, what string, err error) *rpc.Error {
	r := invoke.Refusal(err)
	if isOurs(r) {
		h.c.Log.ErrorContext(ctx, "request failed", slog.String("what", what), slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)))
		r = r.With("requestId", h.c.RequestID(ctx))
	}
	return rpc.FromRefusal(r)
}

// needsCapability says which capability a client would have to declare (2026-07-28, -32021).
func needsCapability(err error) *rpc.Error {
	if !errors.Is(err, catalog.ErrCannotAsk) {
		return nil
	}
	return &rpc.Error{
		Code: mcpgo.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "This tool asks its person a question, and the client did not declare elicitation.",
		Details: map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}},
	}
}
