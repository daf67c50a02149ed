package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestSigningInTakesASessionNobodyKnew(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner, eve := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	s.signedIn(t, owner) // sets the password
	attacker := s.signedIn(t, eve)
	victim := s.browser(t)
	victim.plant(attacker.cookie())
	email := s.email(t, owner)
	wantText(t, victim.get("/"), s.email(t, eve))

	wantRedirect(t, victim.post("/signin", "email", email, "password", goodPassword), "/")
	if victim.cookie() == attacker.cookie() {
		t.Error("signing in kept the cookie that somebody else knew")
	}
	p := victim.get("/")
	wantText(t, p, email)
	wantNoText(t, p, s.email(t, eve), "Your password is set") // nothing of the other session's
	wantRedirect(t, attacker.get("/"), "/signin")

	stray := s.browser(t)
	stray.plant("made-up-by-somebody")
	wantRedirect(t, stray.post("/signin", "email", email, "password", goodPassword), "/")
	if stray.cookie() == "made-up-by-somebody" {
		t.Error("signing in took a cookie that we did not make")
	}
}

func TestSigningOutEndsEveryCopyOfTheCookie(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	copied := s.browser(t)
	copied.plant(b.cookie())
	wantStatus(t, copied.get("/"), http.StatusOK)
	wantRedirect(t, b.post("/signout"), "/signin")
	if c := b.cookie(); c != "" {
		t.Errorf("cookie after signing out = %q, want none", c)
	}
	wantRedirect(t, copied.get("/"), "/signin")
	wantRedirect(t, copied.post("/signout"), "/signin")
}

func TestRequestUnderWayDoesNotBringBackASignedOutSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	copied := s.browser(t)
	copied.plant(b.cookie())
	hash := store.HashToken(b.cookie())
	slow := make(chan page, 1)
	go func() { slow <- copied.get("/slow") }()
	<-s.loaded
	b.post("/signout")
	close(s.gate)
	p := <-slow
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Your password is set.") // it took the sentence out of its session, and so saved it
	if _, err := s.db.System().WebSession(t.Context(), hash); !store.IsAbsent(err) {
		t.Errorf("the session after signing out: %v, want not found", err)
	}
}

func TestSessionEndsUnusedForAWeekAndAfterAMonth(t *testing.T) {
	t.Parallel()
	s := start(t)
	const day = 24 * time.Hour
	unused := s.signedIn(t, storetest.Organisation(t, s.db))
	s.clock.advance(7*day - time.Minute)
	wantStatus(t, unused.get("/"), http.StatusOK)
	s.clock.advance(7 * day)
	wantRedirect(t, unused.get("/"), "/signin")

	used := s.signedIn(t, storetest.Organisation(t, s.db))
	for range 29 {
		s.clock.advance(day)
		wantStatus(t, used.get("/"), http.StatusOK)
	}
	s.clock.advance(day)
	wantRedirect(t, used.get("/"), "/signin")
}

func TestCookieIsBoundToTheHostWhereThereIsHTTPS(t *testing.T) {
	t.Parallel()
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("https %v", tls), func(t *testing.T) {
			t.Parallel()
			s := startOn(t, storetest.URL(t), tls)
			owner := storetest.Organisation(t, s.db)
			b := s.browser(t)
			p := b.post(s.link(t, owner), "name", "Ana", "password", goodPassword)
			wantRedirect(t, p, "/")
			name := "graft"
			if tls {
				name = "__Host-graft"
			}
			set := p.header.Values("Set-Cookie")
			if len(set) != 1 {
				t.Fatalf("Set-Cookie = %q, want one", set)
			}
			c, err := http.ParseSetCookie(set[0])
			if err != nil {
				t.Fatal(err)
			}
			if c.Name != name || c.Path != "/" || c.Domain != "" || !c.HttpOnly || c.Secure != tls || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 30*24*3600 {
				t.Errorf("cookie = %s", set[0])
			}
			if hash := store.HashToken(c.Value); len(c.Value) < 43 {
				t.Errorf("cookie of %d characters", len(c.Value))
			} else if _, err := s.db.System().WebSession(t.Context(), hash); err != nil {
				t.Errorf("session by the hash of its cookie: %v", err)
			}
			wantStatus(t, b.get("/"), http.StatusOK)
		})
	}
}

