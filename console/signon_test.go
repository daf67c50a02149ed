package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/oidc"
	"github.com/getgraft/graft/internal/oidc/oidctest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
)

// A provided is a house where people may sign in at a provider, which runs too.
type provided struct {
	*house
	op    *oidctest.Provider
	pages []string // all that browsers were shown
}

func startProvided(t *testing.T) *provided {
	t.Helper()
	s := &provided{op: oidctest.Start(t)}
	s.house = startWith(t, storetest.URL(t), false, "localhost", func(c *console.Config) {
		s.op.Now = c.Now
		p, err := oidc.New(oidc.Config{
			Issuer: s.op.URL, ClientID: oidctest.ClientID, Secret: vault.NewSecret([]byte(oidctest.Secret)),
			Redirect: c.Origin + "/sign-in/oidc/callback", Now: c.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		c.SignOn = &console.SignOn{Provider: p, Name: "Example ID"}
	})
	t.Cleanup(func() { // whatever the test did, nothing of a flow stands in the log or on a page
		said := s.log.String() + strings.Join(s.pages, "\n")
		for _, secret := range append([]string{"CANARY", url.QueryEscape(oidctest.Secret)}, s.op.Issued...) {
			if strings.Contains(said, secret) {
				t.Errorf("the log or a page says %q", secret)
			}
		}
	})
	return s
}

var onwardIn = regexp.MustCompile(`href="([^"]+)" data-onward`)

// sent is where a page sends its browser on to.
func sent(t *testing.T, p page) string {
	t.Helper()
	wantStatus(t, p, http.StatusOK)
	found := onwardIn.FindStringSubmatch(p.body)
	if found == nil {
		t.Fatalf("the page leads nowhere:\n%s", p.main())
	}
	return html.UnescapeString(found[1])
}

// visit goes where p sends the browser, and returns what it brings back.
func (s *provided) visit(t *testing.T, p page) url.Values {
	t.Helper()
	return s.op.Visit(t, sent(t, p))
}

// back brings something back to where the provider sends browsers.
func (s *provided) back(b *browser, back url.Values) page {
	b.t.Helper()
	p := b.get("/sign-in/oidc/callback?" + back.Encode())
	s.pages = append(s.pages, p.body)
	return p
}

// through goes to the provider and back.
func (s *provided) through(b *browser, path string, form ...string) page {
	b.t.Helper()
	return s.back(b, s.visit(b.t, b.post(path, form...)))
}

// bound is a browser in which c signed in and added the provider's account.
func (s *provided) bound(t *testing.T, c store.Caller) *browser {
	t.Helper()
	b := s.signedIn(t, c)
	wantRedirect(t, s.through(b, "/settings/identities", "name", "Work"), "/settings")
	return b
}

// theirIdentities are c's.
func (s *provided) theirIdentities(t *testing.T, c store.Caller) []store.Identity {
	t.Helper()
	list, err := s.db.System().Identities(t.Context(), c.User)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAnIdentityIsAddedAndSignsInAsAPasswordDoes(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	wantText(t, b.get("/settings"), "None yet. Add your account at Example ID")
	wantText(t, b.get("/settings/identities/new"), `value="Example ID"`, "Continue with Example ID")
	wantStatus(t, b.post("/settings/identities", "name", " "), http.StatusUnprocessableEntity)
	wantRedirect(t, s.through(b, "/settings/identities", "name", "Work"), "/settings")
	wantText(t, b.get("/settings"), "Work is added. You can sign in with it.", ">Work<", "not used yet")

	other := s.browser(t)
	wantText(t, other.get("/signin?next=/agents"), `action="/sign-in/oidc"`, "Continue with Example ID", `value="/agents"`)
	other.plant(b.cookie()) // a session that somebody else knows
	wantRedirect(t, s.through(other, "/sign-in/oidc", "next", "/agents?a=1"), "/agents?a=1")
	if other.cookie() == b.cookie() || other.cookie() == "" {
		t.Error("signing in kept the cookie that somebody else knew")
	}
	wantText(t, other.get("/settings"), "last used", s.email(t, owner))
	wantRedirect(t, b.get("/"), "/signin") // whose session it was
	s.loggedLines(t, owner, "Added identity Work of Example ID", "Signed in with single sign-on")

	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", ""} {
		wantRedirect(t, s.through(s.browser(t), "/sign-in/oidc", "next", next), "/")
	}
	wantRedirect(t, other.post("/signout"), "/signin")
	wantRedirect(t, other.get("/"), "/signin")
}

func TestWithoutAProviderNoneIsOffered(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	for _, p := range []page{s.browser(t).get("/signin"), s.signedIn(t, owner).get("/settings")} {
		wantNoText(t, p, "oidc", "ingle sign-on", "Continue with")
	}
}

// Who is known by an address at the provider alone is nobody here.
func TestAnUnknownSubjectIsRefusedWhateverItsEmail(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	s.op.Email = s.email(t, owner)
	b := s.browser(t)
	p := s.through(b, "/sign-in/oidc", "next", "/agents")
	wantStatus(t, p, http.StatusUnauthorized)
	wantText(t, p, "Nobody here signs in with that account", "ask for an invite", `href="/signin?next=%2Fagents"`)
	if b.cookie() != "" {
		t.Error("a session began")
	}
	// The same of somebody who is a member nowhere any more.
	guest := storetest.Member(t, s.db, owner, store.RoleMember)
	s.bound(t, guest)
	s.remove(t, s.dsn, guest)
	gone := s.through(s.browser(t), "/sign-in/oidc", "next", "/agents")
	if gone.status != p.status || gone.body != p.body {
		t.Errorf("a member nowhere is told something else than a stranger:\n%s", gone.main())
	}
}

// What comes back signs in once, within ten minutes, in the browser that it was begun in.
func TestWhatComesBackIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	s.bound(t, owner)
	ended := func(p page) {
		t.Helper()
		wantStatus(t, p, http.StatusUnauthorized)
		wantText(t, p, "This has ended", `href="/signin"`)
	}
	b := s.browser(t)
	back := s.visit(t, b.post("/sign-in/oidc"))
	kept := b.named("graft-oidc")
	ended(s.back(s.browser(t), back)) // another browser

	eve := s.browser(t) // which was sent there too
	s.visit(t, eve.post("/sign-in/oidc"))
	ended(s.back(eve, back))

	forged := url.Values{"code": back["code"], "iss": back["iss"], "state": {"another"}}
	ended(s.back(b, forged)) // uses nothing up
	wantRedirect(t, s.back(b, back), "/")
	if b.named("graft-oidc") != "" {
		t.Error("the cookie is left")
	}
	out := s.browser(t)
	u, _ := url.Parse(s.url)
	out.http.Jar.SetCookies(u, []*http.Cookie{{Name: "graft-oidc", Value: kept, Path: "/"}})
	ended(s.back(out, back)) // used

	late := s.browser(t)
	back = s.visit(t, late.post("/sign-in/oidc"))
	s.clock.advance(10*time.Minute + time.Second)
	ended(s.back(late, back))

	// A newer one takes the place of the one before.
	two := s.browser(t)
	first := s.visit(t, two.post("/sign-in/oidc"))
	second := s.visit(t, two.post("/sign-in/oidc"))
	ended(s.back(two, first))
	wantRedirect(t, s.back(two, second), "/")
	ended(s.back(s.browser(t), url.Values{}))
}

func TestWhatTheProviderCannotProveSignsNobodyIn(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	s.bound(t, owner)
	for name, spoil := range map[string]func(){
		"nonce": func() { s.op.Claims = func(c map[string]any) { c["nonce"] = "another" } },
		"none":  func() { s.op.Sign = oidctest.SignNone },
		"HS256": func() { s.op.Sign = oidctest.SignHS256 },
		"iss":   func() { s.op.Claims = func(c map[string]any) { c["iss"] = "https://evil.example" } },
	} {
		spoil()
		b := s.browser(t)
		p := s.through(b, "/sign-in/oidc")
		wantStatus(t, p, http.StatusUnauthorized)
		wantText(t, p, "does not prove who you are", `href="/signin"`)
		if b.cookie() != "" {
			t.Errorf("%s: a session began", name)
		}
		s.op.Claims, s.op.Sign = nil, nil
	}
	if log := s.log.String(); !strings.Contains(log, "single sign-on not proven") || !strings.Contains(log, "its nonce is of another flow") {
		t.Errorf("log = %s", log)
	}
}

func TestAProvidersErrorIsAPageWithAWayOn(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	s.op.Refuse, s.op.Description = "access_denied", "<b>No</b>\u202e you\x07 may not"
	p := s.through(s.browser(t), "/sign-in/oidc", "next", "/agents")
	wantStatus(t, p, http.StatusUnauthorized)
	wantText(t, p, "It was not allowed at Example ID.", "Example ID says: &lt;b&gt;No&lt;/b&gt; you may not", `href="/signin?next=%2Fagents"`)
	b := s.signedIn(t, owner)
	p = s.through(b, "/settings/identities", "name", "Work")
	wantText(t, p, "It was not allowed at Example ID.", `href="/settings"`)
	s.op.Refuse = "server_error"
	wantText(t, s.through(s.browser(t), "/sign-in/oidc"), "something went wrong: server_error")
	s.op.Refuse = ""

	s.op.Answer = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "CANARY", http.StatusInternalServerError) }}
	p = s.through(s.browser(t), "/sign-in/oidc")
	wantStatus(t, p, http.StatusBadGateway)
	wantText(t, p, "No answer from Example ID", `href="/signin"`)
	if log := s.log.String(); !strings.Contains(log, "it answered with status 500") {
		t.Errorf("log = %s", log)
	}

	s.op.Answer = map[string]http.HandlerFunc{"/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "CANARY", http.StatusServiceUnavailable) }}
	s.clock.advance(3 * time.Hour) // what was known has run out, but goes on
	wantStatus(t, s.browser(t).post("/sign-in/oidc"), http.StatusOK)

	fresh := startProvided(t)
	fresh.op.Answer = s.op.Answer
	p = fresh.browser(t).post("/sign-in/oidc", "next", "/agents")
	wantStatus(t, p, http.StatusBadGateway)
	wantText(t, p, "No answer from Example ID", `href="/signin?next=%2Fagents"`)
	fresh.op.Answer = nil
	fresh.clock.advance(6 * time.Second)
	wantStatus(t, fresh.browser(t).post("/sign-in/oidc"), http.StatusOK)
}

