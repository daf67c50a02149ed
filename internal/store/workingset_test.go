package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
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

// A workshop is agents whose working sets a test moves, in a database of its own: the sweep goes through all of it.
type workshop struct {
	t     *testing.T
	db    *store.DB
	clock *clock
	owner store.Caller
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	clock := newClock()
	db := storetest.Open(t, storetest.PrivateURL(t), clock.now)
	return &workshop{t, db, clock, storetest.Organisation(t, db)}
}

func (w *workshop) promote(a store.Agent, tools ...string) {
	w.t.Helper()
	for _, tool := range tools {
		do(w.t, w.db, bearer(w.owner, a), func(tx *store.Tx) error {
			_, err := tx.Promote(w.t.Context(), a.ID, tool)
			return err
		})
	}
}

func (w *workshop) use(a store.Agent, tools ...string) {
	w.t.Helper()
	var uses []store.ToolUse
	for _, tool := range tools {
		uses = append(uses, store.ToolUse{Agent: a.ID, Tool: tool, At: w.db.Now()})
	}
	do(w.t, w.db, bearer(w.owner, a), func(tx *store.Tx) error { return tx.UseTools(w.t.Context(), uses) })
}

// sweep sweeps every organisation until there is no more to do, as the job does.
func (w *workshop) sweep() {
	w.t.Helper()
	sys := w.db.System()
	orgs, err := sys.AllOrganisations(w.t.Context())
	if err != nil {
		w.t.Error(err)
	}
	for _, org := range orgs {
		job := store.Caller{Org: org, Role: store.RoleOwner, Via: store.ViaJob}
		for swept := 1; swept > 0; {
			err := w.db.As(w.t.Context(), job, func(tx *store.Tx) (err error) {
				swept, err = tx.SweepWorkingSets(w.t.Context())
				return err
			})
			if err != nil {
				w.t.Error(err)
				return
			}
		}
	}
}

func (w *workshop) tools(c store.Caller, a store.Agent) (names []string) {
	w.t.Helper()
	for _, p := range must(w.t, w.db, c, func(tx *store.Tx) ([]store.Promotion, error) { return tx.WorkingSet(w.t.Context(), a.ID) }) {
		names = append(names, p.Tool)
	}
	return names
}

func (w *workshop) changes(c store.Caller, a store.Agent, limit int) []store.ToolChange {
	w.t.Helper()
	return must(w.t, w.db, c, func(tx *store.Tx) ([]store.ToolChange, error) {
		return tx.WorkingSetChanges(w.t.Context(), a.ID, limit)
	})
}

func (w *workshop) want(a store.Agent, tools ...string) {
	w.t.Helper()
	if diff := cmp.Diff(tools, w.tools(w.owner, a)); diff != "" {
		w.t.Errorf("working set of %s (-want +got):\n%s", a.Name, diff)
	}
}

