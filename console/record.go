package console

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
)

// changed writes down what the viewer changed, in one sentence that holds no secret. It is done by then: where the log
// cannot take it, that is told to whoever runs Graft, not to the viewer.
func (h *Handler) changed(ctx context.Context, format string, args ...any) {
	h.record(ctx, viewerOf(ctx).caller, audit.Entry{Kind: audit.Change, Outcome: audit.OK, Line: fmt.Sprintf(format, args...)})
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
