package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// startNamed serves the console where passkeys work.
func startNamed(t *testing.T) *house { return startAt(t, storetest.URL(t), false, "localhost") }

// addPasskey makes one of name on the device, in the account that b is signed in to.
func (b *browser) addPasskey(a *authenticator, name string) {
	b.t.Helper()
	p := b.post("/settings/passkeys", "name", name, "passkey", a.create(b.asked("/settings/passkeys/options")))
	wantRedirect(b.t, p, "/settings")
}

// signInByPasskey signs in with the device alone.
func (b *browser) signInByPasskey(a *authenticator) page {
	b.t.Helper()
	return b.post("/signin", "passkey", a.get(b.asked("/signin/passkey")))
}

// theirs are c's passkeys.
func (s *house) theirs(t *testing.T, c store.Caller) []store.Passkey {
	t.Helper()
	list, err := s.db.System().Passkeys(t.Context(), c.User)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// loggedLines is what the audit log says of c's organisation, once want is in it.
func (s *house) loggedLines(t *testing.T, c store.Caller, want ...string) {
	t.Helper()
	ctx := t.Context()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	give := time.After(10 * time.Second)
	for {
		var got []string
		s.as(t, c, func(tx *store.Tx) error {
			list, err := tx.AuditEntries(ctx, store.AuditFilter{Limit: 100})
			for _, l := range list {
				got = append(got, l.Line)
			}
			return err
		})
		missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(got, w) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-give:
			t.Fatalf("the audit log says %q, want %q too", got, missing)
		}
	}
}

func TestAPasskeyIsMadeAndSignsInAsAPasswordDoes(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner := storetest.Organisation(t, s.db)
	b, device := s.signedIn(t, owner), s.authenticator(t)
	wantText(t, b.get("/settings/passkeys/new"), `data-passkey="/settings/passkeys/options"`)
	asks := b.asked("/settings/passkeys/options")
	if sel := asks.Create.Selection; sel.ResidentKey != "required" || sel.UserVerification != "required" {
		t.Errorf("asked for %+v, want a resident key and a verified user", sel)
	}
	b.addPasskey(device, "Laptop")
	wantText(t, b.get("/settings"), "Laptop is added. You can sign in with it.", ">Laptop<", "not used yet")
	if o := b.asked("/settings/passkeys/options"); len(o.Create.Exclude) != 1 || o.Create.Exclude[0].ID != b64(device.keys[0].id) {
		t.Errorf("excluded = %+v, want the passkey that is there", o.Create.Exclude)
	}

	other := s.browser(t)
	wantText(t, other.get("/signin"), `data-passkey="/signin/passkey"`)
	other.plant(b.cookie()) // a session that somebody else knows
	wantRedirect(t, other.signInByPasskey(device), "/")
	if other.cookie() == b.cookie() || other.cookie() == "" {
		t.Error("signing in kept the cookie that somebody else knew")
	}
	wantText(t, other.get("/"), s.email(t, owner))
	wantRedirect(t, b.get("/"), "/signin") // whose session it was
	wantText(t, other.get("/settings"), "last used")
	s.loggedLines(t, owner, "Added passkey Laptop", "Signed in with a passkey")

	third := s.browser(t)
	wantRedirect(t, third.post("/signin", "next", "/agents", "passkey", device.get(third.asked("/signin/passkey"))), "/agents")
}

// The challenge says nothing of an account, and so it is asked for without one.
func TestAChallengeToSignInIsTheSameForEverybody(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	b := s.browser(t)
	first, second := b.asked("/signin/passkey").Get, b.asked("/signin/passkey").Get
	if first.Challenge == second.Challenge || len(unb64(t, first.Challenge)) < 16 {
		t.Errorf("challenges %q and %q, want two that nobody guesses", first.Challenge, second.Challenge)
	}
	if first.RPID != "localhost" || len(first.Allow) != 0 || first.UserVerification != "required" {
		t.Errorf("asked for %+v, want any passkey of localhost, user verified", first)
	}
}

