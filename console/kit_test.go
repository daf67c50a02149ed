package console_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/vault"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// goodPassword is one that every form takes.
const goodPassword = "seven green kettles sing"

// A house is the console as a browser meets it, on one database.
type house struct {
	db      *store.DB
	dsn     string
	url     string
	server  *httptest.Server
	clock   *clock
	handler *console.Handler
	log     *syncBuffer
	desk    *approval.Desk
	consent *consent.Desk
	audit   *audit.Writer
	keys    *vault.Keyring
	streams atomic.Int64 // that every agent has
	stop    chan struct{}
	gate    chan struct{} // a request to /slow waits for it once its session is loaded
	loaded  chan struct{} // and says here that it is
	over    sync.Map      // by path: closed once a request has ended, or its browser has left
}

// clock is now, moved, or what it was stopped at.
type clock struct {
	ahead atomic.Int64
	at    atomic.Pointer[time.Time]
}

func (c *clock) now() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(c.ahead.Load()))
}
func (c *clock) stop(at time.Time)       { c.at.Store(&at) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start serves the console on the package's database.
func start(t *testing.T) *house { return startOn(t, storetest.URL(t), false) }

// startOn serves the console on the database at dsn, under https if tls.
func startOn(t *testing.T, dsn string, tls bool) *house { return startAt(t, dsn, tls, "127.0.0.1") }

// startAt serves it at a host that is this machine: one that is a name has passkeys.
func startAt(t *testing.T, dsn string, tls bool, host string) *house {
	t.Helper()
	return startWith(t, dsn, tls, host, func(*console.Config) {})
}

// startWith serves it with a configuration that was changed.
func startWith(t *testing.T, dsn string, tls bool, host string, configure func(*console.Config)) *house {
	t.Helper()
	s := &house{dsn: dsn, clock: &clock{}, log: &syncBuffer{}, stop: make(chan struct{}), gate: make(chan struct{}), loaded: make(chan struct{})}
	// Ten past, so that no test meets the full hour, when live streams say everything again.
	s.clock.advance(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 10*time.Minute)))
	s.db = storetest.Open(t, dsn, s.clock.now)
	s.keys = storetest.Keyring(t, s.db)
	s.desk = approval.NewDesk(s.db, s.keys, "https://graft.example.org")
	s.audit = writer(t, s.db)
	up := upstreams(t, s.db, s.keys)
	s.consent = consent.NewDesk(consent.Config{DB: s.db, Prover: prover{}, Issuer: "https://graft.example.org", Now: s.clock.now})
	s.server = httptest.NewUnstartedServer(nil)
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	_, port, err := net.SplitHostPort(s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	origin := scheme + net.JoinHostPort(host, port)
	config := console.Config{
		Refused: func(context.Context, reason.Word) {},
		DB:      s.db, Catalog: tools(t, catalog.Builtins{}, up), Desk: s.desk, Connections: connections(t, s.db, s.keys), Consent: s.consent, Upstreams: up, Audit: s.audit, Origin: origin, Address: func(r *http.Request) string { return r.Header.Get("X-Test-Address") },
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Now: s.clock.now, LiveEvery: 20 * time.Millisecond, Stop: s.stop,
		Streams:   func(store.AgentID) int { return int(s.streams.Load()) },
		RequestID: func(ctx context.Context) string { id, _ := ctx.Value(requestID{}).(string); return id },
	}
	configure(&config)
	if s.handler, err = console.New(config); err != nil {
		t.Fatal(err)
	}
	s.server.Config.Handler = s.routes()
	if tls {
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	s.url = origin
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

type requestID struct{}

// routes mounts the screens as the server does.
func (s *house) routes() http.Handler {
	h := s.handler
	page := func(screen func(http.ResponseWriter, *http.Request) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := screen(w, r); err != nil {
				h.Fail(w, r, err)
			}
		})
	}
	in := func(screen func(http.ResponseWriter, *http.Request) error) http.Handler {
		return h.Session(h.Require(page(screen)))
	}
	act := func(screen func(http.ResponseWriter, *http.Request) error) http.Handler {
		return h.Session(h.Require(h.Whole(page(screen))))
	}
	anybody := func(screen func(http.ResponseWriter, *http.Request) error) http.Handler {
		return h.Session(page(screen))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /apps", in(h.Apps))
	mux.Handle("GET /agents/{id}/apps/{grant}/end", in(h.AppEndPage))
	mux.Handle("POST /agents/{id}/apps/{grant}/end", act(h.AppEnd))
	mux.Handle("GET /consent/{request}", in(h.Consent))
	mux.Handle("POST /consent/{request}", act(h.ConsentAnswer))
	for path, handler := range map[string]http.Handler{
		"GET /{$}":                              in(h.Home),
		"GET /agents":                           in(h.Agents),
		"GET /agents/new":                       in(h.AgentNew),
		"POST /agents":                          act(h.AgentCreate),
		"GET /agents/{id}":                      in(h.Agent),
		"GET /agents/{id}/revoke":               in(h.AgentRevokePage),
		"POST /agents/{id}/revoke":              act(h.AgentRevoke),
		"GET /agents/{id}/token":                in(h.AgentToken),
		"POST /agents/{id}/token":               act(h.AgentRenew),
		"POST /agents/{id}/promote":             act(h.AgentPromote),
		"POST /agents/{id}/demote":              act(h.AgentDemote),
		"GET /asks":                             in(h.Asks),
		"GET /asks/{id}":                        in(h.Ask),
		"POST /agents/{id}/answers":             act(h.AgentAskAgain),
		"POST /asks/{id}":                       act(h.AskAnswer),
		"GET /activity":                         in(h.Activity),
		"GET /activity/verify":                  in(h.ActivityVerify),
		"GET /activity/{id}":                    in(h.Run),
		"GET /upstreams":                        in(h.Upstreams),
		"POST /upstreams":                       act(h.UpstreamCreate),
		"GET /upstreams/new":                    in(h.UpstreamNew),
		"GET /upstreams/{id}":                   in(h.Upstream),
		"POST /upstreams/{id}/test":             act(h.UpstreamTest),
		"GET /upstreams/{id}/change":            in(h.UpstreamChangePage),
		"POST /upstreams/{id}/settings":         act(h.UpstreamSettings),
		"POST /upstreams/{id}/headers":          act(h.UpstreamHeaders),
		"GET /upstreams/{id}/remove":            in(h.UpstreamRemovePage),
		"POST /upstreams/{id}/remove":           act(h.UpstreamRemove),
		"POST /secrets":                         act(h.SecretSet),
		"GET /secrets/{id}/remove":              in(h.SecretRemovePage),
		"POST /secrets/{id}/remove":             act(h.SecretRemove),
		"GET /live/asks":                        in(h.LiveAsks),
		"GET /live/asks/{id}":                   in(h.LiveAsk),
		"GET /live/agents":                      in(h.LiveAgents),
		"GET /live/agents/{id}":                 in(h.LiveAgent),
		"GET /signin":                           anybody(h.SignInPage),
		"POST /signin":                          anybody(h.SignIn),
		"POST /signin/passkey":                  anybody(h.SignInOptions),
		"POST /signout":                         act(h.SignOut),
		"GET /confirm":                          in(h.ConfirmPage),
		"POST /confirm":                         act(h.Confirm),
		"POST /confirm/passkey":                 act(h.ConfirmOptions),
		"GET /settings":                         in(h.Settings),
		"POST /settings/name":                   act(h.SettingsName),
		"GET /settings/password":                in(h.SettingsPasswordPage),
		"POST /settings/password":               act(h.SettingsPassword),
		"POST /settings/passkeys":               act(h.PasskeyAdd),
		"GET /settings/passkeys/new":            in(h.PasskeyNew),
		"POST /settings/passkeys/options":       act(h.PasskeyOptions),
		"GET /settings/passkeys/{id}":           in(h.PasskeyRenamePage),
		"POST /settings/passkeys/{id}":          act(h.PasskeyRename),
		"GET /settings/passkeys/{id}/remove":    in(h.PasskeyRemovePage),
		"POST /settings/passkeys/{id}/remove":   act(h.PasskeyRemove),
		"GET /settings/sessions/end":            in(h.SessionsEndPage),
		"POST /settings/sessions/end":           act(h.SessionsEnd),
		"GET /settings/sessions/{id}/end":       in(h.SessionEndPage),
		"POST /settings/sessions/{id}/end":      act(h.SessionEnd),
		"POST /setup/{token}/passkey":           anybody(h.SetupOptions),
		"GET /setup/{token}":                    anybody(h.SetupPage),
		"POST /setup/{token}":                   anybody(h.Setup),
		"/":                                     anybody(h.NotFound),
		"GET /broken":                           in(func(http.ResponseWriter, *http.Request) error { return fmt.Errorf("the cat sat on %s", "s3cret") }),
		"GET /members":                          in(h.Members),
		"POST /members":                         act(h.Invite),
		"POST /invites/{id}/withdraw":           act(h.InviteWithdraw),
		"GET /members/{id}":                     in(h.Member),
		"POST /members/{id}/role":               act(h.MemberRole),
		"GET /members/{id}/remove":              in(h.MemberRemovePage),
		"POST /members/{id}/remove":             act(h.MemberRemove),
		"GET /invite/{token}":                   anybody(h.JoinPage),
		"POST /invite/{token}":                  anybody(h.Join),
		"POST /invite/{token}/oidc":             anybody(h.JoinSignOn),
		"POST /sign-in/oidc":                    anybody(h.SignOnBegin),
		"GET /sign-in/oidc/callback":            anybody(h.SignOnBack),
		"POST /confirm/oidc":                    act(h.ConfirmSignOn),
		"POST /settings/identities":             act(h.IdentityAdd),
		"GET /settings/identities/new":          in(h.IdentityNew),
		"GET /settings/identities/{id}":         in(h.IdentityRenamePage),
		"POST /settings/identities/{id}":        act(h.IdentityRename),
		"GET /settings/identities/{id}/remove":  in(h.IdentityRemovePage),
		"POST /settings/identities/{id}/remove": act(h.IdentityRemove),
		"GET /slow": h.Session(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.loaded <- struct{}{}
			<-s.gate
			h.Require(page(h.Home)).ServeHTTP(w, r)
		})),
	} {
		mux.Handle(path, handler)
	}
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if over, asked := s.over.Load(r.URL.Path); asked {
			context.AfterFunc(r.Context(), sync.OnceFunc(func() { close(over.(chan struct{})) }))
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		id := fmt.Sprintf("request-%d", n.Add(1))
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestID{}, id)))
	})
}

