package mcp

import (
	"bytes"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// Two replicas see the same agents in the same second. Where they wrote them in different orders, each would wait for
// the other until the database ended one of them.
func TestReplicasThatWriteTheSameUsageDoNotBlockOneAnother(t *testing.T) {
	t.Parallel()
	// Nobody is told of a deadlock before a statement has taken too long, which the log says.
	db := storetest.Open(t, storetest.Superuser(t, storetest.URL(t))+"&deadlock_timeout=60s", nil)
	owner := storetest.Organisation(t, db)
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	replicas := []*usage{newUsage(db, log), newUsage(db, log)}
	var callers []store.Caller
	var sessions []store.SessionID
	for n := range 40 {
		a, _ := storetest.Agent(t, db, owner, "agent "+strconv.Itoa(n))
		callers = append(callers, store.Caller{Org: owner.Org, User: owner.User, Agent: a.ID, Role: owner.Role, Via: store.ViaBearer})
		sessions = append(sessions, store.NewID[store.SessionKind](db.Now()))
		if err := db.As(t.Context(), callers[n], func(tx *store.Tx) error {
			_, err := tx.PromoteAll(t.Context(), a.ID, []string{"v__a", "v__b"})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		replicas[0].opened(callers[n], store.MCPSession{ID: sessions[n], AgentID: a.ID, Protocol: "2025-06-18", OpenedAt: db.Now(), LastSeenAt: db.Now()})
	}
	replicas[0].flush(t.Context())
	for round := range 20 {
		at := db.Now().Add(time.Duration(round+1) * time.Second)
		var flushing sync.WaitGroup
		for _, u := range replicas {
			for n, c := range callers {
				u.saw(c, sessions[n], at)
				for _, tool := range []string{"v__b", "v__a"} {
					u.using(c, tool, func() time.Time { return at })()
				}
			}
			flushing.Go(func() { u.flush(t.Context()) })
		}
		flushing.Wait()
		if text.Len() > 0 {
			t.Fatalf("round %d: %s", round, text.String())
		}
	}
}

func TestUsageOfOneDoesNotCrowdOutAnothers(t *testing.T) {
	t.Parallel()
	u := newUsage(nil, slog.New(slog.DiscardHandler))
	now := time.Now()
	id := store.NewID[store.SessionKind](now)
	busy, quiet := store.Caller{Org: store.NewID[store.OrgKind](now)}, store.Caller{Org: store.NewID[store.OrgKind](now)}
	for range maxPending + 1 {
		u.saw(busy, id, now)
	}
	u.saw(quiet, id, now)
	if got := u.pending[quiet.Org].sessions[id]; !got.Equal(now) {
		t.Errorf("the quiet one's session was seen at %v, want %v", got, now)
	}
	for range maxPending + 1 {
		u.opened(busy, store.MCPSession{LastSeenAt: now})
	}
	if n := len(u.pending[busy.Org].opened); n > maxPending {
		t.Errorf("%d sessions wait to be written, want at most %d", n, maxPending)
	}
}