func TestWhatAPasskeyCannotProveSignsNobodyIn(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner := storetest.Organisation(t, s.db)
	home, device := s.signedIn(t, owner), s.authenticator(t)
	home.addPasskey(device, "Laptop")
	stolen := ""
	for name, answer := range map[string]func(b *browser) string{
		"another origin": func(b *browser) string {
			other := *device
			other.origin = "http://localhost.evil.example"
			return other.get(b.asked("/signin/passkey"))
		},
		"another port of the host": func(b *browser) string {
			other := *device
			other.origin = "http://localhost:1"
			return other.get(b.asked("/signin/passkey"))
		},
		"another relying party": func(b *browser) string {
			other := *device
			other.rpID = "evil.example"
			return other.get(b.asked("/signin/passkey"))
		},
		"a user who was not verified": func(b *browser) string {
			other := *device
			other.flags = userPresent
			return other.get(b.asked("/signin/passkey"))
		},
		"a challenge of another's browser": func(b *browser) string {
			b.asked("/signin/passkey")
			return device.get(s.browser(t).asked("/signin/passkey"))
		},
		"no challenge": func(*browser) string { return device.get(s.browser(t).asked("/signin/passkey")) },
		"a challenge from before": func(b *browser) string {
			answer := device.get(b.asked("/signin/passkey"))
			b.asked("/signin/passkey")
			return answer
		},
		"a challenge to confirm": func(b *browser) string { return device.get(home.asked("/confirm/passkey")) },
		"another key under the same id": func(b *browser) string {
			forger := s.authenticator(t)
			forger.create(home.asked("/settings/passkeys/options"))
			forger.keys[0].id, forger.keys[0].user = device.keys[0].id, device.keys[0].user
			return forger.get(b.asked("/signin/passkey"))
		},
		"a passkey that is not here": func(b *browser) string {
			stranger := s.authenticator(t)
			stranger.create(home.asked("/settings/passkeys/options"))
			return stranger.get(b.asked("/signin/passkey"))
		},
		"another user's handle": func(b *browser) string {
			other := *device
			k := *device.keys[0]
			k.user = []byte("somebody else 16")
			other.keys = []*deviceKey{&k}
			return other.get(b.asked("/signin/passkey"))
		},
		"no JSON": func(b *browser) string { b.asked("/signin/passkey"); return "x" },
	} {
		b := s.browser(t)
		p := b.post("/signin", "passkey", answer(b))
		if p.status != http.StatusUnauthorized || b.cookie() != "" || !strings.Contains(p.body, `role="alert"`) {
			t.Errorf("%s = %d, cookie %q: %s", name, p.status, b.cookie(), p.main())
		}
	}

	b := s.browser(t)
	stolen = device.get(b.asked("/signin/passkey"))
	wantRedirect(t, b.post("/signin", "passkey", stolen), "/")
	wantStatus(t, b.post("/signin", "passkey", stolen), http.StatusUnauthorized) // once

	late := s.browser(t)
	answer := device.get(late.asked("/signin/passkey"))
	s.clock.advance(5*time.Minute - time.Second)
	wantRedirect(t, late.post("/signin", "passkey", answer), "/")
	answer = device.get(late.asked("/signin/passkey"))
	s.clock.advance(5*time.Minute + time.Second)
	wantStatus(t, late.post("/signin", "passkey", answer), http.StatusUnauthorized)

	challenge := s.browser(t)
	challenge.asked("/signin/passkey")
	challenge.plant(challenge.named("graft-passkey"))
	wantRedirect(t, challenge.get("/"), "/signin") // what binds a challenge is no session
}

