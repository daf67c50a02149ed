package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

const canary = "CANARY-7f3a9c"

// upstream is the page of the one that an add led to.
func added(t *testing.T, p page) string {
	t.Helper()
	wantStatus(t, p, http.StatusSeeOther)
	if !strings.HasPrefix(p.to(), "/upstreams/ups_") {
		t.Fatalf("Location = %q, want an upstream's page", p.to())
	}
	return p.to()
}

func TestAnUpstreamFromItsSecretToItsEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: canary, Tools: []upstreamtest.Tool{
		upstreamtest.Echo, {Name: "drop"}, {Name: "odd", Listed: `{"name":"odd","inputSchema":{"type":"array"}}`},
	}})
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	wantText(t, b.get("/upstreams"), "No upstreams yet", `href="/upstreams/new"`)
	wantRedirect(t, b.post("/secrets", "name", "ECHO_KEY", "secret", "\ufeff Bearer "+canary+"\r\n"), "/upstreams")
	wantText(t, b.get("/upstreams"), "ECHO_KEY is saved.", "by Somebody, used by no upstream")

	form := []string{"name", "echo", "url", srv.URL, "header_1", "authorization", "secret_header_1", "Bearer ${ECHO_KEY}", "header_2", "", "secret_header_2", "", "exclude", " drop \n\n", "trust_hints", "yes"}
	at := added(t, b.post("/upstreams", form...))
	p := b.get(at)
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "echo is added. It offers 1 tool.", "healthy", "echo__<wbr>echo", "Authorization", "Takes ECHO_KEY", "Left out: It is on the list of tools that are left out.", "Trusted", "All its tools, to every agent")
	reads := b.get(at + "?show=reads")
	wantText(t, reads, "echo__<wbr>echo")
	wantNoText(t, reads, "echo__<wbr>drop")
	wantNoText(t, b.get(at+"?show=left-out"), "echo__<wbr>echo")
	wantText(t, b.get(at+"?show=changes"), "None of its tools can change anything")
	wantText(t, b.get("/upstreams"), "used by echo", `href="`+at+`"`)

	again := b.post("/upstreams", form...)
	wantStatus(t, again, http.StatusConflict)
	wantText(t, again, "An upstream or a connection is called", `value="`+srv.URL+`"`, `value="Bearer ${ECHO_KEY}"`, " checked", "drop")

	wantRedirect(t, b.post(at+"/settings", "include", "", "exclude", ""), at)
	p = b.get(at)
	wantText(t, p, "The settings of echo are saved.", "echo__<wbr>drop", "Not trusted", "What each agent promotes")
	wantRedirect(t, b.post("/secrets", "name", "ECHO_KEY", "secret", "wrong"), "/upstreams")
	wantRedirect(t, b.post(at+"/test"), at)
	p = b.get(at)
	wantText(t, p, "failing", "replace the headers, then test", "the last that were known", "echo__<wbr>echo")
	wantRedirect(t, b.post(at+"/headers", "header_1", "Authorization", "secret_header_1", "Bearer "+canary), at)
	wantText(t, b.get(at), "healthy", "Authorization")
	wantRedirect(t, b.post(at+"/test"), at)
	wantText(t, b.get(at), "echo answers. It offers 2 tools.")

	question := b.get(at + "/remove")
	wantText(t, question, "Remove echo?", "2 tools, for every agent")
	wantText(t, b.get(at), "healthy") // a question ends nothing
	wantRedirect(t, b.post(at+"/remove"), "/upstreams")
	wantText(t, b.get("/upstreams"), "echo is removed.", "No upstreams yet", "used by no upstream")
	for _, path := range []string{at, at + "/remove", at + "/change"} {
		wantStatus(t, b.get(path), http.StatusNotFound)
	}
	for _, path := range []string{"/", "/upstreams", "/upstreams/new", "/activity", at} {
		wantNoText(t, b.get(path), canary)
	}
	if strings.Contains(s.log.String(), canary) {
		t.Error("the secret is in the log")
	}
}

