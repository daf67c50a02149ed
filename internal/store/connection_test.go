package store_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// sealedFor spells a credential out in place of sealing.
func sealedFor(text string) func(store.ConnectionID) ([]byte, error) {
	return func(id store.ConnectionID) ([]byte, error) { return []byte(id.String() + " " + text), nil }
}

// toVendor is a shared connection to be, with a credential.
func toVendor(vendor string) store.NewConnection {
	return store.NewConnection{
		Vendor: vendor, DisplayName: "Team " + vendor, Shared: true, Scheme: "bearer", Config: map[string]string{}, Hosts: []string{vendor + ".example.com"},
		Seal: sealedFor("one"),
	}
}

func connection(t *testing.T, db *store.DB, c store.Caller, in store.NewConnection) store.Connection {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) (store.Connection, error) { return tx.CreateConnection(t.Context(), in) })
}

// plantConnection puts a row into every table that has to do with connections.
func plantConnection(t *testing.T, db *store.DB, c store.Caller, a store.Agent) {
	t.Helper()
	in := toVendor("planted-vendor")
	in.Agent = a.ID
	connection(t, db, c, in)
}

func credential(t *testing.T, db *store.DB, c store.Caller, agent store.AgentID, id store.ConnectionID) (store.Credential, reason.Word) {
	t.Helper()
	got, err := in(t, db, c, func(tx *store.Tx) (store.Credential, error) { return tx.AgentCredential(t.Context(), agent, id) })
	if err != nil {
		return got, reason.Of(err).Word
	}
	return got, ""
}

func TestAConnectionFromItsMakingToItsReturn(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	in := toVendor("acme")
	in.Config, in.Seal = map[string]string{"headerName": "X-Key"}, nil
	made := connection(t, db, c, in)
	if diff := cmp.Diff(map[string]string{"headerName": "X-Key"}, made.Config); diff != "" || made.Entered || made.Version != 0 || made.SetAt != nil ||
		made.Health != store.HealthUnknown || !made.Shared() || made.CreatedBy == "" {
		t.Errorf("made %+v (-want +got of its config: %s)", made, diff)
	}
	if _, word := credential(t, db, c, a.ID, made.ID); word != reason.CredentialIncomplete {
		t.Errorf("before its credential: %q, want credential_incomplete", word)
	}
	enter := func(text string) store.Connection {
		t.Helper()
		return must(t, db, c, func(tx *store.Tx) (store.Connection, error) {
			return tx.SetCredential(t.Context(), made.ID, sealedFor(text), nil)
		})
	}
	if set := enter("first"); !set.Entered || set.Version != 1 || set.SetAt == nil || set.SetBy == "" {
		t.Errorf("with its credential: %+v", set)
	}
	got, word := credential(t, db, bearer(c, a), a.ID, made.ID)
	if word != "" || string(got.Sealed) != made.ID.String()+" first" || got.Version != 1 || !cmp.Equal(got.Hosts, []string{"acme.example.com"}) {
		t.Errorf("credential %+v, %q", got, word)
	}

	revoked := must(t, db, c, func(tx *store.Tx) (store.Connection, error) { return tx.RevokeConnection(t.Context(), made.ID) })
	if revoked.ID != made.ID {
		t.Errorf("revoked %+v", revoked)
	}
	super := connect(t, storetest.Superuser(t, storetest.URL(t)))
	if n := number(t, super, `SELECT count(*) FROM connection WHERE id = $1 AND credential IS NULL AND revoked_at IS NOT NULL`, made.ID); n != 1 {
		t.Error("a revoked connection keeps its credential")
	}
	if _, word := credential(t, db, bearer(c, a), a.ID, made.ID); word != reason.ConnectionRevoked {
		t.Errorf("once it is revoked: %q, want connection_revoked", word)
	}
	if err := db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.RevokeConnection(t.Context(), made.ID); return err }); !store.IsAbsent(err) {
		t.Errorf("revoked again = %v, want not found", err)
	}
	if back := enter("second"); back.RevokedAt != nil || back.Version != 2 {
		t.Errorf("back again: %+v", back)
	}
	if got, word := credential(t, db, bearer(c, a), a.ID, made.ID); word != "" || !strings.HasSuffix(string(got.Sealed), "second") {
		t.Errorf("credential once it is back %+v, %q", got, word)
	}
}