// A browser keeps cookies and follows nothing by itself.
type browser struct {
	t    *testing.T
	s    *house
	http *http.Client

	agent   string // its User-Agent, unless empty
	address string // where it comes from
}

func (s *house) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := *s.server.Client()
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{t: t, s: s, http: &c}
}

// A page is what a browser got.
type page struct {
	status int
	header http.Header
	body   string
}

func (p page) to() string { return p.header.Get("Location") }

// main is the start of what the page says, for a test's message.
func (p page) main() string {
	_, main, found := strings.Cut(p.body, "<main")
	if !found {
		main = p.body
	}
	return main[:min(len(main), 1500)]
}

func (b *browser) do(r *http.Request) page {
	b.t.Helper()
	if b.agent != "" {
		r.Header.Set("User-Agent", b.agent)
	}
	r.Header.Set("X-Test-Address", b.address)
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Header, string(body)}
}

func (b *browser) get(path string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.s.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

// post sends a form of names and values in turn.
func (b *browser) post(path string, form ...string) page {
	b.t.Helper()
	v := url.Values{}
	for i := 0; i < len(form); i += 2 {
		v.Add(form[i], form[i+1])
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.s.url+path, strings.NewReader(v.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

// leave sends a form and leaves when something has come from reached.
func (b *browser) leave(reached <-chan struct{}, path string, form ...string) {
	b.t.Helper()
	v := url.Values{}
	for i := 0; i < len(form); i += 2 {
		v.Add(form[i], form[i+1])
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.s.url+path, strings.NewReader(v.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	left := make(chan struct{})
	go func() {
		defer close(left)
		resp, err := b.http.Do(r)
		if err == nil {
			_ = resp.Body.Close()
			b.t.Errorf("POST %s = %d before the browser left", path, resp.StatusCode)
		}
	}()
	select {
	case <-reached:
	case <-left:
	}
	cancel()
	<-left
}

// cookie is the browser's session cookie, or "".
func (b *browser) cookie() string {
	u, _ := url.Parse(b.s.url)
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == "graft" || c.Name == "__Host-graft" {
			return c.Value
		}
	}
	return ""
}

// plant gives the browser a session cookie from elsewhere.
func (b *browser) plant(value string) {
	u, _ := url.Parse(b.s.url)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "graft", Value: value, Path: "/"}})
}

// signedIn is a browser that c signed in with, through a one-time link.
func (s *house) signedIn(t *testing.T, c store.Caller) *browser {
	t.Helper()
	b := s.browser(t)
	p := b.post(s.link(t, c), "name", "Somebody", "password", goodPassword)
	wantRedirect(t, p, "/")
	return b
}

// link is the path of a one-time link of c's.
func (s *house) link(t *testing.T, c store.Caller) string {
	t.Helper()
	token, err := s.db.System().NewSignInLink(t.Context(), c.User, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return "/setup/" + token
}

// email is c's address.
func (s *house) email(t *testing.T, c store.Caller) string {
	t.Helper()
	list, err := s.db.System().Memberships(t.Context(), c.User)
	if err != nil || len(list) == 0 {
		t.Fatalf("memberships of %s: %v, %v", c.User, list, err)
	}
	return list[0].Email
}

// as runs fn as c.
func (s *house) as(t *testing.T, c store.Caller, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.db.As(t.Context(), c, fn); err != nil {
		t.Fatal(err)
	}
}

// remove takes c's membership away and leaves what else ends with it, as a request finds it that was under way.
func (s *house) remove(t *testing.T, dsn string, c store.Caller) {
	t.Helper()
	b := c.User.Bytes()
	query(t, storetest.Superuser(t, dsn), fmt.Sprintf("UPDATE member SET removed_at = created_at WHERE user_id = '%x'", b))
}

func wantStatus(t *testing.T, p page, status int) {
	t.Helper()
	if p.status != status {
		t.Fatalf("status = %d, want %d; Location %q; body:\n%s", p.status, status, p.to(), p.main())
	}
}

func wantRedirect(t *testing.T, p page, to string) {
	t.Helper()
	wantStatus(t, p, http.StatusSeeOther)
	if p.to() != to {
		t.Fatalf("Location = %q, want %q", p.to(), to)
	}
}

func wantText(t *testing.T, p page, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("page lacks %q:\n%s", text, p.main())
		}
	}
}

func wantNoText(t *testing.T, p page, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			t.Errorf("page has %q:\n%s", text, p.main())
		}
	}
}