func TestAnIdentityIsOneAccountsAlone(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	ana, bo := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	b := s.bound(t, ana)
	p := s.through(b, "/settings/identities", "name", "Again")
	wantStatus(t, p, http.StatusConflict)
	wantText(t, p, "You have that one already", "as Work")
	other := s.signedIn(t, bo)
	p = s.through(other, "/settings/identities", "name", "Mine")
	wantStatus(t, p, http.StatusConflict)
	wantText(t, p, "That account is taken")
	wantNoText(t, p, s.email(t, ana), "Work")
	if n := len(s.theirIdentities(t, bo)); n != 0 {
		t.Errorf("%d identities were added, want none", n)
	}
	// A browser that two people use adds nothing to the account of the other.
	s.op.Subject = "another"
	back := s.visit(t, other.post("/settings/identities", "name", "Mine"))
	wantRedirect(t, other.post("/signin", "email", s.email(t, ana), "password", goodPassword), "/")
	p = s.back(other, back)
	wantStatus(t, p, http.StatusUnauthorized)
	wantText(t, p, "You are not signed in as before")
	if n := len(s.theirIdentities(t, ana)) + len(s.theirIdentities(t, bo)); n != 1 {
		t.Errorf("%d identities, want the one from before", n)
	}
	// Nor for somebody who has signed out.
	out := s.signedIn(t, bo)
	back = s.visit(t, out.post("/settings/identities", "name", "Mine"))
	wantRedirect(t, out.post("/signout"), "/signin")
	wantStatus(t, s.back(out, back), http.StatusUnauthorized)
}

