package mcp

import (
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// Media types of the transport.
const (
	typeJSON  = "application/json"
	typeEvent = "text/event-stream"
)

// accepts reports whether the Accept lines of h take media type want (RFC 9110 §12.5.1). No Accept takes everything:
// clients must list both types, but real ones list one or none.
func accepts(h http.Header, want string) bool {
	lines := h.Values("Accept")
	if len(lines) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(want, "/")
	for part := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		part = strings.TrimSpace(part)
		if part == want { // as nearly every client writes it
			return true
		}
		t, params, err := mime.ParseMediaType(part)
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue
		}
		if t == want || t == "*/*" || t == kind+"/*" {
			return true
		}
	}
	return false
}

// answerTimeout is how long a client may take to read an answer.
const answerTimeout = time.Minute

// writeJSON sends one answer as JSON; without a body it is only the status. A client that has gone is not an error of
// ours.
func writeJSON(w http.ResponseWriter, status int, answer []byte) {
	if answer != nil {
		w.Header().Set("Content-Type", typeJSON)
		w.Header().Set("Cache-Control", "no-store")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	// A client that does not read its answer holds nothing for longer than this. What is no connection has no deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// streamHeaders are those of every event stream: no proxy may keep or hold back what is on it.
func streamHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeEvent)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
}

// accepted answers what wants no answer (Transports, Sending Messages, 4).
func accepted(w http.ResponseWriter) { writeJSON(w, http.StatusAccepted, nil) }

// statusOf is the HTTP status of a message that could not be read.
func statusOf(e *rpc.Error) int {
	if e.Code == rpc.ParseError || e.Code == rpc.InvalidRequest {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// fail answers a request with a JSON-RPC error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, id rpc.ID, e *rpc.Error) error {
	h.c.Refused(r.Context(), e.Word())
	writeJSON(w, status, rpc.AppendError(nil, id, e))
	return nil
}

// refuse answers a request that was refused as a whole with a JSON-RPC error and the reason's status. A refusal
// about the bearer or its rate, and an error that is no refusal, are returned for the edge to answer.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, id rpc.ID, err error) error {
	var ref *reason.Refusal
	if !errors.As(err, &ref) || ref.Status() == http.StatusUnauthorized || ref.Status() == http.StatusTooManyRequests || ref.Status() >= http.StatusInternalServerError {
		return err
	}
	e := rpc.FromRefusal(ref)
	switch ref.Word {
	case reason.SessionNotFound:
		e.Code = codeSessionNotFound
	case reason.VersionUnsupported:
		e.Code = mcpgo.UNSUPPORTED_PROTOCOL_VERSION
	}
	return h.fail(w, r, ref.Status(), id, e)
}

// codeSessionNotFound is what clients know an ended session by, beside the 404.
const codeSessionNotFound = -32001
