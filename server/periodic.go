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
	}
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
