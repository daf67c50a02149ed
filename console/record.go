package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
)

type thereKey struct{}

// Whole is for requests that change something: the browser's leaving does not cut them off. What was changed by then
// would otherwise stand without a word of it in the audit log.
func (h *Handler) Whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wholeTime)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, thereKey{}, r.Context())))
	})
}

// wholeTime bounds a change whose browser may have left.
const wholeTime = 10 * time.Second

// whileThere is r as it was before Whole: for what may take long once the change is written down, and ends with the
// browser's leaving.
func whileThere(r *http.Request) *http.Request {
	if ctx, ok := r.Context().Value(thereKey{}).(context.Context); ok {
		return r.WithContext(ctx)
	}
	return r
}

// changed writes down what the viewer changed, in one sentence that holds no secret. It is done by then: where the log
// cannot take it, that is told to whoever runs Graft, not to the viewer.
func (h *Handler) changed(ctx context.Context, format string, args ...any) {
	h.recordAs(ctx, viewerOf(ctx).caller, format, args...)
}

// recordAs is changed where there is no viewer yet.
func (h *Handler) recordAs(ctx context.Context, c store.Caller, format string, args ...any) {
	h.record(ctx, c, audit.Entry{Kind: audit.Change, Outcome: audit.OK, Line: fmt.Sprintf(format, args...)})
}

// decided writes down how the viewer answered an ask.
func (h *Handler) decided(ctx context.Context, a store.Ask, allowed, every bool) {
	e := audit.Entry{
		Kind: audit.Decision, Agent: a.AgentID, Tool: a.Tool, Version: a.Version, Connection: a.ConnectionID, Source: a.ID.String(), Outcome: outcomeDenied,
		Line: fmt.Sprintf("Denied %s to %s", a.Tool, a.AgentName),
	}
	if allowed {
		e.Outcome, e.Line = outcomeAllowed, fmt.Sprintf("Allowed version %d of %s to %s", a.Version, a.Tool, a.AgentName)
	}
	if every || a.Every {
		e.Line += ", for one call"
	}
	h.record(ctx, viewerOf(ctx).caller, e)
}

func (h *Handler) record(ctx context.Context, c store.Caller, e audit.Entry) {
	now := h.c.Now()
	e.Org, e.User, e.Via, e.At, e.Run = c.Org, c.User, c.Via, now, store.NewID[store.RunKind](now)
	if err := h.c.Audit.Record(e); err != nil {
		h.c.Log.ErrorContext(ctx, "change not written to the audit log", slog.Any("err", err), slog.String("line", e.Line), slog.String("request_id", h.c.RequestID(ctx)))
	}
}
