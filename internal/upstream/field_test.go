package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

func TestFieldC01EveryPageOfTheList(t *testing.T) {
	t.Parallel()
	var tools []upstreamtest.Tool
	for i := range 105 {
		tools = append(tools, upstreamtest.Tool{Name: fmt.Sprintf("tool_%d", i+1), Run: upstreamtest.Echo.Run})
	}
	empty := ""
	for name, last := range map[string]*string{"none": nil, "empty": &empty} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools, Page: 50, LastCursor: last, Cursor: func(next int) string {
			if next == 50 {
				return "a=="
			}
			return `{"o":100}`
		}})
		s := open(t, srv)
		got, err := s.Tools(t.Context())
		if err != nil || len(got) != 105 {
			t.Fatalf("last cursor %s: %d tools, %v, want 105", name, len(got), err)
		}
		var cursors []string
		for _, r := range srv.Requests("tools/list") {
			cursors = append(cursors, string(r.Params))
		}
		if diff := cmp.Diff([]string{"", `{"cursor":"a=="}`, `{"cursor":"{\"o\":100}"}`}, cursors); diff != "" {
			t.Errorf("last cursor %s: asked for (-want +got):\n%s", name, diff)
		}
		if got := mustCall(t, s, "tool_105", `{"a":1}`); !strings.Contains(got, `"structuredContent":{"a":1}`) {
			t.Errorf("tool_105 answers %s", got)
		}
	}
}

func TestFieldC01CursorThatComesTwiceEndsTheList(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	s := open(t, srv)
	srv.Script(func(w http.ResponseWriter, _ *http.Request, m upstreamtest.Message) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a"}],"nextCursor":"again"}}`, m.ID)
		return true
	})
	got, err := s.Tools(t.Context())
	assertRefused(t, "Tools", err, reason.TooLarge)
	if n := len(srv.Requests("tools/list")); n != 2 || len(got) != 2 {
		t.Errorf("%d requests and %d tools, want 2 and 2", n, len(got))
	}
}

// results are what a tool answers, each to come out as it went in.
var results = map[string]string{
	"structured alone":       `{"content":[],"structuredContent":{"n":1}}`,
	"structured that fits":   `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`,
	"structured of another":  `{"content":[{"type":"text","text":"one"}],"structuredContent":{"other":"shape"}}`,
	"text alone":             `{"content":[{"type":"text","text":"1"}]}`,
	"error of another shape": `{"content":[{"type":"text","text":"no"}],"structuredContent":{"code":7},"isError":true}`,
	"no content":             `{"structuredContent":{"n":9007199254740993}}`,
	"blocks": `{"content":[{"type":"text","text":"é\u00e9","annotations":{"audience":["user"],"priority":0.10}},` +
		`{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","_meta":{"a/b":1.50}},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},` +
		`{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///y","blob":"AA==","mimeType":"application/octet-stream"}},` +
		`{"type":"hologram","x":1}], "_meta":{"z":[ 1,2 ]} ,"resultType":"complete"}`,
	"numbers": `{"content":[],"structuredContent":{"big":9007199254740993,"huge":1e400,"small":-0.0,"long":3.14159265358979323846}}`,
}

func testResultsPass(t *testing.T, names ...string) {
	t.Helper()
	for _, sse := range []bool{false, true} {
		for _, modern := range []bool{false, true} {
			srv := upstreamtest.Start(t, upstreamtest.Options{SSE: sse, Modern: modern, Tools: []upstreamtest.Tool{
				{Name: "say", Run: func(c *upstreamtest.Call) string {
					return results[strings.TrimSuffix(strings.TrimPrefix(string(c.Args), `{"as":"`), `"}`)]
				}},
			}})
			s := open(t, srv)
			for _, name := range names {
				if got := mustCall(t, s, "say", `{"as":"`+name+`"}`); got != results[name] {
					t.Errorf("events %v, modern %v: %s\n got %s\nwant %s", sse, modern, name, got, results[name])
				}
			}
		}
	}
}

