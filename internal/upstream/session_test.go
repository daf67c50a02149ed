package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

func TestVersionsThatAreSpoken(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Protocol: version})
		s := open(t, srv)
		mustCall(t, s, "echo", `{}`)
		want := upstream.Server{Name: "fake", Title: "A fake", Version: "1", Protocol: version}
		if diff := cmp.Diff(want, s.Server()); diff != "" {
			t.Errorf("server (-want +got):\n%s", diff)
		}
		hello := srv.Requests("initialize")[0]
		if !strings.Contains(hello.Body, `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"graft","title":"Graft","version":"1.2.3"}`) {
			t.Errorf("initialize = %s", hello.Body)
		}
		if got := hello.Header.Get("Mcp-Protocol-Version"); got != "" {
			t.Errorf("initialize has the version header %q", got)
		}
		for _, r := range srv.Requests("notifications/initialized", "tools/call") {
			if got := r.Header.Get("Mcp-Protocol-Version"); got != version || r.Header.Get("Mcp-Session-Id") != "session-1" {
				t.Errorf("%s has version %q and session %q", r.Message.Method, got, r.Header.Get("Mcp-Session-Id"))
			}
		}
		if n := len(srv.Requests("notifications/initialized")); n != 1 {
			t.Errorf("initialized was sent %d times", n)
		}
	}
	both := upstreamtest.Start(t, upstreamtest.Options{Modern: true})
	both.Script(func(w http.ResponseWriter, _ *http.Request, m upstreamtest.Message) bool {
		if m.Method == "initialize" {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2026-07-28","capabilities":{}}}`, m.ID)
		}
		return m.Method == "initialize"
	})
	if got := open(t, both).Server().Protocol; got != "2026-07-28" {
		t.Errorf("a server that answers initialize with the other era is spoken to at %s", got)
	}
	for _, version := range []string{"2023-01-01", "2099-01-01", "2026-07-28"} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Protocol: version})
		_, err := tryOpen(t, dialTo(t, srv.URL))
		assertRefused(t, version, err, reason.UpstreamUnavailable)
		if err == nil || !strings.Contains(err.Error(), version) {
			t.Errorf("%s: %v does not name it", version, err)
		}
	}
}

