package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// write puts entries into the log, each durable before the next.
func (s *house) write(t *testing.T, entries ...audit.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := s.audit.Commit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// shows waits until the log shows a text: what a page records is durable a moment later.
func (b *browser) shows(text string) page {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		p := b.get("/activity")
		if strings.Contains(p.body, text) {
			return p
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the log lacks %q:\n%s", text, p.main())
		}
	}
}

// called are the two entries of a call with effects.
func called(q *asking, tool, outcome string, at time.Time) (intent, call audit.Entry) {
	call = audit.Entry{
		Org: q.agent.Org, Run: store.NewID[store.RunKind](at), Kind: audit.Call, At: at, Via: store.ViaBearer, Agent: q.agent.Agent, User: q.agent.User,
		Tool: tool, Version: 3, Source: "builtin", Digest: []byte{0xb7, 0xe1, 0x04, 0xc9}, Outcome: outcome, Took: 214 * time.Millisecond,
	}
	intent = call
	intent.Kind, intent.At, intent.Outcome, intent.Took = audit.Intent, at.Add(-200*time.Millisecond), "", 0
	return intent, call
}

func TestActivityShowsACallStepByStep(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	wantText(t, b.get("/activity"), "/activity/verify")
	q := s.asks(t, owner, "hermes")
	_, bare := q.link(q.call(store.ConnectionID{}, `{}`))
	wantRedirect(t, b.post(bare, "answer", "allow"), bare)
	decision := b.shows("Allowed version 2 of mail__send to hermes")

	s.clock.advance(time.Second)
	intent, call := called(q, "mail__send", audit.OK, s.clock.now())
	s.write(t, intent, call)
	at := "/activity/" + call.Run.String()
	p := b.get("/activity")
	wantText(t, p, "mail__<wbr>send", `href="`+at+`"`, "214 ms", "hermes")
	if n := strings.Count(p.body, at); n != 1 {
		t.Errorf("the call is listed %d times, want once for intent and end", n)
	}
	if first, second := strings.Index(p.body, at), strings.Index(p.body, "Allowed version 2"); first > second {
		t.Error("the older entry stands first")
	}
	p = b.get(at)
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Asked by hermes", "Allowed by you", "for version 2", "Intent recorded", "+14 ms", "Sent to the tool", "Answered: ok", "+214 ms", "b7e1 04c9", "an agent’s token", call.Run.String(), "entry 5 of wrt_")
	_, rest, _ := strings.Cut(decision.body, `href="/activity/run_`)
	id, _, _ := strings.Cut(rest, `"`)
	wantText(t, b.get("/activity/run_"+id), "Allowed version 2 of mail__send to hermes", "by you", `href="`+bare+`"`, "the console")
	wantText(t, b.get("/activity/verify"), "graft audit verify --org", "graft audit export --org")
}

func TestActivityOfCallsThatDidNotGoWell(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	q := s.asks(t, owner, "hermes")
	_, bare := q.link(q.call(store.ConnectionID{}, `{}`))
	lost, _ := called(q, "mail__lost", "", s.clock.now())
	_, waits := called(q, "mail__send", string(reason.AwaitingApproval), s.clock.now())
	waits.Version = 2
	_, denied := called(q, "mail__denied", string(reason.ToolDenied), s.clock.now())
	failedIntent, failed := called(q, "mail__failed", audit.Failed, s.clock.now())
	_, read := called(q, "mail__read", audit.OK, s.clock.now())
	s.write(t, lost, waits, denied, failedIntent, failed, read)
	wantText(t, b.get("/activity"), "no end known", "awaiting approval", "tool denied", "error")
	for e, want := range map[*audit.Entry][]string{
		&lost:   {"No end is known", "It may have been carried out."},
		&waits:  {"Answered: awaiting approval", `href="` + bare + `"`},
		&denied: {"Answered: tool denied", "Nothing that changes anything was sent."},
		&failed: {"Intent recorded", "Answered: error", "that you cannot see here"},
		&read:   {"It only reads, so nobody is asked.", "Answered: ok"},
	} {
		wantText(t, b.get("/activity/"+e.Run.String()), want...)
	}
}