func TestFieldC04StructuredContentIsUntouched(t *testing.T) {
	t.Parallel()
	testResultsPass(t, "structured alone", "structured that fits", "structured of another", "text alone", "error of another shape", "no content", "numbers")
}

func TestFieldC05EveryBlockIsUntouched(t *testing.T) {
	t.Parallel()
	testResultsPass(t, "blocks")
}

func TestFieldC06LostSessionIsToldApart(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	s := open(t, srv)
	mustCall(t, s, "count", `{}`)
	srv.Forget()
	_, err := call(t, s, "count", `{}`)
	if !errors.Is(err, upstream.ErrSessionLost) || srv.Runs("count") != 1 {
		t.Errorf("after a restart: %v and %d runs, want ErrSessionLost and 1", err, srv.Runs("count"))
	}
	assertRefused(t, "after a restart", err, reason.UpstreamUnavailable)
	again := open(t, srv)
	if got, want := mustCall(t, again, "count", `{}`), upstreamtest.Text("1"); got != want {
		t.Errorf("in a new session: %s, want %s", got, want)
	}
	if r := srv.Requests("initialize"); len(r) != 2 || r[1].Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize was sent %d times, the second time with session %q", len(r), r[1].Header.Get("Mcp-Session-Id"))
	}
}

func TestFieldC06OtherAnswersToACall(t *testing.T) {
	t.Parallel()
	for _, answer := range []struct {
		status     int
		body       string
		noSessions bool
		lost       bool
		unknown    bool
		word       reason.Word
	}{
		{404, `<html>not found</html>`, false, true, false, reason.UpstreamUnavailable},
		{404, `<html>not found</html>`, true, false, false, reason.UpstreamUnavailable}, // of a load balancer, no session in use
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, false, true, false, reason.UpstreamUnavailable},
		{400, `session not found`, false, true, false, reason.UpstreamUnavailable},
		{400, `Bad Request: Server not initialized`, false, true, false, reason.UpstreamUnavailable},
		{400, `session not found`, true, false, false, reason.UpstreamUnavailable},
		{400, `bad arguments`, false, false, false, reason.UpstreamUnavailable},
		{401, `{}`, false, false, false, reason.UpstreamUnauthorized},
		{403, `session`, false, false, false, reason.UpstreamUnauthorized},
		{405, ``, false, false, false, reason.UpstreamUnavailable},
		{429, ``, false, false, false, reason.UpstreamUnavailable},
		{500, `oops`, false, false, true, reason.UpstreamUnavailable},
		{502, `bad gateway`, false, false, true, reason.UpstreamUnavailable},
		{307, ``, false, false, false, reason.UpstreamUnavailable},
		{200, ``, false, false, true, reason.UpstreamUnavailable},
		{202, ``, false, false, true, reason.UpstreamUnavailable},
		{200, `<html>hello</html>`, false, false, true, reason.UpstreamUnavailable},
		{200, `{"jsonrpc":"2.0","id":999,"result":{}}`, false, false, true, reason.UpstreamUnavailable},
		{200, `{"jsonrpc":"2.0","id":"x"`, false, false, true, reason.UpstreamUnavailable},
	} {
		what := fmt.Sprintf("%d %s, no sessions %v", answer.status, answer.body, answer.noSessions)
		srv := upstreamtest.Start(t, upstreamtest.Options{NoSessions: answer.noSessions})
		s := open(t, srv)
		srv.Script(func(w http.ResponseWriter, _ *http.Request, _ upstreamtest.Message) bool {
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.body)
			return true
		})
		_, err := call(t, s, "echo", `{}`)
		assertRefused(t, what, err, answer.word)
		if got := errors.Is(err, upstream.ErrSessionLost); got != answer.lost {
			t.Errorf("%s: %v; lost is %v, want %v", what, err, got, answer.lost)
		}
		if got := errors.Is(err, upstream.ErrOutcomeUnknown); got != answer.unknown {
			t.Errorf("%s: %v; unknown is %v, want %v", what, err, got, answer.unknown)
		}
		if message := reason.Of(err).Message; answer.status != 200 && !answer.lost && !strings.Contains(message, fmt.Sprint(answer.status)) {
			t.Errorf("%s: %q does not name the status", what, message)
		}
		if n := len(srv.Requests("tools/call")); n != 1 {
			t.Errorf("%s: the call was sent %d times", what, n)
		}
	}
}

