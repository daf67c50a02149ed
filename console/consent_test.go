package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// prover takes what a query says for proven.
type prover struct{}

// Prove implements consent.Prover.
func (prover) Prove(_ context.Context, query string) (consent.Request, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return consent.Request{}, err
	}
	switch {
	case q.Has("bounce"):
		return consent.Request{}, &consent.Bounce{URL: q.Get("bounce")}
	case q.Has("unproven"):
		return consent.Request{}, reason.Refuse(reason.ClientNotProven, "%s", q.Get("unproven"))
	}
	return consent.Request{
		ClientID: q.Get("client_id"), ClientName: q.Get("name"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"),
		Challenge: strings.Repeat("c", 43), Scope: "mcp",
	}, nil
}

// claude is a request of a client that has a document.
func claude() url.Values {
	return url.Values{
		"client_id": {"https://claude.ai/oauth/mcp-client.json"}, "name": {"Claude"}, "redirect_uri": {"https://claude.ai/api/mcp/callback"}, "state": {"s1"},
	}
}

// with is q with one value changed.
func with(q url.Values, key, value string) url.Values {
	q.Set(key, value)
	return q
}

// asks has an app begin in this browser, and returns the path that it is led to.
func (b *browser) asks(q url.Values) string {
	b.t.Helper()
	u, err := url.Parse(b.s.url)
	if err != nil {
		b.t.Fatal(err)
	}
	id, token, err := b.s.consent.Begin(b.t.Context(), q.Encode(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.http.Jar.SetCookies(u, []*http.Cookie{consent.BrowserCookie(id, token, strings.HasPrefix(b.s.url, "https:"))})
	return "/consent/" + id
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

// token is what the form on the page must repeat.
func (p page) token(t *testing.T) string {
	t.Helper()
	m := formToken.FindStringSubmatch(p.body)
	if m == nil {
		t.Fatalf("no form on the page (%d):\n%s", p.status, p.main())
	}
	return m[1]
}

// allows presses Connect on the page at path.
func (b *browser) allows(path string, form ...string) page {
	b.t.Helper()
	return b.post(path, append([]string{"form", b.get(path).token(b.t), "answer", "allow"}, form...)...)
}

var onward = regexp.MustCompile(`href="([^"]+)" data-onward`)

// goesTo is where a page goes on to, and what it carries.
func (p page) goesTo(t *testing.T) (string, url.Values) {
	t.Helper()
	wantStatus(t, p, http.StatusOK)
	m := onward.FindStringSubmatch(p.body)
	if m == nil {
		t.Fatalf("the page goes nowhere:\n%s", p.main())
	}
	to := html.UnescapeString(m[1])
	if refresh := `<meta http-equiv="refresh" content="0;url=` + m[1] + `">`; !strings.Contains(p.body, refresh) {
		t.Errorf("without scripts the page does not go to %s", to)
	}
	base, query, _ := strings.Cut(to, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return base, q
}

// agentsOf are the names of c's live agents.
func (s *house) agentsOf(t *testing.T, c store.Caller) (list []string) {
	t.Helper()
	s.as(t, c, func(tx *store.Tx) error {
		agents, err := tx.Agents(t.Context(), store.AgentFilter{})
		for _, a := range agents {
			if a.RevokedAt == nil {
				list = append(list, a.Name)
			}
		}
		return err
	})
	slices.Sort(list)
	return list
}

// wantUnanswered expects that nothing came of a request: it can be answered still.
func wantUnanswered(t *testing.T, b *browser, path string) {
	t.Helper()
	if p := b.get(path); p.status != http.StatusOK || !formToken.MatchString(p.body) {
		t.Errorf("the request was spent: %d\n%s", p.status, p.main())
	}
}

func TestConsentShowsWhoAsksAndWhereTheAnswerGoes(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	p := b.get(b.asks(claude()))
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Let Claude work in Org", "Name not verified", "<b>claude.ai</b>", "https://claude.ai/oauth/mcp-client.json",
		"https://<b>claude.ai</b>/api/mcp/callback", `value="Claude"`, "in 9 min", s.email(t, owner), "Not you?")
	wantNoText(t, p, "any program on this computer", "An agent I already have", "registered itself", `<select`)
	if got := p.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q, want no-store", got)
	}

	registered := with(with(claude(), "client_id", "c_123"), "redirect_uri", "http://127.0.0.1:43211/callback")
	wantText(t, b.get(b.asks(registered)), "It registered itself", "http://<b>127.0.0.1:43211</b>/callback", "any program on this computer could receive it")
	own := b.get(b.asks(with(claude(), "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback")))
	wantText(t, own, "<b>cursor:</b>//anysphere.cursor-mcp/oauth/callback", "any program on this computer could receive it")
}

func TestConsentConnectsAnAppAsANewAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	storetest.Agent(t, s.db, owner, "claude")
	b := s.signedIn(t, owner)
	p := b.allows(b.asks(claude()), "agent", "new", "name", " Claude ")
	to, q := p.goesTo(t)
	if to != "https://claude.ai/api/mcp/callback" || q.Get("state") != "s1" || q.Get("iss") != "https://graft.example.org" || !store.WellFormed(store.CodePrefix, q.Get("code")) {
		t.Errorf("goes to %s with %v, want the callback with code, state and iss", to, q)
	}
	wantText(t, p, "as the agent", "Claude 2", "Continue to claude.ai", "If nothing opens")
	for header, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
		if got := p.header.Get(header); got != want {
			t.Errorf("%s = %q, want %q", header, got, want)
		}
	}
	if got := s.agentsOf(t, owner); !slices.Equal(got, []string{"Claude 2", "claude"}) {
		t.Errorf("agents = %q, want claude and Claude 2", got)
	}
	s.wantLine(t, owner, "Connected Claude (claude.ai) to agent Claude 2")
}

