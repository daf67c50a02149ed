package oauth

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
)

const testOrigin = "https://graft.test"

// configOf is all that a Server needs, on db. What it logs goes to log.
func configOf(t testing.TB, db *store.DB, log io.Writer) Config {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	out, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	logger := slog.New(slog.NewTextHandler(log, nil))
	documents, err := NewDocuments(DocumentsConfig{DB: db, Client: out, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	return Config{DB: db, Origin: testOrigin, Keys: signing.New(db, master).Tokens(db.Now), Documents: documents, Audit: audit.New(audit.Config{DB: db}), Log: logger}
}

// newServer is a Server on db.
func newServer(t testing.TB, db *store.DB) *Server {
	t.Helper()
	s, err := New(configOf(t, db, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An answer is what a client reads.
type answer struct {
	status int
	header http.Header
	length int64 // as the header has it
	body   string
}

// ask sends one request to a handler over a connection, as a client does.
func ask(t testing.TB, h http.HandlerFunc, method, path string, header map[string]string, body string) answer {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.ContentLength, string(b)}
}

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(b))
	return len(b), nil
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "")
}

func TestNewTakesAnOriginAlone(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	c := configOf(t, db, io.Discard)
	for _, origin := range []string{"https://graft.test", "https://graft.test:8443", "http://localhost:8080", "http://[::1]:8080"} {
		c.Origin = origin
		if _, err := New(c); err != nil {
			t.Errorf("New with %q = %v, want nil", origin, err)
		}
	}
	// Whatever of these was the issuer, some client would compare it with another spelling.
	for _, origin := range []string{"", "graft.test", "https://graft.test/", "https://graft.test/mcp", "https://GRAFT.test", "HTTPS://graft.test", "https://graft.test:443", "http://graft.test:80", "https://graft.test?a", "https://graft.test#a"} {
		c.Origin = origin
		if _, err := New(c); err == nil {
			t.Errorf("New with %q = nil, want an error", origin)
		}
	}
	c.Origin = testOrigin
	for name, without := range map[string]func(*Config){
		"a database": func(c *Config) { c.DB = nil }, "keys": func(c *Config) { c.Keys = nil }, "documents": func(c *Config) { c.Documents = nil },
		"an audit log": func(c *Config) { c.Audit = nil },
	} {
		c := c
		without(&c)
		if _, err := New(c); err == nil {
			t.Errorf("New without %s = nil, want an error", name)
		}
	}
}

// While the database is away every endpoint says so, and blames nobody's client.
func TestAnOutageBlamesNobody(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	var log lines
	s, err := New(configOf(t, storetest.Open(t, dsn, nil), &log))
	if err != nil {
		t.Fatal(err)
	}
	restore := storetest.Outage(t, dsn)
	defer restore()
	id := store.NewID[store.ClientKind](s.c.Now()).String()
	for name, h := range map[string]http.HandlerFunc{
		"register": s.Register,
		"authenticate": func(w http.ResponseWriter, r *http.Request) {
			_, err := s.authenticate(r, map[string][]string{"client_id": {id}})
			s.fail(w, r, err)
		},
		"keys": s.Keys(func(ctx context.Context) ([]PublicKey, error) { return nil, s.c.DB.Ping(ctx) }),
	} {
		method := http.MethodPost
		if name == "keys" {
			method = http.MethodGet
		}
		got := ask(t, h, method, "/", map[string]string{"Content-Type": "application/json"}, `{"redirect_uris":["http://localhost/cb"]}`)
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"error":"temporarily_unavailable"`) || got.header.Get("Retry-After") == "" ||
			got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s while the database is away is answered %d %s %v", name, got.status, got.body, got.header)
		}
	}
	if got := log.text(); strings.Count(got, "database unavailable") != 3 || strings.Contains(got, "level=ERROR") {
		t.Errorf("log = %s, want three warnings", got)
	}
}
