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

// founder is what the page of a welcome link sends.
func founder(n int) store.Setup {
	return store.Setup{Name: "Ana", Password: "$argon2id$x", Email: fmt.Sprintf("Ana-%d@example.com", n), Org: fmt.Sprintf("Acme %d", n)}
}

func TestAWelcomeLinkMakesTheFirstOwner(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	token, err := sys.NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(store.WelcomeLife - time.Second)
	if !store.WellFormed(store.LinkTokenPrefix, token) {
		t.Errorf("NewWelcomeLink() = %q, want a token that is well formed", token)
	}
	if l, err := sys.Link(t.Context(), token); err != nil || l != (store.Link{Kind: store.LinkWelcome}) {
		t.Errorf("Link() = %v, %v, want a welcome link", l, err)
	}
	for field, in := range map[string]store.Setup{
		"org":   {Name: "Ana", Password: "x", Email: "ana@example.com", Org: ""},
		"email": {Name: "Ana", Password: "x", Email: "ana", Org: "Acme"},
		"name":  {Name: "A\nna", Password: "x", Email: "ana@example.com", Org: "Acme"},
	} {
		if _, err := sys.UseLink(t.Context(), token, in); outcome(err) != "input_invalid" || reason.Of(err).Details["field"] != field {
			t.Errorf("UseLink(%+v) = %v, want input_invalid of %s", in, err, field)
		}
	}
	if found, err := sys.AnyUser(t.Context()); err != nil || found {
		t.Errorf("AnyUser() = %v, %v, want false", found, err)
	}
	user, err := sys.UseLink(t.Context(), token, founder(1))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := sys.AnyUser(t.Context()); err != nil || !found {
		t.Errorf("AnyUser() = %v, %v, want true", found, err)
	}
	got, err := sys.UserByEmail(t.Context(), "ana-1@example.com")
	if want := (store.User{ID: user, Email: "ana-1@example.com", Name: "Ana", Password: "$argon2id$x"}); err != nil || got != want {
		t.Errorf("UserByEmail() = %v, %v, want %v", got, err, want)
	}
	if list := memberships(t, db, user); len(list) != 1 || list[0].OrgName != "Acme 1" || list[0].Role != store.RoleOwner || list[0].Name != "Ana" {
		t.Errorf("Memberships() = %v, want owner of Acme 1", list)
	}

	// Spent, and of no use beside a user.
	late, err := sys.NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{token, late, "", "grftl_nothing"} {
		_, look := sys.Link(t.Context(), token)
		_, use := sys.UseLink(t.Context(), token, founder(2))
		if outcome(look) != "link_not_valid" || outcome(use) != "link_not_valid" {
			t.Errorf("Link(%q) = %v, UseLink() = %v, want link_not_valid", token, look, use)
		}
	}
}

// Each start without a user prints a link, and whoever reads one of them can found the deployment.
func TestTheNewestWelcomeLinkAloneWorksForADay(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	works := func(token string) bool {
		_, err := sys.Link(t.Context(), token)
		return err == nil
	}
	var tokens [2]string
	for n := range tokens {
		var err error
		if tokens[n], err = sys.NewWelcomeLink(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if works(tokens[0]) || !works(tokens[1]) {
		t.Errorf("of two links the first works: %v, the second: %v; want the second alone", works(tokens[0]), works(tokens[1]))
	}
	clock.pass(store.WelcomeLife)
	if works(tokens[1]) {
		t.Error("a link works after its life")
	}
}

// TestOfManyWelcomeLinksAtOnceOneFounds: two pages open in two browsers, with one link or each with another.
func TestOfManyWelcomeLinksAtOnceOneFounds(t *testing.T) {
	t.Parallel()
	for name, links := range map[string]int{"one link": 1, "a link each": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _ := private(t)
			other := storetest.Open(t, dsnOf(db), nil)
			super := connect(t, storetest.Superuser(t, dsnOf(db)))
			var tokens []string
			for range links {
				token, hash := store.NewToken(store.LinkTokenPrefix) // a second of ours would end the first
				if _, err := super.Exec(t.Context(), `INSERT INTO signin_link (hash, kind, created_at) VALUES ($1, 'welcome', now())`, hash[:]); err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, token)
			}
			var all sync.WaitGroup
			var outcomes [6]string
			for n := range outcomes {
				all.Go(func() {
					_, err := []*store.DB{db, other}[n%2].System().UseLink(t.Context(), tokens[n%links], founder(n))
					outcomes[n] = outcome(err)
				})
			}
			all.Wait()
			count := map[string]int{}
			for _, o := range outcomes {
				count[o]++
			}
			if diff := cmp.Diff(map[string]int{"yes": 1, "link_not_valid": 5}, count); diff != "" {
				t.Errorf("outcomes of UseLink() (-want +got):\n%s", diff)
			}
			for _, table := range []string{"organisation", "user_account", "member"} {
				if n := number(t, super, `SELECT count(*) FROM `+table); n != 1 {
					t.Errorf("rows of %s = %d, want 1", table, n)
				}
			}
		})
	}
}

