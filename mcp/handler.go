package mcp

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Config is what a Handler needs. All of it is required.
type Config struct {
	DB       *store.DB
	Catalog  *catalog.Catalog
	Invoker  *invoke.Invoker
	Sessions *vault.Box // seals session ids
	Version  string     // of the gateway, told in serverInfo
	Log      *slog.Logger
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
	// Spend counts n requests more against the agent's rate, and refuses them where they are too many.
	Spend func(w http.ResponseWriter, r *http.Request, n int) error
}

// A Handler serves /mcp. Run must run beside it.
type Handler struct {
	c       Config
	streams *streams
	usage   *usage
	large   *turns
	tools   map[string]metaTool
}

// New makes a Handler.
func New(c Config) (*Handler, error) {
	h := &Handler{c: c, streams: newStreams(), usage: newUsage(c.DB, c.Log), large: &turns{of: map[store.AgentID]*turn{}}}
	var err error
	h.tools, err = compileMetaTools()
	return h, err
}

// Run writes down who used what until ctx ends, and once more then.
func (h *Handler) Run(ctx context.Context) { h.usage.run(ctx) }

func (h *Handler) now() time.Time { return h.c.Now() }

// Serve answers one request that carries a Caller. What it returns is a refusal that the edge has to answer because
// it is about the bearer or its rate; everything else has been answered.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request) error {
	c := store.CallerFrom(r.Context())
	switch r.Method {
	case http.MethodPost:
		return h.post(w, r, c)
	case http.MethodGet:
		return h.get(w, r, c)
	case http.MethodDelete:
		return h.delete(w, r, c)
	}
	w.Header().Set("Allow", "POST, GET, DELETE")
	return h.refuse(w, r, rpc.ID{}, reason.Refuse(reason.MethodNotAllowed, "%s is not served here.", r.Method))
}

// post answers the messages a client sends (MCP 2025-11-25, Transports, Sending Messages to the Server).
func (h *Handler) post(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	if err := checkContent(r); err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	as, err := answerType(r.Header)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	body, done, err := h.readBody(r, c.Agent)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	defer done()
	if members, ok, failed := rpc.Batch(body); ok {
		return h.postBatch(w, r, c, as, members, failed)
	}
	m, failed := rpc.Parse(body)
	if failed != nil {
		return h.fail(w, m.ID, failed)
	}
	if m.Method == string(mcpgo.MethodInitialize) {
		return h.initialize(w, r, c, as, m)
	}
	s, err := h.session(r, c)
	if err != nil {
		return h.refuse(w, r, m.ID, err)
	}
	h.usage.saw(c, s.id, h.now())
	if m.IsNotification() || m.IsResponse() {
		accepted(w)
		return nil
	}
	h.write(w, as, h.answer(r.Context(), c, m))
	return nil
}

// maxBatch bounds the messages of one batch.
const maxBatch = 100

// postBatch answers an array. Batches exist in 2025-03-26 alone (removed in 2025-06-18); each member is a message
// of its own and goes the same way as if it had come alone.
func (h *Handler) postBatch(w http.ResponseWriter, r *http.Request, c store.Caller, as string, members []jsontext.Value, failed *rpc.Error) error {
	s, err := h.session(r, c)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	switch {
	case s.version != mcpgo.ProtocolVersion20250326:
		failed = &rpc.Error{Code: rpc.InvalidRequest, Message: "Batches ended with protocol version 2025-03-26. Send one message at a time."}
	case len(members) > maxBatch:
		failed = &rpc.Error{Code: rpc.InvalidRequest, Message: "A batch holds at most 100 messages."}
	}
	if failed != nil {
		return h.fail(w, rpc.ID{}, failed)
	}
	if err := h.c.Spend(w, r, len(members)-1); err != nil { // each counts as if it had come alone, and one has been
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.usage.saw(c, s.id, h.now())
	var answers [][]byte
	for _, raw := range members {
		m, failed := rpc.Parse(raw)
		switch {
		case failed != nil:
			answers = append(answers, rpc.AppendError(nil, m.ID, failed))
		case m.Method == string(mcpgo.MethodInitialize):
			answers = append(answers, rpc.AppendError(nil, m.ID, &rpc.Error{Code: rpc.InvalidRequest, Message: "initialize cannot be part of a batch."}))
		case !m.IsNotification() && !m.IsResponse():
			answers = append(answers, h.answer(r.Context(), c, m))
		}
	}
	if len(answers) == 0 {
		accepted(w)
		return nil
	}
	b := []byte{'['}
	for i, a := range answers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, a...)
	}
	h.write(w, as, append(b, ']'))
	return nil
}

// session reads and checks the session of any request but initialize, and its protocol version.
func (h *Handler) session(r *http.Request, c store.Caller) (session, error) {
	raw := r.Header.Get(headerSession)
	if err := checkVersion(r.Header.Get(headerVersion)); err != nil {
		return session{}, err
	}
	if raw == "" {
		return session{}, reason.Refuse(reason.SessionRequired, "Send the Mcp-Session-Id that initialize answered with.")
	}
	s, err := h.openSession(raw, c)
	if err != nil {
		return session{}, err
	}
	ended := false
	err = h.c.DB.As(r.Context(), c, func(tx *store.Tx) (err error) {
		ended, err = tx.SessionEnded(r.Context(), s.id)
		return err
	})
	if err != nil {
		return session{}, err
	}
	if ended {
		return session{}, reason.Refuse(reason.SessionNotFound, "This session has ended. Call initialize again.")
	}
	return s, nil
}

// delete ends a session on every replica.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	s, err := h.session(r, c)
	if err == nil {
		err = h.c.DB.As(r.Context(), c, func(tx *store.Tx) error { return tx.EndSession(r.Context(), c.Agent, s.id) })
	}
	if store.IsAbsent(err) { // another DELETE came first
		err = reason.Refuse(reason.SessionNotFound, "This session has ended.")
	}
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.streams.end(s)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Headers of the transport, in their canonical form.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// checkVersion takes an absent header and every version of the sessions era, whichever the session negotiated.
func checkVersion(v string) error {
	if v == "" || slices.Contains(versions, v) {
		return nil
	}
	return reason.Refuse(reason.VersionUnsupported, "MCP-Protocol-Version %q is not spoken here. Use one of %s.", clip(v), strings.Join(versions, ", ")).
		With("supported", versions).With("requested", clip(v))
}

func clip(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return strings.ToValidUTF8(s, "")
}

// checkContent takes plain JSON only. A body in another coding is refused rather than guessed at.
func checkContent(r *http.Request) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != typeJSON {
		return reason.Refuse(reason.MediaTypeUnsupported, "Content-Type must be application/json.")
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
