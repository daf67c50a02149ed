package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestUnexpectedErrorIsLoggedOnceAndItsTextWithheld(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	p := b.get("/broken")
	wantStatus(t, p, http.StatusInternalServerError)
	wantText(t, p, "Something went wrong", "Agents") // in the shell of who is signed in
	wantNoText(t, p, "s3cret")
	id := regexp.MustCompile(`request-\d+`).FindString(p.body)
	log := s.log.String()
	if strings.Count(log, "s3cret") != 1 || id == "" || !strings.Contains(log, "request_id="+id+"\n") {
		t.Errorf("log = %s\nwant the error once, under %q", log, id)
	}
}

func TestRefusalsAreNotLogged(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Member(t, s.db, storetest.Organisation(t, s.db), store.RoleAuditor))
	wantStatus(t, b.post("/agents", "name", "mine"), http.StatusForbidden)
	wantStatus(t, b.get("/nowhere"), http.StatusNotFound)
	wantStatus(t, b.get("/setup/x"), http.StatusGone)
	if log := s.log.String(); log != "" {
		t.Errorf("log = %s, want nothing", log)
	}
}

func TestPathThatLeadsNowhereKeepsTheShellOfWhoIsSignedIn(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	wantText(t, b.get("/nowhere"), "Sign out", "Not found")
	out := s.browser(t).get("/nowhere")
	wantStatus(t, out, http.StatusNotFound)
	wantNoText(t, out, "Sign out")
}

func TestFormsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	wantStatus(t, b.post("/agents", "name", strings.Repeat("a", 70<<10)), http.StatusRequestEntityTooLarge)
	wantStatus(t, b.post("/signin", "password", strings.Repeat("a", 70<<10)), http.StatusRequestEntityTooLarge)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/agents", strings.NewReader("name=%zz"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	wantStatus(t, b.do(r), http.StatusBadRequest)
}

func TestConfigThatIsNotComplete(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	keys := storetest.Keyring(t, db)
	good := console.Config{
		Refused: func(context.Context, reason.Word) {},
		DB:      db, Catalog: tools(t), Desk: approval.NewDesk(db, keys, "https://graft.example.org"), Connections: connections(t, db, keys), Consent: consent.NewDesk(consent.Config{DB: db}), Upstreams: upstreams(t, db, keys), Audit: writer(t, db), Origin: "https://graft.example.org", Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Streams: func(store.AgentID) int { return 0 }, LiveEvery: time.Second, RequestID: func(context.Context) string { return "" },
	}
	if _, err := console.New(good); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*console.Config){
		"no database":       func(c *console.Config) { c.DB = nil },
		"no catalogue":      func(c *console.Config) { c.Catalog = nil },
		"no desk":           func(c *console.Config) { c.Desk = nil },
		"no upstreams":      func(c *console.Config) { c.Upstreams = nil },
		"no consents":       func(c *console.Config) { c.Consent = nil },
		"no audit log":      func(c *console.Config) { c.Audit = nil },
		"no clock":          func(c *console.Config) { c.Now = nil },
		"no pause":          func(c *console.Config) { c.LiveEvery = 0 },
		"no origin":         func(c *console.Config) { c.Origin = "" },
		"origin with slash": func(c *console.Config) { c.Origin += "/" },
		"origin of a file":  func(c *console.Config) { c.Origin = "file://graft" },
	} {
		c := good
		spoil(&c)
		if _, err := console.New(c); err == nil {
			t.Errorf("%s: New() = nil error, want one", what)
		}
	}
}
