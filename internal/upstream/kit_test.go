package upstream_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
	"github.com/getgraft/graft/internal/vault"
)

// patience is how long a test waits for what should come at once.
const patience = time.Minute

func newClient(t testing.TB) *egress.Client {
	t.Helper()
	c, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func dialTo(t testing.TB, url string) upstream.Dial {
	t.Helper()
	base := url
	if i := len(url) - len("/mcp"); i > 0 && url[i:] == "/mcp" {
		base = url[:i]
	}
	hosts, err := egress.ParseHosts(base)
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Dial{URL: url, Hosts: hosts, Client: newClient(t), Version: "1.2.3", ConnectTimeout: patience}
}

func tryOpen(t testing.TB, d upstream.Dial) (*upstream.Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := upstream.Open(ctx, d)
	if err == nil {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return s, err
}

func openTo(t testing.TB, d upstream.Dial) *upstream.Session {
	t.Helper()
	s, err := tryOpen(t, d)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func open(t testing.TB, srv *upstreamtest.Server) *upstream.Session {
	t.Helper()
	return openTo(t, dialTo(t, srv.URL))
}

// call calls a tool with nobody listening.
func call(t testing.TB, s *upstream.Session, tool, args string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := s.Call(ctx, tool, jsontext.Value(args), nil, nil)
	return string(result), err
}

func mustCall(t testing.TB, s *upstream.Session, tool, args string) string {
	t.Helper()
	result, err := call(t, s, tool, args)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return result
}

func assertRefused(t testing.TB, what string, err error, want reason.Word) {
	t.Helper()
	var r *reason.Refusal
	if !errors.As(err, &r) || r.Word != want {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}

func bearer(t testing.TB, token string) egress.Injection {
	t.Helper()
	in, err := egress.Bearer(vault.NewSecret([]byte(token)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// heard keeps what a call's relay passed on.
type heard struct {
	mu       sync.Mutex
	progress []catalog.Progress
	logs     []string
}

func (h *heard) onProgress(p catalog.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, p)
}

func (h *heard) onLog(level, logger string, data jsontext.Value) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, level+" "+logger+" "+string(data))
}

func (h *heard) all() ([]catalog.Progress, []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]catalog.Progress(nil), h.progress...), append([]string(nil), h.logs...)
}

// eventually waits until ok, for what happens on the other side only after a moment.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