func TestASignInLinkSetsAPasswordOnce(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	_, user := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	_, other := enrol(t, db, "Acme", "bo@example.com", store.RoleOwner)
	mine, theirs := store.HashToken("cookie of ana"), store.HashToken("cookie of bo")
	for hash, user := range map[store.TokenHash]store.UserID{mine: user, theirs: other} {
		if err := sys.BeginWebSession(t.Context(), hash, user, "", []byte("data"), clock.now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	token, err := sys.NewSignInLink(t.Context(), user, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := sys.Link(t.Context(), token); err != nil || l != (store.Link{Kind: store.LinkSignIn, UserID: user, Email: "ana@example.com"}) {
		t.Errorf("Link() = %v, %v, want a sign-in link of %v", l, err, user)
	}
	if got, err := sys.UseLink(t.Context(), token, store.Setup{Name: "Ana", Password: "first"}); err != nil || got != user {
		t.Errorf("UseLink() = %v, %v, want %v", got, err, user)
	}
	if _, err := sys.UseLink(t.Context(), token, store.Setup{Password: "second"}); outcome(err) != "link_not_valid" {
		t.Errorf("UseLink() again = %v, want link_not_valid", err)
	}
	if got, err := sys.UserByEmail(t.Context(), "ana@example.com"); err != nil || got.Password != "first" || got.Name != "Ana" {
		t.Errorf("UserByEmail() = %v, %v, want the first password and a name", got, err)
	}
	if _, err := sys.WebSession(t.Context(), mine); !store.IsAbsent(err) {
		t.Errorf("WebSession() from before the new password = %v, want %v", err, reason.NotFound)
	}
	if _, err := sys.WebSession(t.Context(), theirs); err != nil {
		t.Errorf("WebSession() of somebody else = %v, want nil", err)
	}

	// A name stays where the page sends none.
	token, err = sys.NewSignInLink(t.Context(), user, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(10*time.Minute - time.Microsecond)
	if _, err := sys.UseLink(t.Context(), token, store.Setup{Password: "second"}); err != nil {
		t.Errorf("UseLink() in the last moment = %v, want nil", err)
	}
	if got, err := sys.UserByEmail(t.Context(), "ana@example.com"); err != nil || got.Password != "second" || got.Name != "Ana" {
		t.Errorf("UserByEmail() = %v, %v, want the second password and the old name", got, err)
	}
}

func TestASignInLinkRunsOut(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	_, user := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	token, err := sys.NewSignInLink(t.Context(), user, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(10 * time.Minute)
	_, look := sys.Link(t.Context(), token)
	_, use := sys.UseLink(t.Context(), token, store.Setup{Password: "late"})
	if outcome(look) != "link_not_valid" || outcome(use) != "link_not_valid" {
		t.Errorf("after its time Link() = %v, UseLink() = %v, want link_not_valid", look, use)
	}
	if _, err := sys.NewSignInLink(t.Context(), store.NewID[store.UserKind](db.Now()), time.Minute); !store.IsAbsent(err) {
		t.Errorf("NewSignInLink() for nobody = %v, want %v", err, reason.NotFound)
	}
}

// A sign-in that compared the old password before a link set another begins no session, whichever of the two is first.
func TestASignInWithTheOldPasswordDoesNotOutliveIt(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	_, user := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	if err := sys.SetPassword(t.Context(), user, "", "old"); err != nil {
		t.Fatal(err)
	}
	use := func(password string) error {
		token, err := sys.NewSignInLink(t.Context(), user, time.Hour)
		if err != nil {
			return err
		}
		_, err = sys.UseLink(t.Context(), token, store.Setup{Password: password})
		return err
	}
	begin := func(cookie, password string) error {
		return sys.BeginWebSession(t.Context(), store.HashToken(cookie), user, password, []byte{}, clock.now().Add(time.Hour))
	}

	if err := use("new"); err != nil {
		t.Fatal(err)
	}
	if err := begin("late", "old"); !store.IsAbsent(err) {
		t.Errorf("BeginWebSession() with the password before = %v, want %v", err, reason.NotFound)
	}
	if err := begin("right", "new"); err != nil {
		t.Errorf("BeginWebSession() = %v", err)
	}

	// The sign-in is under way when the link is used.
	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	run(t, super, `BEGIN`)
	if _, err := super.Exec(t.Context(), `
		INSERT INTO web_session (hash, user_id, data, expires_at)
		SELECT $1, id, '', $3 FROM user_account WHERE id = $2 AND password = 'new' FOR SHARE`,
		sum("under way"), user, clock.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	used := make(chan error, 1)
	go func() { used <- use("newest") }()
	watcher := connect(t, storetest.Superuser(t, dsnOf(db)))
	eventually(t, "the link to wait for the sign-in", func() bool {
		return number(t, watcher, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	run(t, super, `COMMIT`)
	if err := <-used; err != nil {
		t.Fatal(err)
	}
	if n := number(t, watcher, `SELECT count(*) FROM web_session`); n != 0 {
		t.Errorf("%d sessions outlive the password that began them, want none", n)
	}
}