// wantLine expects a line in the audit log of c's organisation.
func (s *house) wantLine(t *testing.T, c store.Caller, line string) {
	t.Helper()
	s.signedIn(t, c).shows(html.EscapeString(line))
}

func TestConsentConnectsAnAppToAnAgentThereIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	member := storetest.Member(t, s.db, owner, store.RoleMember)
	mine, _ := storetest.Agent(t, s.db, member, "mine")
	gone, _ := storetest.Agent(t, s.db, member, "gone")
	s.as(t, member, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), gone.ID) })
	storetest.Agent(t, s.db, owner, "the owner's"[:9])
	b := s.signedIn(t, member)
	path := b.asks(claude())
	p := b.get(path)
	wantText(t, p, "An agent I already have", mine.ID.String())
	wantNoText(t, p, "the owner", gone.ID.String())
	_, q := b.allows(path, "agent", "old", "which", mine.ID.String(), "name", "ignored").goesTo(t)
	if !store.WellFormed(store.CodePrefix, q.Get("code")) {
		t.Errorf("carries %v, want a code", q)
	}
	if got := s.agentsOf(t, member); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("agents = %q, want mine alone", got)
	}
	// An admin may choose anybody's.
	admin := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleAdmin))
	wantText(t, admin.get(admin.asks(claude())), mine.ID.String(), "mine, made by ")
}

func TestConsentIsDenied(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	path := b.asks(claude())
	p := b.post(path, "form", b.get(path).token(t), "answer", "deny", "name", "")
	to, q := p.goesTo(t)
	if to != "https://claude.ai/api/mcp/callback" || q.Get("error") != "access_denied" || q.Get("state") != "s1" || q.Get("iss") == "" || q.Has("code") {
		t.Errorf("goes to %s with %v, want access_denied", to, q)
	}
	wantText(t, p, "Nothing was connected", "It is told that you did not allow it")
	if got := s.agentsOf(t, owner); len(got) != 0 {
		t.Errorf("agents = %q, want none", got)
	}
	s.wantLine(t, owner, "Did not connect Claude (claude.ai)")
}

