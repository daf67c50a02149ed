package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestSignInTellsNobodyWhichAddressesThereAre(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	s := startOn(t, dsn, false)
	owner := storetest.Organisation(t, s.db)
	storetest.Organisation(t, s.db)
	unset := storetest.Member(t, s.db, owner, store.RoleMember) // has never set a password
	removed := storetest.Member(t, s.db, owner, store.RoleMember)
	s.signedIn(t, owner)
	s.signedIn(t, removed)
	removedEmail := s.email(t, removed)
	s.remove(t, dsn, removed)

	b := s.browser(t)
	answer := func(email, password string) page {
		p := b.post("/signin", "email", email, "password", password)
		p.body = strings.ReplaceAll(p.body, email, "EMAIL")
		return p
	}
	want := answer(s.email(t, owner), "not the password")
	wantStatus(t, want, http.StatusUnauthorized)
	wantText(t, want, "That email and password do not belong together.", `value="EMAIL"`)
	for name, got := range map[string]page{
		"an unknown address":                    answer("nobody@example.com", "not the password"),
		"an unknown address again":              answer("nobody@example.com", goodPassword),
		"no password set":                       answer(s.email(t, unset), "not the password"),
		"no password set or given":              answer(s.email(t, unset), ""),
		"removed, right password":               answer(removedEmail, goodPassword),
		"not an address":                        answer("nobody", "not the password"),
		"a long password":                       answer(s.email(t, owner), strings.Repeat("long ", 2000)),
		"a byte that Postgres has no place for": answer("nobody\x01@example.com", "not the password"),
	} {
		if got.status != want.status || got.body != want.body {
			t.Errorf("%s: status %d and body\n%s\nwant %d and\n%s", name, got.status, got.body, want.status, want.body)
		}
	}
}

// An answer that came without the work would tell who has an account.
func TestUnknownAddressCostsAsMuchWork(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	turn := s.handler.OneTurn()
	b := s.browser(t)
	for _, email := range []string{s.email(t, owner), "nobody@example.com", "no address"} {
		worked, answered := make(chan bool), make(chan struct{})
		go func() {
			select {
			case <-turn: // argon2id runs only between the two
				turn <- struct{}{}
				worked <- true
			case <-answered:
				worked <- false
			}
		}()
		wantStatus(t, b.post("/signin", "email", email, "password", "not the password"), http.StatusUnauthorized)
		close(answered)
		if !<-worked {
			t.Errorf("the answer for %q came without the work", email)
		}
	}
	if console.DecoyCost() != console.PresentCost() {
		t.Errorf("an unknown address costs %s, want %s", console.DecoyCost(), console.PresentCost())
	}
}

func TestSignInRehashesAnOlderHash(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	email := s.email(t, owner)
	old := console.OldHash(goodPassword)
	if err := s.db.System().SetPassword(t.Context(), owner.User, "", old); err != nil {
		t.Fatal(err)
	}
	hash := func() string {
		u, err := s.db.System().UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		return u.Password
	}
	b := s.browser(t)
	wantStatus(t, b.post("/signin", "email", email, "password", "not the password"), http.StatusUnauthorized)
	if got := hash(); got != old {
		t.Errorf("hash after a wrong password = %q, want the old one", got)
	}
	wantRedirect(t, b.post("/signin", "email", email, "password", goodPassword), "/")
	fresh := hash()
	if !strings.HasPrefix(fresh, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash after signing in = %q, want one of today's cost", fresh)
	}
	wantRedirect(t, b.post("/signin", "email", email, "password", goodPassword), "/")
	if got := hash(); got != fresh {
		t.Errorf("hash changed again to %q", got)
	}
}

func TestPasswordIsTakenAsItWasTyped(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	email, b := s.email(t, owner), s.browser(t)
	const typed = "  zwölf Löwen ꙮ \t"
	wantRedirect(t, b.post(s.link(t, owner), "name", "Ana", "password", typed), "/")
	for _, other := range []string{strings.TrimSpace(typed), "  zwo\u0308lf Lo\u0308wen ꙮ \t", strings.ToLower(typed)} {
		wantStatus(t, b.post("/signin", "email", email, "password", other), http.StatusUnauthorized)
	}
	wantRedirect(t, b.post("/signin", "email", email, "password", typed), "/")
}

func TestAfterSignInOnlyThisSiteFollows(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b, email := s.browser(t), s.email(t, owner)
	wantRedirect(t, b.post(s.link(t, owner), "name", "Ana", "password", goodPassword), "/")
	wantRedirect(t, b.post("/signin", "email", email, "password", goodPassword, "next", "//evil.example"), "/")
	wantRedirect(t, b.post("/signin", "email", email, "password", goodPassword, "next", "/agents?q=a"), "/agents?q=a")
	p := s.browser(t).get("/signin?next=https://evil.example")
	wantNoText(t, p, "evil")
	wantRedirect(t, b.get("/signin?next=%2F%5Cevil.example"), "/")
}
