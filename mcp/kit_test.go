package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A client talks to /mcp byte by byte, as curl would.
type client struct {
	t       testing.TB
	url     string // of /mcp
	token   string
	session string
	version string
	host    string // "" is url's
}

// at is the same client, talking to one replica past the proxy.
func (c *client) at(k *servertest.Kit, n int) *client {
	one := *c
	one.url, one.host = k.Replicas()[n].URL+"/mcp", strings.TrimPrefix(k.URL, "http://")
	return &one
}

// connect makes an agent and opens a session with the protocol version.
func connect(t testing.TB, k *servertest.Kit, version string) *client {
	t.Helper()
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open(version)
	return c
}

// open sends initialize and initialized, and keeps the session.
func (c *client) open(version string) {
	c.t.Helper()
	c.session, c.version = "", ""
	a := c.post(initialize(version))
	if a.status != http.StatusOK {
		c.t.Fatalf("initialize = %d %s", a.status, a.body)
	}
	c.session, c.version = a.header.Get("Mcp-Session-Id"), version
	if got := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got.status != http.StatusAccepted {
		c.t.Fatalf("initialized = %d %s", got.status, got.body)
	}
}

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}`
}

// An answer is a whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends body. Each header is "Name: value"; "Name:" leaves that header out.
func (c *client) post(body string, headers ...string) answer {
	c.t.Helper()
	return c.do(http.MethodPost, c.url, strings.NewReader(body), headers...)
}

func (c *client) do(method, url string, body io.Reader, headers ...string) answer {
	c.t.Helper()
	resp := c.send(c.t.Context(), method, url, body, headers...)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s %s: read answer: %v", method, url, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (c *client) send(ctx context.Context, method, url string, body io.Reader, headers ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = c.host
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	for name, value := range map[string]string{"Authorization": bearer(c.token), "Mcp-Session-Id": c.session, "MCP-Protocol-Version": c.version} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if value = strings.TrimSpace(value); value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
		}
	}
	resp, err := plain.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp
}

// plain follows no redirect and unpacks nothing.
var plain = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// call runs a tool and returns its result.
func (c *client) call(name, args string) result {
	c.t.Helper()
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`)
	return resultOf(c.t, a)
}

// A result is a CallToolResult.
type result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

func (r result) text() string {
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		return ""
	}
	return r.Content[0].Text
}

// payload is the answer's message: its body, or the last event of a stream.
func (a answer) payload() []byte {
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		return []byte(a.body)
	}
	_, last, _ := strings.Cut(a.body[max(0, strings.LastIndex(a.body, "\ndata: ")):], "data: ")
	return []byte(strings.TrimSpace(last))
}

func resultOf(t testing.TB, a answer) result {
	t.Helper()
	var m struct {
		Result result          `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(a.payload(), &m); err != nil || m.Error != nil {
		t.Fatalf("answer %d is no result: %.400s (%v)", a.status, a.body, err)
	}
	return m.Result
}

// rpcError is the code and reason of an error answer; 0 where it is none.
func rpcError(a answer) (code int, reason string) {
	var m struct {
		Error struct {
			Code int `json:"code"`
			Data struct {
				Reason string `json:"reason"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(a.payload(), &m) != nil {
		return 0, ""
	}
	return m.Error.Code, m.Error.Data.Reason
}

// slowDown reports whether a is the 429 of the contract.
func slowDown(a answer) bool {
	return a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" &&
		strings.Contains(a.body, `"error":"too_many_requests"`) && strings.Contains(a.body, `"reason":"rate_limited"`)
}

// tools lists the names of tools/list.
func (c *client) tools() []string {
	c.t.Helper()
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var m struct {
		Result struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(a.payload(), &m); err != nil {
		c.t.Fatalf("tools/list = %d %s", a.status, a.body)
	}
	var names []string
	for _, t := range m.Result.Tools {
		names = append(names, t.Name)
	}
	return names
}

// eventually waits until ok, for what another replica hears of only after a moment.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: still not so", what)
		}
	}
}

// onEachReplica reports whether ok holds on every one of the kit's two replicas: the proxy takes turns.
func onEachReplica(ok func() bool) func() bool {
	return func() bool {
		first, second := ok(), ok()
		return first && second
	}
}

// A listener is an open GET stream.
type listener struct {
	t      testing.TB
	cancel context.CancelFunc
	resp   *http.Response
	lines  chan string // closed when the stream ends
}

// listen opens a GET stream and waits for its first line.
func (c *client) listen() *listener {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	resp := c.send(ctx, http.MethodGet, c.url, nil) //nolint:bodyclose // closed when the test ends
	if resp.StatusCode != http.StatusOK {
		cancel()
		c.t.Fatalf("GET = %d", resp.StatusCode)
	}
	l := &listener{t: c.t, cancel: cancel, resp: resp, lines: make(chan string, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(l.lines)
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		<-done
	})
	l.wait(": open")
	return l
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// wait reads lines until one begins with prefix.
func (l *listener) wait(prefix string) string {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, ok := <-l.lines:
			if !ok {
				l.t.Fatalf("stream ended before %q", prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-late:
			l.t.Fatalf("no line %q on the stream", prefix)
		}
	}
}

// ended waits until the gateway has closed the stream, and returns the lines before that.
func (l *listener) ended() []string {
	l.t.Helper()
	var lines []string
	late := time.After(patience)
	for {
		select {
		case line, ok := <-l.lines:
			if !ok {
				return lines
			}
			lines = append(lines, line)
		case <-late:
			l.t.Fatal("stream is still open")
		}
	}
}

// A clock stands still until it is moved.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.at.Store(at.UnixNano())
	return c
}

func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

// organisation makes one in a private database.
func organisation(t *testing.T, k *servertest.Kit) store.Caller {
	t.Helper()
	return storetest.Organisation(t, k.DB)
}
