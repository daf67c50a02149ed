package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/job"
)

// periodic is the work that one replica does for all.
func (s *Server) periodic() []job.Periodic {
	return []job.Periodic{
		{Name: "audit-checkpoint", Every: audit.CheckpointEvery, AtOnce: true, Do: audit.NewSigner(s.db, s.signing, s.log).Checkpoint},
		{Name: "working-set-sweep", Every: 5 * time.Minute, Do: job.SweepWorkingSets(s.db)},
		{Name: "audit-retention", Every: time.Hour, Do: s.dropAudit},
		{Name: "oauth-sweep", Every: time.Minute, Do: s.db.System().SweepOAuth},
		{Name: "oauth-clients", Every: time.Hour, Do: s.reapClients},
		{Name: "token-keys", Every: 5 * time.Minute, Do: s.turnKeys},
	}
}

const (
	// clientIdle is how long a registered client is kept that nobody uses and that has no live grant.
	clientIdle = 48 * time.Hour
	// documentIdle is the same for a client's document, which is read anew when it is needed again.
	documentIdle = 30 * 24 * time.Hour
)

// reapClients deletes the clients that came and were never used: registration is open.
func (s *Server) reapClients(ctx context.Context) error {
	sys, now := s.db.System(), s.db.Now()
	clients, err := sys.ReapOAuthClients(ctx, now.Add(-clientIdle))
	if err != nil {
		return err
	}
	documents, err := sys.ReapClientDocuments(ctx, now.Add(-documentIdle))
	if err == nil && clients+documents > 0 {
		s.log.InfoContext(ctx, "unused OAuth clients deleted", slog.Int64("registered", clients), slog.Int64("documents", documents))
	}
	return err
}

// turnKeys lets the keys of access tokens take turns.
func (s *Server) turnKeys(ctx context.Context) error {
	turned, err := s.tokens.Advance(ctx)
	if turned {
		s.log.InfoContext(ctx, "access tokens are signed with another key")
	}
	return err
}

// dropAudit deletes what the audit log need not keep.
func (s *Server) dropAudit(ctx context.Context) error {
	if s.c.AuditKeep == 0 {
		return nil
	}
	dropped, err := audit.Drop(ctx, s.db, s.signing, s.c.Keep())
	if err == nil && dropped > 0 {
		s.log.InfoContext(ctx, "audit entries dropped", slog.Int64("entries", dropped))
	}
	return err
}
