package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/mcp"
	"github.com/getgraft/graft/server"
)

// Options change what Start starts. The zero value is two replicas on the package's database.
type Options struct {
	// Private gives the kit a database of its own, without any user.
	Private bool
	// Replicas is how many gateways run; 0 is 2.
	Replicas int
	// Configure changes the configuration before the replicas start. Until then upstreams may be on loopback.
	Configure func(*server.Config)
	// SignOn starts a provider where people may sign in, which leads them back to redirect; nil is none.
	SignOn func(redirect string) SignOn
	// Documents are what the operator gives of apps, by their URL.
	Documents map[string]string
	// Origin is the deployment's, where it stands behind a proxy of the test's own; "" is the kit's proxy.
	Origin string
	// Sources are more sources of tools.
	Sources []catalog.Source
	// Offer is what the gateway serves beside tools.
	Offer mcp.Offer
	// DirectURL is where the bus connects; "" is DSN. Tests put a line in between that they can cut.
	DirectURL func(dsn string) string
	// URL is where a replica's connections go; "" is DSN. Tests put a line in between that they can cut.
	URL func(dsn string) string
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// NoLog keeps nothing of what the replicas log, for measuring memory.
	NoLog bool
	// KeepAlive is the pause between comments on idle streams; 0 is the gateway's own.
	KeepAlive time.Duration
	// BodyTime is how long a request's body may take; 0 is the gateway's own.
	BodyTime time.Duration
}

// SignOn is what the gateway is told of a provider.
type SignOn = server.SignOn

// A Kit is a running gateway.
type Kit struct {
	// URL is the proxy's: the deployment's origin.
	URL string
	// DB is a handle to the gateway's database, for looking and for making things up front.
	DB *store.DB
	// DSN is where that database is.
	DSN string
	// Owner owns a fresh organisation in it; zero with Options.Private.
	Owner store.Caller
	// Log is everything the replicas logged.
	Log *Log

	t        testing.TB
	opts     Options
	config   server.Config
	master   *vault.MasterKeys
	proxy    *proxy
	mu       sync.Mutex
	replicas []*Replica
}

// A Replica is one gateway of a Kit.
type Replica struct {
	URL  string // its own address, past the proxy
	stop context.CancelFunc
	done chan error
	db   *store.DB
}

// Start starts a gateway that ends with the test.
func Start(t testing.TB, opts Options) *Kit {
	t.Helper()
	if opts.Replicas == 0 {
		opts.Replicas = 2
	}
	k := &Kit{t: t, opts: opts, Log: &Log{}, DSN: dsn(t, opts)}
	k.DB = storetest.Open(t, k.DSN, opts.Now)
	if !opts.Private {
		k.Owner = storetest.Organisation(t, k.DB)
	}
	var err error
	if k.master, err = vault.ParseMasterKeys(vault.GenerateMasterKey()); err != nil {
		t.Fatal(err)
	}
	if !opts.Private {
		k.master = sharedMaster()
	}
	k.proxy = startProxy(t)
	k.URL = k.proxy.url
	k.config = server.Config{
		Database: server.Database{DatabaseConns: 6, MasterKey: "given", Log: "text"},
		Address:  server.Address{Listen: "127.0.0.1:0", Origin: k.URL}, Egress: server.Egress{EgressAllow: []string{"127.0.0.0/8"}}, RateMCP: "off", RateSignIn: "off", RateAPI: "off", RateOAuth: "off", RateRegister: "off",
	}
	if opts.Origin != "" {
		k.config.Origin = opts.Origin
	}
	k.config.OAuthClients = documents(t, opts.Documents)
	if opts.SignOn != nil {
		k.config.SignOn = opts.SignOn(k.config.Origin + server.SignOnPath)
	}
	if opts.Configure != nil {
		opts.Configure(&k.config)
	}
	t.Cleanup(func() { k.StopAll() })
	k.StartAll()
	return k
}

// documents is the file that an operator would give them in.
func documents(t testing.TB, byURL map[string]string) string {
	t.Helper()
	if len(byURL) == 0 {
		return ""
	}
	raw := map[string]json.RawMessage{}
	for at, text := range byURL {
		raw[at] = json.RawMessage(text)
	}
	file := filepath.Join(t.TempDir(), "clients.json")
	text, err := json.Marshal(raw)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func dsn(t testing.TB, opts Options) string {
	if opts.Private {
		return storetest.PrivateURL(t)
	}
	return storetest.URL(t)
}

// sharedMaster is the master key of the package's database, which all its kits share.
var sharedMaster = sync.OnceValue(func() *vault.MasterKeys {
	m, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		panic(err) // a key we just generated
	}
	return m
})

// StartAll starts the replicas that are missing.
func (k *Kit) StartAll() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.replicas) < k.opts.Replicas {
		k.replicas = append(k.replicas, k.start())
	}
	k.proxy.set(k.replicas)
}

