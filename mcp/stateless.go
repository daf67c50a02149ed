package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// requestMeta is the _meta of a request at 2026-07-28 (Base Protocol, Request Metadata).
type requestMeta struct {
	Version      jsontext.Value `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities jsontext.Value `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel     string         `json:"io.modelcontextprotocol/logLevel"`
}

func readMeta(params jsontext.Value) (requestMeta, *rpc.Error) {
	var p struct {
		Meta requestMeta `json:"_meta"`
	}
	failed := rpc.Params(params, &p)
	return p.Meta, failed
}

// claimsModern reports whether a request without the header speaks the stateless era in its body. Such a request lacks
// a header that it must have, and is told so, rather than asked for a session.
func claimsModern(m rpc.Message) bool {
	if m.Params == nil || !bytes.Contains(m.Params, []byte(mcpgo.MetaKeyProtocolVersion)) {
		return false
	}
	meta, failed := readMeta(m.Params)
	return failed == nil && meta.Version != nil
}

// statusStateless is the HTTP status of an error at 2026-07-28 (Streamable HTTP, Sending Messages).
func statusStateless(e *rpc.Error) int {
	switch e.Code {
	case rpc.MethodNotFound:
		return http.StatusNotFound
	case rpc.InternalError:
		return http.StatusInternalServerError
	case rpc.Refused:
		return e.Word().Status()
	}
	return http.StatusBadRequest
}

// postStateless answers one message of the stateless era. A notification is passed over: what a client cancels, it
// cancels by closing the response.
func (h *Handler) postStateless(w http.ResponseWriter, r *http.Request, c store.Caller, m rpc.Message) error {
	if m.IsNotification() || m.IsResponse() {
		accepted(w)
		return nil
	}
	meta, failed := readMeta(m.Params)
	if failed == nil {
		failed = checkMeta(r.Header, meta)
	}
	if failed == nil {
		failed = h.checkHeaders(r, c, m)
	}
	if failed != nil {
		return h.fail(w, r, statusStateless(failed), m.ID, failed)
	}
	h.usage.sawAgent(c, h.now())
	can, failed := declared(meta.Capabilities)
	if failed != nil {
		return h.fail(w, r, statusStateless(failed), m.ID, failed)
	}
	if mcpgo.MCPMethod(m.Method) == mcpgo.MethodSubscriptionsListen {
		return h.listen(w, r, c, can, m)
	}
	ctx, cancel := lives(r, stateless)
	defer cancel()
	x := h.exchange(w, r.Header)
	defer x.close()
	q := &request{h: h, era: stateless, caller: c, can: can, m: m, logLevel: meta.LogLevel, x: x}
	answer, status := q.answer(ctx)
	x.finish(status, answer)
	return nil
}

func declared(v jsontext.Value) (capability, *rpc.Error) {
	var caps struct {
		Elicitation *mcpgo.ElicitationCapability `json:"elicitation"`
		Extensions  map[string]jsontext.Value    `json:"extensions"`
	}
	if jsonv2.Unmarshal(v, &caps) != nil {
		return 0, &rpc.Error{Code: rpc.InvalidParams, Message: "params._meta: " + mcpgo.MetaKeyClientCapabilities + " must be an object."}
	}
	can := elicits(caps.Elicitation)
	if caps.Extensions[extensionTasks] != nil {
		can |= canTask
	}
	return can, nil
}

// checkMeta holds the body's version to the header's, and both to what is spoken.
func checkMeta(header http.Header, meta requestMeta) *rpc.Error {
	var version string
	if meta.Version == nil || jsonv2.Unmarshal(meta.Version, &version) != nil {
		return &rpc.Error{Code: rpc.InvalidParams, Message: "params._meta must have " + mcpgo.MetaKeyProtocolVersion + "."}
	}
	if head := header.Get(headerVersion); head != version {
		return mismatch("MCP-Protocol-Version is " + quoteOr(head) + " and the body says " + quoteOr(version) + ".")
	}
	if version != modern {
		e := rpc.FromRefusal(reason.Of(unsupported(version)))
		e.Code = mcpgo.UNSUPPORTED_PROTOCOL_VERSION
		return e
	}
	if meta.Capabilities.Kind() != '{' {
		return &rpc.Error{Code: rpc.InvalidParams, Message: "params._meta must have " + mcpgo.MetaKeyClientCapabilities + ", an object."}
	}
	if meta.LogLevel != "" && !slices.Contains(levels, meta.LogLevel) {
		return &rpc.Error{Code: rpc.InvalidParams, Message: "params._meta: " + mcpgo.MetaKeyLogLevel + " is not a level."}
	}
	return nil
}

func quoteOr(s string) string {
	if s == "" {
		return "absent"
	}
	return clip(s)
}

func mismatch(message string) *rpc.Error {
	return &rpc.Error{Code: mcpgo.HEADER_MISMATCH, Message: message, Reason: reason.HeaderMismatch}
}

// checkHeaders holds Mcp-Method, Mcp-Name and Mcp-Param-* to the body, so that what a proxy decides by the headers is
// what runs (2026-07-28, Streamable HTTP, Standard Headers).
func (h *Handler) checkHeaders(r *http.Request, c store.Caller, m rpc.Message) *rpc.Error {
	method := mcpgo.MCPMethod(m.Method)
	if err := mcpgo.ValidateStandardHeaders(r.Header.Get, modern, method, json.RawMessage(m.Params)); err != nil {
		return mismatch(err.Error())
	}
	if isTaskMethod(m.Method) {
		return checkTaskHeader(r.Header, m)
	}
	if method != mcpgo.MethodToolsCall {
		return nil
	}
	var p callParams
	if failed := rpc.Params(m.Params, &p); failed != nil {
		return failed
	}
	tool, ok := h.headerTool(r.Context(), c, p.Name)
	if !ok {
		return nil
	}
	look := func(name string) (string, bool) {
		v, ok := r.Header[http.CanonicalHeaderKey(name)]
		return r.Header.Get(name), ok && len(v) > 0
	}
	if err := mcpgo.ValidateParamHeadersLookup(look, &tool, json.RawMessage(m.Params)); err != nil {
		return mismatch(err.Error())
	}
	return nil
}