// query runs one statement over the cluster's socket and returns the first column. It speaks the simple protocol by
// hand, since drivers belong to the store: these tests only look from outside at what the product must not leave.
func query(t *testing.T, dsn, statement string) []string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", q.Get("host")+"/.s.PGSQL."+q.Get("port"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	user := q.Get("user")
	if u.User != nil {
		user = u.User.Username()
	}
	startup := binary.BigEndian.AppendUint32(nil, 3<<16)
	startup = append(startup, "user\x00"+user+"\x00database\x00"+strings.TrimPrefix(u.Path, "/")+"\x00\x00"...)
	send := func(kind string, body []byte) {
		msg := binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body)+4))
		if _, err := conn.Write(append(msg, body...)); err != nil {
			t.Fatal(err)
		}
	}
	send("", startup)
	readUntilReady(t, conn)
	send("Q", []byte(statement+"\x00"))
	return readUntilReady(t, conn)
}

func readUntilReady(t *testing.T, conn net.Conn) (rows []string) {
	t.Helper()
	for {
		var head [5]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		switch head[0] {
		case 'E':
			t.Fatalf("postgres: %q", body)
		case 'D': // columns, then of each its length, -1 for NULL, and its text
			if n := int32(binary.BigEndian.Uint32(body[2:])); n >= 0 {
				rows = append(rows, string(body[6:6+n]))
			}
		case 'Z':
			return rows
		}
	}
}

// tools is a catalogue that remembers nothing.
func tools(t *testing.T, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(func() bool { return false }, sources...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// upstreams is a source of upstreams, which may be on loopback.
func upstreams(t *testing.T, db *store.DB, keys *vault.Keyring) *upstream.Source {
	t.Helper()
	client, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := upstream.NewSource(upstream.Config{DB: db, Keys: keys, Client: client, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connections is a desk whose requests may go to this machine.
func connections(t *testing.T, db *store.DB, keys *vault.Keyring) *connect.Desk {
	t.Helper()
	client, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d, err := connect.NewDesk(connect.Config{
		DB: db, Keys: keys, Egress: client, Link: approval.NewDesk(db, keys, "https://graft.example.org").Link, Healthy: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// writer is an audit log that is written until the test ends.
func writer(t *testing.T, db *store.DB) *audit.Writer {
	t.Helper()
	w := audit.New(audit.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}