func TestActivityIsFilteredAndTurned(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	q, other := s.asks(t, owner, "hermes"), s.asks(t, owner, "codex")
	var all []audit.Entry
	for n := range 120 {
		_, call := called(q, fmt.Sprintf("mail__n%d", n), audit.OK, s.clock.now().Add(time.Duration(n-200)*time.Second))
		all = append(all, call)
	}
	_, rare := called(other, "mail__rare", string(reason.Timeout), s.clock.now().Add(-50*time.Hour))
	s.write(t, append(all, rare)...)

	seen := map[string]bool{}
	pages := 0
	for path := "/activity"; path != ""; pages++ {
		p := b.get(path)
		for _, e := range append(all, rare) {
			if strings.Contains(p.body, e.Run.String()) {
				if seen[e.Tool] {
					t.Errorf("%s is on two pages", e.Tool)
				}
				seen[e.Tool] = true
			}
		}
		if first := pages == 0; first == strings.Contains(p.body, ">Newest<") {
			t.Errorf("page %d leads to the newest: %v", pages, !first)
		}
		path = ""
		if _, rest, found := strings.Cut(p.body, `class="push" href="`); found {
			link, _, _ := strings.Cut(rest, `"`)
			path = strings.ReplaceAll(link, "&amp;", "&")
		}
	}
	if len(seen) != 121 || pages != 3 {
		t.Errorf("%d entries on %d pages, want 121 on 3", len(seen), pages)
	}

	for query, want := range map[string]bool{
		"agent=" + other.a.ID.String(): true, "agent=" + q.a.ID.String(): false, "tool=mail__rare": true, "tool=mail__n1": false, "outcome=timeout": true, "outcome=ok": false,
		"since=24h": false, "since=168h": true, "kind=call": true, "kind=change": false, "kind=nonsense&outcome=nonsense&agent=nonsense&since=nonsense&before=nonsense": true,
		"agent=" + other.a.ID.String() + "&tool=mail__rare&outcome=timeout&since=168h&kind=call": true,
	} {
		p := b.get("/activity?" + query)
		wantStatus(t, p, http.StatusOK)
		path := p
		if strings.Contains(query, "nonsense") || strings.HasPrefix(query, "since=168h") || strings.HasPrefix(query, "kind=call") { // as everything is: it is the oldest
			wantText(t, p, "mail__<wbr>n119")
			continue
		}
		if got := strings.Contains(path.body, rare.Run.String()); got != want {
			t.Errorf("?%s shows the entry: %v, want %v", query, got, want)
		}
	}
	none := b.get("/activity?" + url.Values{"tool": {"\x00nothing\xff"}}.Encode())
	wantStatus(t, none, http.StatusOK)
	wantText(t, none, "Nothing matches", `href="/activity"`)
	wantText(t, b.get("/activity?tool=mail__rare&since=168h"), `value="mail__rare"`, `<option value="168h" selected>`)
}

// A filter is what somebody typed, or cut.
func TestAFilterThatEndsWithinALetter(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	wantStatus(t, b.get("/activity?tool="+url.QueryEscape("x"+strings.Repeat("é", 64))), http.StatusOK)
}

func TestWhoSeesWhichActivity(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	maker := storetest.Member(t, s.db, owner, store.RoleMember)
	q := s.asks(t, maker, "hermes")
	_, call := called(q, "mail__send", audit.OK, s.clock.now())
	s.write(t, call)
	at := "/activity/" + call.Run.String()
	for _, c := range []struct {
		who  store.Caller
		sees bool
	}{
		{owner, true},
		{storetest.Member(t, s.db, owner, store.RoleAdmin), true},
		{storetest.Member(t, s.db, owner, store.RoleAuditor), true},
		{maker, true},
		{storetest.Member(t, s.db, owner, store.RoleMember), false},
		{storetest.Organisation(t, s.db), false},
	} {
		b := s.signedIn(t, c.who)
		want := http.StatusNotFound
		if c.sees {
			want = http.StatusOK
		}
		if got := b.get(at); got.status != want {
			t.Errorf("%s: GET %s = %d, want %d", c.who.Role, at, got.status, want)
		}
		if got := strings.Contains(b.get("/activity").body, at); got != c.sees {
			t.Errorf("%s: it is in the list: %v, want %v", c.who.Role, got, c.sees)
		}
	}
	b := s.signedIn(t, owner)
	for _, id := range []string{"run_", "agt_" + call.Run.String()[4:], store.NewID[store.RunKind](time.Now()).String(), "%00"} {
		wantStatus(t, b.get("/activity/"+id), http.StatusNotFound)
	}
}

// Each change that a page makes is in the log, once and without a secret.
func TestChangesAreWrittenDown(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	wantStatus(t, b.post("/agents", "name", "hermes"), http.StatusOK)
	_, rest, _ := strings.Cut(b.get("/agents").body, `class="go" href="`)
	at, _, _ := strings.Cut(rest, `"`)
	wantStatus(t, b.post(at+"/token"), http.StatusOK)
	wantRedirect(t, b.post(at+"/revoke"), "/agents")
	wantRedirect(t, b.post(at+"/revoke"), "/agents")
	wantRedirect(t, b.post("/secrets", "name", "KEY", "secret", canary), "/upstreams")
	wantRedirect(t, b.post(secretAt(t, b)), "/upstreams")
	p := b.shows("Removed secret KEY")
	for _, line := range []string{"Made agent hermes", "Made a new token for agent hermes", "Revoked agent hermes", "Set secret KEY"} {
		if n := strings.Count(p.body, ">"+line+"<"); n != 1 {
			t.Errorf("%q is there %d times, want once:\n%s", line, n, p.main())
		}
	}
	wantNoText(t, p, canary)
}

// Who came in, and by what, is in the log too: a stolen link or password is used at one time and place.
func TestSigningInIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.PrivateURL(t), false)
	token, err := s.db.System().NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser(t)
	wantRedirect(t, b.post("/setup/"+token, "name", "Ana", "email", "ana@example.com", "organisation", "Acme", "password", goodPassword), "/")
	wantText(t, b.shows("Signed in"), "Founded organisation Acme", "Set a password by a one-time link")
	wantRedirect(t, b.post("/signout"), "/signin")
	wantStatus(t, b.post("/signin", "email", "ana@example.com", "password", "wrong wrong wrong"), http.StatusUnauthorized)
	wantRedirect(t, b.post("/signin", "email", "ana@example.com", "password", goodPassword), "/")
	wantStatus(t, b.post("/agents", "name", "hermes"), http.StatusOK)
	p := b.shows("Made agent hermes") // and with it what was before
	for line, want := range map[string]int{"Signed in": 2, "Signed out": 1, "Set a password by a one-time link": 1} {
		if n := strings.Count(p.body, ">"+line+"<"); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", line, n, want, p.main())
		}
	}
}