// headerTool is the tool of that name if its schema names parameters that headers repeat.
func (h *Handler) headerTool(ctx context.Context, c store.Caller, name string) (mcpgo.Tool, bool) {
	meta, wire, err := h.named(ctx, c, name)
	if err != nil || meta != nil {
		return mcpgo.Tool{}, false
	}
	known, err := h.c.Catalog.Of(ctx, c)
	if err != nil {
		return mcpgo.Tool{}, false
	}
	e, err := known.Resolve(wire)
	if err != nil || !bytes.Contains(e.InputSchema, []byte(`"x-mcp-header"`)) {
		return mcpgo.Tool{}, false
	}
	return wireTool(name, e.Tool), true
}

// ttl is how long a client may go on with a list or a discovery without asking again, in milliseconds. A list that
// moves earlier is told on subscriptions/listen.
const ttl = 60_000

// discover answers server/discover (2026-07-28, Discovery).
func (q *request) discover(ctx context.Context) (jsontext.Value, *rpc.Error) {
	caps, err := q.h.capabilitiesFor(ctx, q.caller)
	if err != nil {
		return nil, q.h.failed(ctx, "read capabilities", err)
	}
	caps.Extensions = map[string]any{extensionTasks: struct{}{}}
	v, err := q.h.view(ctx, q.caller)
	if err != nil {
		return nil, q.h.failed(ctx, "read view", err)
	}
	result, err := json.Marshal(struct {
		Versions     []string                 `json:"supportedVersions"`
		Capabilities mcpgo.ServerCapabilities `json:"capabilities"`
		Instructions string                   `json:"instructions"`
		TTL          int                      `json:"ttlMs"`
		Scope        string                   `json:"cacheScope"`
	}{supported, caps, instructions(q.h.served(v)), ttl, "private"})
	if err != nil {
		return nil, q.h.failed(ctx, "write discovery", err)
	}
	return result, nil
}

// complete makes a result one of the stateless era: it says its type, and who answered.
func (h *Handler) complete(result jsontext.Value) jsontext.Value {
	info, err := json.Marshal(h.serverInfo())
	if err != nil {
		return result
	}
	meta := append(append([]byte(`{"`+mcpgo.MetaKeyServerInfo+`":`), info...), '}')
	if !bytes.Contains(result, []byte(`"_meta"`)) && !bytes.Contains(result, []byte(`"resultType"`)) {
		b := append([]byte(`{"resultType":"complete","_meta":`), meta...)
		if len(result) > 2 {
			b = append(b, ',')
		}
		return append(b, result[1:]...)
	}
	// A result that brings one of the two along keeps it.
	var members map[string]jsontext.Value
	lenient := jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)) // it came from elsewhere
	if jsonv2.Unmarshal(result, &members, lenient) != nil {
		return result
	}
	if members["resultType"] == nil {
		members["resultType"] = jsontext.Value(`"complete"`)
	}
	if members["_meta"] == nil {
		members["_meta"] = meta
	}
	b, err := jsonv2.Marshal(members, jsonv2.Deterministic(true), lenient)
	if err != nil {
		return result
	}
	return b
}

// listen answers subscriptions/listen with a stream that belongs to the agent (2026-07-28, Subscriptions).
func (h *Handler) listen(w http.ResponseWriter, r *http.Request, c store.Caller, can capability, m rpc.Message) error {
	if !accepts(r.Header, typeEvent) {
		return h.refuse(w, r, m.ID, reason.Refuse(reason.NotAcceptable, "subscriptions/listen answers with text/event-stream only."))
	}
	var p struct {
		Notifications mcpgo.SubscriptionFilter `json:"notifications"`
	}
	if failed := rpc.Params(m.Params, &p); failed != nil {
		return h.fail(w, r, http.StatusBadRequest, m.ID, failed)
	}
	if asksForTasks(m.Params) && can&canTask == 0 {
		failed := needsTasks()
		return h.fail(w, r, statusStateless(failed), m.ID, failed)
	}
	tag := `"_meta":{"` + mcpgo.MetaKeySubscriptionID + `":` + m.ID.String() + `}`
	granted := `{}`
	var changed []byte
	if p.Notifications.ToolsListChanged {
		granted = `{"toolsListChanged":true}`
		changed = []byte(`{"jsonrpc":"2.0","method":"` + mcpgo.MethodNotificationToolsListChanged + `","params":{` + tag + `}}`)
	}
	first := rpc.AppendEvent(nil, []byte(`{"jsonrpc":"2.0","method":"`+mcpgo.MethodNotificationSubscriptionsAcknowledged+
		`","params":{"notifications":`+granted+`,`+tag+`}}`))
	st := newStream(c, store.SessionID{}, changed)
	st.last = rpc.AppendEvent(nil, rpc.AppendResult(nil, m.ID, jsontext.Value(`{"resultType":"complete",`+tag+`}`)))
	return h.serveStream(w, r, m.ID, st, first)
}

var _ catalog.Client = (*request)(nil)
