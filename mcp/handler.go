package mcp

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Config is what a Handler needs. All of it is required but Offer.
type Config struct {
	DB          *store.DB
	Bus         *bus.Bus // New listens on it
	Catalog     *catalog.Catalog
	Invoker     *invoke.Invoker
	Connections *connect.Desk
	Audit       *audit.Writer
	Sessions    *vault.Box // seals session ids, request state, cursors and messages between replicas
	Version     string     // of the gateway, told in serverInfo
	Log         *slog.Logger
	// Verify resolves a bearer again, to find out whether a stream goes on.
	Verify func(context.Context, http.Header) (store.Caller, error)
	// Now is the clock of session ages.
	Now func() time.Time
	// KeepAlive is the pause between comments on an idle stream.
	KeepAlive time.Duration
	// Stop is closed when the gateway stops: streams end, so that clients reconnect to another replica, while requests
	// under way go on.
	Stop <-chan struct{}
	// Address is the client's, behind whatever proxies are trusted.
	Address func(*http.Request) string
	// RequestID is the id of the request that ctx belongs to.
	RequestID func(context.Context) string
	// Refused notes the word that a request was refused with, for its log line.
	Refused func(ctx context.Context, word reason.Word)
	// Spend counts n requests more against the agent's rate, and refuses them where they are too many.
	Spend func(w http.ResponseWriter, r *http.Request, n int) error
	// Offer is what is served beside tools; nil is nothing.
	Offer Offer
}

// A Handler serves /mcp. Run must run beside it.
type Handler struct {
	c       Config
	streams *streams
	views   *bus.Cache[store.AgentID, *view]
	waiting *waiting
	usage   *usage
	large   *turns
	meta    []metaTool // in the order they are listed in
}

// New makes a Handler that listens on the bus.
func New(c Config) (*Handler, error) {
	h := &Handler{c: c, streams: newStreams(), waiting: newWaiting(), usage: newUsage(c.DB, c.Log), large: &turns{of: map[store.AgentID]*turn{}}}
	var err error
	if h.views, err = bus.NewCache[store.AgentID, *view](maxViews, c.Bus.Healthy); err != nil {
		return nil, err
	}
	if h.meta, err = compileMetaTools(); err != nil {
		return nil, err
	}
	c.Bus.Listen(h)
	return h, nil
}

// Run does what goes on beside requests until ctx ends: it writes down who used what, and takes messages that other
// replicas got.
func (h *Handler) Run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { h.usage.run(ctx) })
	beside.Go(func() { h.fetch(ctx) })
	beside.Wait()
}

// metaTool is the meta-tool of that name, or nil.
func (h *Handler) metaTool(name string) *metaTool {
	for i := range h.meta {
		if h.meta[i].Name == name {
			return &h.meta[i]
		}
	}
	return nil
}

func (h *Handler) now() time.Time { return h.c.Now() }

// Headers of the transport, in their canonical form.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// Serve answers one request that carries a Caller. What it returns is a refusal that the edge has to answer because
// it is about the bearer or its rate, or an error of ours; everything else has been answered.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request) error {
	c := store.CallerFrom(r.Context())
	allow := "POST, GET, DELETE"
	e, err := eraOf(r.Header.Get(headerVersion))
	if e == stateless && err == nil {
		allow = "POST" // sessions, and with them GET and DELETE, ended with 2025-11-25
	}
	switch {
	case r.Method == http.MethodPost:
		return h.post(w, r, c)
	case r.Method == http.MethodGet && e == sessions:
		return h.get(w, r, c)
	case r.Method == http.MethodDelete && e == sessions:
		return h.delete(w, r, c)
	}
	w.Header().Set("Allow", allow)
	return h.refuse(w, r, rpc.ID{}, reason.Refuse(reason.MethodNotAllowed, "%s is not served here.", r.Method))
}

