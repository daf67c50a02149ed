package oauth

import (
	"context"
	"log/slog"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
)

// tellReuse says that a grant has ended because something of it was used twice.
func (s *Server) tellReuse(ctx context.Context, g store.GrantOf, what string) {
	s.c.Log.WarnContext(ctx, "grant ended: used twice", slog.String("what", what), slog.String("grant", g.Grant.String()),
		slog.String("agent", g.Agent.String()), slog.String("org", g.Org.String()))
	s.recordEnd(ctx, g, "Disconnected "+g.ClientID+": its "+what+" was used twice")
}

// recordEnd writes down that a grant has ended here.
func (s *Server) recordEnd(ctx context.Context, g store.GrantOf, line string) {
	c, now := holder(g), s.c.Now()
	err := s.c.Audit.Record(audit.Entry{
		Org: c.Org, User: c.User, Via: c.Via, Agent: c.Agent, At: now, Run: store.NewID[store.RunKind](now),
		Kind: audit.Change, Source: g.Grant.String(), Outcome: audit.OK, Line: line,
	})
	if err != nil {
		s.c.Log.ErrorContext(ctx, "change not written to the audit log", slog.Any("err", err), slog.String("line", line))
	}
}
