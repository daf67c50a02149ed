package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// addRequest stores a request that waits for an answer for ten minutes.
func addRequest(t *testing.T, db *store.DB) store.TokenHash {
	t.Helper()
	_, hash := store.NewToken(store.ConsentTokenPrefix)
	_, browser := store.NewToken(store.BrowserTokenPrefix)
	now := db.Now()
	err := db.System().AddOAuthRequest(t.Context(), store.OAuthRequest{Hash: hash, Browser: browser, Form: "f", CreatedAt: now, ExpiresAt: now.Add(10 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// forNewAgent is what a person allows for a request: a new agent of that name.
func forNewAgent(request store.TokenHash, name string) store.NewGrant {
	return store.NewGrant{
		Request: request, Name: name, ClientID: "https://app.example/client.json", ClientName: "App", Document: []byte(`{}`),
		RedirectURI: "https://app.example/cb", Challenge: strings.Repeat("c", 43), Scope: "mcp", CodeLives: 10 * time.Minute,
	}
}

// allow allows a fresh request as c, and returns what came of it.
func allow(t *testing.T, db *store.DB, c store.Caller, n store.NewGrant) (id store.AgentID, code string, err error) {
	t.Helper()
	err = db.As(t.Context(), c, func(tx *store.Tx) (err error) {
		id, code, err = tx.AllowRequest(t.Context(), n)
		return err
	})
	return id, code, err
}

// connectApp lets an app in as a new agent of c's, and returns the grant with its code.
func connectApp(t *testing.T, db *store.DB, c store.Caller, name string) (store.Grant, string) {
	t.Helper()
	id, code, err := allow(t, db, c, forNewAgent(addRequest(t, db), name))
	if err != nil {
		t.Fatal(err)
	}
	return grantsOf(t, db, c, id)[0], code
}

func grantsOf(t *testing.T, db *store.DB, c store.Caller, id store.AgentID) []store.Grant {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), id) })
}

func liveNames(t *testing.T, db *store.DB, c store.Caller) (names []string) {
	t.Helper()
	for _, a := range must(t, db, c, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }) {
		if a.RevokedAt == nil {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestAnAllowedAppIsANewAgent(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	g, code := connectApp(t, db, c, "Claude")
	if g.ClientName != "App" || g.UserID != c.User || g.UserEmail == "" || g.Scope != "mcp" || g.EndedAt != nil || g.Cause != "" || !g.EndedBy.IsZero() || g.LastRefreshedAt != nil {
		t.Errorf("grant = %+v, want a live one of the caller's", g)
	}
	found, err := db.System().OAuthCode(t.Context(), store.HashToken(code))
	if err != nil || found.Grant != g.ID || found.Agent != g.AgentID || found.Org != c.Org {
		t.Errorf("OAuthCode() = %+v, %v, want the grant's", found, err)
	}
	a := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), g.AgentID) })
	if a.TokenMadeAt != nil || a.AdvancedTools || a.UserID != c.User {
		t.Errorf("agent = %+v, want one of the caller's without a static token", a)
	}
}

func TestATakenNameGetsANumber(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	long := strings.Repeat("n", 64)
	for _, name := range []string{"claude", "Claude", "CLAUDE", long, long, strings.Repeat("n", 61) + " nn", strings.Repeat("é", 64), strings.Repeat("é", 64)} {
		connectApp(t, db, c, name)
	}
	want := []string{
		"CLAUDE 3", "Claude 2", "claude", strings.Repeat("n", 61) + " nn", strings.Repeat("n", 62) + " 2", long, strings.Repeat("é", 62) + " 2", strings.Repeat("é", 64),
	}
	if got := liveNames(t, db, c); !slices.Equal(got, want) {
		t.Errorf("agents = %q, want %q", got, want)
	}
	for _, name := range []string{"", " x", "a/b", strings.Repeat("n", 65)} {
		request := addRequest(t, db)
		_, _, err := allow(t, db, c, forNewAgent(request, name))
		if ref := reason.Of(err); ref.Word != reason.InputInvalid || ref.Details["field"] != "name" {
			t.Errorf("AllowRequest(%.10q) = %v, want input_invalid about the name", name, err)
		}
		if _, _, err := allow(t, db, c, forNewAgent(request, "right")); err != nil { // it was not spent
			t.Errorf("AllowRequest() after a name that is none = %v", err)
		}
	}
}