func TestEveryChangeOfAWorkingSetIsKeptWithItsCause(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	a, _ := storetest.Agent(t, w.db, w.owner, "Worker")
	start := w.db.Now()
	w.promote(a, "v__a", "v__a")
	w.clock.pass(time.Minute)
	do(t, w.db, w.owner, func(tx *store.Tx) error {
		if n, err := tx.PromoteAll(t.Context(), a.ID, []string{"u__b", "v__a", "u__a", "u__b"}); n != 2 || err != nil {
			t.Errorf("PromoteAll() = %d, %v, want 2 new ones", n, err)
		}
		if n, err := tx.PromoteAll(t.Context(), a.ID, nil); n != 0 || err != nil {
			t.Errorf("PromoteAll() of none = %d, %v", n, err)
		}
		_, err := tx.Demote(t.Context(), a.ID, "v__a")
		return err
	})
	by := w.changes(w.owner, a, 1)[0].By
	if by == "" {
		t.Error("By of what a person did is empty")
	}
	want := []store.ToolChange{
		{Tool: "v__a", Cause: store.CausePerson, By: by, At: start.Add(time.Minute)},
		{Tool: "u__b", Promoted: true, Cause: store.CauseUpstream, By: by, At: start.Add(time.Minute)},
		{Tool: "u__a", Promoted: true, Cause: store.CauseUpstream, By: by, At: start.Add(time.Minute)},
		{Tool: "v__a", Promoted: true, Cause: store.CauseAgent, At: start},
	}
	if diff := cmp.Diff(want, w.changes(w.owner, a, 10)); diff != "" {
		t.Errorf("WorkingSetChanges() (-want +got):\n%s", diff)
	}
	if got := w.changes(w.owner, a, 2); len(got) != 2 {
		t.Errorf("WorkingSetChanges() of at most 2 = %v", got)
	}
	other := storetest.Organisation(t, w.db)
	if _, err := in(t, w.db, other, func(tx *store.Tx) ([]store.ToolChange, error) { return tx.WorkingSetChanges(t.Context(), a.ID, 10) }); !store.IsAbsent(err) {
		t.Errorf("WorkingSetChanges() of another organisation's agent = %v, want not found", err)
	}
	for range 300 {
		w.promote(a, "v__x")
		do(t, w.db, bearer(w.owner, a), func(tx *store.Tx) error {
			_, err := tx.Demote(t.Context(), a.ID, "v__x")
			return err
		})
	}
	if got := w.changes(w.owner, a, 1000); len(got) != 500 || got[0].Tool != "v__x" {
		t.Errorf("%d changes are kept, want the last 500", len(got))
	}
}

func TestTheSweepDemotesWhatIsIdle(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	w := newWorkshop(t)
	a, _ := storetest.Agent(t, w.db, w.owner, "Worker")
	patient, _ := storetest.Agent(t, w.db, w.owner, "Patient")
	gone, _ := storetest.Agent(t, w.db, w.owner, "Gone")
	other := storetest.Organisation(t, w.db)
	foreign, _ := storetest.Agent(t, w.db, other, "Worker")
	do(t, w.db, w.owner, func(tx *store.Tx) error { return tx.SetWorkingSetLimits(t.Context(), patient.ID, 30, 20) })
	w.promote(a, "v__never", "v__old", "v__used")
	w.promote(patient, "v__never")
	w.promote(gone, "v__never")
	do(t, w.db, bearer(other, foreign), func(tx *store.Tx) error {
		_, err := tx.Promote(t.Context(), foreign.ID, "v__never")
		return err
	})
	do(t, w.db, w.owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), gone.ID) })

	w.clock.pass(day)
	w.use(a, "v__old", "v__used", "v__not_promoted")
	do(t, w.db, bearer(other, foreign), func(tx *store.Tx) error { // nobody's but its own organisation's
		return tx.UseTools(t.Context(), []store.ToolUse{{Agent: a.ID, Tool: "v__never", At: w.db.Now()}})
	})
	w.clock.pass(20 * day)
	w.sweep()
	w.want(a, "v__never", "v__old", "v__used") // 21 days to the instant
	w.clock.pass(time.Second)
	w.use(a, "v__used")
	w.sweep()
	w.want(a, "v__old", "v__used")
	w.want(patient, "v__never")
	w.want(gone, "v__never")
	if got := w.tools(other, foreign); len(got) != 0 {
		t.Errorf("another organisation's idle tools after the sweep = %q, want none", got)
	}
	got := w.changes(w.owner, a, 1)
	if diff := cmp.Diff([]store.ToolChange{{Tool: "v__never", Cause: store.CauseIdle, At: w.db.Now()}}, got); diff != "" {
		t.Errorf("the change (-want +got):\n%s", diff)
	}
	w.clock.pass(day)
	w.use(a, "v__old") // a call under way, or one that just ended
	w.sweep()
	w.want(a, "v__old", "v__used")
	w.clock.pass(9 * day)
	w.sweep()
	if got := w.tools(w.owner, patient); got != nil {
		t.Errorf("after 31 days the patient agent has %q, want none", got)
	}
}

