package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// createAgent makes an agent of c's and returns its token.
func createAgent(t *testing.T, db *store.DB, c store.Caller, name string) (token string, err error) {
	t.Helper()
	return in(t, db, c, func(tx *store.Tx) (string, error) {
		_, token, err := tx.CreateAgent(t.Context(), name, c.User)
		return token, err
	})
}

// resolves reports whether a token leads to an agent.
func resolves(t *testing.T, db *store.DB, token string) bool {
	t.Helper()
	_, err := db.System().Bearer(t.Context(), store.HashToken(token))
	if err != nil && !store.IsAbsent(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestAgentsAreMadeForWhoMayMakeThem: the CLI and admins name whom an agent is for, and an auditor only reads.
func TestAgentsAreMadeForWhoMayMakeThem(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	cli := store.Caller{Org: owner.Org, Role: store.RoleOwner, Via: store.ViaCLI}
	auditor := storetest.Member(t, db, owner, store.RoleAuditor)
	emails := map[store.UserID]string{}
	for _, m := range must(t, db, owner, func(tx *store.Tx) ([]store.Member, error) { return tx.Members(t.Context()) }) {
		emails[m.UserID] = m.Email
	}
	for _, c := range []store.Caller{cli, owner} {
		_, err := in(t, db, c, func(tx *store.Tx) (string, error) {
			_, token, err := tx.CreateAgent(t.Context(), "hermes", auditor.User)
			return token, err
		})
		if want := emails[auditor.User] + " is an auditor, who reads only."; outcome(err) != "forbidden" || reason.Of(err).Message != want {
			t.Errorf("CreateAgent() for an auditor by %s = %v, want %q", c.Via, err, want)
		}
	}
	if list := must(t, db, owner, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }); len(list) != 0 {
		t.Errorf("Agents() = %v, want none", list)
	}
}

// How another member spells an agent's name is not told: to the caller it is one that is missing.
func TestATakenNameIsToldAsTheCallerSpellsIt(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	if _, err := createAgent(t, db, c, "Hermes"); err != nil {
		t.Fatal(err)
	}
	_, err := createAgent(t, db, c, "hERMES")
	if want := `A live agent is called "hERMES" already. Choose another name.`; outcome(err) != "name_taken" || reason.Of(err).Message != want {
		t.Errorf("CreateAgent() of a taken name = %v, want %q", err, want)
	}
}

// Each agent has a rate, runs and sessions of its own: who makes many multiplies all of them.
func TestAgentsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	owner := storetest.Organisation(t, db)
	member := storetest.Member(t, db, owner, store.RoleMember)
	do(t, db, member, func(tx *store.Tx) error {
		for n := range 100 {
			if _, _, err := tx.CreateAgent(t.Context(), fmt.Sprintf("live %d", n), member.User); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := createAgent(t, db, member, "one more"); outcome(err) != "input_invalid" {
		t.Errorf("CreateAgent() number 101 = %v, want input_invalid", err)
	}
	if _, err := createAgent(t, db, owner, "of another"); err != nil {
		t.Errorf("CreateAgent() of another member = %v", err)
	}
	list := must(t, db, owner, func(tx *store.Tx) ([]store.Agent, error) {
		return tx.Agents(t.Context(), store.AgentFilter{Name: "LIVE 9", Most: 5})
	})
	if count := must(t, db, owner, func(tx *store.Tx) (int, error) { return tx.CountAgents(t.Context()) }); len(list) != 5 || count != 101 {
		t.Errorf("Agents() = %d of %d, want 5 of 101", len(list), count)
	}
	if count := must(t, db, storetest.Member(t, db, owner, store.RoleMember), func(tx *store.Tx) (int, error) { return tx.CountAgents(t.Context()) }); count != 0 {
		t.Errorf("CountAgents() of a member without one = %d, want 0", count)
	}

	// Making and revoking leaves a row each time.
	made := 100
	for _, a := range must(t, db, member, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }) {
		do(t, db, member, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
	}
	var err error
	for err == nil && made < 1000 {
		err = db.As(t.Context(), member, func(tx *store.Tx) error {
			a, _, err := tx.CreateAgent(t.Context(), "again", member.User)
			if err != nil {
				return err
			}
			made++
			return tx.RevokeAgent(t.Context(), a.ID)
		})
	}
	if outcome(err) != "rate_limited" || made != 200 {
		t.Errorf("after %d agents in a day: %v, want rate_limited after 200", made, err)
	}
	clock.pass(24 * time.Hour)
	if _, err := createAgent(t, db, member, "tomorrow"); err != nil {
		t.Errorf("CreateAgent() a day later = %v", err)
	}
}

func TestANewAgent(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	email := must(t, db, c, func(tx *store.Tx) ([]store.Member, error) { return tx.Members(t.Context()) })[0].Email
	a, token := storetest.Agent(t, db, c, "Claude Code")
	if !store.WellFormed(store.StaticTokenPrefix, token) {
		t.Errorf("token = %q, want one that is well formed", token)
	}
	hint := token[len(token)-10 : len(token)-6]
	now := clock.now()
	want := store.Agent{ID: a.ID, Name: "Claude Code", UserID: c.User, UserName: email, AdvancedTools: true, IdleDays: 21, ToolCap: 20, CreatedAt: now, TokenHint: &hint, TokenMadeAt: &now}
	if diff := cmp.Diff(want, a, cmp.Comparer(func(a, b store.AgentID) bool { return a == b }), cmp.Comparer(func(a, b store.UserID) bool { return a == b })); diff != "" {
		t.Errorf("CreateAgent() (-want +got):\n%s", diff)
	}
	if got := a.ID.Time(); !got.Equal(clock.now()) {
		t.Errorf("the id's time = %v, want %v", got, clock.now())
	}
	got, err := db.System().Bearer(t.Context(), store.HashToken(token))
	if want := (store.Bearer{Org: c.Org, User: c.User, Agent: a.ID, Role: store.RoleOwner}); err != nil || got != want {
		t.Errorf("Bearer() = %v, %v, want %v", got, err, want)
	}
}

func TestAgentNames(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	other := storetest.Organisation(t, db)
	for _, tt := range []struct{ name, want string }{
		{"Worker", "yes"},
		{"Worker", "name_taken"},
		{"wORKER", "name_taken"},
		{"Worker 2", "yes"},
		{"a", "yes"},
		{"7", "yes"},
		{"Größe_1.2-b", "yes"},
		{strings.Repeat("é", 64), "yes"},
		{strings.Repeat("e", 65), "input_invalid"},
		{"", "input_invalid"},
		{" a", "input_invalid"},
		{"-a", "input_invalid"},
		{"a\n", "input_invalid"},
		{"a\x00", "input_invalid"},
		{"a\xff", "input_invalid"},
		{"a/b", "input_invalid"},
		{"a\u202eb", "input_invalid"},
	} {
		if _, err := createAgent(t, db, c, tt.name); outcome(err) != tt.want {
			t.Errorf("CreateAgent(%q) = %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := createAgent(t, db, other, "Worker"); err != nil {
		t.Errorf("CreateAgent() with another organisation's name = %v, want nil", err)
	}
}

func TestARevokedAgentFreesItsName(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	first, token := storetest.Agent(t, db, c, "Worker")
	clock.pass(time.Hour)
	revoke := func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), first.ID) }
	do(t, db, c, revoke)
	if resolves(t, db, token) {
		t.Error("the token of a revoked agent leads to it, want not found")
	}
	clock.pass(time.Hour)
	if err := db.As(t.Context(), c, revoke); !store.IsAbsent(err) {
		t.Errorf("RevokeAgent() again = %v, want %v", err, reason.NotFound)
	}
	if _, err := in(t, db, c, func(tx *store.Tx) (string, error) { return tx.RenewAgentToken(t.Context(), first.ID) }); !store.IsAbsent(err) {
		t.Errorf("RenewAgentToken() of a revoked agent = %v, want %v", err, reason.NotFound)
	}
	byName := func(tx *store.Tx) (store.Agent, error) { return tx.AgentByName(t.Context(), "WORKER") }
	if _, err := in(t, db, c, byName); !store.IsAbsent(err) {
		t.Errorf("AgentByName() of a revoked agent = %v, want %v", err, reason.NotFound)
	}

	second, _ := storetest.Agent(t, db, c, "worker")
	if got := must(t, db, c, byName); got.ID != second.ID {
		t.Errorf("AgentByName() = %v, want the live one, %v", got.ID, second.ID)
	}
	got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), first.ID) })
	if got.RevokedAt == nil || !got.RevokedAt.Equal(clock.now().Add(-time.Hour)) || got.RevokedBy != got.UserName || got.TokenHint != nil {
		t.Errorf("Agent() = %+v, want one revoked an hour ago by its maker, without a token", got)
	}
	list := must(t, db, c, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) })
	if len(list) != 2 || list[0].ID != second.ID || list[1].ID != first.ID {
		t.Errorf("Agents() = %v, want the live one before the revoked", list)
	}
}