func TestFieldC06ConnectionLostMidwayLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	hangUp := func(begin func(c *upstreamtest.Call)) upstreamtest.Tool {
		return upstreamtest.Tool{Name: "write", Run: func(c *upstreamtest.Call) string {
			begin(c)
			panic(http.ErrAbortHandler)
		}}
	}
	for name, tool := range map[string]upstreamtest.Tool{
		"before any answer": hangUp(func(*upstreamtest.Call) {}),
		"within the stream": hangUp(func(c *upstreamtest.Call) { c.Log("info", "x", `1`) }),
		"within an event":   hangUp(func(c *upstreamtest.Call) { c.Event(`data: {"jsonrpc":"2.0","id":`) }),
	} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{tool}})
		_, err := call(t, open(t, srv), "write", `{}`)
		assertRefused(t, name, err, reason.UpstreamUnavailable)
		if !errors.Is(err, upstream.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "not known") || srv.Runs("write") != 1 {
			t.Errorf("%s: %v and %d runs, want the outcome unknown and 1", name, err, srv.Runs("write"))
		}
	}
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	d := dialTo(t, srv.URL)
	s := openTo(t, d)
	gone, err := egress.ParseHosts("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	d.URL, d.Hosts = "http://127.0.0.1:1/mcp", gone
	if _, err := tryOpen(t, d); errors.Is(err, upstream.ErrOutcomeUnknown) {
		t.Errorf("refused connection = %v, want an outcome that is known", err)
	}
	_ = s
}

func TestFieldC07HungServerHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0") // connects, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	hung := dialTo(t, "http://"+l.Addr().String()+"/mcp")
	hung.ConnectTimeout = 100 * time.Millisecond
	start := time.Now()
	_, err = tryOpen(t, hung)
	assertRefused(t, "open a hung server", err, reason.Timeout)
	if took := time.Since(start); took > 5*time.Second || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("open a hung server took %s and says %v, want its name within the limit", took, err)
	}

	release := make(chan struct{})
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		upstreamtest.Echo,
		{Name: "hang", Run: func(c *upstreamtest.Call) string { <-c.Done(); return upstreamtest.Text("late") }},
		{Name: "slow", Run: func(*upstreamtest.Call) string { <-release; return upstreamtest.Text("slow") }},
	}})
	d := dialTo(t, srv.URL)
	d.ConnectTimeout, d.CallTimeout = 2*time.Second, patience
	s := openTo(t, d)
	d.CallTimeout = time.Second
	hasty := openTo(t, d)
	slow := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), "slow", nil, nil, nil)
		slow <- err
	}()
	_, err = call(t, hasty, "hang", `{}`)
	assertRefused(t, "a call that hangs", err, reason.Timeout)
	if !errors.Is(err, upstream.ErrOutcomeUnknown) {
		t.Errorf("a call that hangs = %v, want the outcome unknown", err)
	}
	mustCall(t, s, "echo", `{}`)
	mustCall(t, hasty, "echo", `{}`)
	time.AfterFunc(2500*time.Millisecond, func() { close(release) }) // longer than the connect limit
	if err := <-slow; err != nil {
		t.Errorf("a call that is slower than a connection may be = %v", err)
	}
	if n := len(srv.Requests("initialize")); n != 2 {
		t.Errorf("%d sessions were opened, want 2: a timeout ends none", n)
	}
	eventually(t, "the hung call is cancelled", func() bool { return len(srv.Requests("notifications/cancelled")) == 1 })
}