func TestTheSweepDemotesNeverUsedAboveTheCap(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	a, _ := storetest.Agent(t, w.db, w.owner, "Worker")
	do(t, w.db, w.owner, func(tx *store.Tx) error { return tx.SetWorkingSetLimits(t.Context(), a.ID, 21, 3) })
	for _, tool := range []string{"v__z", "v__used", "v__b", "v__a"} { // the oldest first
		w.promote(a, tool)
		w.clock.pass(time.Minute)
	}
	w.use(a, "v__used")
	w.promote(a, "v__new")
	w.sweep()
	w.want(a, "v__a", "v__b", "v__new", "v__used", "v__z") // came just now: whoever promotes a tool is about to call it
	w.clock.pass(9 * time.Minute)
	w.sweep()
	w.want(a, "v__a", "v__new", "v__used")
	w.clock.pass(time.Hour)
	w.sweep()
	w.want(a, "v__a", "v__new", "v__used")
	if got := w.changes(w.owner, a, 2); got[0].Cause != store.CauseCap || got[1].Cause != store.CauseCap || got[0].Promoted {
		t.Errorf("changes = %+v, want two demotions for the cap", got)
	}
	w.use(a, "v__a", "v__new")
	w.promote(a, "v__more")
	w.clock.pass(time.Hour)
	w.use(a, "v__more")
	w.sweep()
	w.want(a, "v__a", "v__more", "v__new", "v__used") // above the cap, and each was used
}

// More than a step, by two replicas at once.
func TestTheSweepGoesOnInSteps(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	a, _ := storetest.Agent(t, w.db, w.owner, "Worker")
	var tools []string
	for i := range 1203 {
		tools = append(tools, fmt.Sprintf("v__%04d", i))
	}
	do(t, w.db, w.owner, func(tx *store.Tx) error {
		_, err := tx.PromoteAll(t.Context(), a.ID, tools)
		return err
	})
	w.clock.pass(time.Hour)
	var sweeping sync.WaitGroup
	for range 2 {
		sweeping.Go(w.sweep)
	}
	sweeping.Wait()
	if got := w.tools(w.owner, a); len(got) != 20 {
		t.Errorf("%d tools are left, want 20: %q", len(got), got)
	}
	if n := must(t, w.db, w.owner, func(tx *store.Tx) (int, error) { return tx.SweepWorkingSets(t.Context()) }); n != 0 {
		t.Errorf("another sweep demotes %d, want none", n)
	}
}

func TestTheLimitsOfAWorkingSetAreThePersons(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	limits := func(c store.Caller, days, most int) error {
		return db.As(t.Context(), c, func(tx *store.Tx) error { return tx.SetWorkingSetLimits(t.Context(), a.ID, days, most) })
	}
	if a.IdleDays != 21 || a.ToolCap != 20 {
		t.Errorf("a new agent has %d days and %d tools, want 21 and 20", a.IdleDays, a.ToolCap)
	}
	if err := limits(c, 7, 0); err != nil {
		t.Error(err)
	}
	got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), a.ID) })
	if got.IdleDays != 7 || got.ToolCap != 0 {
		t.Errorf("the agent has %d days and %d tools, want 7 and 0", got.IdleDays, got.ToolCap)
	}
	for field, err := range map[string]error{"idle_days": limits(c, 0, 20), "tool_cap": limits(c, 21, 1001)} {
		if r := reason.Of(err); r.Word != reason.InputInvalid || r.Details["field"] != field {
			t.Errorf("limits out of range = %v, want input_invalid of %s", err, field)
		}
	}
	if err := limits(bearer(c, a), 7, 7); err == nil {
		t.Error("an agent may set its own limits")
	}
	if err := limits(storetest.Organisation(t, db), 7, 7); !store.IsAbsent(err) {
		t.Errorf("limits of another organisation's agent = %v, want not found", err)
	}
}