func TestAnIdentityIsRenamedAndRemoved(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner, eve := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	b := s.bound(t, owner)
	at := "/settings/identities/" + s.theirIdentities(t, owner)[0].ID.String()
	wantStatus(t, b.post(at, "name", " "), http.StatusUnprocessableEntity)
	wantRedirect(t, b.post(at, "name", "Old work"), "/settings")
	wantText(t, b.get("/settings"), "It is called Old work now.", ">Old work<")
	stranger := s.signedIn(t, eve)
	for _, p := range []page{stranger.get(at), stranger.get(at + "/remove"), stranger.post(at, "name", "Mine"), stranger.post(at + "/remove")} {
		wantStatus(t, p, http.StatusNotFound)
	}
	s.clock.advance(15*time.Minute + time.Second)
	for path, p := range map[string]page{
		at + "/remove": b.get(at + "/remove"), "/settings/identities/new": b.post("/settings/identities", "name", "More"),
	} {
		wantRedirect(t, p, "/confirm?"+url.Values{"next": {path}}.Encode())
	}
	wantRedirect(t, b.post(at+"/remove"), "/confirm?"+url.Values{"next": {at + "/remove"}}.Encode())
	wantNoText(t, b.get("/confirm"), "Example ID") // there is a password
	wantStatus(t, b.post("/confirm/oidc"), http.StatusNotFound)
	wantRedirect(t, b.post("/confirm", "next", at+"/remove", "password", goodPassword), at+"/remove")
	wantText(t, b.get(at+"/remove"), "Remove Old work?")
	wantRedirect(t, b.post(at+"/remove"), "/settings")
	wantText(t, b.get("/settings"), "Old work is removed.")
	wantStatus(t, s.through(s.browser(t), "/sign-in/oidc"), http.StatusUnauthorized)
	s.loggedLines(t, owner, "Renamed identity Work to Old work", "Removed identity Old work")
}

