package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestTheWorkingSetGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Worker")
	sibling, _ := storetest.Agent(t, db, c, "Sibling")
	self, start := bearer(c, a), db.Now()
	promote := func(c store.Caller, tool string) bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.Promote(t.Context(), a.ID, tool) })
	}
	demote := func(tool string) bool {
		return must(t, db, self, func(tx *store.Tx) (bool, error) { return tx.Demote(t.Context(), a.ID, tool) })
	}
	set := func(id store.AgentID) []store.Promotion {
		return must(t, db, c, func(tx *store.Tx) ([]store.Promotion, error) { return tx.WorkingSet(t.Context(), id) })
	}

	if got := set(a.ID); len(got) != 0 {
		t.Errorf("WorkingSet() of a new agent = %v, want none", got)
	}
	if !promote(self, "github__b") || !promote(c, "github__a") || !promote(self, "github__B") {
		t.Error("Promote() of a new tool = false, want true")
	}
	clock.pass(time.Hour)
	if promote(c, "github__b") {
		t.Error("Promote() of a tool in the set = true, want false")
	}
	want := []store.Promotion{ // in the order of bytes, whatever the database's language
		{Tool: "github__B", Cause: "agent", PromotedAt: start},
		{Tool: "github__a", Cause: "person", PromotedAt: start},
		{Tool: "github__b", Cause: "agent", PromotedAt: start},
	}
	if diff := cmp.Diff(want, set(a.ID)); diff != "" {
		t.Errorf("WorkingSet() (-want +got):\n%s", diff)
	}
	if got := set(sibling.ID); len(got) != 0 {
		t.Errorf("WorkingSet() of another agent = %v, want none", got)
	}
	if !demote("github__b") || demote("github__b") || demote("missing__tool") {
		t.Error("Demote() = not true once and false after, want so")
	}
	if diff := cmp.Diff(want[:2], set(a.ID)); diff != "" {
		t.Errorf("WorkingSet() after Demote() (-want +got):\n%s", diff)
	}
}
