package console_test

import (
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

var (
	tokenIn = regexp.MustCompile(`grft_[A-Za-z0-9_-]{49}`)
	agentIn = regexp.MustCompile(`/agents/agt_[0-9a-z]{26}`)
)

func TestFirstRunFromWelcomeLinkToRevokedAgent(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.PrivateURL(t), false)
	b := s.browser(t)
	wantRedirect(t, b.get("/"), "/signin")
	wantText(t, b.get("/signin"), "Nobody has an account here yet")

	token, err := s.db.System().NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link := "/setup/" + token
	for range 2 { // looking uses nothing up
		p := b.get(link)
		wantStatus(t, p, http.StatusOK)
		wantText(t, p, "Set up Graft", `name="organisation"`, `name="email"`, `name="name"`, `name="password"`)
	}

	p := b.post(link, "name", "Ana", "email", "ana@", "organisation", "Northfield", "password", "short")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Nothing was made yet. Two answers need another look.", "Enter an email address", "This is 5 characters long. Use at least 12.",
		`value="Ana"`, `value="ana@"`, `value="Northfield"`)
	wantNoText(t, p, "short")

	p = b.post(link, "name", " Ana ", "email", "Ana@Northfield.example", "organisation", "Northfield", "password", goodPassword)
	wantRedirect(t, p, "/")
	p = b.get("/")
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Hello, Ana", "Northfield is ready. You are its owner.", "No agents yet", "ana@northfield.example", s.url+"/mcp")
	wantNoText(t, b.get("/"), "Northfield is ready")

	wantText(t, b.get("/agents/new"), `name="name"`)
	p = b.post("/agents", "name", "hermes-prod")
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "hermes-prod is made.", "Shown once", "Waiting for the first connection", "Claude Code", "Codex", "Cursor", "VS Code", "Hermes", "OpenClaw", s.url+"/mcp")
	first := tokenIn.FindString(p.body)
	agent, err := s.db.System().Bearer(t.Context(), store.HashToken(first))
	if err != nil {
		t.Fatalf("the token on the page does not work: %v", err)
	}
	at := "/agents/" + agent.Agent.String()
	wantText(t, b.get("/agents"), at, "hermes-prod")
	p = b.get(at)
	wantText(t, p, "hermes-prod", "Never used", "We keep only its fingerprint")
	wantNoText(t, p, "grft_", first)

	wantText(t, b.get(at+"/token"), "Make a new token for hermes-prod?")
	p = b.post(at + "/token")
	wantStatus(t, p, http.StatusOK)
	second := tokenIn.FindString(p.body)
	if second == "" || second == first {
		t.Errorf("new token = %q, want another than %q", second, first)
	}
	if _, err := s.db.System().Bearer(t.Context(), store.HashToken(first)); !store.IsAbsent(err) {
		t.Errorf("the old token after a new one: %v, want not found", err)
	}

	wantText(t, b.get(at+"/revoke"), "Revoke hermes-prod?", "1 static token")
	wantRedirect(t, b.post(at+"/revoke"), "/agents")
	p = b.get("/agents")
	wantText(t, p, "hermes-prod is revoked.", "Revoked")
	if _, err := s.db.System().Bearer(t.Context(), store.HashToken(second)); !store.IsAbsent(err) {
		t.Errorf("the token of a revoked agent: %v, want not found", err)
	}
	wantText(t, b.get(at), "hermes-prod is revoked.")
	wantRedirect(t, b.get(at+"/revoke"), at)
	wantRedirect(t, b.get(at+"/token"), at)
	wantRedirect(t, b.post(at+"/token"), at)

	wantRedirect(t, b.post("/signout"), "/signin")
	wantRedirect(t, b.get("/agents?q=a"), "/signin?next=%2Fagents%3Fq%3Da")
	for _, p := range []page{b.get(link), b.post(link, "name", "Eve", "email", "eve@example.com", "organisation", "Mine", "password", goodPassword)} {
		wantStatus(t, p, http.StatusGone)
		wantText(t, p, "This link has ended")
	}
	wantText(t, b.get("/signin?next=/agents"), `name="next" value="/agents"`, "Northfield")
	wantRedirect(t, b.post("/signin", "email", " ANA@northfield.example", "password", goodPassword, "next", "/agents"), "/agents")
	wantStatus(t, b.get("/agents"), http.StatusOK)
	wantRedirect(t, b.get("/signin?next=/agents"), "/agents")
}