func TestTheCLIRevokesWithoutAName(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	cli := store.Caller{Org: c.Org, Role: store.RoleOwner, Via: store.ViaCLI}
	do(t, db, cli, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
	if got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), a.ID) }); got.RevokedBy != "" || got.RevokedAt == nil {
		t.Errorf("Agent() = %+v, want one revoked by nobody by name", got)
	}
}

func TestARenewedTokenEndsTheOldOneAtOnce(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, old := storetest.Agent(t, db, c, "Worker")
	renewed := must(t, db, c, func(tx *store.Tx) (string, error) { return tx.RenewAgentToken(t.Context(), a.ID) })
	if resolves(t, db, old) || !resolves(t, db, renewed) {
		t.Errorf("old token resolves: %v, new one: %v, want false and true", resolves(t, db, old), resolves(t, db, renewed))
	}
	got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), a.ID) })
	if want := renewed[len(renewed)-10 : len(renewed)-6]; got.TokenHint == nil || *got.TokenHint != want {
		t.Errorf("token hint = %v, want %q", got.TokenHint, want)
	}
}

// TestRenewalsAndARevocationAtOnce: whatever the order, one token lives at most, and none after the revocation.
func TestRenewalsAndARevocationAtOnce(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	for range 5 {
		a, _ := storetest.Agent(t, db, c, "Worker")
		renew := func() (token string, err error) {
			return token, db.As(t.Context(), c, func(tx *store.Tx) (err error) {
				token, err = tx.RenewAgentToken(t.Context(), a.ID)
				return err
			})
		}
		var all sync.WaitGroup
		var tokens [4]string
		for n := range tokens {
			all.Go(func() {
				var err error
				if tokens[n], err = renew(); err != nil && !store.IsAbsent(err) {
					t.Errorf("RenewAgentToken() = %v, want nil or not found", err)
				}
			})
		}
		all.Go(func() {
			if err := db.As(t.Context(), c, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) }); err != nil {
				t.Errorf("RevokeAgent() = %v, want nil", err)
			}
		})
		all.Wait()
		for _, token := range tokens {
			if token != "" && resolves(t, db, token) {
				t.Error("a token lives after the revocation")
			}
		}
	}
	a, first := storetest.Agent(t, db, c, "Survivor")
	var all sync.WaitGroup
	var tokens [4]string
	for n := range tokens {
		all.Go(func() {
			if err := db.As(t.Context(), c, func(tx *store.Tx) (err error) {
				tokens[n], err = tx.RenewAgentToken(t.Context(), a.ID)
				return err
			}); err != nil {
				t.Errorf("RenewAgentToken() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	live := 0
	for _, token := range append(tokens[:], first) {
		if resolves(t, db, token) {
			live++
		}
	}
	if live != 1 {
		t.Errorf("live tokens = %d, want 1", live)
	}
}

func TestLastUseMovesForward(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "A")
	clock.pass(time.Second)
	b, _ := storetest.Agent(t, db, c, "B")
	start := db.Now()
	for _, tt := range []struct {
		at, want time.Duration
	}{{2 * time.Minute, 2 * time.Minute}, {time.Minute, 2 * time.Minute}, {3 * time.Minute, 3 * time.Minute}} {
		got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) {
			if err := tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: start.Add(tt.at)}); err != nil {
				return store.Agent{}, err
			}
			return tx.Agent(t.Context(), a.ID)
		})
		if !got.LastUsedAt.Equal(start.Add(tt.want)) {
			t.Errorf("after TouchAgents(%v) last use = %v, want %v", tt.at, got.LastUsedAt.Sub(start), tt.want)
		}
	}
	list := must(t, db, c, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) })
	if len(list) != 2 || list[0].ID != a.ID || list[1].ID != b.ID {
		t.Errorf("Agents() = %v, want the used one before the newer", list)
	}
	foreign := storetest.Organisation(t, db)
	do(t, db, foreign, func(tx *store.Tx) error {
		return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: start.Add(time.Hour)})
	})
	if got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), a.ID) }); !got.LastUsedAt.Equal(start.Add(3 * time.Minute)) {
		t.Errorf("last use after another organisation's touch = %v, want unchanged", got.LastUsedAt)
	}
}