// Attack: an answer that is not the page's own.
func TestConsentAnswerMustComeFromItsPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	path, other := b.asks(claude()), b.asks(with(claude(), "name", "Other"))
	foreign := b.get(other).token(t)
	for what, token := range map[string]string{"none": "", "wrong": "x", "another request's": foreign} {
		for _, answer := range []string{"allow", "deny", "choose"} {
			p := b.post(path, "form", token, "answer", answer, "name", "Claude")
			if p.status != http.StatusForbidden || strings.Contains(p.body, "code=") {
				t.Errorf("%s, token %s: %d, want 403 and no code", answer, what, p.status)
			}
		}
	}
	wantText(t, b.post(path, "answer", "allow"), "This belongs to another page", "Connect again from the app")
	wantUnanswered(t, b, path)
	wantStatus(t, b.post(path, "form", b.get(path).token(t), "answer", "perhaps"), http.StatusBadRequest)
	wantUnanswered(t, b, path)
	if got := s.agentsOf(t, owner); len(got) != 0 {
		t.Errorf("agents = %q, want none", got)
	}
}

// Attack: a request that began in another browser, answered by its id.
func TestConsentOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	s := start(t)
	attacker, victim := s.signedIn(t, storetest.Organisation(t, s.db)), s.signedIn(t, storetest.Organisation(t, s.db))
	path := attacker.asks(claude())
	token := attacker.get(path).token(t)
	for _, has := range []string{"no token", "a token of its own"} {
		for _, p := range []page{victim.get(path), victim.post(path, "form", token, "answer", "allow", "name", "Claude")} {
			if p.status != http.StatusForbidden || strings.Contains(p.body, "code=") || strings.Contains(p.body, token) {
				t.Errorf("%s: %d, want 403 and nothing of the request", has, p.status)
			}
			wantText(t, p, "another browser")
		}
		victim.asks(claude())
	}
	wantUnanswered(t, attacker, path)
}

func TestConsentIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	for _, answer := range []string{"allow", "deny"} {
		path := b.asks(claude())
		token := b.get(path).token(t)
		b.post(path, "form", token, "answer", answer, "name", "once "+answer).goesTo(t)
		// Back, and the page from the browser's memory again.
		for _, p := range []page{
			b.get(path), b.post(path, "form", token, "answer", "allow", "name", "again"), b.post(path, "form", token, "answer", "deny"),
		} {
			wantStatus(t, p, http.StatusGone)
			wantText(t, p, "This request has ended", "Connect again from the app")
			wantNoText(t, p, "code=", "access_denied")
		}
	}
	if got := s.agentsOf(t, owner); !slices.Equal(got, []string{"once allow"}) {
		t.Errorf("agents = %q, want once allow alone", got)
	}
}

func TestConsentPressedTwiceAtOnceMakesOneAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	path := b.asks(claude())
	token := b.get(path).token(t)
	var both sync.WaitGroup
	var pages [4]page
	for i := range pages {
		both.Go(func() {
			pages[i] = b.post(path, "form", token, "answer", "allow", "name", fmt.Sprintf("try %d", i))
		})
	}
	both.Wait()
	codes := 0
	for _, p := range pages {
		switch {
		case p.status == http.StatusOK:
			codes++
		case p.status != http.StatusGone:
			t.Errorf("status = %d, want 200 or 410: %s", p.status, p.main())
		}
	}
	if got := s.agentsOf(t, owner); codes != 1 || len(got) != 1 {
		t.Errorf("%d answers and agents %q, want one of each", codes, got)
	}
}

func TestConsentExpires(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	path := b.asks(claude())
	token := b.get(path).token(t)
	s.clock.advance(consent.Life - time.Minute)
	wantUnanswered(t, b, path)
	s.clock.advance(time.Minute)
	for _, p := range []page{b.get(path), b.post(path, "form", token, "answer", "allow", "name", "late")} {
		wantStatus(t, p, http.StatusGone)
		wantText(t, p, "older than ten minutes")
	}
	for _, id := range []string{"x", "grftq_", "%00"} {
		wantStatus(t, b.get("/consent/"+id), http.StatusGone)
	}
}

func TestTwoConsentsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	one, two := b.asks(with(claude(), "state", "one")), b.asks(with(claude(), "state", "two"))
	first, second := b.get(one).token(t), b.get(two).token(t)
	if first == second {
		t.Error("two requests have one token")
	}
	for _, tab := range []struct{ path, token, state string }{{one, first, "one"}, {two, second, "two"}} {
		if _, q := b.post(tab.path, "form", tab.token, "answer", "allow", "name", "Claude").goesTo(t); q.Get("state") != tab.state || q.Get("code") == "" {
			t.Errorf("tab %s carries %v", tab.state, q)
		}
	}
	if got := s.agentsOf(t, owner); !slices.Equal(got, []string{"Claude", "Claude 2"}) {
		t.Errorf("agents = %q, want Claude and Claude 2", got)
	}
}

// Attack: an agent that is another organisation's, or another member's.
func TestConsentNamesAnAgentOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	colleagues, _ := storetest.Agent(t, s.db, owner, "of the owner")
	strangers := storetest.Organisation(t, s.db)
	theirs, _ := storetest.Agent(t, s.db, strangers, "theirs")
	b := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleMember))
	path := b.asks(claude())
	nowhere := b.get("/nowhere")
	for what, form := range map[string][]string{
		"another member's agent":             {"agent", "old", "which", colleagues.ID.String()},
		"another organisation's agent":       {"agent", "old", "which", theirs.ID.String()},
		"no agent's id":                      {"agent", "old", "which", "agt_"},
		"none":                               {"agent", "old"},
		"an id of something else":            {"agent", "old", "which", owner.User.String()},
		"another organisation":               {"agent", "new", "name", "planted", "org", strangers.Org.String()},
		"another organisation and its agent": {"agent", "old", "which", theirs.ID.String(), "org", strangers.Org.String()},
		"no organisation's id":               {"agent", "new", "name", "planted", "org", "org_"},
	} {
		p := b.allows(path, form...)
		if p.status != http.StatusNotFound || p.body != nowhere.body {
			t.Errorf("%s: %d and\n%s\nwant the page of what is not there", what, p.status, p.main())
		}
	}
	wantStatus(t, b.get(path+"?org="+strangers.Org.String()), http.StatusNotFound)
	wantUnanswered(t, b, path)
	s.as(t, strangers, func(tx *store.Tx) error {
		grants, err := tx.Grants(t.Context(), theirs.ID)
		if len(grants) != 0 {
			t.Errorf("grants of the stranger's agent = %v, want none", grants)
		}
		return err
	})
}

func TestConsentKeepsWhatWasTypedWhereTheNameIsNotOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	path := b.asks(claude())
	for _, name := range []string{"", "  ", "-claude", "a/b", strings.Repeat("n", 65), "<script>alert(1)</script>"} {
		p := b.allows(path, "agent", "new", "name", name)
		wantStatus(t, p, http.StatusUnprocessableEntity)
		wantText(t, p, `id="name-error"`, "Use 1 to 64 letters", `value="`+html.EscapeString(strings.TrimSpace(name))+`"`)
		wantNoText(t, p, "<script>alert")
	}
	b.allows(path, "agent", "new", "name", strings.Repeat("n", 64)).goesTo(t)
}

// Attack: a name that is markup, turns the writing, is very long, or claims to be somebody.
func TestConsentWithAHostileName(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	for name, shown := range map[string]string{
		`<script>alert(1)</script>`:     "&lt;script&gt;alert(1)&lt;/script&gt;",
		"\u202eedualC\u2066\u200b":      "edualC",
		strings.Repeat("A", 10<<10):     strings.Repeat("A", 79) + "…",
		"Graft Console (verified)":      "Graft Console (verified)",
		"\u3164":                        "An app without a name",
		`"><img src=x onerror=alert(1)`: "&#34;&gt;&lt;img src=x onerror=alert(1)",
	} {
		p := b.get(b.asks(with(claude(), "name", name)))
		wantStatus(t, p, http.StatusOK)
		wantText(t, p, shown, "Name not verified", "<b>claude.ai</b>")
		wantNoText(t, p, "<script>alert", "<img", "\u202e", "\u2066", "\u200b", strings.Repeat("A", 80))
	}
	p := b.allows(b.asks(with(claude(), "name", "\u202e<b>x")), "agent", "new", "name", "x")
	wantText(t, p, "Back to &lt;b&gt;x")
	wantNoText(t, p, "\u202e")
}