func TestNobodyGetsACookieBeforeSigningIn(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.browser(t)
	for _, p := range []page{b.get("/signin"), b.get("/"), b.get("/nowhere"), b.post("/signin", "email", "a@example.com", "password", "wrong wrong wrong")} {
		if set := p.header.Values("Set-Cookie"); len(set) > 0 {
			t.Errorf("Set-Cookie = %q, want none", set)
		}
	}
}

func TestEveryPageIsKeptByNobody(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	at := agentIn.FindString(b.post("/agents", "name", "hermes").body)
	for _, path := range []string{"/", "/agents", "/agents/new", at, at + "/token", at + "/revoke", "/nowhere", "/broken"} {
		p := b.get(path)
		if c := p.header.Get("Cache-Control"); c != "no-store" {
			t.Errorf("Cache-Control of %s = %q, want no-store", path, c)
		}
		if c := p.header.Get("Content-Type"); c != "text/html; charset=utf-8" {
			t.Errorf("Content-Type of %s = %q", path, c)
		}
	}
}

func TestRemovedMemberIsOutWithTheNextRequest(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	s := startOn(t, dsn, false)
	owner := storetest.Organisation(t, s.db)
	member := storetest.Member(t, s.db, owner, store.RoleMember)
	b, email := s.signedIn(t, member), s.email(t, member)
	wantStatus(t, b.get("/agents"), http.StatusOK)
	link := s.link(t, member)
	s.remove(t, dsn, member)
	wantRedirect(t, b.get("/agents"), "/signin?next=%2Fagents")
	wantRedirect(t, b.post("/agents", "name", "mine"), "/signin")
	wantStatus(t, b.post("/signin", "email", email, "password", goodPassword), http.StatusUnauthorized)
	wantStatus(t, b.get(link), http.StatusGone)
	wantStatus(t, b.post(link, "password", goodPassword), http.StatusGone)
}

func TestMemberOfTwoOrganisationsKeepsTheOtherAndChangesNothingThere(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	s := startOn(t, dsn, false)
	first := storetest.Organisation(t, s.db)
	second := storetest.Organisation(t, s.db)
	orgs := map[store.OrgID]string{}
	for _, c := range []store.Caller{first, second} {
		s.as(t, c, func(tx *store.Tx) error {
			o, err := tx.Organisation(t.Context())
			orgs[o.ID] = o.Name
			return err
		})
	}
	ana := storetest.Member(t, s.db, first, store.RoleMember)
	if _, _, err := s.db.System().Enrol(t.Context(), orgs[second.Org], s.email(t, ana), store.RoleMember); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, ana)
	if orgs[second.Org] < orgs[first.Org] { // the first by name is where one begins
		first, second = second, first
	}
	wantText(t, b.get("/"), orgs[first.Org])
	org := first.Org.Bytes()
	query(t, storetest.Superuser(t, dsn), fmt.Sprintf("UPDATE member SET removed_at = created_at WHERE org_id = '%x' AND role = 'member'", org))

	wantRedirect(t, b.post("/agents", "name", "mine"), "/") // it was meant for the other organisation
	p := b.get("/agents")
	wantText(t, p, orgs[second.Org], "No agents yet")
	wantNoText(t, p, orgs[first.Org], "mine")
	wantStatus(t, b.post("/agents", "name", "mine"), http.StatusOK)
}

func TestDatabaseOutageIsAPageAndNoSignOut(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	s := startOn(t, dsn, false)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	u, err := url.Parse(storetest.Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	limit := func(n int) { query(t, u.String(), fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", name, n)) }
	limit(0)
	query(t, u.String(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	for _, path := range []string{"/", "/agents", "/live/agents", "/signin"} {
		p := b.get(path)
		wantStatus(t, p, http.StatusServiceUnavailable)
		wantText(t, p, "Graft cannot answer just now", "request-")
		wantNoText(t, p, name)
		if set := p.header.Values("Set-Cookie"); len(set) > 0 {
			t.Errorf("Set-Cookie = %q, want none", set)
		}
	}
	wantStatus(t, b.post("/signin", "email", "a@example.com", "password", goodPassword), http.StatusServiceUnavailable)
	limit(-1)
	wantStatus(t, b.get("/"), http.StatusOK)
	if log := s.log.String(); !strings.Contains(log, "page unavailable") || !strings.Contains(log, "request_id=request-") {
		t.Errorf("log = %s", log)
	}
}