func TestNamesTakenAtOnceGetNumbers(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	const n = 4
	var all sync.WaitGroup
	errs := make([]error, n)
	requests := make([]store.TokenHash, n)
	for i := range requests {
		requests[i] = addRequest(t, db)
	}
	for i := range n {
		all.Go(func() { _, _, errs[i] = allow(t, db, c, forNewAgent(requests[i], "Claude")) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Errorf("AllowRequest() = %v", err)
		}
	}
	if got := liveNames(t, db, c); !slices.Equal(got, []string{"Claude", "Claude 2", "Claude 3", "Claude 4"}) {
		t.Errorf("agents = %q, want four with numbers", got)
	}
}

func TestARequestIsAllowedOnceOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	for round := range 5 {
		request := addRequest(t, db)
		var both sync.WaitGroup
		var errs [3]error
		for i := range errs {
			both.Go(func() {
				if i == 2 {
					errs[i] = db.System().AnswerOAuthRequest(t.Context(), request) // denied at the same time
					return
				}
				_, _, errs[i] = allow(t, db, c, forNewAgent(request, fmt.Sprintf("round %d try %d", round, i)))
			})
		}
		both.Wait()
		done := 0
		for _, err := range errs {
			switch outcome(err) {
			case "yes":
				done++
			case string(reason.ConsentNotValid):
			default:
				t.Errorf("answer = %v, want done or consent_not_valid", err)
			}
		}
		if done != 1 {
			t.Errorf("%d answers were taken, want 1", done)
		}
	}
	grants := must(t, db, c, func(tx *store.Tx) ([]store.Grant, error) { return tx.LiveGrants(t.Context()) })
	if agents := liveNames(t, db, c); len(agents) != len(grants) || len(agents) > 5 {
		t.Errorf("%d agents and %d grants, want as many, at most 5", len(agents), len(grants))
	}
}

func TestARequestThatIsNotAllowedLeavesNothing(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	stranger := storetest.Organisation(t, db)
	theirs, _ := storetest.Agent(t, db, stranger, "theirs")
	mine, _ := storetest.Agent(t, db, c, "mine")
	gone, _ := storetest.Agent(t, db, c, "gone")
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), gone.ID) })
	member, auditor := storetest.Member(t, db, c, store.RoleMember), storetest.Member(t, db, c, store.RoleAuditor)
	request := addRequest(t, db)
	old := func(id store.AgentID) store.NewGrant {
		n := forNewAgent(request, "")
		n.Agent = id
		return n
	}
	for _, x := range []struct {
		name string
		by   store.Caller
		n    store.NewGrant
		want string
	}{
		{"another organisation's agent", c, old(theirs.ID), "not_found"},
		{"another member's agent", member, old(mine.ID), "not_found"},
		{"a revoked agent", c, old(gone.ID), "not_found"},
		{"no agent", c, old(store.NewID[store.AgentKind](clock.now())), "not_found"},
		{"an auditor, a new agent", auditor, forNewAgent(request, "x"), "forbidden"},
		{"an auditor, an agent there is", auditor, old(mine.ID), "forbidden"},
		{"an agent", bearer(c, mine), forNewAgent(request, "x"), "forbidden"},
		{"no request", c, forNewAgent(store.HashToken("none"), "x"), "consent_not_valid"},
	} {
		_, _, err := allow(t, db, x.by, x.n)
		if got := outcome(err); got != x.want {
			t.Errorf("%s = %s, want %s", x.name, got, x.want)
		}
	}
	if got := liveNames(t, db, c); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("agents = %q, want mine alone", got)
	}
	if got := must(t, db, c, func(tx *store.Tx) ([]store.Grant, error) { return tx.LiveGrants(t.Context()) }); len(got) != 0 {
		t.Errorf("grants = %v, want none", got)
	}
	if _, _, err := allow(t, db, member, forNewAgent(request, "of the member")); err != nil {
		t.Errorf("AllowRequest() after all of that = %v, want it unspent", err)
	}
	late := addRequest(t, db)
	clock.pass(10 * time.Minute)
	if _, _, err := allow(t, db, c, forNewAgent(late, "late")); outcome(err) != "consent_not_valid" {
		t.Errorf("AllowRequest() after ten minutes = %v, want consent_not_valid", err)
	}
}

func TestAnAgentHasRoomForSoManyApps(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	g, _ := connectApp(t, db, c, "Claude")
	again := func() error {
		n := forNewAgent(addRequest(t, db), "")
		n.Agent = g.AgentID
		_, _, err := allow(t, db, c, n)
		return err
	}
	for range 99 {
		if err := again(); err != nil {
			t.Fatal(err)
		}
	}
	if ref := reason.Of(again()); ref.Word != reason.InputInvalid || ref.Details["field"] != "agent" {
		t.Errorf("the 101st = %v, want input_invalid about the agent", ref)
	}
	must(t, db, c, func(tx *store.Tx) (store.Grant, error) { return tx.EndGrant(t.Context(), g.ID) })
	if err := again(); err != nil {
		t.Errorf("after one has ended = %v", err)
	}
	if n := must(t, db, c, func(tx *store.Tx) (int, error) { return tx.CountGrants(t.Context(), g.AgentID) }); n != 100 {
		t.Errorf("CountGrants() = %d, want 100", n)
	}
	list := grantsOf(t, db, c, g.AgentID)
	if len(list) != 101 || list[100].ID != g.ID || list[0].EndedAt != nil {
		t.Errorf("Grants() = %d of them, want 101 with the ended one last", len(list))
	}
}

