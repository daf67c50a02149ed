package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// sessionAt is a session of an agent that opened at a time.
func sessionAt(agent store.AgentID, at time.Time) store.MCPSession {
	return store.MCPSession{
		ID: store.NewID[store.SessionKind](at), AgentID: agent, ClientName: "claude-code", ClientVersion: "2.1", Protocol: "2025-06-18",
		Address: "203.0.113.7", OpenedAt: at, LastSeenAt: at,
	}
}

var sameIDs = cmp.Options{
	cmp.Comparer(func(a, b store.SessionID) bool { return a == b }),
	cmp.Comparer(func(a, b store.AgentID) bool { return a == b }),
	cmp.Comparer(func(a, b store.UserID) bool { return a == b }),
	cmp.Comparer(func(a, b store.OrgID) bool { return a == b }),
	cmp.Comparer(func(a, b store.KeyID) bool { return a == b }),
	cmp.Comparer(func(a, b store.UpstreamID) bool { return a == b }),
	cmp.Comparer(func(a, b store.ConnectionID) bool { return a == b }),
}

func TestSessionsAreRecordedAndSeen(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Worker")
	other, _ := storetest.Agent(t, db, c, "Other")
	start := db.Now()
	first, second, others := sessionAt(a.ID, start), sessionAt(a.ID, start.Add(time.Second)), sessionAt(other.ID, start)
	do(t, db, c, func(tx *store.Tx) error {
		for _, s := range []store.MCPSession{first, second, others} {
			if err := tx.RecordSessions(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	list := func(limit int) []store.MCPSession {
		return must(t, db, c, func(tx *store.Tx) ([]store.MCPSession, error) { return tx.Sessions(t.Context(), a.ID, limit) })
	}
	if diff := cmp.Diff([]store.MCPSession{second, first}, list(9), sameIDs); diff != "" {
		t.Errorf("Sessions() (-want +got):\n%s", diff)
	}
	see := func(id store.SessionID, at time.Duration) {
		do(t, db, c, func(tx *store.Tx) error {
			return tx.SeeSessions(t.Context(), map[store.SessionID]time.Time{id: start.Add(at)})
		})
	}
	see(first.ID, time.Minute)
	see(first.ID, time.Second)
	see(store.NewID[store.SessionKind](start), time.Hour) // nobody's: nothing to see
	first.LastSeenAt = start.Add(time.Minute)
	if diff := cmp.Diff([]store.MCPSession{first, second}, list(9), sameIDs); diff != "" {
		t.Errorf("Sessions() after the first was seen (-want +got):\n%s", diff)
	}

	// A second record of one session moves the last sight forward and nothing else.
	again := second
	again.ClientName, again.Address, again.LastSeenAt = "other", "198.51.100.1", start.Add(2*time.Minute)
	do(t, db, c, func(tx *store.Tx) error { return tx.RecordSessions(t.Context(), again) })
	again.LastSeenAt = start
	do(t, db, c, func(tx *store.Tx) error { return tx.RecordSessions(t.Context(), again) })
	second.LastSeenAt = start.Add(2 * time.Minute)
	if diff := cmp.Diff([]store.MCPSession{second, first}, list(9), sameIDs); diff != "" {
		t.Errorf("Sessions() after a second record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]store.MCPSession{second}, list(1), sameIDs); diff != "" {
		t.Errorf("Sessions() of one at most (-want +got):\n%s", diff)
	}
}

func TestASessionEndsOnce(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	other, _ := storetest.Agent(t, db, c, "Other")
	one, two := sessionAt(a.ID, db.Now()), sessionAt(a.ID, db.Now())
	self := bearer(c, a)
	do(t, db, self, func(tx *store.Tx) error {
		if err := tx.RecordSessions(t.Context(), one); err != nil {
			return err
		}
		return tx.RecordSessions(t.Context(), two)
	})
	end := func(c store.Caller, agent store.AgentID, id store.SessionID) error {
		return db.As(t.Context(), c, func(tx *store.Tx) error { return tx.EndSession(t.Context(), agent, id) })
	}
	ended := func(c store.Caller, id store.SessionID) bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.SessionEnded(t.Context(), id) })
	}

	// Another agent cannot end it in its own name, and keeps nobody from ending it.
	if err := end(bearer(c, other), other.ID, one.ID); err != nil {
		t.Fatal(err)
	}
	if ended(self, one.ID) {
		t.Error("SessionEnded() after another agent named it = true, want false")
	}

	if err := end(self, a.ID, one.ID); err != nil {
		t.Errorf("EndSession() = %v, want nil", err)
	}
	if err := end(self, a.ID, one.ID); !store.IsAbsent(err) {
		t.Errorf("EndSession() again = %v, want %v", err, reason.NotFound)
	}
	if !ended(self, one.ID) || ended(self, two.ID) {
		t.Errorf("SessionEnded() = %v and %v, want true and false", ended(self, one.ID), ended(self, two.ID))
	}
	if err := end(c, a.ID, two.ID); err != nil { // by a person
		t.Errorf("EndSession() by its maker = %v, want nil", err)
	}
	if got := must(t, db, c, func(tx *store.Tx) ([]store.MCPSession, error) { return tx.Sessions(t.Context(), a.ID, 9) }); len(got) != 0 {
		t.Errorf("Sessions() = %v, want none: both have ended", got)
	}
	stranger := storetest.Organisation(t, db)
	if !ended(bearer(stranger, a), one.ID) {
		t.Error("SessionEnded() for an agent that is not there = false, want true")
	}
}

// TestAThousandEndedSessionsFoldIntoOneDate: past the bound, all that the agent opened up to the oldest dropped has
// ended; what it opened later lives.
func TestAThousandEndedSessionsFoldIntoOneDate(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Worker")
	other, _ := storetest.Agent(t, db, c, "Other")
	self, start := bearer(c, a), db.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	// Ended: one every two milliseconds. Live: one before them all, one beside the first, one beside the second.
	older, beside, later := sessionAt(a.ID, at(-5)), sessionAt(a.ID, at(0)), sessionAt(a.ID, at(2))
	ofOther := sessionAt(other.ID, at(-5))
	var ids []store.SessionID
	do(t, db, self, func(tx *store.Tx) error {
		for _, s := range []store.MCPSession{older, beside, later, ofOther} {
			if err := tx.RecordSessions(t.Context(), s); err != nil {
				return err
			}
		}
		for n := range store.MaxEnded {
			ids = append(ids, store.NewID[store.SessionKind](at(2*n)))
			if err := tx.EndSession(t.Context(), a.ID, ids[n]); err != nil {
				return err
			}
		}
		return nil
	})
	ended := func(c store.Caller, id store.SessionID) bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.SessionEnded(t.Context(), id) })
	}
	live := func() (list []store.SessionID) {
		for _, s := range must(t, db, c, func(tx *store.Tx) ([]store.MCPSession, error) { return tx.Sessions(t.Context(), a.ID, 9) }) {
			list = append(list, s.ID)
		}
		return list
	}
	if ended(self, older.ID) || ended(self, beside.ID) || ended(self, later.ID) || len(live()) != 3 {
		t.Errorf("live sessions at the bound = %v, want 3", live())
	}

	last := store.NewID[store.SessionKind](at(2 * store.MaxEnded))
	do(t, db, self, func(tx *store.Tx) error { return tx.EndSession(t.Context(), a.ID, last) })
	for _, tt := range []struct {
		name   string
		caller store.Caller
		id     store.SessionID
		want   bool
	}{
		{"opened before all that ended", self, older.ID, true},
		{"opened in the millisecond of the one dropped", self, beside.ID, true},
		{"the one dropped", self, ids[0], true},
		{"the oldest kept", self, ids[1], true},
		{"the last", self, last, true},
		{"opened later and never ended", self, later.ID, false},
		{"of another agent", bearer(c, other), ofOther.ID, false},
	} {
		if got := ended(tt.caller, tt.id); got != tt.want {
			t.Errorf("SessionEnded() of the session %s = %v, want %v", tt.name, got, tt.want)
		}
	}
	if diff := cmp.Diff([]store.SessionID{later.ID}, live(), sameIDs); diff != "" {
		t.Errorf("Sessions() past the bound (-want +got):\n%s", diff)
	}
	for _, id := range []store.SessionID{ids[0], older.ID, ids[1]} {
		if err := db.As(t.Context(), self, func(tx *store.Tx) error { return tx.EndSession(t.Context(), a.ID, id) }); !store.IsAbsent(err) {
			t.Errorf("EndSession() of one that has ended with the others = %v, want %v", err, reason.NotFound)
		}
	}
}