// guest is a browser in which somebody joined with an identity and nothing else.
func (s *provided) guest(t *testing.T, email string) (*browser, store.Caller) {
	t.Helper()
	owner := storetest.Organisation(t, s.db)
	link := s.signedIn(t, owner).invited(email, store.RoleMember)
	b := s.browser(t)
	wantText(t, b.get(link), "Join with Example ID", `formaction="`+link+`/oidc"`)
	p := b.post(link+"/oidc", "name", " ")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Nothing was made yet.")
	wantRedirect(t, s.through(b, link+"/oidc", "name", "Ana"), "/")
	wantText(t, b.get("/"), "Hello, Ana", "as member")
	u, err := s.db.System().UserByEmail(t.Context(), email)
	if err != nil || u.Password != "" || u.Name != "Ana" {
		t.Fatalf("user = %+v, %v, want Ana without a password", u, err)
	}
	wantText(t, s.browser(t).get(link), "This invite has ended")
	return b, store.Caller{Org: owner.Org, User: u.ID, Role: store.RoleMember, Via: store.ViaSession}
}

func TestAnInviteIsUsedWithAnIdentityInPlaceOfAPassword(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	b, ana := s.guest(t, "ana@signon.example")
	list := s.theirIdentities(t, ana)
	if len(list) != 1 || list[0].Name != "Example ID" || list[0].LastUsedAt == nil {
		t.Fatalf("identities = %+v, want the one that joined", list)
	}
	wantText(t, b.get("/settings"), "You have none, and sign in with Example ID alone.")
	at := "/settings/identities/" + list[0].ID.String()
	wantText(t, b.get(at+"/remove"), "It is your only way to sign in.")
	p := b.post(at + "/remove")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "It is your only way to sign in.")
	s.loggedLines(t, ana, "Joined by an invite of Somebody, as member", "Signed in with single sign-on")

	// A passkey beside it is another way, so either may go, and not both.
	device := s.authenticator(t)
	b.addPasskey(device, "Laptop")
	key := "/settings/passkeys/" + s.theirs(t, ana)[0].ID.String()
	wantText(t, b.get("/settings"), "sign in with a passkey or Example ID.")
	wantText(t, b.get(key+"/remove"), "Remove Laptop?")
	wantRedirect(t, b.post(at+"/remove"), "/settings")
	wantText(t, b.get(key+"/remove"), "It is your only way to sign in.")
	wantStatus(t, b.post(key+"/remove"), http.StatusUnprocessableEntity)
}