func TestAVendorIsNoUpstreamAndNoUpstreamAVendor(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	upstream(t, db, c, "taken")
	connection(t, db, c, toVendor("acme"))
	connection(t, db, c, toVendor("acme")) // another account
	for name, try := range map[string]func(*store.Tx) error{
		"a connection called like an upstream": func(tx *store.Tx) error { _, err := tx.CreateConnection(t.Context(), toVendor("taken")); return err },
		"an upstream called like a connection": func(tx *store.Tx) error {
			_, err := tx.CreateUpstream(t.Context(), "acme", "https://acme.example.com/mcp", settings, nil)
			return err
		},
	} {
		if err := db.As(t.Context(), c, try); reason.Of(err).Word != reason.NameTaken {
			t.Errorf("%s = %v, want name_taken", name, err)
		}
	}
}

// Who may do what with which connection: another's private one is there for nobody but who reads everything, and its credential is
// entered by its owner alone.
func TestConnectionsAreTheirOwnersOrEverybodys(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	admin, ana, ben, auditor := storetest.Member(t, db, owner, store.RoleAdmin), storetest.Member(t, db, owner, store.RoleMember),
		storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleAuditor)
	private := toVendor("acme")
	private.Shared = false
	shared, mine := connection(t, db, admin, toVendor("acme")), connection(t, db, ana, private)
	for name, c := range map[string]store.Caller{"a member": ana, "an auditor": auditor} {
		if err := db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.CreateConnection(t.Context(), toVendor("x")); return err }); reason.Of(err).Word != reason.Forbidden {
			t.Errorf("%s makes a shared one = %v, want forbidden", name, err)
		}
	}
	enter := func(id store.ConnectionID) func(*store.Tx) error {
		return func(tx *store.Tx) error { _, err := tx.SetCredential(t.Context(), id, sealedFor("x"), nil); return err }
	}
	revoke := func(id store.ConnectionID) func(*store.Tx) error {
		return func(tx *store.Tx) error { _, err := tx.RevokeConnection(t.Context(), id); return err }
	}
	for _, step := range []struct {
		who  string
		c    store.Caller
		what string
		do   func(*store.Tx) error
		want reason.Word
	}{
		{"ben", ben, "enters Ana's", enter(mine.ID), reason.NotFoundWord},
		{"ben", ben, "revokes Ana's", revoke(mine.ID), reason.NotFoundWord},
		{"ben", ben, "enters the shared one", enter(shared.ID), reason.Forbidden},
		{"auditor", auditor, "enters the shared one", enter(shared.ID), reason.Forbidden},
		{"auditor", auditor, "revokes Ana's", revoke(mine.ID), reason.Forbidden},
		{"admin", admin, "enters Ana's", enter(mine.ID), reason.Forbidden},
		{"ana", ana, "enters her own", enter(mine.ID), ""},
		{"admin", admin, "revokes Ana's", revoke(mine.ID), ""},
		{"owner", owner, "enters the shared one", enter(shared.ID), ""},
	} {
		err := db.As(t.Context(), step.c, step.do)
		if got := reason.Of(err).Word; err != nil && got != step.want || err == nil && step.want != "" {
			t.Errorf("%s %s = %v, want %q", step.who, step.what, err, step.want)
		}
	}
	for name, want := range map[string]struct {
		c store.Caller
		n int
	}{"owner": {owner, 2}, "admin": {admin, 2}, "ana": {ana, 2}, "ben": {ben, 1}, "auditor": {auditor, 2}, "a stranger": {storetest.Organisation(t, db), 0}} {
		if got := must(t, db, want.c, func(tx *store.Tx) ([]store.Connection, error) { return tx.Connections(t.Context()) }); len(got) != want.n {
			t.Errorf("%s sees %d connections, want %d", name, len(got), want.n)
		}
	}
}