func TestStatelessServer(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Modern: true, Tools: []upstreamtest.Tool{
		upstreamtest.Echo,
		{Name: "wo é", Run: func(*upstreamtest.Call) string { return upstreamtest.Text("hi") }},
		{
			Name: "at", Listed: `{"name":"at","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`,
			Run: func(*upstreamtest.Call) string { return upstreamtest.Text("hi") },
		},
		{Name: "bad", Listed: `{"name":"bad","inputSchema":{"type":"object","properties":{"o":{"type":"object","x-mcp-header":"O"}}}}`},
		{Name: "asks", Run: func(*upstreamtest.Call) string { return `{"resultType":"input_required","inputRequests":{}}` }},
	}})
	s := open(t, srv)
	if got, want := s.Server(), (upstream.Server{Name: "fake", Version: "1", Protocol: "2026-07-28"}); got != want {
		t.Errorf("server = %+v, want %+v", got, want)
	}
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 5 || tools[3].Fault == "" || tools[2].Fault != "" {
		t.Errorf("tools = %+v, %v, want five, of which one has a fault", tools, err)
	}
	mustCall(t, s, "wo é", `{}`)
	mustCall(t, s, "at", `{"region":"eu"}`)
	_, err = call(t, s, "asks", `{}`)
	assertRefused(t, "a question", err, reason.AskUnavailable)
	calls := srv.Requests("tools/call")
	if name := calls[0].Header.Get("Mcp-Name"); name != "=?base64?d28gw6k=?=" {
		t.Errorf("Mcp-Name = %q", name)
	}
	if region := calls[1].Header.Get("Mcp-Param-Region"); region != "eu" {
		t.Errorf("Mcp-Param-Region = %q, want eu", region)
	}
	want := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"graft","title":"Graft","version":"1.2.3"}}`
	if got := string(calls[1].Params); got != `{"name":"at","arguments":{"region":"eu"},"_meta":`+want+`}` {
		t.Errorf("params = %s", got)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	s.Close(t.Context())
	if n := len(srv.Requests("DELETE", "GET")); n != 0 {
		t.Errorf("%d GET and DELETE requests, which this era does not have", n)
	}
}

func TestArgumentThatBelongsIntoAHeaderIsLookedUp(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Modern: true, Tools: []upstreamtest.Tool{{
		Name: "at", Listed: `{"name":"at","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`,
		Run: func(*upstreamtest.Call) string { return upstreamtest.Text("hi") },
	}}})
	srv.Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if m.Method != "tools/call" || r.Header.Get("Mcp-Param-Region") == "eu" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}`, m.ID)
		return true
	})
	s := open(t, srv)
	for range 2 {
		if got, want := mustCall(t, s, "at", `{"region":"eu"}`), upstreamtest.Text("hi"); got != want {
			t.Errorf("call = %s, want %s", got, want)
		}
	}
	if lists, calls := len(srv.Requests("tools/list")), len(srv.Requests("tools/call")); lists != 1 || calls != 3 || srv.Runs("at") != 2 {
		t.Errorf("%d lists, %d calls and %d runs, want 1, 3 and 2", lists, calls, srv.Runs("at"))
	}
	if got := mustCall(t, s, "at", `{"region":"us"}`); !strings.Contains(got, `"code":-32020`) {
		t.Errorf("a call that is refused twice = %s", got)
	}
}

func TestStatelessCallIsCancelledByClosingItsResponse(t *testing.T) {
	t.Parallel()
	running, stopped := make(chan struct{}), make(chan struct{})
	srv := upstreamtest.Start(t, upstreamtest.Options{Modern: true, Tools: []upstreamtest.Tool{
		{Name: "wait", Run: func(c *upstreamtest.Call) string {
			close(running)
			<-c.Done()
			close(stopped)
			return ""
		}},
	}})
	s := open(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-running
		cancel()
	}()
	_, err := s.Call(ctx, "wait", nil, nil, nil)
	assertRefused(t, "the call", err, reason.Cancelled)
	<-stopped
	s.Close(t.Context())
	if n := len(srv.Requests("notifications/cancelled")); n != 0 {
		t.Errorf("%d cancellations were sent", n)
	}
}

func TestArgumentsAndNumbersAreUntouched(t *testing.T) {
	t.Parallel()
	const args = `{"big":9007199254740993, "e":1E400,"z":-0.0,"Key":1,"key":2,"s":"\u00e9é\/","n":[null , true]}`
	for _, sse := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{SSE: sse})
		got := mustCall(t, open(t, srv), "echo", args)
		if !strings.HasSuffix(got, `"structuredContent":`+args+`}`) || !strings.Contains(srv.Wire(), args) {
			t.Errorf("events %v: %s\nwant %s inside", sse, got, args)
		}
	}
}

func TestBytesThatAreNotUTF8AreReplaced(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		{Name: "latin", Run: func(*upstreamtest.Call) string { return "{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}" }},
	}})
	if got, want := mustCall(t, open(t, srv), "latin", `{}`), `{"content":[{"type":"text","text":"caf`+"\uFFFD"+`"}]}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorOfTheServerIsAFailureOfTheTool(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		{Name: "fail", Run: func(*upstreamtest.Call) string {
			return `error:{"code":-32603,"message":"disk\nfull","data":{"secret":1}}`
		}},
		{Name: "odd", Run: func(*upstreamtest.Call) string { return `error:"no object"` }},
		{Name: "null", Run: func(*upstreamtest.Call) string { return `null` }},
	}})
	s := open(t, srv)
	for tool, want := range map[string]string{
		"fail": `{"content":[{"type":"text","text":"{\"error\":\"disk full\",\"reason\":\"tool_failed\",\"code\":-32603}"}],` +
			`"structuredContent":{"error":"disk full","reason":"tool_failed","code":-32603},"isError":true}`,
		"odd": `{"content":[{"type":"text","text":"{\"error\":\"It said no more.\",\"reason\":\"tool_failed\",\"code\":0}"}],` +
			`"structuredContent":{"error":"It said no more.","reason":"tool_failed","code":0},"isError":true}`,
		"absent": `{"content":[{"type":"text","text":"{\"error\":\"Unknown tool: absent\",\"reason\":\"tool_failed\",\"code\":-32602}"}],` +
			`"structuredContent":{"error":"Unknown tool: absent","reason":"tool_failed","code":-32602},"isError":true}`,
	} {
		if diff := cmp.Diff(want, mustCall(t, s, tool, `{}`)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tool, diff)
		}
	}
	_, err := call(t, s, "null", `{}`)
	assertRefused(t, "a result of null", err, reason.UpstreamUnavailable)
}

