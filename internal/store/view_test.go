package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestAgentViewIsAllOfIt(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	sibling, _ := storetest.Agent(t, db, c, "Sibling")
	self := bearer(c, a)
	ended, kept := store.NewID[store.SessionKind](db.Now()), store.NewID[store.SessionKind](db.Now())
	do(t, db, self, func(tx *store.Tx) error {
		for _, tool := range []string{"b__b", "a__a", "b__B"} {
			if _, err := tx.Promote(t.Context(), a.ID, tool); err != nil {
				return err
			}
		}
		for _, level := range []string{"error", "debug"} { // the later counts
			if err := tx.SetLevel(t.Context(), kept, level); err != nil {
				return err
			}
		}
		return tx.EndSession(t.Context(), a.ID, ended)
	})
	view := func(id store.AgentID) store.AgentView {
		return must(t, db, c, func(tx *store.Tx) (store.AgentView, error) { return tx.AgentView(t.Context(), id) })
	}
	got := view(a.ID)
	if diff := cmp.Diff([]string{"a__a", "b__B", "b__b"}, got.Promoted); diff != "" {
		t.Errorf("Promoted (-want +got):\n%s", diff)
	}
	if len(got.Ended) != 1 || got.Ended[0] != ended || got.EndedBefore != nil || len(got.Levels) != 1 || got.Levels[kept] != "debug" {
		t.Errorf("AgentView() = %+v, want the ended session and the level", got)
	}
	if got := view(sibling.ID); len(got.Promoted)+len(got.Ended)+len(got.Levels) != 0 {
		t.Errorf("AgentView() of another agent = %+v, want nothing", got)
	}
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
	if _, err := in(t, db, c, func(tx *store.Tx) (store.AgentView, error) { return tx.AgentView(t.Context(), a.ID) }); !store.IsAbsent(err) {
		t.Errorf("AgentView() of a revoked agent = %v, want not found", err)
	}
}

func TestMessagesAreTakenOnceAndInTime(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.PrivateURL(t), clock.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Worker")
	other, _ := storetest.Agent(t, db, c, "Other")
	self, session := bearer(c, a), store.NewID[store.SessionKind](db.Now())
	send := func(request string) {
		do(t, db, self, func(tx *store.Tx) error {
			return tx.SendMessage(t.Context(), session, store.MCPMessage{Kind: store.MessageAnswer, Request: request, Body: []byte(request)})
		})
	}
	take := func(c store.Caller, session store.SessionID, requests ...string) []store.MCPMessage {
		return must(t, db, c, func(tx *store.Tx) ([]store.MCPMessage, error) {
			return tx.TakeMessages(t.Context(), session, requests)
		})
	}
	send(`"x"`)
	send(`7`)
	for name, got := range map[string][]store.MCPMessage{
		"another request": take(self, session, `"7"`, `8`), "another session": take(self, store.NewID[store.SessionKind](db.Now()), `7`),
		"another agent": take(bearer(c, other), session, `7`),
	} {
		if len(got) != 0 {
			t.Errorf("TakeMessages() for %s = %v, want none", name, got)
		}
	}
	want := []store.MCPMessage{{Kind: store.MessageAnswer, Request: "7", Body: []byte("7")}}
	if diff := cmp.Diff(want, take(self, session, `7`, `8`)); diff != "" {
		t.Errorf("TakeMessages() (-want +got):\n%s", diff)
	}
	if got := take(self, session, `7`); len(got) != 0 {
		t.Errorf("TakeMessages() again = %v, want none", got)
	}
	clock.pass(11 * time.Minute)
	if got := take(self, session, `"x"`); len(got) != 0 {
		t.Errorf("TakeMessages() after 11 minutes = %v, want none", got)
	}
}

func TestRemoveMember(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	admin := storetest.Member(t, db, owner, store.RoleAdmin)
	second := storetest.Member(t, db, owner, store.RoleOwner)
	member := storetest.Member(t, db, owner, store.RoleMember)
	auditor := storetest.Member(t, db, owner, store.RoleAuditor)
	stranger := storetest.Organisation(t, db)
	theirs, token := storetest.Agent(t, db, member, "theirs")
	mine, kept := storetest.Agent(t, db, owner, "mine")
	remove := func(by store.Caller, user store.UserID) string {
		return outcome(db.As(t.Context(), by, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), user) }))
	}
	for _, x := range []struct {
		name string
		by   store.Caller
		user store.UserID
		want string
	}{
		{"a member removes", member, auditor.User, "forbidden"},
		{"an auditor removes", auditor, member.User, "forbidden"},
		{"an agent removes", bearer(owner, mine), member.User, "forbidden"},
		{"an admin removes an owner", admin, owner.User, "forbidden"},
		{"a stranger", owner, stranger.User, "not_found"},
		{"an admin removes a member", admin, member.User, "yes"},
		{"again", admin, member.User, "not_found"},
		{"an owner removes an owner", owner, second.User, "yes"},
		{"the last owner", owner, owner.User, "forbidden"},
	} {
		if got := remove(x.by, x.user); got != x.want {
			t.Errorf("%s = %s, want %s", x.name, got, x.want)
		}
	}
	if a := must(t, db, owner, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), theirs.ID) }); a.RevokedAt == nil || a.TokenHint != nil {
		t.Errorf("the removed member's agent = %+v, want it revoked and without a token", a)
	}
	if _, err := db.System().Bearer(t.Context(), store.HashToken(token)); !store.IsAbsent(err) {
		t.Errorf("the removed member's token = %v, want not found", err)
	}
	if _, err := db.System().Bearer(t.Context(), store.HashToken(kept)); err != nil {
		t.Errorf("the owner's token = %v", err)
	}
}

func TestDeleteOrganisation(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	other := storetest.Organisation(t, db)
	plant(t, db, c)
	plant(t, db, other)
	if err := db.System().DeleteOrganisation(t.Context(), c.Org); err != nil {
		t.Fatal(err)
	}
	if err := db.System().DeleteOrganisation(t.Context(), c.Org); !store.IsAbsent(err) {
		t.Errorf("DeleteOrganisation() again = %v, want not found", err)
	}
	if list := memberships(t, db, c.User); len(list) != 0 {
		t.Errorf("Memberships() of its owner = %v, want none", list)
	}
	if got := must(t, db, other, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }); len(got) != 1 {
		t.Errorf("the other organisation has %d agents, want 1", len(got))
	}
}