func (k *Kit) logger() *slog.Logger {
	if k.opts.NoLog {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(k.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (k *Kit) direct() string {
	if k.opts.DirectURL != nil {
		return k.opts.DirectURL(k.DSN)
	}
	return k.DSN
}

func (k *Kit) url() string {
	if k.opts.URL != nil {
		return k.opts.URL(k.DSN)
	}
	return k.DSN
}

func (k *Kit) start() *Replica {
	k.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	db, err := store.Open(ctx, store.Config{URL: k.url(), MaxConns: k.config.DatabaseConns, Now: k.opts.Now})
	if err != nil {
		k.t.Fatal(err)
	}
	s, err := server.New(ctx, k.config, server.Deps{
		DB: db, DirectURL: k.direct(), Offer: k.opts.Offer, Master: k.master, Version: "test", Sources: k.opts.Sources,
		Now: k.opts.Now, KeepAlive: k.opts.KeepAlive, BodyTime: k.opts.BodyTime,
		Log: k.logger(),
	})
	if err != nil {
		k.t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		k.t.Fatal(err)
	}
	r := &Replica{URL: "http://" + l.Addr().String(), stop: stop, done: make(chan error, 1), db: db}
	go func() {
		r.done <- s.Serve(ctx, l, nil)
		db.Close()
	}()
	return r
}

// Upstream adds an upstream to the owner's organisation, and lists it.
func (k *Kit) Upstream(t testing.TB, in upstream.Addition) store.Upstream {
	t.Helper()
	keys, err := server.OpenKeyring(k.DB, k.master)
	if err != nil {
		t.Fatal(err)
	}
	client, err := k.config.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	source, err := upstream.NewSource(upstream.Config{DB: k.DB, Keys: keys, Client: client, Version: "test", Log: k.logger()})
	if err != nil {
		t.Fatal(err)
	}
	u, err := source.Add(t.Context(), k.Owner, in)
	if err == nil {
		u, err = source.Try(t.Context(), k.Owner, u.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Connections is a desk on the kit's database, for what a person does with connections. Its requests go where the kit's do.
func (k *Kit) Connections(t testing.TB) *connect.Desk {
	t.Helper()
	keys, err := server.OpenKeyring(k.DB, k.master)
	if err != nil {
		t.Fatal(err)
	}
	client, err := k.config.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d, err := connect.NewDesk(connect.Config{
		DB: k.DB, Keys: keys, Egress: client, Link: approval.NewDesk(k.DB, keys, k.URL).Link, Healthy: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// StopAll stops every replica the way SIGTERM does, and waits.
func (k *Kit) StopAll() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.proxy.set(nil)
	for _, r := range k.replicas {
		r.stop()
	}
	for _, r := range k.replicas {
		if err := <-r.done; err != nil {
			k.t.Errorf("serve: %v", err)
		}
	}
	k.replicas = nil
}

// Restart stops every replica and starts new ones at the same address.
func (k *Kit) Restart() {
	k.t.Helper()
	k.StopAll()
	k.StartAll()
}

// Replicas are the running gateways, for tests that choose one.
func (k *Kit) Replicas() []*Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*Replica(nil), k.replicas...)
}

var agents atomic.Int64

// Agent makes an agent of the owner's and returns it with its token.
func (k *Kit) Agent(t testing.TB) (store.Agent, string) {
	t.Helper()
	return storetest.Agent(t, k.DB, k.Owner, "agent-"+time.Now().Format("150405")+"-"+strconv.FormatInt(agents.Add(1), 10))
}

// Log is what the replicas wrote, readable while they write.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is everything so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Warnings are the lines so far that say what went wrong.
func (l *Log) Warnings() string {
	var b strings.Builder
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A proxy sends each request to the next replica.
type proxy struct {
	url  string
	next atomic.Int64
	to   atomic.Pointer[[]*url.URL]
}

func startProxy(t testing.TB) *proxy {
	t.Helper()
	p := &proxy{}
	p.to.Store(&[]*url.URL{})
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := *p.to.Load()
			if len(to) == 0 {
				r.Out.URL = &url.URL{Scheme: "http", Host: "no-replica.invalid"}
				return
			}
			r.SetURL(to[p.next.Add(1)%int64(len(to))])
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: WithoutLoss(forward), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = front.Serve(l) // ends with Close
	}()
	t.Cleanup(func() {
		_ = front.Close()
		<-done
		forward.Transport.(*http.Transport).CloseIdleConnections()
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	p.url = "http://localhost:" + port
	return p
}

// WithoutLoss keeps a httputil.ReverseProxy from losing answers. By default net/http closes a request's body when its
// answer begins; the proxy's transport may just be looking whether that body has ended, and gives the connection up
// with the answer on it. Whoever proxies event streams in Go meets it.
func WithoutLoss(p *httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 has it anyway
		p.ServeHTTP(w, r)
	})
}

func (p *proxy) set(replicas []*Replica) {
	to := make([]*url.URL, 0, len(replicas))
	for _, r := range replicas {
		if u, err := url.Parse(r.URL); err == nil {
			to = append(to, u)
		}
	}
	p.to.Store(&to)
}

// SignIn signs c's user in with a one-time link, as a person would, and returns a browser without a screen: it keeps
// cookies and follows redirects.
func (k *Kit) SignIn(t testing.TB, c store.Caller) *http.Client {
	t.Helper()
	token, err := k.DB.System().NewSignInLink(t.Context(), c.User, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}}
	form := url.Values{"name": {"Ana"}, "password": {"correct horse battery"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/setup/"+token, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/" {
		t.Fatalf("sign in = %s at %s, want 200 at /", resp.Status, resp.Request.URL.Path)
	}
	return browser
}