func TestAnUpstreamWithoutItsSecretSaysWhichOneItNeeds(t *testing.T) {
	t.Parallel()
	s := start(t)
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	at := added(t, b.post("/upstreams", "name", "echo", "url", srv.URL, "header_1", "X-Key", "secret_header_1", "${NOT_THERE}"))
	wantText(t, b.get(at), "failing", "NOT_THERE", "Save NOT_THERE on the Upstreams page, then test.", "No tools are known")
	wantRedirect(t, b.post("/secrets", "name", "NOT_THERE", "secret", "x"), "/upstreams")
	wantRedirect(t, b.post(at+"/test"), at)
	wantText(t, b.get(at), "healthy", "echo__<wbr>count")

	secret := secretAt(t, b)
	wantText(t, b.get(secret), "Remove NOT_THERE?", "New connections to echo")
	wantRedirect(t, b.post(secret), "/upstreams")
	wantText(t, b.get("/upstreams"), "NOT_THERE is removed.")
	wantStatus(t, b.post(secret), http.StatusNotFound)
}

// A change is written down whether or not the browser waits for what comes after it.
func TestABrowserThatLeavesHidesNoChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	at := added(t, b.post("/upstreams", "name", "echo", "url", srv.URL))
	reached := make(chan struct{}, 16)
	srv.Script(func(_ http.ResponseWriter, r *http.Request, _ upstreamtest.Message) bool {
		reached <- struct{}{}
		<-r.Context().Done()
		return true
	})
	b.leave(reached, at+"/settings", "trust_hints", "yes")
	b.leave(reached, "/upstreams", "name", "hidden", "url", srv.URL)
	b.leave(reached, at+"/headers", "header_1", "X-Key", "secret_header_1", "x")
	p := b.shows("Replaced the headers of upstream echo")
	wantText(t, p, "Changed the settings of upstream echo", "Added upstream hidden")
	wantText(t, b.get(at), "Trusted")
}

// A change that waits when the browser leaves is carried out and written down, or neither.
func TestAChangeIsNotCutOff(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.PrivateURL(t), false)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	agent, _ := storetest.Agent(t, s.db, owner, "hermes")
	locked, blocked, unlock := make(chan struct{}), make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- s.db.As(t.Context(), owner, func(tx *store.Tx) error {
			if _, err := tx.RenewAgentToken(t.Context(), agent.ID); err != nil {
				return err
			}
			close(locked)
			<-unlock
			return nil
		})
	}()
	<-locked
	go func() {
		defer close(blocked)
		for storetest.Tamper(t, s.dsn, `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		}
	}()
	path, over := "/agents/"+agent.ID.String()+"/revoke", make(chan struct{})
	s.over.Store(path, over)
	b.leave(blocked, path)
	<-over // it is seen there that the browser left
	close(unlock)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	b.shows("Revoked agent hermes")
}

// secretAt is the path of the question about the one secret there is.
func secretAt(t *testing.T, b *browser) string {
	t.Helper()
	_, rest, found := strings.Cut(b.get("/upstreams").body, `href="/secrets/`)
	id, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatal("the page leads to no secret")
	}
	return "/secrets/" + id
}