// named is the browser's cookie of that name.
func (b *browser) named(name string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.s.url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(r.URL) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func TestAPasskeyWhoseCountGoesBackIsRefusedAndTold(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner := storetest.Organisation(t, s.db)
	device := s.authenticator(t)
	s.signedIn(t, owner).addPasskey(device, "Laptop")
	device.keys[0].count = 41
	wantRedirect(t, s.browser(t).signInByPasskey(device), "/")
	for _, count := range []uint32{9, 41} { // it signs with one more
		device.keys[0].count = count
		b := s.browser(t)
		wantStatus(t, b.signInByPasskey(device), http.StatusUnauthorized)
		device.keys[0].count = 41
	}
	if log := s.log.String(); !strings.Contains(log, "may have been copied") || !strings.Contains(log, "count=10 before=42") {
		t.Errorf("log = %s", log)
	}
	s.loggedLines(t, owner, "Refused passkey Laptop, which may have been copied")
	device.keys[0].count = 42
	wantRedirect(t, s.browser(t).signInByPasskey(device), "/")
}

func TestAPasskeyIsRenamedAndRemoved(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner, eve := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	b, device := s.signedIn(t, owner), s.authenticator(t)
	b.addPasskey(device, "Laptop")
	at := "/settings/passkeys/" + s.theirs(t, owner)[0].ID.String()
	wantStatus(t, b.post(at, "name", " "), http.StatusUnprocessableEntity)
	wantRedirect(t, b.post(at, "name", "Old laptop"), "/settings")
	wantText(t, b.get("/settings"), "It is called Old laptop now.", ">Old laptop<")

	stranger := s.signedIn(t, eve)
	for _, p := range []page{stranger.get(at), stranger.get(at + "/remove"), stranger.post(at, "name", "Mine"), stranger.post(at + "/remove")} {
		wantStatus(t, p, http.StatusNotFound)
	}
	wantText(t, b.get(at+"/remove"), "Remove Old laptop?")
	wantRedirect(t, b.post(at+"/remove"), "/settings")
	wantText(t, b.get("/settings"), "Old laptop is removed.", "None yet.")
	wantStatus(t, s.browser(t).signInByPasskey(device), http.StatusUnauthorized)
	s.loggedLines(t, owner, "Renamed passkey Laptop to Old laptop", "Removed passkey Old laptop")

	wantStatus(t, b.post("/settings/passkeys", "name", "", "passkey", device.create(b.asked("/settings/passkeys/options"))), http.StatusUnprocessableEntity)
	wantStatus(t, b.post("/settings/passkeys", "name", "Mine"), http.StatusUnauthorized) // without one
}

// A browser that two people use makes nothing for the one of the other.
func TestAPasskeyIsMadeForWhomItWasAskedFor(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	ana, bo := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	s.signedIn(t, bo)
	b, device := s.signedIn(t, ana), s.authenticator(t)
	made := device.create(b.asked("/settings/passkeys/options"))
	wantRedirect(t, b.post("/signin", "email", s.email(t, bo), "password", goodPassword), "/")
	wantStatus(t, b.post("/settings/passkeys", "name", "Laptop", "passkey", made), http.StatusUnauthorized)
	if n := len(s.theirs(t, ana)) + len(s.theirs(t, bo)); n != 0 {
		t.Errorf("%d passkeys were made, want none", n)
	}
}

func TestALinkSetsAPasskeyAndNoPassword(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner := storetest.Organisation(t, s.db)
	link, device, b := s.link(t, owner), s.authenticator(t), s.browser(t)
	wantText(t, b.get(link), `data-passkey="`+link+`/passkey"`)
	if o := b.asked(link+"/passkey", "name", " "); o.Error != "Enter a name." {
		t.Errorf("asked without a name = %+v, want what is wrong", o)
	}
	if o := b.asked(link+"/passkey", "name", "Ana", "password", "short"); !strings.Contains(o.Error, "at least 12") {
		t.Errorf("asked with a short password = %+v, want what is wrong", o)
	}
	wantRedirect(t, b.post(link, "name", "Ana", "password", "", "passkey", device.create(b.asked(link+"/passkey", "name", "Ana"))), "/")
	wantText(t, b.get("/"), "Your passkey is set.")
	s.loggedLines(t, owner, "Set a passkey by a one-time link", "Signed in with a passkey")
	wantStatus(t, b.post(link, "name", "Ana", "password", goodPassword), http.StatusGone)

	at := "/settings/passkeys/" + s.theirs(t, owner)[0].ID.String()
	wantText(t, b.get("/settings"), "You have none, and sign in with a passkey alone.", "Set a password")
	wantText(t, b.get(at+"/remove"), "It is your only way to sign in.")
	p := b.post(at + "/remove")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "It is your only way to sign in.")
	wantRedirect(t, s.browser(t).signInByPasskey(device), "/")
	wantStatus(t, s.browser(t).post("/signin", "email", s.email(t, owner), "password", ""), http.StatusUnauthorized)

	s.clock.advance(15*time.Minute + time.Second)
	page := b.get("/confirm?next=/settings")
	wantText(t, page, `data-passkey="/confirm/passkey"`, "a passkey needs scripts")
	wantNoText(t, page, `name="password"`)
	wantRedirect(t, b.post("/confirm", "next", "/settings/password", "passkey", device.get(b.asked("/confirm/passkey"))), "/settings/password")
	wantRedirect(t, b.post("/settings/password", "password", goodPassword), "/settings")
	wantRedirect(t, b.post(at+"/remove"), "/settings") // beside a password
	s.loggedLines(t, owner, "Confirmed who they are with a passkey")
}

func TestAWelcomeLinkSetsAPasskey(t *testing.T) {
	t.Parallel()
	s := startAt(t, storetest.PrivateURL(t), false, "localhost")
	token, err := s.db.System().NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, device := s.browser(t), s.authenticator(t)
	form := []string{"name", "Ana", "email", "ana@northfield.example", "organisation", "Northfield", "password", goodPassword}
	made := device.create(b.asked("/setup/"+token+"/passkey", form...))
	wantRedirect(t, b.post("/setup/"+token, append(form, "passkey", made)...), "/")
	wantText(t, b.get("/"), "Northfield is ready.")
	wantRedirect(t, s.browser(t).signInByPasskey(device), "/")
	wantRedirect(t, s.browser(t).post("/signin", "email", "ana@northfield.example", "password", goodPassword), "/") // and with both
}

