package upstream

import (
	"net/netip"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// A session whose opening ends just when the pool closes is nobody's to end but its opener's.
func TestASessionOpenedTooLateEnds(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	client, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	hosts, err := hostsOf(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	target := &target{Upstream: store.Upstream{Name: "demo"}, dial: Dial{URL: srv.URL, Hosts: hosts, Client: client, ConnectTimeout: 10 * time.Second}}
	p := newPool(Config{})
	defer p.stop()
	l := newLine(store.Caller{}, target)
	m := &member{target: target, line: l, ready: make(chan struct{})}
	m.ctx, m.end = p.ctx, p.stop
	p.closed = true // after the opening began, and before it has ended
	m.dropped = true
	p.open(m)
	if n := srv.Sessions(); n != 0 || len(srv.Requests("initialize")) != 1 {
		t.Errorf("%d sessions are left of %d opened, want none of one", n, len(srv.Requests("initialize")))
	}
}
