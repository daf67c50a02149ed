package main_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store/storetest"
)

// A fleet is real processes on one database, behind a plain load balancer.
type fleet struct {
	t       *testing.T
	origin  string
	env     []string
	next    atomic.Int64
	mu      sync.Mutex
	live    []*url.URL
	started []*serving
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	h := newHome(t)
	f := &fleet{t: t}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{ReadHeaderTimeout: time.Second, Handler: &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(f.choose())
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = front.Serve(l) // ends with Close
	}()
	t.Cleanup(func() {
		_ = front.Close()
		<-done
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f.origin = "http://localhost:" + port
	f.env = []string{
		"GRAFT_DATABASE_URL=" + storetest.EmptyURL(t), "GRAFT_MASTER_KEY=" + strings.TrimSpace(h.ok("key", "new")),
		"GRAFT_ORIGIN=" + f.origin, "GRAFT_RATE_MCP=off", "GRAFT_DATABASE_CONNS=8",
	}
	f.run("migrate")
	f.run("user", "add", "--email", "ana@example.com")
	return f
}

func (f *fleet) run(args ...string) string {
	f.t.Helper()
	return newHome(f.t).ok(append(append([]string{}, f.env...), args...)...)
}

// add starts one more gateway and lets the balancer use it once it is ready.
func (f *fleet) add() *serving {
	f.t.Helper()
	h := newHome(f.t)
	s := h.serve(f.env...)
	u := &url.URL{Scheme: "http", Host: h.listen}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = append(f.live, u)
	f.started = append(f.started, s)
	s.at = u
	return s
}

// drop takes a gateway out of the balancer.
func (f *fleet) drop(s *serving) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []*url.URL
	for _, u := range f.live {
		if u != s.at {
			rest = append(rest, u)
		}
	}
	f.live = rest
}

func (f *fleet) choose() *url.URL {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.live) == 0 {
		return &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	}
	return f.live[f.next.Add(1)%int64(len(f.live))]
}

// An agentClient is one session of one agent.
type agentClient struct{ url, token, session string }

func (f *fleet) connect(ctx context.Context, token string) (*agentClient, error) {
	c := &agentClient{url: f.origin + "/mcp", token: token}
	resp, err := c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	c.session = resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || c.session == "" {
		return nil, fmt.Errorf("initialize: %s", resp.Status)
	}
	return c, nil
}

func (c *agentClient) post(ctx context.Context, body string) (*http.Response, error) {
	return c.do(ctx, http.MethodPost, strings.NewReader(body))
}

func (c *agentClient) do(ctx context.Context, method string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, body)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return fleetClient.Do(req)
}

var fleetClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// call sends a value through a tool and reports whether the same came back.
func (c *agentClient) call(ctx context.Context, value string) error {
	resp, err := c.post(ctx, `{"jsonrpc":"2.0","id":"`+value+`","method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":"`+value+`"}}}`)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(b), `"id":"`+value+`"`) || !strings.Contains(string(b), `\"`+value+`\"`) {
		return fmt.Errorf("call %s: %s %s", value, resp.Status, b)
	}
	return nil
}

// A replica that is killed with 200 streams open takes nothing with it: every client goes on at the other with its
// session id, and none gets another's answer.
func TestKilledReplicaWithOpenStreams(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.add()
	victim := f.add()
	const clients = 200
	var tokens []string
	for i := range 4 {
		tokens = append(tokens, strings.TrimSpace(f.run("agent", "add", "--name", fmt.Sprintf("agent-%d", i))))
	}
	var all sync.WaitGroup
	listening, killed := make(chan struct{}, clients), make(chan struct{})
	fail := make(chan error, 2*clients)
	for i := range clients {
		all.Go(func() {
			if err := f.live1(t.Context(), tokens[i%len(tokens)], i, listening, killed); err != nil {
				fail <- err
			}
		})
	}
	for range clients {
		select {
		case <-listening:
		case err := <-fail:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatal("not every stream opened")
		}
	}
	_ = victim.end(syscall.SIGKILL)
	f.drop(victim)
	close(killed)
	all.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
}

// live1 is a client's life: open a stream, lose it or not, go on with the same session.
func (f *fleet) live1(ctx context.Context, token string, n int, listening chan<- struct{}, killed <-chan struct{}) error {
	c, err := f.connect(ctx, token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || !bufio.NewScanner(resp.Body).Scan() {
		return fmt.Errorf("stream: %s", resp.Status)
	}
	listening <- struct{}{}
	<-killed
	for i := range 5 {
		if err := c.call(ctx, fmt.Sprintf("client-%d-call-%d", n, i)); err != nil {
			return err
		}
	}
	again, err := c.do(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	defer func() { _ = again.Body.Close() }()
	if again.StatusCode != http.StatusOK {
		return fmt.Errorf("stream again: %s", again.Status)
	}
	return nil
}

// Replacing every replica under load fails no call of a client that tries once more.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	old := []*serving{f.add(), f.add()}
	token := strings.TrimSpace(f.run("agent", "add", "--name", "worker"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var calls, retried atomic.Int64
	fail := make(chan error, 64)
	for n := range 8 {
		all.Go(func() {
			c, err := f.connect(t.Context(), token)
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				value := fmt.Sprintf("w%d-%d", n, i)
				if err = c.call(t.Context(), value); err != nil {
					retried.Add(1)
					err = c.call(t.Context(), value)
				}
				calls.Add(1)
			}
			if err != nil {
				fail <- err
			}
		})
	}
	for _, s := range old {
		f.add()
		before := calls.Load()
		f.drop(s)
		if err := s.end(syscall.SIGTERM); err != nil {
			t.Errorf("SIGTERM: %v\n%s", err, s.errout)
		}
		for deadline := time.Now().Add(time.Minute); calls.Load() < before+100 && time.Now().Before(deadline) && len(fail) == 0; {
			<-time.After(5 * time.Millisecond)
		}
	}
	stop()
	all.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
	if calls.Load() < 200 {
		t.Errorf("%d calls were made; the load was none", calls.Load())
	}
	t.Logf("%d calls, %d of them tried twice", calls.Load(), retried.Load())
}
