package server

import (
	"context"
	"net/http"
	"time"

	"github.com/getgraft/graft/migrations"
)

// health are the paths of probes. They skip the Host allow-list and are logged at debug.
var health = map[string]bool{"/healthz": true, "/readyz": true}

// healthz says that the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "version": s.version})
}

// readyz says whether this replica should get requests: it is not stopping, the database answers, and its schema
// is not older than this binary needs.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	checks := map[string]string{"stopping": "ok", "database": "ok", "bus": "ok", "migrations": "ok"}
	ready := true
	fail := func(check, what string) { checks[check], ready = what, false }
	if s.stopping.Load() {
		fail("stopping", "this replica is stopping")
	}
	switch v, err := s.db.System().SchemaVersion(ctx); {
	case err != nil:
		fail("database", "does not answer")
		fail("migrations", "not known")
	case v < migrations.Latest():
		fail("migrations", "run graft migrate")
	}
	if !s.bus.Healthy() { // slower, not wrong: every request asks the database
		checks["bus"] = "cut; every request is checked against the database"
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, map[string]any{"ready": ready, "checks": checks})
}