func TestAnAgentLivesWhileItAndItsMakerDo(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	c := storetest.Organisation(t, db)
	member := storetest.Member(t, db, c, store.RoleMember)
	super := connect(t, storetest.Superuser(t, dsn))
	kept, keptToken := storetest.Agent(t, db, c, "Kept")
	orphan, orphanToken := storetest.Agent(t, db, member, "Orphan")
	revoked, revokedToken := storetest.Agent(t, db, c, "Revoked")
	foreign, _ := storetest.Agent(t, db, storetest.Organisation(t, db), "Foreign")

	lives := func(id store.AgentID) bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.AgentLives(t.Context(), id) })
	}
	for _, id := range []store.AgentID{kept.ID, orphan.ID, revoked.ID} {
		if !lives(id) {
			t.Errorf("AgentLives(%v) = false, want true", id)
		}
	}
	if _, err := super.Exec(t.Context(), `UPDATE member SET removed_at = now() WHERE user_id = $1`, member.User); err != nil {
		t.Fatal(err)
	}
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), revoked.ID) })
	for _, tt := range []struct {
		name  string
		id    store.AgentID
		token string
		want  bool
	}{
		{"kept", kept.ID, keptToken, true},
		{"of a member who was removed", orphan.ID, orphanToken, false},
		{"revoked", revoked.ID, revokedToken, false},
		{"of another organisation", foreign.ID, "", false},
		{"missing", store.NewID[store.AgentKind](db.Now()), "", false},
	} {
		if got := lives(tt.id); got != tt.want {
			t.Errorf("AgentLives() of an agent that is %s = %v, want %v", tt.name, got, tt.want)
		}
		if got := tt.token != "" && resolves(t, db, tt.token); got != tt.want {
			t.Errorf("the token of an agent that is %s resolves: %v, want %v", tt.name, got, tt.want)
		}
	}
	_, err := in(t, db, c, func(tx *store.Tx) (string, error) {
		_, token, err := tx.CreateAgent(t.Context(), "New", member.User)
		return token, err
	})
	if !store.IsAbsent(err) {
		t.Errorf("CreateAgent() for a member who was removed = %v, want %v", err, reason.NotFound)
	}
}