// A private connection serves its owner's agents alone, whatever is listed.
func TestAnAgentUsesWhatIsInItsScope(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	ana := storetest.Member(t, db, owner, store.RoleMember)
	private := toVendor("acme")
	private.Shared = false
	shared, mine := connection(t, db, owner, toVendor("acme")), connection(t, db, ana, private)
	ofAna, _ := storetest.Agent(t, db, ana, "Of Ana")
	ofOwner, _ := storetest.Agent(t, db, owner, "Of the owner")
	words := func() [4]reason.Word {
		t.Helper()
		var got [4]reason.Word
		for i, a := range []struct {
			c  store.Caller
			of store.Agent
		}{{ana, ofAna}, {owner, ofOwner}} {
			_, got[2*i] = credential(t, db, bearer(a.c, a.of), a.of.ID, shared.ID)
			_, got[2*i+1] = credential(t, db, bearer(a.c, a.of), a.of.ID, mine.ID)
		}
		return got
	}
	scope := func(c store.Caller, a store.Agent, s store.Scope) error {
		t.Helper()
		return db.As(t.Context(), c, func(tx *store.Tx) error { return tx.SetScope(t.Context(), a.ID, s) })
	}
	const out, absent = reason.ConnectionNotInScope, reason.ConnectionAbsent
	for _, step := range []struct {
		name string
		do   func() error
		want [4]reason.Word // Ana's agent: shared, hers; the owner's agent: shared, Ana's
	}{
		{"all", func() error { return nil }, [4]reason.Word{"", "", "", absent}},
		{"nothing listed", func() error { return scope(ana, ofAna, store.Scope{}) }, [4]reason.Word{out, out, "", absent}},
		{"hers listed", func() error { return scope(ana, ofAna, store.Scope{Listed: []store.ConnectionID{mine.ID}}) }, [4]reason.Word{out, "", "", absent}},
		{"one added", func() error {
			return db.As(t.Context(), ana, func(tx *store.Tx) error { return tx.AddToScope(t.Context(), ofAna.ID, shared.ID) })
		}, [4]reason.Word{"", "", "", absent}},
		{"all again", func() error { return scope(ana, ofAna, store.Scope{All: true}) }, [4]reason.Word{"", "", "", absent}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := words(); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	if err := scope(owner, ofOwner, store.Scope{Listed: []store.ConnectionID{mine.ID}}); !store.IsAbsent(err) {
		t.Errorf("somebody's private connection listed for another's agent = %v, want not found", err)
	}
	if got := must(t, db, owner, func(tx *store.Tx) (store.Usage, error) { return tx.ConnectionUsage(t.Context(), shared.ID) }); !cmp.Equal(got.Agents, []string{"Of Ana", "Of the owner"}) {
		t.Errorf("the shared one is used by %q", got.Agents)
	}
	if got := must(t, db, ana, func(tx *store.Tx) (store.Scope, error) { return tx.Scope(t.Context(), ofAna.ID) }); !got.All || len(got.Listed) != 0 {
		t.Errorf("scope = %+v, want all, and none listed", got)
	}
	for c, want := range map[store.Caller]int{bearer(ana, ofAna): 2, bearer(owner, ofOwner): 1} {
		if got := must(t, db, c, func(tx *store.Tx) ([]store.Connection, error) { return tx.AgentConnections(t.Context(), c.Agent) }); len(got) != want {
			t.Errorf("%s uses %d connections, want %d", c.Agent, len(got), want)
		}
	}
	for c, want := range map[store.Caller]bool{ana: true, owner: false, storetest.Member(t, db, owner, store.RoleMember): false} {
		if _, err := in(t, db, c, func(tx *store.Tx) (store.Credential, error) { return tx.OwnCredential(t.Context(), mine.ID) }); (err == nil) != want {
			t.Errorf("%s %s reads Ana's credential = %v, want %v", c.Role, c.User, err, want)
		}
	}
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), ana.User) })
	if got := must(t, db, owner, func(tx *store.Tx) (store.Connection, error) { return tx.Connection(t.Context(), mine.ID) }); got.RevokedAt == nil || got.Entered {
		t.Errorf("the connection of who was removed: %+v", got)
	}
}

// Of many that want to refresh one token, one does; what it was given is kept once, and never over what a person entered.
func TestATokenIsRefreshedByOne(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	made := connection(t, db, c, toVendor("acme"))
	lease := func(version int) bool {
		won, err := in(t, db, c, func(tx *store.Tx) (bool, error) {
			return tx.LeaseRefresh(t.Context(), made.ID, version, db.Now().Add(time.Minute))
		})
		if err != nil {
			t.Error(err)
		}
		return won
	}
	var won atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if lease(1) {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if n := won.Load(); n != 1 {
		t.Fatalf("%d refresh at once, want 1", n)
	}
	rotate := func(version int, text string) bool {
		t.Helper()
		expires := db.Now().Add(time.Hour)
		return must(t, db, c, func(tx *store.Tx) (bool, error) {
			return tx.RotateCredential(t.Context(), made.ID, version, []byte(text), &expires)
		})
	}
	if !rotate(1, "two") || rotate(1, "late") {
		t.Error("a rotation is kept twice, or not at all")
	}
	if lease(1) || !lease(2) {
		t.Error("the lease is of the version that there is")
	}
	must(t, db, c, func(tx *store.Tx) (store.Connection, error) {
		return tx.SetCredential(t.Context(), made.ID, sealedFor("typed"), nil)
	})
	if rotate(2, "over it") {
		t.Error("a refresh overwrites what a person entered")
	}
	if changed := must(t, db, c, func(tx *store.Tx) (bool, error) {
		return tx.NoteHealth(t.Context(), made.ID, 2, "upstream_unauthorized")
	}); changed {
		t.Error("what is said of an older credential counts for the new one")
	}
	note := func(word string) bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.NoteHealth(t.Context(), made.ID, 3, word) })
	}
	if !note("upstream_unauthorized") || note("upstream_unauthorized") || !note("") {
		t.Error("a health is noted where it changes")
	}
}

