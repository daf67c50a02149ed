package oauth_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/oauth"
)

// A clock is moved by hand.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	var c clock
	c.nanos.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	return &c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// A host serves clients' documents over TLS on 127.0.0.1.
type host struct {
	*httptest.Server
	asked atomic.Int32
}

func startHost(t testing.TB, handler http.HandlerFunc) *host {
	t.Helper()
	h := &host{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		handler(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) port() string { return fmt.Sprint(h.Listener.Addr().(*net.TCPAddr).Port) }

// document is a good one about a URL.
func document(url string, redirects ...string) string {
	if len(redirects) == 0 {
		redirects = []string{"http://localhost/callback"}
	}
	return fmt.Sprintf(`{"client_id": %q, "client_name": "App", "redirect_uris": ["%s"]}`, url, strings.Join(redirects, `", "`))
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body))
}

// ownDocument answers with a good document about whatever was asked for.
func ownDocument(w http.ResponseWriter, r *http.Request) {
	answer(w, document("https://"+r.Host+r.URL.RequestURI()))
}

// A desk is a Documents with all that tests move and look at. Loopback's one address is exempt, as by GRAFT_EGRESS_ALLOW.
type desk struct {
	*oauth.Documents
	db    *store.DB
	clock *clock
	log   *lines
}

func newDesk(t testing.TB, resolver *net.Resolver, hosts ...*host) *desk {
	t.Helper()
	d := &desk{clock: newClock(), log: &lines{}}
	d.db = storetest.Open(t, storetest.URL(t), d.clock.now)
	d.Documents = documents(t, oauth.DocumentsConfig{DB: d.db, Client: client(t, resolver, hosts...), Log: slog.New(slog.NewTextHandler(d.log, nil))})
	return d
}

func documents(t testing.TB, c oauth.DocumentsConfig) *oauth.Documents {
	t.Helper()
	d, err := oauth.NewDocuments(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func client(t testing.TB, resolver *net.Resolver, hosts ...*host) *egress.Client {
	t.Helper()
	pool := x509.NewCertPool()
	for _, h := range hosts {
		pool.AddCert(h.Certificate())
	}
	c, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, RootCAs: pool, Resolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// good asks for a client that has to be there, and returns where its answers may go.
func (d *desk) good(t testing.TB, url string) []string {
	t.Helper()
	c, err := d.Client(t.Context(), url)
	if err != nil || c.ID != url || c.Name != "App" {
		t.Fatalf("Client(%s) = %+v, %v, want it", url, c, err)
	}
	return c.RedirectURIs
}

// refused asks for a client that has to be refused with a word and a sentence that says something.
func (d *desk) refused(t testing.TB, ctx context.Context, url string, want reason.Word, says string) {
	t.Helper()
	c, err := d.Client(ctx, url)
	if r := (*reason.Refusal)(nil); !errors.As(err, &r) || r.Word != want || !strings.Contains(r.Message, says) {
		t.Errorf("Client(%s) = %+v, %v, want %s that says %q", url, c, err, want, says)
	}
}

// stored reports whether a document is kept.
func (d *desk) stored(t testing.TB, url string) bool {
	t.Helper()
	_, err := d.db.System().ClientDocument(t.Context(), url)
	if err != nil && !store.IsAbsent(err) {
		t.Fatal(err)
	}
	return err == nil
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// dials watches the connections that are made.
type dials struct {
	mu               sync.Mutex
	tried, connected []string
}

func (d *dials) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(_, addr string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.tried = append(d.tried, addr)
		},
		ConnectDone: func(_, addr string, err error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			var op *net.OpError
			if err == nil || !errors.As(err, &op) || !strings.HasPrefix(op.Err.Error(), "egress: ") { // not the policy's refusal
				d.connected = append(d.connected, addr)
			}
		},
	})
}

func (d *dials) get() (tried, connected []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tried, d.connected
}

// countConnections listens where nobody may connect to, and counts who does.
func countConnections(t testing.TB, addr string) *atomic.Int32 {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return &n
}

// serveDNS runs a name server and returns a resolver that asks it: addresses says what a name holds at the nth time,
// from 1, that its A records are asked for.
func serveDNS(t testing.TB, addresses func(name string, n int) []string) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked := map[string]int{}
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			name := strings.TrimSuffix(q.Name.String(), ".")
			if q.Type == dnsmessage.TypeA {
				asked[name]++
			}
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true}, Questions: m.Questions}
			for _, a := range addresses(name, asked[name]) {
				header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				switch addr := netip.MustParseAddr(a); {
				case q.Type == dnsmessage.TypeA && addr.Is4():
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
				case q.Type == dnsmessage.TypeAAAA && addr.Is6():
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
				}
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