func TestAnInviteIsForItsAddressWhateverTheIdentity(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	in := s.signedIn(t, owner)
	_, ana := s.guest(t, "ana@taken.example")

	link := in.invited("bo@taken.example", store.RoleMember)
	p := s.through(s.browser(t), link+"/oidc", "name", "Bo")
	wantStatus(t, p, http.StatusForbidden)
	wantText(t, p, "this invite is for bo@taken.example", `href="`+link+`"`)
	wantNoText(t, p, "ana@taken.example")

	// An address that has an account is not taken over by an identity that nobody has.
	s.op.Subject = "somebody new"
	link = in.invited("ana@taken.example", store.RoleMember)
	p = s.through(s.browser(t), link+"/oidc", "name", "Eve")
	wantStatus(t, p, http.StatusConflict)
	wantText(t, p, "has an account already")
	if n := len(s.theirIdentities(t, ana)); n != 1 {
		t.Errorf("%d identities, want the one of before", n)
	}
	// And its own joins.
	s.op.Subject = s.theirIdentities(t, ana)[0].Subject
	b := s.browser(t)
	wantRedirect(t, s.through(b, link+"/oidc", "name", "Whoever"), "/")
	wantText(t, b.get("/"), "Hello, Ana")

	// Withdrawn meanwhile; and another invite's token in the cookie.
	s.op.Subject = "a third"
	link = in.invited("cy@taken.example", store.RoleMember)
	b = s.browser(t)
	back := s.visit(t, b.post(link+"/oidc", "name", "Cy"))
	other := in.invited("di@taken.example", store.RoleOwner)
	u, _ := url.Parse(s.url)
	token, _, _ := strings.Cut(b.named("graft-oidc"), ".")
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "graft-oidc", Value: token + "." + strings.TrimPrefix(other, "/invite/"), Path: "/"}})
	wantStatus(t, s.back(b, back), http.StatusNotFound)
	back = s.visit(t, b.post(link+"/oidc", "name", "Cy"))
	wantRedirect(t, in.post(withdrawIn.FindString(in.get("/members").body)), "/members")
	wantRedirect(t, in.post(withdrawIn.FindString(in.get("/members").body)), "/members")
	wantRedirect(t, in.post(withdrawIn.FindString(in.get("/members").body)), "/members")
	wantText(t, s.back(b, back), "This invite has ended")
}

func TestWhoHasNoOtherWayConfirmsAtTheProvider(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	b, ana := s.guest(t, "ana@confirm.example")
	mine := s.op.Subject
	wantStatus(t, b.get("/settings/identities/new"), http.StatusOK) // fresh from joining
	s.clock.advance(15*time.Minute + time.Second)
	wantRedirect(t, b.get("/settings/password"), "/confirm?next=%2Fsettings%2Fpassword")
	p := b.get("/confirm?next=/settings/password")
	wantText(t, p, `action="/confirm/oidc"`, "Continue with Example ID")
	wantNoText(t, p, `name="password"`)
	q, _ := url.Parse(sent(t, b.post("/confirm/oidc", "next", "/settings/password")))
	if q.Query().Get("prompt") != "login" || q.Query().Get("max_age") != "0" {
		t.Errorf("asked with %s, want prompt=login and max_age=0", q.RawQuery)
	}
	refused := func(text string) {
		t.Helper()
		p := s.through(b, "/confirm/oidc", "next", "/settings/password")
		wantStatus(t, p, http.StatusUnauthorized)
		wantText(t, p, text, `href="/confirm?next=%2Fsettings%2Fpassword"`)
		wantRedirect(t, b.get("/settings/password"), "/confirm?next=%2Fsettings%2Fpassword")
	}
	refused("You were not asked anew") // it does not say when
	s.op.SignedIn = s.clock.now().Add(-5 * time.Minute)
	refused("You were not asked anew")
	s.op.SignedIn, s.op.Subject = s.clock.now(), "somebody else"
	refused("That is not your account")
	s.op.Subject = "of another account"
	s.bound(t, storetest.Organisation(t, s.db))
	refused("That is not your account")
	s.op.Subject = mine
	old := b.cookie()
	wantRedirect(t, s.through(b, "/confirm/oidc", "next", "/settings/password"), "/settings/password")
	if b.cookie() == old {
		t.Error("confirming kept the cookie")
	}
	wantStatus(t, b.get("/settings/password"), http.StatusOK)
	s.loggedLines(t, ana, "Confirmed who they are with single sign-on")
}

