package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/getgraft/graft/internal/store"
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
	checks := map[string]string{"stopping": "ok", "database": "ok", "bus": "ok", "migrations": "ok"}
	ready := true
	fail := func(check, what string) { checks[check], ready = what, false }
	if s.stopping.Load() {
		fail("stopping", "this replica is stopping")
	}
	switch v, err := s.schema.version(r.Context(), s.db); {
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

// schemaKnown is how long the version of the schema is taken for known, and the database for answering. Anybody may ask.
const schemaKnown = 250 * time.Millisecond

// schema is the version of the database's schema. Who asks at once asks once.
type schema struct {
	flight singleflight.Group

	mu   sync.Mutex
	read time.Time
	last int64
}

func (c *schema) version(ctx context.Context, db *store.DB) (int64, error) {
	c.mu.Lock()
	last, known := c.last, time.Since(c.read) < schemaKnown
	c.mu.Unlock()
	if known {
		return last, nil
	}
	v, err, _ := c.flight.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		v, err := db.System().SchemaVersion(ctx)
		if err == nil {
			c.mu.Lock()
			c.last, c.read = v, time.Now()
			c.mu.Unlock()
		}
		return v, err
	})
	last, _ = v.(int64)
	return last, err
}