func TestLogIsRelayed(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Modern: modern, Tools: []upstreamtest.Tool{
			{Name: "log", Run: func(c *upstreamtest.Call) string {
				c.Event("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\ndata: \"params\":{\"level\":\"info\",\"logger\":\"disk\",\"data\":\ndata: {\"free\":9007199254740993}}}")
				c.Log("error", "", `"two"`)
				return upstreamtest.Text("done")
			}},
		}})
		s := open(t, srv)
		var h heard
		if _, err := s.Call(t.Context(), "log", nil, nil, h.onLog); err != nil {
			t.Fatal(err)
		}
		_, logs := h.all()
		if diff := cmp.Diff([]string{`info disk {"free":9007199254740993}`, `error  "two"`}, logs); diff != "" {
			t.Errorf("modern %v: logs (-want +got):\n%s", modern, diff)
		}
		if level := strings.Contains(srv.Requests("tools/call")[0].Body, `"io.modelcontextprotocol/logLevel":"debug"`); level != modern {
			t.Errorf("modern %v: a log level was sent: %v", modern, level)
		}
	}
}

func TestRequestsOfTheServerAreAnswered(t *testing.T) {
	t.Parallel()
	answers := make(chan upstreamtest.Message, 4)
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		{Name: "ask", Run: func(c *upstreamtest.Call) string {
			for _, method := range []string{"ping", "elicitation/create", "sampling/createMessage", "roots/list"} {
				answers <- c.Ask(method, `{}`)
			}
			return upstreamtest.Text("done")
		}},
	}})
	mustCall(t, open(t, srv), "ask", `{}`)
	if a := <-answers; string(a.Result) != `{}` || a.Error != nil {
		t.Errorf("ping is answered %s %s, want {}", a.Result, a.Error)
	}
	for range 3 {
		if a := <-answers; a.Result != nil || !strings.Contains(string(a.Error), `"code":-32601`) {
			t.Errorf("a request is answered %s %s, want error -32601", a.Result, a.Error)
		}
	}
}

func TestListChangedIsHeardAcrossStreams(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{ListChanged: true, Modern: modern})
		changed := make(chan struct{}, 16)
		d := dialTo(t, srv.URL)
		d.OnListChanged = func() { changed <- struct{}{} }
		s := openTo(t, d)
		s.Listen()
		s.Listen()
		for round := range 2 {
			eventually(t, "someone listens", func() bool { return srv.Changed() > 0 })
			select {
			case <-changed:
			case <-time.After(patience):
				t.Fatalf("modern %v, round %d: the change was not heard", modern, round)
			}
			srv.DropStreams()
		}
		s.Close(t.Context())
		if got, want := len(srv.Requests("DELETE")), map[bool]int{false: 1, true: 0}[modern]; got != want {
			t.Errorf("modern %v: %d DELETE requests, want %d", modern, got, want)
		}
		if srv.Sessions() != 0 {
			t.Error("the session outlives its end")
		}
	}
}

func TestNoStreamWhereTheServerDoesNotTellOfChanges(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	d := dialTo(t, srv.URL)
	d.OnListChanged = func() {}
	s := openTo(t, d)
	s.Listen()
	for range 50 { // by then it would have been
		mustCall(t, s, "echo", `{}`)
	}
	s.Close(t.Context())
	if n := len(srv.Requests("GET")); n != 0 {
		t.Errorf("%d streams were opened", n)
	}
	if _, err := call(t, s, "echo", `{}`); err == nil {
		t.Error("a call in a session that was closed has a result")
	}
}

func TestStreamThatEndsEarlyIsGoneOnWith(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	s := open(t, srv)
	var id atomic.Value
	var resumed atomic.Int32
	srv.Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		w.Header().Set("Content-Type", "text/event-stream")
		switch {
		case m.Method == "tools/call":
			id.Store(string(m.ID))
			_, _ = io.WriteString(w, "id: ev-1\nretry: 1\ndata: \n\n")
		case r.Header.Get("Last-Event-ID") == "ev-1" && resumed.Add(1) == 1:
			_, _ = io.WriteString(w, ": nothing yet\n\n")
		case r.Header.Get("Last-Event-ID") == "ev-1":
			_, _ = io.WriteString(w, "id: ev-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n")
		case r.Header.Get("Last-Event-ID") == "ev-2":
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id.Load())
		default:
			return false
		}
		return true
	})
	var h heard
	result, err := s.Call(t.Context(), "poll", nil, nil, h.onLog)
	if err != nil || string(result) != `{"content":[]}` {
		t.Errorf("call = %s, %v", result, err)
	}
	if _, logs := h.all(); len(logs) != 1 {
		t.Errorf("logs = %q, want the one of the second stream", logs)
	}
	if n := len(srv.Requests("tools/call")); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
}