func TestConsentOfWhoReadsOnly(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	agent, _ := storetest.Agent(t, s.db, owner, "hermes")
	auditor := storetest.Member(t, s.db, owner, store.RoleAuditor)
	b := s.signedIn(t, auditor)
	path := b.asks(claude())
	p := b.get(path)
	wantStatus(t, p, http.StatusForbidden)
	wantText(t, p, "Your role reads only", "Cancel")
	wantNoText(t, p, ">Connect<", agent.ID.String())
	token := p.token(t)
	for _, form := range [][]string{{"agent", "new", "name", "mine"}, {"agent", "old", "which", agent.ID.String()}} {
		wantStatus(t, b.post(path, append([]string{"form", token, "answer", "allow"}, form...)...), http.StatusForbidden)
	}
	_, q := b.post(path, "form", token, "answer", "deny").goesTo(t)
	if q.Get("error") != "access_denied" {
		t.Errorf("carries %v, want access_denied", q)
	}
}

func TestConsentInOneOfSeveralOrganisations(t *testing.T) {
	t.Parallel()
	s := start(t)
	first, second, third := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	theirs, _ := storetest.Agent(t, s.db, first, "in the first")
	there := s.joins(t, first, second, store.RoleMember)
	s.joins(t, first, third, store.RoleAuditor)
	elsewhere, _ := storetest.Agent(t, s.db, there, "in the second")
	b := s.signedIn(t, first)
	path := b.asks(claude())
	p := b.get(path)
	chosen := func(c store.Caller) string { return `value="` + c.Org.String() + `" selected` }
	wantText(t, p, `<select class="input" id="org"`, chosen(first), theirs.ID.String())
	wantNoText(t, p, third.Org.String(), elsewhere.ID.String())

	// What was typed is there again in the other organisation.
	p = b.post(path, "form", p.token(t), "answer", "choose", "org", second.Org.String(), "agent", "new", "name", "my name")
	wantStatus(t, p, http.StatusSeeOther)
	if strings.Contains(p.to(), "form=") {
		t.Errorf("Location = %s, want no token in it", p.to())
	}
	p = b.get(p.to())
	wantText(t, p, chosen(second), `value="my name"`, elsewhere.ID.String())
	wantNoText(t, p, theirs.ID.String())

	// An agent of the organisation that was chosen before is not one of this.
	p = b.allows(path, "org", second.Org.String(), "drawn", first.Org.String(), "agent", "old", "which", theirs.ID.String())
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Choose the agent again", `id="which-error"`, elsewhere.ID.String())
	wantStatus(t, b.allows(path, "org", second.Org.String(), "drawn", second.Org.String(), "agent", "old", "which", theirs.ID.String()), http.StatusNotFound)
	wantStatus(t, b.allows(path, "org", third.Org.String(), "agent", "new", "name", "x"), http.StatusNotFound)

	b.allows(path, "org", second.Org.String(), "agent", "new", "name", "my name").goesTo(t)
	if got := s.agentsOf(t, there); !slices.Equal(got, []string{"in the second", "my name"}) {
		t.Errorf("agents there = %q, want the new one among them", got)
	}
	if got := s.agentsOf(t, first); !slices.Equal(got, []string{"in the first"}) {
		t.Errorf("agents here = %q, want none new", got)
	}
	s.wantLine(t, second, "Connected Claude (claude.ai) to agent my name")
}

// joins makes c's user a member of another organisation too, and returns them as who they are there.
func (s *house) joins(t *testing.T, c, other store.Caller, role store.Role) store.Caller {
	t.Helper()
	var o store.Organisation
	s.as(t, other, func(tx *store.Tx) (err error) {
		o, err = tx.Organisation(t.Context())
		return err
	})
	if _, _, err := s.db.System().Enrol(t.Context(), o.Name, s.email(t, c), role); err != nil {
		t.Fatal(err)
	}
	return store.Caller{Org: other.Org, User: c.User, Role: role, Via: store.ViaSession}
}