func TestOfTwoBrowsersOnOneWelcomeLinkOneWins(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.PrivateURL(t), false)
	token, err := s.db.System().NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	browsers := []*browser{s.browser(t), s.browser(t)}
	pages := make([]page, len(browsers))
	var wg sync.WaitGroup
	for i, b := range browsers {
		wg.Go(func() {
			name := []string{"ana", "eve"}[i]
			pages[i] = b.post("/setup/"+token, "name", name, "email", name+"@example.com", "organisation", name+" & co", "password", goodPassword)
		})
	}
	wg.Wait()
	got := map[int]int{}
	for i, p := range pages {
		got[p.status]++
		home := browsers[i].get("/")
		if in := home.status == http.StatusOK; in != (p.status == http.StatusSeeOther) {
			t.Errorf("browser %d: setup %d, home %d", i, p.status, home.status)
		}
	}
	if got[http.StatusSeeOther] != 1 || got[http.StatusGone] != 1 {
		t.Errorf("statuses = %v, want one 303 and one 410", got)
	}
	if _, err := s.db.System().OrganisationByName(t.Context(), ""); err != nil {
		t.Errorf("the only organisation: %v", err)
	}
}

func TestOneTimeLinkEndsWithItsTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	link, b := s.link(t, owner), s.browser(t)
	p := b.get(link)
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Set a password", s.email(t, owner), "readonly")
	wantNoText(t, p, `name="organisation"`)
	s.clock.advance(time.Hour)
	wantStatus(t, b.get(link), http.StatusGone)
	wantStatus(t, b.post(link, "name", "Ana", "password", goodPassword), http.StatusGone)
	wantStatus(t, b.get("/setup/anything"), http.StatusGone)
	wantRedirect(t, b.get("/"), "/signin")
}

func TestSignInLinkIgnoresAddressAndOrganisationOfTheForm(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b, email := s.browser(t), s.email(t, owner)
	wantRedirect(t, b.post(s.link(t, owner), "name", "Ana", "email", "eve@example.com", "organisation", "Mine", "password", goodPassword), "/")
	wantText(t, b.get("/"), email, "Your password is set.")
	// A name that is known is not asked for again, nor taken.
	link := s.link(t, owner)
	wantNoText(t, b.get(link), `name="name"`)
	wantRedirect(t, b.post(link, "name", "Eve", "password", goodPassword), "/")
	wantText(t, b.get("/"), "Hello, Ana")
}

func TestNewPasswordEndsEveryOtherSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	old := s.signedIn(t, owner)
	wantStatus(t, old.get("/"), http.StatusOK)
	s.signedIn(t, owner)
	wantRedirect(t, old.get("/"), "/signin")
}

func TestTokenIsOnOnePageAndNowhereInTheDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	s := startOn(t, dsn, false)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	created := b.post("/agents", "name", "hermes")
	at := agentIn.FindString(created.body)
	renewed := b.post(at + "/token")
	b.get("/")
	super := storetest.Superuser(t, dsn)
	tables := query(t, super, `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`)
	if len(tables) < 8 {
		t.Fatalf("tables = %q, want all of them", tables)
	}
	for _, p := range []page{created, renewed} {
		if c := p.header.Get("Cache-Control"); c != "no-store" {
			t.Errorf("Cache-Control of a page with a token = %q, want no-store", c)
		}
		token := tokenIn.FindString(p.body)
		if token == "" {
			t.Fatal("no token on the page")
		}
		secret := token[len("grft_") : len(token)-6]
		for _, table := range tables {
			// As text, and within bytes, which a row shows in hexadecimal.
			for _, row := range query(t, super, "SELECT r::text FROM "+table+" r") {
				if strings.Contains(row, secret) || strings.Contains(row, hex.EncodeToString([]byte(secret))) {
					t.Errorf("%s holds the token: %s", table, row)
				}
			}
		}
	}
	// The search sees what is there: the person's id within the session's bytes.
	rows := query(t, super, "SELECT r::text FROM web_session r")
	if len(rows) != 1 || !strings.Contains(rows[0], hex.EncodeToString([]byte("usr_"))) {
		t.Errorf("web_session rows = %q, want one with a user's id", rows)
	}
}

func TestFormsSentTwiceDoNoHarm(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	pages := make([]page, 2)
	var wg sync.WaitGroup
	for i := range pages {
		wg.Go(func() { pages[i] = b.post("/agents", "name", "Hermes") })
	}
	wg.Wait()
	made, refused := pages[0], pages[1]
	if made.status != http.StatusOK {
		made, refused = refused, made
	}
	wantStatus(t, made, http.StatusOK)
	wantStatus(t, refused, reason.NameTaken.Status())
	wantText(t, refused, `value="Hermes"`, `aria-invalid="true"`, "is called &#34;Hermes&#34; already", `id="new-agent"`)
	wantNoText(t, refused, "grft_")

	at := agentIn.FindString(made.body)
	for i := range pages {
		wg.Go(func() { pages[i] = b.post(at + "/revoke") })
	}
	wg.Wait()
	for _, p := range pages {
		wantRedirect(t, p, "/agents")
	}
	wantRedirect(t, b.post(at+"/revoke"), "/agents")

	wantStatus(t, b.post("/agents", "name", "Hermes"), http.StatusOK) // the name is free again
	p := b.post("/agents", "name", "<b>")
	wantStatus(t, p, reason.InputInvalid.Status())
	wantText(t, p, `value="&lt;b&gt;"`, "Use 1 to 64 letters")
}