// A client may initialize as often as its rate lets it; what is kept of that for people has a bound.
func TestSessionsKeptForAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Restless")
	other, _ := storetest.Agent(t, db, c, "Calm")
	start := db.Now()
	first := sessionAt(a.ID, start)
	list := []store.MCPSession{sessionAt(other.ID, start), first, first}
	for n := range 1005 {
		list = append(list, sessionAt(a.ID, start.Add(time.Duration(n+1)*time.Second)))
	}
	do(t, db, c, func(tx *store.Tx) error {
		if err := tx.RecordSessions(t.Context(), list[:900]...); err != nil {
			return err
		}
		return tx.RecordSessions(t.Context(), list[900:]...)
	})
	recorded := func(id store.AgentID) []store.MCPSession {
		return must(t, db, c, func(tx *store.Tx) ([]store.MCPSession, error) { return tx.Sessions(t.Context(), id, 5000) })
	}
	kept := recorded(a.ID)
	if len(kept) != 1000 || !kept[0].OpenedAt.Equal(start.Add(1005*time.Second)) || !kept[999].OpenedAt.Equal(start.Add(6*time.Second)) {
		t.Errorf("%d sessions are kept, want the 1000 last seen", len(kept))
	}
	if n := len(recorded(other.ID)); n != 1 {
		t.Errorf("the other agent has %d sessions, want 1", n)
	}
}