func TestFieldC07DribblingServerHitsTheDeadline(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	d := dialTo(t, srv.URL)
	d.CallTimeout = 200 * time.Millisecond
	s := openTo(t, d)
	for _, kind := range []string{"application/json", "text/event-stream"} {
		srv.Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
			if m.Method != "tools/call" {
				return false
			}
			w.Header().Set("Content-Type", kind)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = io.WriteString(w, " ")
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return true
				case <-srv.Done():
					return true
				}
			}
		})
		start := time.Now()
		_, err := call(t, s, "echo", `{}`)
		assertRefused(t, kind, err, reason.Timeout)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s, want the limit of 200ms", kind, took)
		}
	}
}

func TestFieldC08ProgressIsRelayedUnderOurToken(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		tokens := make(chan string, 4)
		srv := upstreamtest.Start(t, upstreamtest.Options{Modern: modern, Tools: []upstreamtest.Tool{
			{Name: "work", Run: func(c *upstreamtest.Call) string {
				tokens <- c.Token()
				c.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p-é","progress":0.1}}`)
				c.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4711,"progress":0.2}}`)
				for _, done := range []float64{0, 1, 1, 0.5, 2.5} {
					c.Progress(done, 4, "at it")
				}
				return upstreamtest.Text("done")
			}},
		}})
		s := open(t, srv)
		var h heard
		if _, err := s.Call(t.Context(), "work", nil, h.onProgress, nil); err != nil {
			t.Fatal(err)
		}
		progress, _ := h.all()
		want := []catalog.Progress{{Done: 0, Total: 4, Message: "at it"}, {Done: 1, Total: 4, Message: "at it"}, {Done: 2.5, Total: 4, Message: "at it"}}
		if diff := cmp.Diff(want, progress); diff != "" {
			t.Errorf("modern %v: progress (-want +got):\n%s", modern, diff)
		}
		id := string(srv.Requests("tools/call")[0].ID)
		if got := <-tokens; got != id {
			t.Errorf("the token is %s, want the request's id %s", got, id)
		}
		if _, err := s.Call(t.Context(), "work", nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-tokens; got != "" {
			t.Errorf("a call without anyone to tell has the token %s", got)
		}
		if after, _ := h.all(); len(after) != len(want) {
			t.Errorf("progress came after the result: %v", after[len(want):])
		}
	}
}

func TestFieldC08CancelReachesTheServerUnderItsOwnID(t *testing.T) {
	t.Parallel()
	running, stopped := make(chan struct{}), make(chan struct{})
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		{Name: "wait", Run: func(c *upstreamtest.Call) string {
			close(running)
			<-c.Done()
			close(stopped)
			return upstreamtest.Text("late")
		}},
	}})
	s := open(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		result, err := s.Call(ctx, "wait", nil, nil, nil)
		if result != nil {
			t.Errorf("a cancelled call has the result %s", result)
		}
		failed <- err
	}()
	<-running
	cancel()
	assertRefused(t, "the call", <-failed, reason.Cancelled)
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Fatal("the server was not told")
	}
	r := srv.Requests("notifications/cancelled", "tools/call")
	want := fmt.Sprintf(`"requestId":%s`, r[0].ID)
	if len(r) != 2 || !strings.Contains(string(r[1].Params), want) {
		t.Errorf("the server got %+v, want a cancellation of %s", r, want)
	}
}

func TestFieldC10SortsOfServer(t *testing.T) {
	t.Parallel()
	oldTransport := func(w http.ResponseWriter, r *http.Request, _ upstreamtest.Message) bool {
		if r.Method == http.MethodPost {
			http.Error(w, "Cannot POST /mcp", http.StatusNotFound)
			return true
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?id=1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	fails := func(status int, body string) upstreamtest.Script {
		return func(w http.ResponseWriter, _ *http.Request, _ upstreamtest.Message) bool {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for _, server := range []struct {
		name   string
		script upstreamtest.Script
		says   string
		sends  int // requests
	}{
		{"HTTP+SSE", oldTransport, "HTTP+SSE, the transport of 2024-11-05", 3},
		{"500", fails(500, "boom"), "status 500", 1},
		{"503", fails(503, ""), "status 503", 1},
		{"200 and nothing", fails(200, ""), "no message", 1},
		{"404", fails(404, "no such page"), "status 404", 3},
		{"405", fails(405, ""), "status 405", 3},
		{"a web page", fails(200, "<html></html>"), "it may not be an MCP server", 1},
		{"an error of its own", fails(400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not\ntoday"}}`), "error -32600: not today", 3},
	} {
		srv := upstreamtest.Start(t, upstreamtest.Options{})
		srv.Script(server.script)
		_, err := tryOpen(t, dialTo(t, srv.URL))
		assertRefused(t, server.name, err, reason.UpstreamUnavailable)
		if !strings.Contains(reason.Of(err).Message, server.says) || len(srv.Requests()) != server.sends {
			t.Errorf("%s: %v after %d requests, want %q after %d", server.name, err, len(srv.Requests()), server.says, server.sends)
		}
	}
	postOnly := upstreamtest.Start(t, upstreamtest.Options{NoSessions: true, NoStream: true, ListChanged: true})
	d := dialTo(t, postOnly.URL)
	d.OnListChanged = func() { t.Error("the list changed") }
	s := openTo(t, d)
	s.Listen()
	mustCall(t, s, "echo", `{}`)
	if tools, err := s.Tools(t.Context()); err != nil || len(tools) != 2 {
		t.Errorf("a server for POST alone lists %d tools, %v", len(tools), err)
	}
	eventually(t, "the stream is asked for", func() bool { return len(postOnly.Requests("GET")) == 1 })
	s.Close(t.Context())
	if n := len(postOnly.Requests("GET", "DELETE")); n != 1 {
		t.Errorf("%d GET and DELETE requests, want the GET that was answered 405", n)
	}
}