// post reads the messages a client sends and hands them to their era (Transports, Sending Messages to the Server).
func (h *Handler) post(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	if err := checkContent(r); err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	if !accepts(r.Header, typeJSON) && !accepts(r.Header, typeEvent) {
		return h.refuse(w, r, rpc.ID{}, reason.Refuse(reason.NotAcceptable, "Accept must list application/json or text/event-stream."))
	}
	body, done, err := h.readBody(r, c.Agent)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	defer done()
	if members, ok, failed := rpc.Batch(body); ok {
		return h.postBatch(w, r, c, members, failed)
	}
	m, failed := rpc.Parse(body)
	e, err := eraOf(r.Header.Get(headerVersion))
	switch {
	case failed != nil && (err != nil || e == stateless) && failed.Code == rpc.InvalidParams:
		return h.fail(w, r, http.StatusBadRequest, m.ID, failed)
	case failed != nil:
		return h.fail(w, r, statusOf(failed), m.ID, failed)
	case m.Method == string(mcpgo.MethodInitialize) && e == sessions:
		return h.initialize(w, r, c, m) // it negotiates for itself, whatever the header says
	case err != nil:
		return h.refuse(w, r, m.ID, err)
	case e == stateless || claimsModern(m):
		return h.postStateless(w, r, c, m)
	}
	return h.postSession(w, r, c, m, body)
}

// postSession answers one message of the sessions era.
func (h *Handler) postSession(w http.ResponseWriter, r *http.Request, c store.Caller, m rpc.Message, body []byte) error {
	s, err := h.session(r, c)
	if err != nil {
		return h.refuse(w, r, m.ID, err)
	}
	h.usage.saw(c, s.id, h.now())
	if m.IsNotification() || m.IsResponse() {
		if err := h.notified(r.Context(), c, s, m, body); err != nil {
			return err
		}
		accepted(w)
		return nil
	}
	ctx, cancel := lives(r, sessions)
	defer cancel()
	defer h.waiting.call(c, s.id, m.ID, cancel)()
	x := h.exchange(w, r.Header)
	defer x.close()
	q := &request{h: h, era: sessions, caller: c, session: s, can: s.can, m: m, x: x, left: r.Context().Done()}
	answer, status := q.answer(ctx)
	x.finish(status, answer)
	return nil
}

// notified acts on what wants no answer. What is not known is passed over.
func (h *Handler) notified(ctx context.Context, c store.Caller, s session, m rpc.Message, body []byte) error {
	switch {
	case m.IsResponse():
		return h.answered(ctx, c, s, m, body)
	case m.Method == string(mcpgo.MethodNotificationCancelled):
		return h.cancelled(ctx, c, s, m.Params)
	}
	return nil
}

// maxBatch bounds the messages of one batch.
const maxBatch = 100