// A provider that remembers somebody signs them in without a question, so that is no proof that they are there.
func TestSigningInAtTheProviderIsAsFreshAsItSays(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	s.guest(t, "ana@fresh.example")
	for _, c := range []struct {
		name string
		ago  time.Duration
		want int
	}{{"long ago", time.Hour, http.StatusSeeOther}, {"just now", time.Minute, http.StatusOK}} {
		s.op.SignedIn = s.clock.now().Add(-c.ago)
		b := s.browser(t)
		wantRedirect(t, s.through(b, "/sign-in/oidc"), "/")
		if p := b.get("/settings/password"); p.status != c.want {
			t.Errorf("signed in %s: a step that wants somebody fresh = %d, want %d", c.name, p.status, c.want)
		}
	}
	s.op.SignedIn = time.Time{}
	b := s.browser(t)
	wantRedirect(t, s.through(b, "/sign-in/oidc"), "/")
	wantStatus(t, b.get("/settings/password"), http.StatusSeeOther)
}

// A passkey's challenge and a way to the provider are kept side by side, and neither is taken for the other.
func TestAnErrandIsNoChallenge(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	device := s.authenticator(t)
	s.signedIn(t, owner).addPasskey(device, "Laptop")
	b := s.browser(t)
	asked := b.asked("/signin/passkey")
	asked.Get.Challenge = "" // which an errand would be read as
	answer := device.get(asked)
	s.visit(t, b.post("/sign-in/oidc"))
	u, _ := url.Parse(s.url)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "graft-passkey", Value: b.named("graft-oidc"), Path: "/"}})
	wantStatus(t, b.post("/signin", "passkey", answer), http.StatusUnauthorized)
}

// An app's request waits while its person signs in at the provider, in the browser that it began in.
func TestConsentWaitsForTheSignInAtTheProvider(t *testing.T) {
	t.Parallel()
	s := startProvided(t)
	owner := storetest.Organisation(t, s.db)
	s.bound(t, owner)
	b := s.browser(t)
	path := b.asks(claude())
	wantRedirect(t, b.get(path), "/signin?"+url.Values{"next": {path}}.Encode())
	wantRedirect(t, s.through(b, "/sign-in/oidc", "next", path), path)
	b.allows(path, "agent", "new", "name", "Claude").goesTo(t)
}

func TestTheErrandsCookieIsTheHostsAlone(t *testing.T) {
	t.Parallel()
	op := oidctest.Start(t)
	s := startWith(t, storetest.URL(t), true, "127.0.0.1", func(c *console.Config) {
		p, err := oidc.New(oidc.Config{
			Issuer: op.URL, ClientID: oidctest.ClientID, Secret: vault.NewSecret([]byte(oidctest.Secret)), Redirect: c.Origin + "/sign-in/oidc/callback", Now: c.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		c.SignOn = &console.SignOn{Provider: p, Name: "Example ID"}
	})
	p := s.browser(t).post("/sign-in/oidc")
	wantStatus(t, p, http.StatusOK)
	for _, line := range p.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name == "__Host-graft-oidc" && c.HttpOnly && c.Secure && c.Path == "/" && c.Domain == "" && c.SameSite == http.SameSiteLaxMode && c.MaxAge == 600 {
			return
		}
	}
	t.Errorf("Set-Cookie = %q, want one of this host's, for ten minutes, that comes back from the provider", p.header.Values("Set-Cookie"))
}