func TestFloodOfNotificationsIsPaced(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		upstreamtest.Echo,
		{Name: "flood", Run: func(c *upstreamtest.Call) string {
			for i := range 3000 {
				c.Progress(float64(i), 0, "")
			}
			return upstreamtest.Text("done")
		}},
		{Name: "drown", Run: func(c *upstreamtest.Call) string {
			for c.Err() == nil {
				c.Event(": " + long)
			}
			return ""
		}},
	}})
	s := open(t, srv)
	start := time.Now()
	var h heard
	if _, err := s.Call(t.Context(), "flood", nil, h.onProgress, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < time.Second {
		t.Errorf("3000 notifications were heard within %s, want a pace", took)
	}
	if progress, _ := h.all(); len(progress) != 3000 {
		t.Errorf("%d of 3000 were heard", len(progress))
	}
	_, err := call(t, s, "drown", `{}`)
	assertRefused(t, "a stream without end", err, reason.TooLarge)
	mustCall(t, s, "echo", `{}`)
}

func TestAnswerThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	large := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 10<<20) + `"}]}`
	for _, sse := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{SSE: sse, Tools: []upstreamtest.Tool{
			{Name: "large", Run: func(*upstreamtest.Call) string { return large }},
			{Name: "fits", Run: func(*upstreamtest.Call) string { return upstreamtest.Text(strings.Repeat("x", 1<<20)) }},
		}})
		s := open(t, srv)
		mustCall(t, s, "fits", `{}`)
		_, err := call(t, s, "large", `{}`)
		assertRefused(t, fmt.Sprintf("events %v", sse), err, reason.TooLarge)
		if !errors.Is(err, upstream.ErrOutcomeUnknown) {
			t.Errorf("events %v: %v, want that it is not made again", sse, err)
		}
	}
}

func TestManyCallersShareOneSessionAndItsConnections(t *testing.T) {
	t.Parallel()
	for _, sse := range []bool{false, true} {
		srv := upstreamtest.Start(t, upstreamtest.Options{SSE: sse})
		s := open(t, srv)
		var wg sync.WaitGroup
		for caller := range 64 {
			wg.Go(func() {
				for i := range 10 {
					want := fmt.Sprintf(`{"caller":%d,"i":%d}`, caller, i)
					got, err := s.Call(t.Context(), "echo", jsontext.Value(want), nil, nil)
					if err != nil || !strings.HasSuffix(string(got), `"structuredContent":`+want+`}`) {
						t.Errorf("call %s = %s, %v", want, got, err)
					}
				}
			})
		}
		wg.Wait()
		// A stream is read to its end beside the next call, which may need a connection meanwhile.
		if n := srv.Connections(); n > 200 {
			t.Errorf("events %v: %d connections for 640 calls of 64 callers", sse, n)
		}
		if n := len(srv.Requests("initialize")); n != 1 {
			t.Errorf("%d sessions were opened", n)
		}
	}
}

func TestStreamThatEndsAfterItsAnswerLeavesItsConnection(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	s := open(t, srv)
	answered, ended := make(chan struct{}), make(chan struct{})
	srv.Script(func(w http.ResponseWriter, _ *http.Request, m upstreamtest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
		_ = http.NewResponseController(w).Flush()
		<-answered
		ended <- struct{}{}
		return true
	})
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.Call(ctx, "echo", nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		cancel()                                    // as the end of an agent's request does
		if err := s.Ping(t.Context()); err != nil { // on another connection, and time enough to notice
			t.Fatal(err)
		}
		answered <- struct{}{}
		<-ended
	}
	if n := srv.Connections(); n > 10 {
		t.Errorf("%d connections for 20 calls, one after the other", n)
	}
}

func TestUnauthorisedServerIsToldApart(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: "right"})
	d := dialTo(t, srv.URL)
	_, err := tryOpen(t, d)
	assertRefused(t, "without a credential", err, reason.UpstreamUnauthorized)
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests were sent, want the one that was refused", n)
	}
}

func TestProgressOnTheServersOwnStreamReachesItsCall(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	var srv *upstreamtest.Server
	srv = upstreamtest.Start(t, upstreamtest.Options{ListChanged: true, Tools: []upstreamtest.Tool{
		{Name: "work", Run: func(c *upstreamtest.Call) string {
			srv.Broadcast(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + c.Token() + `,"progress":1}}`)
			<-sent
			return upstreamtest.Text("done")
		}},
	}})
	d := dialTo(t, srv.URL)
	d.OnListChanged = func() {}
	s := openTo(t, d)
	s.Listen()
	eventually(t, "someone listens", func() bool { return srv.Changed() > 0 })
	_, err := s.Call(t.Context(), "work", nil, func(p catalog.Progress) {
		if p.Done != 1 {
			t.Errorf("progress = %+v", p)
		}
		close(sent)
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