// A form that is refused keeps what was typed and says what is wrong beside it, but draws no value that may be a secret.
func TestAnUpstreamFormThatIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	for name, c := range map[string]struct {
		form []string
		want []string
	}{
		"name":                  {[]string{"name", "Not Kebab", "url", "https://a.example/mcp"}, []string{`id="name-error"`, "is not in kebab case", `value="Not Kebab"`, `value="https://a.example/mcp"`}},
		"no name":               {[]string{"url", "https://a.example/mcp"}, []string{`id="name-error"`, "Name is missing"}},
		"address":               {[]string{"name", "a", "url", "ftp://a.example"}, []string{`id="url-error"`, `value="ftp://a.example"`}},
		"secret in the address": {[]string{"name", "a", "url", "https://a.example/${KEY}"}, []string{`id="url-error"`, "Send it in a header."}},
		"header": {
			[]string{"name", "a", "url", "https://a.example/mcp", "header_1", "X-Good", "secret_header_1", "${GOOD_ONE}", "header_2", "mcp-session-id", "secret_header_2", canary},
			[]string{`id="header_2-error"`, "a header of the protocol itself", `value="${GOOD_ONE}"`},
		},
		"header that names no secret": {
			[]string{"name", "a", "url", "https://a.example/mcp", "header_1", "X-Key", "secret_header_1", canary + " ${not a name}"},
			[]string{`id="header_1-error"`, "names no secret"},
		},
		"tool": {[]string{"name", "a", "url", "https://a.example/mcp", "exclude", strings.Repeat("x", 300)}, []string{`id="exclude-error"`}},
		"more": {[]string{"more", "headers", "name", "a", "header_1", "X-Key", "secret_header_1", canary}, []string{`name="header_3"`, `value="X-Key"`, `value="a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := b.post("/upstreams", c.form...)
			if want := name == "more"; want != (p.status == http.StatusOK) {
				t.Errorf("status = %d", p.status)
			}
			wantText(t, p, c.want...)
			wantNoText(t, p, canary)
		})
	}
	for name, c := range map[string][]string{
		"name":  {"name", "lower", "secret", canary},
		"value": {"name", "EMPTY", "secret", " \n"},
	} {
		p := b.post("/secrets", c...)
		wantStatus(t, p, http.StatusUnprocessableEntity)
		wantText(t, p, "-error", `value="`+c[1]+`"`)
		wantNoText(t, p, canary)
		if name == "value" {
			wantText(t, p, "The secret is empty.")
		}
	}
}

func TestWhoMayChangeUpstreams(t *testing.T) {
	t.Parallel()
	s := start(t)
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	wantRedirect(t, b.post("/secrets", "name", "KEY", "secret", canary), "/upstreams")
	at := added(t, b.post("/upstreams", "name", "echo", "url", srv.URL))
	secret := secretAt(t, b)
	for _, c := range []struct {
		who            store.Caller
		read, question int
	}{
		{storetest.Member(t, s.db, owner, store.RoleAdmin), http.StatusOK, http.StatusOK},
		{storetest.Member(t, s.db, owner, store.RoleMember), http.StatusOK, http.StatusForbidden},
		{storetest.Member(t, s.db, owner, store.RoleAuditor), http.StatusOK, http.StatusForbidden},
		{storetest.Organisation(t, s.db), http.StatusNotFound, http.StatusNotFound},
	} {
		t.Run(string(c.who.Role), func(t *testing.T) {
			b := s.signedIn(t, c.who)
			list := b.get("/upstreams")
			wantStatus(t, list, http.StatusOK)
			if sees := strings.Contains(list.body, at) && strings.Contains(list.body, "KEY"); sees != (c.read == http.StatusOK) {
				t.Errorf("the list shows the upstream and the secret: %v, want %v", sees, c.read == http.StatusOK)
			}
			for path, want := range map[string]int{at: c.read, at + "/change": c.question, at + "/remove": c.question, secret: c.question} {
				if c.who.Org != owner.Org {
					want = http.StatusNotFound
				}
				if got := b.get(path).status; got != want {
					t.Errorf("GET %s = %d, want %d", path, got, want)
				}
			}
			if c.question != http.StatusForbidden {
				return
			}
			wantNoText(t, list, "/upstreams/new", "<form method=\"post\" action=\"/secrets\"", "/remove")
			wantNoText(t, b.get(at), `action="`+at, at+"/change", at+"/remove")
			wantStatus(t, b.get("/upstreams/new"), http.StatusForbidden)
			for _, path := range []string{"/upstreams", "/secrets", at + "/test", at + "/settings", at + "/headers", at + "/remove", secret} {
				if got := b.post(path, "name", "mine", "url", srv.URL, "secret", "x").status; got != http.StatusForbidden && (path != "/secrets" || got != http.StatusUnprocessableEntity) {
					t.Errorf("POST %s = %d, want 403", path, got)
				}
			}
			if got := b.post("/secrets", "name", "MINE", "secret", "x").status; got != http.StatusForbidden {
				t.Errorf("POST /secrets = %d, want 403", got)
			}
		})
	}
	wantText(t, b.get(at), "healthy")
}