func TestUnknownTokensResolveToNothing(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	token, _ := store.NewToken(store.StaticTokenPrefix)
	for _, s := range []string{token, ""} {
		if resolves(t, db, s) {
			t.Errorf("Bearer(%q) = an agent, want not found", s)
		}
	}
}

// TestAMissingAgentAndAForeignOneAreOneAnswer asks for both in every way there is.
func TestAMissingAgentAndAForeignOneAreOneAnswer(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	foreign, _ := storetest.Agent(t, db, storetest.Organisation(t, db), "Foreign")
	missing := store.NewID[store.AgentKind](db.Now())
	session := store.NewID[store.SessionKind](db.Now())
	cli := store.Caller{Org: c.Org, Role: store.RoleOwner, Via: store.ViaCLI}
	for name, fn := range map[string]func(tx *store.Tx, id store.AgentID) error{
		"Agent":           func(tx *store.Tx, id store.AgentID) error { _, err := tx.Agent(t.Context(), id); return err },
		"RenewAgentToken": func(tx *store.Tx, id store.AgentID) error { _, err := tx.RenewAgentToken(t.Context(), id); return err },
		"RevokeAgent":     func(tx *store.Tx, id store.AgentID) error { return tx.RevokeAgent(t.Context(), id) },
		"WorkingSet":      func(tx *store.Tx, id store.AgentID) error { _, err := tx.WorkingSet(t.Context(), id); return err },
		"Promote":         func(tx *store.Tx, id store.AgentID) error { _, err := tx.Promote(t.Context(), id, "a__b"); return err },
		"Demote":          func(tx *store.Tx, id store.AgentID) error { _, err := tx.Demote(t.Context(), id, "a__b"); return err },
		"WorkingSetChanges": func(tx *store.Tx, id store.AgentID) error {
			_, err := tx.WorkingSetChanges(t.Context(), id, 9)
			return err
		},
		"PromoteAll": func(tx *store.Tx, id store.AgentID) error {
			_, err := tx.PromoteAll(t.Context(), id, []string{"a__b"})
			return err
		},
		"SetWorkingSetLimits": func(tx *store.Tx, id store.AgentID) error { return tx.SetWorkingSetLimits(t.Context(), id, 21, 20) },
		"Sessions":            func(tx *store.Tx, id store.AgentID) error { _, err := tx.Sessions(t.Context(), id, 9); return err },
		"EndSession":          func(tx *store.Tx, id store.AgentID) error { return tx.EndSession(t.Context(), id, session) },
		"RecordSessions": func(tx *store.Tx, id store.AgentID) error {
			return tx.RecordSessions(t.Context(), store.MCPSession{ID: session, AgentID: id, OpenedAt: db.Now(), LastSeenAt: db.Now()})
		},
	} {
		for _, caller := range []store.Caller{c, cli} {
			for kind, id := range map[string]store.AgentID{"foreign": foreign.ID, "missing": missing, "zero": {}} {
				if kind == "zero" && name == "RecordSessions" {
					continue // nobody asks for it: the agent there is the caller
				}
				if err := db.As(t.Context(), caller, func(tx *store.Tx) error { return fn(tx, id) }); !store.IsAbsent(err) {
					t.Errorf("%s() of a %s agent by %s = %v, want %v", name, kind, caller.Via, err, reason.NotFound)
				}
			}
		}
	}
}