func TestConsentWaitsForTheSignIn(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	s.signedIn(t, owner) // who has a password now
	b := s.browser(t)
	path := b.asks(claude())
	p := b.get(path)
	wantRedirect(t, p, "/signin?"+url.Values{"next": {path}}.Encode())
	wantText(t, b.get(p.to()), `value="`+path+`"`)
	wantRedirect(t, b.post("/signin", "email", s.email(t, owner), "password", goodPassword, "next", path), path)
	b.allows(path, "agent", "new", "name", "Claude").goesTo(t)

	// As somebody else, and back.
	path = b.asks(claude())
	wantText(t, b.get(path), `name="next" value="`+path+`"`)
	wantRedirect(t, b.post("/signout", "next", path), path)
	wantRedirect(t, b.get(path), "/signin?"+url.Values{"next": {path}}.Encode())
	wantRedirect(t, b.post("/signout", "next", "//evil.example"), "/signin")
}

func TestConsentThatCannotBe(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	p := b.get(b.asks(url.Values{"unproven": {"The app's document names another address."}}))
	wantStatus(t, p, http.StatusBadRequest)
	wantText(t, p, "This app cannot be connected", "names another address")

	const back = "https://app.example/cb?error=invalid_scope&state=a%22b&iss=https%3A%2F%2Fgraft.example.org"
	path := b.asks(url.Values{"bounce": {back}})
	wantStatus(t, b.post(path, "answer", "allow"), http.StatusForbidden) // no page has asked: nothing is looked at for it
	for _, p := range []page{b.get(path), b.get(path)} {
		wantText(t, p, "Back to the app", "It is told what is wrong with what it asked for.")
		if to, q := p.goesTo(t); to != "https://app.example/cb" || q.Get("state") != `a"b` {
			t.Errorf("goes to %s with %v, want the app", to, q)
		}
	}
}

// The way on may be of any kind that is proven: templ must leave it as it is.
func TestConsentGoesOnToAddressesOfEveryKind(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	for redirect, host := range map[string]string{
		"https://app.example/cb":                       "app.example",
		"https://app.example:8443/cb?tenant=a&x=1":     "app.example:8443",
		"http://localhost:1234/cb":                     "localhost:1234",
		"http://[::1]:1234":                            "[::1]:1234",
		"cursor://anysphere.cursor-mcp/oauth/callback": "cursor",
		"com.example.app:/cb":                          "com.example.app",
	} {
		p := b.allows(b.asks(with(claude(), "redirect_uri", redirect)), "agent", "new", "name", "App")
		to, q := p.goesTo(t)
		if base, _, _ := strings.Cut(redirect, "?"); to != base || q.Get("code") == "" {
			t.Errorf("%s: goes to %s with %v, want there with a code", redirect, to, q)
		}
		wantText(t, p, "Continue to "+host+"<")
	}
}

func TestConsentCookieUnderHTTPSIsBoundToTheHost(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.URL(t), true)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	path := b.asks(claude())
	u, _ := url.Parse(s.url)
	if !slices.ContainsFunc(b.http.Jar.Cookies(u), func(c *http.Cookie) bool { return strings.HasPrefix(c.Name, "__Host-graft-browser-") }) {
		t.Errorf("cookies = %v, want one __Host-graft-browser-…", b.http.Jar.Cookies(u))
	}
	b.allows(path, "agent", "new", "name", "Claude").goesTo(t)
	for _, secure := range []bool{true, false} {
		c := consent.BrowserCookie("id", "x", secure)
		if !c.HttpOnly || c.Secure != secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 600 || !c.Expires.IsZero() || c.Domain != "" {
			t.Errorf("cookie = %+v, want HttpOnly, Secure %v, Lax, for / and ten minutes", c, secure)
		}
	}
}