// postBatch answers an array. Batches exist in 2025-03-26 alone (removed in 2025-06-18); each member is a message
// of its own and goes the same way as if it had come alone.
func (h *Handler) postBatch(w http.ResponseWriter, r *http.Request, c store.Caller, members []jsontext.Value, failed *rpc.Error) error {
	e, err := eraOf(r.Header.Get(headerVersion))
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	var s session
	if e == sessions {
		if s, err = h.session(r, c); err != nil {
			return h.refuse(w, r, rpc.ID{}, err)
		}
	}
	switch {
	case s.version != mcpgo.ProtocolVersion20250326:
		failed = &rpc.Error{Code: rpc.InvalidRequest, Message: "Batches ended with protocol version 2025-03-26. Send one message at a time."}
	case len(members) > maxBatch:
		failed = &rpc.Error{Code: rpc.InvalidRequest, Message: "A batch holds at most 100 messages."}
	}
	if failed != nil {
		return h.fail(w, r, http.StatusBadRequest, rpc.ID{}, failed)
	}
	if err := h.c.Spend(w, r, len(members)-1); err != nil { // each counts as if it had come alone, and one has been
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.usage.saw(c, s.id, h.now())
	x := h.exchange(w, r.Header)
	defer x.close()
	answers, err := h.answerBatch(r, c, s, members, x)
	switch {
	case err != nil:
		x.finish(http.StatusOK, rpc.AppendError(nil, rpc.ID{}, rpc.FromRefusal(reason.Of(err))))
	case len(answers) == 0:
		x.finish(http.StatusAccepted, nil)
	default:
		x.finish(http.StatusOK, join(answers))
	}
	return nil
}

func (h *Handler) answerBatch(r *http.Request, c store.Caller, s session, members []jsontext.Value, x *exchange) (answers [][]byte, err error) {
	for _, raw := range members {
		m, failed := rpc.Parse(raw)
		switch {
		case failed != nil:
			answers = append(answers, rpc.AppendError(nil, m.ID, failed))
		case m.Method == string(mcpgo.MethodInitialize):
			answers = append(answers, rpc.AppendError(nil, m.ID, &rpc.Error{Code: rpc.InvalidRequest, Message: "initialize cannot be part of a batch."}))
		case m.IsNotification() || m.IsResponse():
			if err := h.notified(r.Context(), c, s, m, raw); err != nil {
				return nil, err
			}
		default:
			ctx, cancel := lives(r, sessions)
			done := h.waiting.call(c, s.id, m.ID, cancel)
			q := &request{h: h, era: sessions, caller: c, session: s, can: s.can, m: m, x: x, left: r.Context().Done()}
			answer, _ := q.answer(ctx)
			answers = append(answers, answer)
			done()
			cancel()
		}
	}
	return answers, nil
}

func join(answers [][]byte) []byte {
	b := []byte{'['}
	for i, a := range answers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, a...)
	}
	return append(b, ']')
}

// session reads and checks the session of a request.
func (h *Handler) session(r *http.Request, c store.Caller) (session, error) {
	raw := r.Header.Get(headerSession)
	if raw == "" {
		return session{}, reason.Refuse(reason.SessionRequired, "Send the Mcp-Session-Id that initialize answered with.")
	}
	s, err := h.openSession(raw, c)
	if err != nil {
		return session{}, err
	}
	v, err := h.view(r.Context(), c)
	switch {
	case store.IsAbsent(err): // revoked since the bearer was checked
		return session{}, reason.Refuse(reason.TokenUnknown, "This token belongs to no agent, or its agent was revoked.")
	case err != nil:
		return session{}, err
	case v.sessionEnded(s.id):
		return session{}, errEnded
	}
	return s, nil
}

var errEnded = reason.Refuse(reason.SessionNotFound, "This session has ended. Call initialize again.")

// delete ends a session on every replica.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	s, err := h.session(r, c)
	if err == nil {
		err = h.c.DB.As(r.Context(), c, func(tx *store.Tx) error { return tx.EndSession(r.Context(), c.Agent, s.id) })
	}
	if store.IsAbsent(err) { // another DELETE came first
		err = errEnded
	}
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.views.Forget(c.Agent) // here at once; elsewhere the bus says it
	h.waiting.endSession(s.id)
	h.streams.endSession(s.id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkContent takes plain JSON only. A body in another coding is refused rather than guessed at.
func checkContent(r *http.Request) error {
	if content := r.Header.Get("Content-Type"); content != typeJSON { // as nearly every client writes it
		if t, _, err := mime.ParseMediaType(content); err != nil || t != typeJSON {
			return reason.Refuse(reason.MediaTypeUnsupported, "Content-Type must be application/json.")
		}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return reason.Refuse(reason.MediaTypeUnsupported, "Content-Encoding %q is not taken. Send the body as it is.", clip(e))
	}
	return nil
}

func tooLarge(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return reason.Refuse(reason.TooLarge, "The body is larger than %d bytes.", over.Limit)
	}
	return reason.Refuse(reason.RequestInvalid, "The body could not be read.")
}