// What is not an approval is answered with a connection, or with a no that is told once and stands for nothing.
func TestAnAskForAConnectionIsAnsweredWithOne(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	a, _ := storetest.Agent(t, db, c, "Worker")
	self := bearer(c, a)
	do(t, db, c, func(tx *store.Tx) error { return tx.SetScope(t.Context(), a.ID, store.Scope{}) })
	key := sum("proposal")
	ask := func() store.Ask {
		t.Helper()
		return must(t, db, self, func(tx *store.Tx) (store.Ask, error) {
			return tx.OpenAsk(t.Context(), store.Ask{Kind: store.AskConnection, AgentID: a.ID, Tool: "acme", Key: key}, func(store.AskID) []byte { return []byte("sealed") })
		})
	}
	no := func() bool {
		t.Helper()
		return must(t, db, self, func(tx *store.Tx) (bool, error) { return tx.TakeNo(t.Context(), a.ID, key) })
	}
	first := ask()
	if again := ask(); again.ID != first.ID {
		t.Error("asked again it is another ask")
	}
	if _, err := in(t, db, c, func(tx *store.Tx) (store.Ask, error) { return tx.AnswerAsk(t.Context(), first.ID, true, false) }); err == nil {
		t.Error("an ask for a connection is answered as an approval is")
	}
	if no() {
		t.Error("a no before there was one")
	}
	must(t, db, c, func(tx *store.Tx) (store.Ask, error) { return tx.DeclineAsk(t.Context(), first.ID) })
	if !no() || no() {
		t.Error("a no is told once")
	}
	second := ask()
	if second.ID == first.ID || second.State != store.AskOpen {
		t.Errorf("after a no: %+v, want a new ask", second)
	}

	made := connection(t, db, c, toVendor("acme"))
	if _, word := credential(t, db, self, a.ID, made.ID); word != reason.ConnectionNotInScope {
		t.Errorf("before the answer: %q, want connection_not_in_scope", word)
	}
	answered := must(t, db, c, func(tx *store.Tx) (store.Ask, error) { return tx.FulfilAsk(t.Context(), second.ID, made.ID) })
	if answered.State != store.AskAllowed || answered.ConnectionID != made.ID || answered.AnsweredBy == "" {
		t.Errorf("answered %+v", answered)
	}
	if _, word := credential(t, db, self, a.ID, made.ID); word != "" {
		t.Errorf("after the answer: %q, want that it may be used", word)
	}
	for name, try := range map[string]func(*store.Tx) (store.Ask, error){
		"yes once more": func(tx *store.Tx) (store.Ask, error) { return tx.FulfilAsk(t.Context(), second.ID, made.ID) },
		"no after yes":  func(tx *store.Tx) (store.Ask, error) { return tx.DeclineAsk(t.Context(), second.ID) },
	} {
		if _, err := in(t, db, c, try); reason.Of(err).Word != reason.ApprovalExpired {
			t.Errorf("%s = %v, want approval_expired", name, err)
		}
	}

	about := must(t, db, self, func(tx *store.Tx) (store.Ask, error) {
		return tx.OpenAsk(t.Context(), store.Ask{Kind: store.AskCredential, AgentID: a.ID, Tool: "acme", ConnectionID: made.ID, Key: sum("credential")}, func(store.AskID) []byte { return []byte("sealed") })
	})
	other := connection(t, db, c, toVendor("acme"))
	if _, err := in(t, db, c, func(tx *store.Tx) (store.Ask, error) { return tx.FulfilAsk(t.Context(), about.ID, other.ID) }); !store.IsAbsent(err) {
		t.Errorf("an ask about one connection is answered with another: %v", err)
	}
	must(t, db, c, func(tx *store.Tx) (store.Connection, error) { return tx.RevokeConnection(t.Context(), made.ID) })
	if got := must(t, db, c, func(tx *store.Tx) (store.Ask, error) { return tx.Ask(t.Context(), about.ID) }); got.State != store.AskWithdrawn {
		t.Errorf("what was asked about a revoked connection is %s, want withdrawn", got.State)
	}
}