// At an address in numbers no browser makes passkeys, so none are offered there.
func TestNoPasskeysAreOfferedWhereNoBrowserHasThem(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	out := s.browser(t)
	for _, p := range []page{out.get("/signin"), out.get(s.link(t, owner)), b.get("/settings"), b.get("/settings/passkeys/new")} {
		wantStatus(t, p, http.StatusOK)
		wantNoText(t, p, "data-passkey=")
	}
	wantText(t, b.get("/settings"), "Open Graft at its own name")
	for _, p := range []page{out.post("/signin/passkey"), b.post("/settings/passkeys/options"), b.post("/confirm/passkey")} {
		wantStatus(t, p, http.StatusNotFound)
	}
	wantStatus(t, out.post("/signin", "passkey", "{}"), http.StatusUnauthorized)
}

var sessionIn = regexp.MustCompile(`/settings/sessions/[0-9a-f]{64}`)

func TestSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	foreign := s.signedIn(t, storetest.Organisation(t, s.db))
	enter := func() *browser {
		other := s.browser(t)
		other.agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
		other.address = "203.0.113.7"
		wantRedirect(t, other.post("/signin", "email", s.email(t, owner), "password", goodPassword), "/")
		return other
	}
	first, second, third := enter(), enter(), enter()
	p := b.get("/settings")
	wantText(t, p, "this one", "Firefox on Linux", "203.0.113.7", "End all others")
	list := sessionIn.FindAllString(p.body, -1)
	if len(list) != 3 {
		t.Fatalf("sessions to end = %q, want the three others", list)
	}
	wantText(t, b.get(list[0]+"/end"), "End the session of Firefox on Linux?", "203.0.113.7")
	wantStatus(t, foreign.get(list[0]+"/end"), http.StatusNotFound)
	wantStatus(t, foreign.post(list[0]+"/end"), http.StatusNotFound)
	wantRedirect(t, b.post(list[0]+"/end"), "/settings")
	wantStatus(t, b.post(list[0]+"/end"), http.StatusNotFound)
	in := 0
	for _, other := range []*browser{first, second, third} {
		if other.get("/").status == http.StatusOK {
			in++
		}
	}
	if in != 2 {
		t.Errorf("%d of the others are signed in, want 2", in)
	}
	wantText(t, b.get("/settings/sessions/end"), "2 other sessions.")
	wantRedirect(t, b.post("/settings/sessions/end"), "/settings")
	wantText(t, b.get("/settings"), "2 other sessions have ended.")
	for _, other := range []*browser{first, second, third} {
		wantRedirect(t, other.get("/"), "/signin")
	}
	wantStatus(t, foreign.get("/"), http.StatusOK)
	s.loggedLines(t, owner, "Ended a session of theirs: Firefox on Linux", "Ended all other sessions of theirs")
}

func TestAPasswordIsChangedAndEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	other := s.browser(t)
	wantRedirect(t, other.post("/signin", "email", s.email(t, owner), "password", goodPassword), "/")
	p := b.post("/settings/password", "password", "short")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "at least 12")
	const another = "eleven blue ladders lean"
	wantRedirect(t, b.post("/settings/password", "password", another), "/settings")
	wantText(t, b.get("/settings"), "Your password is changed. 1 other session has ended.")
	wantRedirect(t, other.get("/"), "/signin")
	wantStatus(t, other.post("/signin", "email", s.email(t, owner), "password", goodPassword), http.StatusUnauthorized)
	wantRedirect(t, other.post("/signin", "email", s.email(t, owner), "password", another), "/")
	s.loggedLines(t, owner, "Changed their password")
}

func TestANameIsChanged(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	wantStatus(t, b.post("/settings/name", "name", strings.Repeat("a", 81)), http.StatusUnprocessableEntity)
	wantRedirect(t, b.post("/settings/name", "name", " Ana Ferreira "), "/settings")
	wantText(t, b.get("/settings"), "Your name is saved.", `value="Ana Ferreira"`, s.email(t, owner))
	wantText(t, b.get("/"), "Hello, Ana Ferreira")
	s.loggedLines(t, owner, "Changed their name to Ana Ferreira")
}
