package server

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/oauth"
)

// refusal finds what to tell about err, and logs an err that is no refusal.
func (s *Server) refusal(r *http.Request, err error) *reason.Refusal {
	ref := reason.Of(err)
	noteReason(r.Context(), ref.Word)
	switch ref.Word {
	case reason.Internal:
		s.log.ErrorContext(r.Context(), "request failed", slog.Any("err", err), slog.String("request_id", RequestID(r.Context())))
	case reason.Unavailable:
		s.log.WarnContext(r.Context(), "database unavailable", slog.Any("err", err), slog.String("request_id", RequestID(r.Context())))
	}
	return ref
}

// words are the error words that go with a status; reason says the rest.
var words = map[int]string{
	http.StatusUnauthorized:       "unauthorized",
	http.StatusForbidden:          "forbidden",
	http.StatusNotFound:           "not_found",
	http.StatusMethodNotAllowed:   "method_not_allowed",
	http.StatusTooManyRequests:    "too_many_requests",
	http.StatusServiceUnavailable: "unavailable",
}

// failMCP answers a request to /mcp that was refused before it was read: {error, reason, message}, and on a 401 the
// challenge that leads a client to sign in.
func (s *Server) failMCP(w http.ResponseWriter, r *http.Request, err error) {
	ref := s.refusal(r, err)
	body := map[string]any{"error": words[ref.Status()], "reason": ref.Word, "message": ref.Message}
	if body["error"] == "" {
		body["error"] = "refused"
	}
	switch ref.Status() {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", oauth.Challenge(s.c.Origin, r.URL.Path, ref))
	case http.StatusTooManyRequests:
		if w.Header().Get("Retry-After") == "" { // no rate, which has set its own: too much at once
			w.Header().Set("Retry-After", "15")
		}
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusInternalServerError:
		body["error"], body["requestId"] = "internal", RequestID(r.Context())
	}
	writeJSON(w, ref.Status(), body)
}

// writeJSON writes v, which is ours to the last member, as the whole answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal","reason":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left is not our error
}

// mcpHandler answers what the handler leaves to the edge.
func (s *Server) mcpHandler(w http.ResponseWriter, r *http.Request) {
	if err := s.mcp.Serve(w, r); err != nil {
		s.failMCP(w, r, err)
	}
}

// page turns a screen into a handler: its error becomes the page of that error.
func (s *Server) page(screen func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := screen(w, r); err != nil {
			s.failPage(w, r, err)
		}
	}
}

func (s *Server) failPage(w http.ResponseWriter, r *http.Request, err error) {
	noteReason(r.Context(), reason.Of(err).Word)
	if errors.Is(err, r.Context().Err()) && r.Context().Err() != nil {
		return // the browser left
	}
	s.console.Fail(w, r, err)
}

// userKey and agentKey are what rate limits count by.
func agentKey(r *http.Request) (string, error) {
	return store.CallerFrom(r.Context()).Agent.String(), nil
}

func userKey(r *http.Request) (string, error) {
	return store.CallerFrom(r.Context()).User.String(), nil
}

// addressKey is the client's address; of an IPv6 one the /64, which is what one subscriber has (RFC 6177 §2).
func (s *Server) addressKey(r *http.Request) (string, error) {
	at := s.address(r)
	a, err := netip.ParseAddr(at)
	if err != nil || a.Unmap().Is4() {
		return at, nil //nolint:nilerr // what is no address is a key as it is
	}
	network, err := a.WithZone("").Prefix(64)
	return network.String(), err
}
