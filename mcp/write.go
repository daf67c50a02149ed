package mcp

import (
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// Media types of the transport.
const (
	typeJSON  = "application/json"
	typeEvent = "text/event-stream"
)

// answerType picks what to answer a POST with: JSON wherever the client takes it, an event stream for one that takes
// nothing else (RFC 9110 §12.5.1). Clients must list both, but real ones list one or none.
func answerType(h http.Header) (string, error) {
	switch {
	case accepts(h, typeJSON):
		return typeJSON, nil
	case accepts(h, typeEvent):
		return typeEvent, nil
	}
	return "", reason.Refuse(reason.NotAcceptable, "Accept must list application/json or text/event-stream.")
}

// accepts reports whether the Accept lines of h take media type want. No Accept takes everything.
func accepts(h http.Header, want string) bool {
	lines := h.Values("Accept")
	if len(lines) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(want, "/")
	for part := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		t, params, err := mime.ParseMediaType(strings.TrimSpace(part))
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

// write sends one answer, as JSON or as a stream of one event.
func (h *Handler) write(w http.ResponseWriter, as string, answer []byte) {
	if as == typeEvent {
		streamHeaders(w)
		answer = rpc.AppendEvent(nil, answer)
	} else {
		w.Header().Set("Content-Type", typeJSON)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	}
	h.send(w, answer)
}

// send writes b; a client that has gone is not an error of ours.
func (h *Handler) send(w http.ResponseWriter, b []byte) {
	if _, err := w.Write(b); err != nil {
		h.c.Log.Debug("client left", slog.Any("err", err))
	}
}

// streamHeaders are those of every event stream: no proxy may keep or hold back what is on it.
func streamHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeEvent)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
}

// accepted answers what wants no answer (Transports, Sending Messages, 4).
func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
}

// fail answers a message that could not be read.
func (h *Handler) fail(w http.ResponseWriter, id rpc.ID, e *rpc.Error) error {
	status := http.StatusOK
	if e.Code == rpc.ParseError || e.Code == rpc.InvalidRequest {
		status = http.StatusBadRequest
	}
	h.writeError(w, status, id, e)
	return nil
}

// refuse answers a request that was refused as a whole with a JSON-RPC error and the reason's status. A refusal
// about the bearer or its rate, and an error that is no refusal, are returned for the edge to answer.
func (h *Handler) refuse(w http.ResponseWriter, _ *http.Request, id rpc.ID, err error) error {
	var r *reason.Refusal
	if !errors.As(err, &r) || r.Status() == http.StatusUnauthorized || r.Status() == http.StatusTooManyRequests || r.Status() >= http.StatusInternalServerError {
		return err
	}
	e := rpc.FromRefusal(r)
	switch r.Word {
	case reason.SessionNotFound:
		e.Code = codeSessionNotFound
	case reason.VersionUnsupported:
		e.Code = mcpgo.UNSUPPORTED_PROTOCOL_VERSION
	}
	h.writeError(w, r.Status(), id, e)
	return nil
}

// codeSessionNotFound is what clients know an ended session by, beside the 404.
const codeSessionNotFound = -32001

func (h *Handler) writeError(w http.ResponseWriter, status int, id rpc.ID, e *rpc.Error) {
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	h.send(w, rpc.AppendError(nil, id, e))
}
