package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
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
	"github.com/getgraft/graft/internal/vault"
)

const canary = "CANARY-7f3a-sk"

// loopback is what tests exempt, as GRAFT_EGRESS_ALLOW would: one address, so that its neighbours stay forbidden.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func newClient(t testing.TB, cfg egress.Config) *egress.Client {
	t.Helper()
	c, err := egress.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// startVendor serves handler over TLS, and returns a client that trusts it and its address.
func startVendor(t testing.TB, limits egress.Limits, handler http.HandlerFunc) (*egress.Client, string) {
	t.Helper()
	srv := httptest.NewTLSServer(handler)
	t.Cleanup(srv.Close)
	return newClient(t, egress.Config{Allow: loopback, RootCAs: trust(srv), Limits: limits}), srv.URL
}

func trust(srv *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return pool
}

func hostsOf(t testing.TB, entries ...string) egress.Hosts {
	t.Helper()
	h, err := egress.ParseHosts(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get sends a GET to a path below base, pinned to base. A call that hangs ends after 20 s, as a timeout.
func get(t testing.TB, c *egress.Client, base, path string, in ...egress.Injection) (*egress.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Do(ctx, egress.Request{URL: base + path, Hosts: hostsOf(t, base), Inject: in})
}

func bearer(t testing.TB, secret string) egress.Injection {
	t.Helper()
	in, err := egress.Bearer(vault.NewSecret([]byte(secret)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func assertRefused(t testing.TB, what string, err error, want reason.Word) {
	t.Helper()
	var r *reason.Refusal
	if !errors.As(err, &r) || r.Word != want {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}

// dials watches the connections that calls make.
type dials struct {
	mu        sync.Mutex
	tried     []string // addresses the dialer took up
	connected []string // addresses that a connection was made to
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
			// Connecting may fail for many reasons; not having been refused by the policy is what counts.
			var op *net.OpError
			if err == nil || !errors.As(err, &op) || !strings.HasPrefix(op.Err.Error(), "egress: ") {
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

// countConnections listens on addr and counts who connects, saying nothing.
func countConnections(t testing.TB, addr string) (*atomic.Int32, net.Addr) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", addr)
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
	return &n, l.Addr()
}

// A zone answers for a name: what it holds at the nth time (from 1) that its A records are asked for. What is no address is
// the name that it is an alias of.
type zone func(n int) []string

func always(addrs ...string) zone { return func(int) []string { return addrs } }

// serveDNS runs a name server on loopback and returns a resolver that asks it. Other names do not exist.
func serveDNS(t testing.TB, zones map[string]zone) *net.Resolver {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
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
			if reply, ok := answer(buf[:n], zones, asked); ok {
				_, _ = conn.WriteTo(reply, from)
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

func answer(query []byte, zones map[string]zone, asked map[string]int) ([]byte, bool) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, false
	}
	q, err := p.Question()
	if err != nil {
		return nil, false
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	name := strings.TrimSuffix(q.Name.String(), ".")
	z, ok := zones[name]
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
	} else {
		reply.Answers = records(q, q.Name, z, zones, asked)
	}
	packed, err := reply.Pack()
	return packed, err == nil
}

// records are what a zone holds of the kind that q asks for, under the name owner.
func records(q dnsmessage.Question, owner dnsmessage.Name, z zone, zones map[string]zone, asked map[string]int) (all []dnsmessage.Resource) {
	name := strings.TrimSuffix(owner.String(), ".")
	if q.Type == dnsmessage.TypeA {
		asked[name]++
	}
	for _, a := range z(asked[name]) {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			alias := dnsmessage.MustNewName(a + ".")
			h := dnsmessage.ResourceHeader{Name: owner, Type: dnsmessage.TypeCNAME, Class: q.Class}
			all = append(all, dnsmessage.Resource{Header: h, Body: &dnsmessage.CNAMEResource{CNAME: alias}})
			all = append(all, records(q, alias, zones[a], zones, asked)...)
			continue
		}
		if r, ok := resource(q, addr); ok {
			r.Header.Name = owner
			all = append(all, r)
		}
	}
	return all
}

// resource is addr as an answer to q, if q asks for addresses of its kind. A mapped address is an AAAA record.
func resource(q dnsmessage.Question, addr netip.Addr) (dnsmessage.Resource, bool) {
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0}
	switch {
	case q.Type == dnsmessage.TypeA && addr.Is4():
		return dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: addr.As4()}}, true
	case q.Type == dnsmessage.TypeAAAA && addr.Is6():
		return dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}, true
	}
	return dnsmessage.Resource{}, false
}