func TestWhoSeesAndEndsGrants(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	member, other := storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleMember)
	auditor, stranger := storetest.Member(t, db, owner, store.RoleAuditor), storetest.Organisation(t, db)
	g, code := connectApp(t, db, member, "Claude")
	for _, x := range []struct {
		name   string
		by     store.Caller
		lists  bool
		grants string
		end    string
	}{
		{"a stranger", stranger, false, "not_found", "not_found"},
		{"another member", other, false, "not_found", "not_found"},
		{"an auditor", auditor, true, "yes", "forbidden"},
		{"the owner", owner, true, "yes", "yes"},
		{"whose it is, again", member, false, "yes", "not_found"},
	} {
		live := must(t, db, x.by, func(tx *store.Tx) ([]store.Grant, error) { return tx.LiveGrants(t.Context()) })
		if lists := len(live) == 1 && live[0].ID == g.ID; lists != x.lists {
			t.Errorf("%s: LiveGrants() = %v, want it there: %t", x.name, live, x.lists)
		}
		if _, err := in(t, db, x.by, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), g.AgentID) }); outcome(err) != x.grants {
			t.Errorf("%s: Grants() = %v, want %s", x.name, err, x.grants)
		}
		ended, err := in(t, db, x.by, func(tx *store.Tx) (store.Grant, error) { return tx.EndGrant(t.Context(), g.ID) })
		if outcome(err) != x.end || err == nil && ended.ID != g.ID {
			t.Errorf("%s: EndGrant() = %v, %v, want %s", x.name, ended.ID, err, x.end)
		}
	}
	if got := grantsOf(t, db, member, g.AgentID)[0]; got.EndedAt == nil || got.Cause != store.GrantByPerson || got.EndedBy != owner.User {
		t.Errorf("grant = %+v, want it ended by the owner", got)
	}
	if _, err := db.System().OAuthCode(t.Context(), store.HashToken(code)); !store.IsAbsent(err) {
		t.Errorf("OAuthCode() of an ended grant = %v, want not found", err)
	}
}

func TestGrantsEndWithTheirAgentAndTheirPeople(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	member := storetest.Member(t, db, owner, store.RoleMember)
	admin := storetest.Member(t, db, owner, store.RoleAdmin)
	kept, _ := connectApp(t, db, owner, "kept")
	early, _ := connectApp(t, db, owner, "early")
	must(t, db, owner, func(tx *store.Tx) (store.Grant, error) { return tx.EndGrant(t.Context(), early.ID) })
	revoked, code := connectApp(t, db, owner, "revoked")
	of, _ := connectApp(t, db, member, "of the member")
	// The admin lets an app into the member's agent, and one into the owner's.
	n := forNewAgent(addRequest(t, db), "")
	n.Agent = of.AgentID
	if _, _, err := allow(t, db, admin, n); err != nil {
		t.Fatal(err)
	}
	n = forNewAgent(addRequest(t, db), "")
	n.Agent = kept.AgentID
	if _, _, err := allow(t, db, admin, n); err != nil {
		t.Fatal(err)
	}

	do(t, db, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), revoked.AgentID) })
	do(t, db, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), early.AgentID) })
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), member.User) })
	for what, want := range map[string]struct {
		agent  store.AgentID
		causes []store.GrantCause
	}{
		"of a revoked agent":              {revoked.AgentID, []store.GrantCause{store.GrantByAgent}},
		"one that had ended":              {early.AgentID, []store.GrantCause{store.GrantByPerson}},
		"of a removed member's agent":     {of.AgentID, []store.GrantCause{store.GrantByMember, store.GrantByMember}},
		"of the owner's, one the admin's": {kept.AgentID, []store.GrantCause{"", ""}},
	} {
		var causes []store.GrantCause
		for _, g := range grantsOf(t, db, owner, want.agent) {
			causes = append(causes, g.Cause)
		}
		if !slices.Equal(causes, want.causes) {
			t.Errorf("%s: causes = %q, want %q", what, causes, want.causes)
		}
	}
	if _, err := db.System().OAuthCode(t.Context(), store.HashToken(code)); !store.IsAbsent(err) {
		t.Errorf("OAuthCode() of a revoked agent = %v, want not found", err)
	}

	// Who let it in leaves: what they let in ends, for whose agent it was.
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), admin.User) })
	list := grantsOf(t, db, owner, kept.AgentID)
	if len(list) != 2 || list[0].ID != kept.ID || list[0].Cause != "" || list[1].Cause != store.GrantByMember {
		t.Errorf("grants = %+v, want the owner's own live and the admin's ended", list)
	}
}

// Whoever was removed while they were looking at the question connects nothing, also to an agent that stays.
func TestWhoWasRemovedConsentsToNothing(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	admin := storetest.Member(t, db, owner, store.RoleAdmin)
	g, _ := connectApp(t, db, owner, "App")
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), admin.User) })
	n := forNewAgent(addRequest(t, db), "")
	n.Agent = g.AgentID
	if _, _, err := allow(t, db, admin, n); !store.IsAbsent(err) {
		t.Errorf("AllowRequest() of who was removed = %v, want not found", err)
	}
	if got := grantsOf(t, db, owner, g.AgentID); len(got) != 1 {
		t.Errorf("the agent has %d grants, want 1", len(got))
	}
}