func TestFieldC11OnlyWhatIsConfiguredIsSent(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Modern: modern, Bearer: "upstream-token"})
		d := dialTo(t, srv.URL)
		d.Header = []egress.Injection{bearer(t, "upstream-token")}
		s := openTo(t, d)
		mustCall(t, s, "echo", `{"a":"b"}`)
		r := srv.Requests("tools/call")[0]
		want := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Mcp-Protocol-Version", "User-Agent"}
		if modern {
			want = append(want, "Mcp-Method", "Mcp-Name")
		} else {
			want = append(want, "Mcp-Session-Id")
		}
		var got []string
		for name := range r.Header {
			got = append(got, name)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("modern %v: headers (-want +got):\n%s", modern, diff)
		}
		if !modern && (r.Header.Get("Mcp-Session-Id") != "session-1" || r.Body != fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"a":"b"}}}`, r.ID)) {
			t.Errorf("the server got session %q and %s", r.Header.Get("Mcp-Session-Id"), r.Body)
		}
		if agent := r.Header.Get("User-Agent"); agent != "Graft" {
			t.Errorf("User-Agent = %q", agent)
		}
	}
}

func TestFieldC14HugeCatalogue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8<<10)
	tool := func(i int, description string) upstreamtest.Tool {
		return upstreamtest.Tool{Name: fmt.Sprintf("tool_%d", i), Listed: fmt.Sprintf(`{"name":"tool_%d","description":"%s","inputSchema":{"type":"object"}}`, i, description)}
	}
	var tools []upstreamtest.Tool
	for i := range 2000 {
		tools = append(tools, tool(i, long))
	}
	tools[7] = tool(7, strings.Repeat("y", 1<<20))
	tools[8] = tool(8, `\u0000\u0001\u007f`)
	tools[9] = upstreamtest.Tool{Listed: `{"name":"tool_9","description":["not","text"]}`}
	tools[10] = upstreamtest.Tool{Listed: `{"name":"tool_10","name":"twice"}`}
	tools[11] = upstreamtest.Tool{Listed: "{\"name\":\"tool_11\",\"description\":\"caf\xe9\"}"}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools})
	got, err := open(t, srv).Tools(t.Context())
	if err != nil || len(got) != 2000 {
		t.Fatalf("%d tools, %v, want 2000", len(got), err)
	}
	if got[7].Description != strings.Repeat("y", 1<<20) || got[8].Description != "\x00\x01\x7f" {
		t.Error("a description was changed")
	}
	if got[9].Fault == "" || got[9].Name != "tool_9" || got[10].Fault == "" || got[11].Fault == "" || got[12].Fault != "" {
		t.Errorf("odd tools are %+v", got[9:13])
	}
	for name, many := range map[string]func() []upstreamtest.Tool{
		"more than 5000 tools": func() []upstreamtest.Tool {
			var tools []upstreamtest.Tool
			for i := range upstream.MaxTools + 1 {
				tools = append(tools, tool(i, ""))
			}
			return tools
		},
		"more than 32 MiB": func() []upstreamtest.Tool {
			var tools []upstreamtest.Tool
			for i := range 40 {
				tools = append(tools, tool(i, strings.Repeat("z", 1<<20)))
			}
			return tools
		},
	} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Tools: many(), Page: 1000})
		if strings.Contains(name, "MiB") {
			srv = upstreamtest.Start(t, upstreamtest.Options{Tools: many()})
		}
		got, err := open(t, srv).Tools(t.Context())
		assertRefused(t, name, err, reason.TooLarge)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "of more", "more"), name) || len(got)%1000 != 0 {
			t.Errorf("%s: %v beside %d tools", name, err, len(got))
		}
	}
}

func TestFieldD09UpstreamThatEchoesItsCredential(t *testing.T) {
	t.Parallel()
	const token = `up"stream/CANARY-7f3a`
	const inJSON = `up\"stream\/CANARY-7f3a`
	for _, opts := range []upstreamtest.Options{{}, {SSE: true}, {Modern: true}, {Modern: true, SSE: true}} {
		opts.Bearer = token
		opts.Tools = []upstreamtest.Tool{
			upstreamtest.Echo,
			{Name: "described", Listed: `{"name":"described","description":"Sends ` + inJSON + `.","inputSchema":{"type":"object"}}`, Run: upstreamtest.Echo.Run},
			{Name: "fail", Run: func(*upstreamtest.Call) string {
				return `error:{"code":-32000,"message":"not with Bearer ` + inJSON + `"}`
			}},
			{Name: "work", Run: func(c *upstreamtest.Call) string {
				c.Progress(1, 2, "at it with "+token)
				c.Log("info", "work", `"with `+inJSON+`"`)
				return upstreamtest.Text("done by " + token)
			}},
		}
		srv := upstreamtest.Start(t, opts)
		d := dialTo(t, srv.URL)
		d.Header = []egress.Injection{bearer(t, token)}
		s := openTo(t, d)
		var h heard
		result, err := s.Call(t.Context(), "work", jsontext.Value(`{}`), h.onProgress, h.onLog)
		progress, logs := h.all()
		_, failure := call(t, s, "fail", `{}`)
		tools, listErr := s.Tools(t.Context())
		all := fmt.Sprintf("%s %v %v %v %v %+v %v", result, err, progress, logs, failure, tools, listErr)
		if strings.Contains(all, "CANARY") || !strings.Contains(string(result), `"done by [redacted]"`) || !strings.Contains(fmt.Sprint(progress), "at it with [redacted]") {
			t.Errorf("%+v: %.2000s", opts, all)
		}
		for _, args := range []string{`{"a":"` + inJSON + `"}`, `{"a":"up\u0022stream/CANARY-7f3a"}`} {
			if got := mustCall(t, s, "echo", args); strings.Contains(got, "CANARY") {
				t.Errorf("echo of %s = %s", args, got)
			}
		}
		if got := mustCall(t, s, "echo", `{"a":"b","n":9007199254740993}`); got != `{"content":[{"type":"text","text":"{\"a\":\"b\",\"n\":9007199254740993}"}],"structuredContent":{"a":"b","n":9007199254740993}}` {
			t.Errorf("what holds no credential is %s", got)
		}
	}
}
