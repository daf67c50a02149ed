package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// reads is a tool that says it only reads.
func reads(name, more string, run func(*upstreamtest.Call) string) upstreamtest.Tool {
	return upstreamtest.Tool{Name: name, Run: run, Listed: `{"name":"` + name + `","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}` + more + `}`}
}

// answers is a tool that always answers the same.
func answers(name, more, result string) upstreamtest.Tool {
	return reads(name, more, func(*upstreamtest.Call) string { return result })
}

// on is the client at one replica, past the proxy.
func (c *client) on(k *servertest.Kit, replica int) *client {
	at := *c
	at.url = k.Replicas()[replica].URL + "/mcp"
	return &at
}

// raw calls a tool and returns the whole result as it came.
func (c *client) raw(name, args string) string {
	c.t.Helper()
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`)
	return rawResult(c.t, a)
}

func rawResult(t testing.TB, a answer) string {
	t.Helper()
	var m struct{ Result json.RawMessage }
	if err := json.Unmarshal(a.payload(), &m); err != nil || m.Result == nil {
		t.Fatalf("answer %d is no result: %.400s (%v)", a.status, a.body, err)
	}
	return string(m.Result)
}

// sameJSON reports whether two texts are the same JSON, each number as it is written.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			t.Fatalf("%.300s: %v", text, err)
		}
	}
	return cmp.Equal(values[0], values[1])
}

// C04: structured content arrives as it left, whatever the output schema says; only where it stands alone is it given a
// text.
func TestFieldC04StructuredContentThroughTheGateway(t *testing.T) {
	t.Parallel()
	const schema = `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	long := `{"s":"` + strings.Repeat("é", 70_000) + `"}`
	for _, modernUpstream := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modernUpstream), func(t *testing.T) {
			t.Parallel()
			results := map[string]struct{ says, want string }{
				"alone":      {`{"content":[],"structuredContent":{"n":9007199254740993}}`, `{"content":[{"type":"text","text":"{\"n\":9007199254740993}"}],"structuredContent":{"n":9007199254740993}}`},
				"spaced":     {`{"content": [ ] ,"structuredContent":{"n":1},"_meta":{"a/b":1.50}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1},"_meta":{"a/b":1.50}}`},
				"no_content": {`{"structuredContent":{"n":1}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
				"null":       {`{"content":null,"structuredContent":{"n":1}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
				"nothing":    {`{}`, `{"content":[]}`},
				"empty":      {`{"content":[]}`, `{"content":[]}`},
				"both":       {`{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`, ""},
				"mismatch":   {`{"content":[{"type":"text","text":"x"}],"structuredContent":{"other":true}}`, ""},
				"text_only":  {`{"content":[{"type":"text","text":"{\"n\":1}"}]}`, ""},
				"failed":     {`{"content":[{"type":"text","text":"no"}],"structuredContent":{"code":7},"isError":true}`, ""},
				"failed_empty": {
					`{"content":[],"structuredContent":{"code":7},"isError":true}`,
					`{"content":[{"type":"text","text":"{\"code\":7}"}],"structuredContent":{"code":7},"isError":true}`,
				},
			}
			var tools []upstreamtest.Tool
			for name, r := range results {
				tools = append(tools, answers(name, schema, r.says))
			}
			tools = append(tools, answers("long", schema, `{"content":[],"structuredContent":`+long+`}`))
			k := servertest.Start(t, servertest.Options{})
			up := upstreamtest.Start(t, upstreamtest.Options{Tools: tools, Modern: modernUpstream})
			addUpstream(t, k, "tracker", up, 60)
			c := connect(t, k, "2025-11-25")
			for name, r := range results {
				if r.want == "" {
					r.want = r.says
				}
				if got := c.raw("tracker__"+name, `{}`); !sameJSON(t, got, r.want) {
					t.Errorf("%s = %s\nwant %s", name, got, r.want)
				}
				m := stateless(c).request("tools/call", `"name":"tracker__`+name+`","arguments":{}`, "Mcp-Name: tracker__"+name)
				if got := rawResult(t, m); !strings.Contains(got, `"resultType":"complete"`) || m.status != http.StatusOK {
					t.Errorf("%s at 2026-07-28 = %d %s", name, m.status, got)
				}
			}
			got := c.call("tracker__long", `{}`)
			if string(got.Structured) != long || !strings.HasPrefix(got.text(), `{"result":null,"truncated":true,`) || !strings.Contains(got.text(), `"resultRef":"res_`) {
				t.Errorf("long structured content = %d bytes, with the text %.100q, want it whole and its head as text", len(got.Structured), got.text())
			}
		})
	}
}

// addUpstream puts up behind the gateway; its hints are believed and its tools listed.
func addUpstream(t *testing.T, k *servertest.Kit, name string, up *upstreamtest.Server, callSeconds int32) {
	t.Helper()
	all := true
	u := k.Upstream(t, upstream.Addition{Name: name, URL: up.URL, Settings: store.UpstreamSettings{
		TrustHints: true, ListAll: &all, ConnectSeconds: 10, CallSeconds: callSeconds,
	}})
	if u.LastError != "" {
		t.Fatalf("%s could not be listed: %s", name, u.LastError)
	}
}

// C05: every block, known or not, and what hangs on it arrives as it left.
func TestFieldC05BlocksThroughTheGateway(t *testing.T) {
	t.Parallel()
	const blocks = `{"type":"text","text":"é\u00e9\u2028","annotations":{"audience":["user"],"priority":0.10}},` +
		`{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","_meta":{"a/b":1.50}},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},` +
		`{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///y","blob":"AA==","mimeType":"application/octet-stream"}},` +
		`{"type":"hologram","x":1e400}`
	results := map[string]string{
		"blocks":  `{"content":[` + blocks + `],"_meta":{"z":[1,2]}}`,
		"lines":   "{\"content\":[\r\n" + strings.ReplaceAll(blocks, ",{", ",\n  {") + "\n]}",
		"large":   `{"content":[` + blocks + `,{"type":"image","data":"` + strings.Repeat("QUJD", 100_000) + `","mimeType":"image/png"}],"_meta":{"z":[1,2]}}`,
		"doubled": `{"content":[` + blocks + `],"_meta":{"z":1,"z":2},"isError":true}`,
		"halved":  "{\"content\":[\n{\"type\":\"text\",\"text\":\"a\\ud800b\"}],\"isError\":true}",
	}
	var tools []upstreamtest.Tool
	for name, result := range results {
		tools = append(tools, answers(name, "", result))
	}
	k := servertest.Start(t, servertest.Options{})
	addUpstream(t, k, "tracker", upstreamtest.Start(t, upstreamtest.Options{Tools: tools}), 60)
	c := connect(t, k, "2025-11-25")
	for name, want := range results {
		if got := c.raw("tracker__"+name, `{}`); !sameJSON(t, got, want) {
			t.Errorf("%s = %.600s\nwant %.600s", name, got, want)
		}
		m := stateless(c).request("tools/call", `"name":"tracker__`+name+`","arguments":{}`, "Mcp-Name: tracker__"+name)
		if got := rawResult(t, m); !sameJSON(t, members(t, got, "content"), members(t, want, "content")) || members(t, got, "resultType") != `"complete"` {
			t.Errorf("%s at 2026-07-28 = %.600s", name, got)
		}
	}
	for outcome, want := range map[string]int{"error": 4, "ok": 6} { // doubled and halved failed, in either era
		eventually(t, fmt.Sprintf("%d calls are written down as %s", want, outcome), func() bool { return audited(t, k, outcome) == want })
	}
}

// A long text is cut, and nothing else of its result is lost: not that the tool failed, and not what stands beside it.
func TestALongResultKeepsAllButItsText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a\\n", 40_000)
	huge := strings.Repeat("b", 5<<20)
	k := servertest.Start(t, servertest.Options{})
	up := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		answers("long", "", `{"_meta":{"z":1,"z":2},"content":[{"annotations":{"priority":0.10},"type":"text","text":"`+text+`","_meta":{"a/b":1}},{"type":"text","text":"short"}],`+
			`"structuredContent":{"n":9007199254740993},"isError":true}`),
		answers("huge", "", `{"content":[{"type":"text","text":"`+huge+`"}],"isError":true}`),
	}})
	addUpstream(t, k, "tracker", up, 60)
	c := connect(t, k, "2025-11-25")
	var got struct {
		Content []struct {
			Annotations struct{ Priority json.Number }
			Text        string
			Meta        json.RawMessage `json:"_meta"`
		}
		Meta              json.RawMessage `json:"_meta"`
		StructuredContent json.RawMessage
		IsError           bool
		Rest              json.RawMessage
	}
	raw := c.raw("tracker__long", `{}`)
	unmarshal(t, raw, &got)
	if !got.IsError || string(got.StructuredContent) != `{"n":9007199254740993}` || got.Meta == nil || strings.Contains(raw, "Rest") {
		t.Errorf("what stands beside a long text = %+v", got)
	}
	if b := got.Content; len(b) != 2 || b[0].Annotations.Priority != "0.10" || string(b[0].Meta) != `{"a/b":1}` || b[1].Text != "short" ||
		!strings.HasPrefix(b[0].Text, `{"result":null,"truncated":true,"head":"`) || !strings.Contains(b[0].Text, `"resultRef":"res_`) {
		t.Errorf("blocks = %.300v, want the head of the first, with what hangs on it, and the second", b)
	}
	if got := c.call("tracker__huge", `{}`); !got.IsError || !strings.Contains(got.text(), `"resultRef":"res_`) {
		t.Errorf("a failure of 5 MiB: isError %v, %.100q, want an error with its head", got.IsError, got.text())
	}
}

// members is one member of an object.
func members(t testing.TB, object, name string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatal(err)
	}
	return string(m[name])
}

// audited is how many calls of the organisation are written down with an outcome.
func audited(t testing.TB, k *servertest.Kit, outcome string) int {
	t.Helper()
	var links []store.AuditLink
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) (err error) {
		links, err = tx.AuditEntries(t.Context(), store.AuditFilter{Kind: audit.Call, Outcome: outcome})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(links)
}

// C08: the client hears progress under its own token, or none; it only grows, and ends with the result.
func TestFieldC08ProgressThroughTheGateway(t *testing.T) {
	t.Parallel()
	work := reads("work", "", func(c *upstreamtest.Call) string {
		for _, done := range []float64{0, 0.5, 0.5, 0.25, 2, 1, 3} {
			c.Progress(done, 3, "step")
		}
		c.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p-é","progress":50}}`) // not what it was given
		return upstreamtest.Text("done " + c.Token())
	})
	k := servertest.Start(t, servertest.Options{})
	up := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{work}})
	addUpstream(t, k, "tracker", up, 60)
	c := connect(t, k, "2025-06-18")
	for replica := range 2 {
		for _, token := range []string{`"p-é"`, `0`, `""`, `9007199254740993`, ``} {
			meta := ""
			if token != "" {
				meta = `"_meta":{"progressToken":` + token + `},`
			}
			f := c.on(k, replica).start(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{`+meta+`"name":"tracker__work"}}`)
			var got []string
			var lines []string
			for line := range f.lines {
				if lines = append(lines, line); strings.HasPrefix(line, "data: ") || strings.HasPrefix(line, "{") {
					got = append(got, strings.TrimPrefix(line, "data: "))
				}
			}
			if len(got) == 0 || !strings.Contains(got[len(got)-1], `"result":{`) {
				t.Fatalf("token %s: the answer does not end with its result: %q", token, lines)
			}
			var values []float64
			for _, message := range got[:len(got)-1] {
				var m struct {
					Method string
					Params struct {
						ProgressToken   json.RawMessage
						Progress, Total float64
						Message         string
					}
				}
				unmarshal(t, message, &m)
				values = append(values, m.Params.Progress)
				if m.Method != "notifications/progress" || token == "" || !sameJSON(t, string(m.Params.ProgressToken), token) || m.Params.Total != 3 || m.Params.Message != "step" {
					t.Errorf("token %s: the client hears %s", token, message)
				}
			}
			want := []float64{0, 0.5, 2, 3}
			if token == "" {
				want = nil
			}
			if !slices.Equal(values, want) {
				t.Errorf("token %s: progress = %v, want %v", token, values, want)
			}
		}
	}
	for _, r := range up.Requests("tools/call") {
		if strings.Contains(r.Body, `"progressToken":"`) {
			t.Errorf("the client's token reached the upstream: %s", r.Body)
		}
	}
}

// A waiter is a tool that runs until it is released or cancelled, and says which.
type waiter struct {
	began   chan struct{}
	release chan struct{}
	ended   chan string
}

func newWaiter() *waiter {
	return &waiter{make(chan struct{}, 16), make(chan struct{}), make(chan string, 16)}
}

func (w *waiter) tool() upstreamtest.Tool {
	return reads("wait", "", func(c *upstreamtest.Call) string {
		w.began <- struct{}{}
		select {
		case <-c.Done():
			w.ended <- "cancelled"
		case <-w.release:
			w.ended <- "released"
		}
		return upstreamtest.Text("over")
	})
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: it did not come", what)
	}
	panic("unreachable")
}

// C08: a cancelled call is cancelled at the upstream, under the id that the upstream knows, whichever replica hears of it.
// A connection that closes cancels at 2026-07-28 alone.
func TestFieldC08CancellationThroughTheGateway(t *testing.T) {
	t.Parallel()
	for _, modernUpstream := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modernUpstream), func(t *testing.T) {
			t.Parallel()
			w := newWaiter()
			k := servertest.Start(t, servertest.Options{})
			up := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{w.tool()}, Modern: modernUpstream})
			addUpstream(t, k, "tracker", up, 60)
			c := connect(t, k, "2025-06-18")
			told := func() (ids []string) { // of the calls that the upstream was told to cancel
				for _, r := range up.Requests("notifications/cancelled") {
					var p struct{ RequestID json.RawMessage }
					unmarshal(t, string(r.Params), &p)
					ids = append(ids, r.Header.Get("Mcp-Session-Id")+" "+string(p.RequestID))
				}
				return ids
			}
			lastCall := func() string {
				calls := up.Requests("tools/call")
				r := calls[len(calls)-1]
				return r.Header.Get("Mcp-Session-Id") + " " + string(r.ID)
			}
			var want []string
			for i, hears := range []int{0, 1} {
				id := fmt.Sprintf(`"mine-%d"`, i)
				f := c.on(k, 0).start(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"tracker__wait"}}`)
				receive(t, "the call", w.began)
				want = append(want, lastCall())
				if a := c.on(k, hears).post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`); a.status != http.StatusAccepted {
					t.Fatalf("cancelled = %d %s", a.status, a.body)
				}
				if got := receive(t, "its end", w.ended); got != "cancelled" {
					t.Errorf("the call heard of at replica %d was %s, want cancelled", hears, got)
				}
				if got := f.next(); !strings.Contains(got, `"cancelled"`) || strings.Contains(got, "over") {
					t.Errorf("the cancelled call answers %s", got)
				}
			}
			closed := c.start(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tracker__wait"}}`)
			receive(t, "the call", w.began)
			closed.cancel()
			dropped := stateless(c).startStateless(t, "tools/call", `"name":"tracker__wait"`, "Mcp-Name: tracker__wait")
			receive(t, "the call", w.began)
			want = append(want, lastCall())
			dropped.cancel()
			if got := receive(t, "the end of one", w.ended); got != "cancelled" {
				t.Errorf("the call whose answer was closed at 2026-07-28 was %s, want cancelled", got)
			}
			close(w.release)
			if got := receive(t, "the end of the other", w.ended); got != "released" {
				t.Errorf("a call of the sessions era whose connection closed was %s, want that it goes on", got)
			}
			if modernUpstream {
				want = nil // the closed response tells it
			}
			if got := told(); !slices.Equal(got, want) {
				t.Errorf("the upstream was told to cancel %q, want %q", got, want)
			}
		})
	}
}

// C09: what an upstream says of its list reaches every open stream once, and the next list has it.
func TestFieldC09ListChangedThroughTheGateway(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{KeepAlive: 500 * time.Millisecond})
	up := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{upstreamtest.Echo}, ListChanged: true})
	addUpstream(t, k, "tracker", up, 60)
	first := connect(t, k, "2025-11-25")
	second := &client{t: t, url: first.url, token: first.token}
	second.open("2025-11-25")
	var listeners []*listener
	for i, c := range []*client{first, second} {
		c = c.on(k, i)
		listeners = append(listeners, c.listen())
		if got := c.call("tracker__echo", `{"a":1}`); got.IsError {
			t.Fatalf("echo at replica %d = %s", i, got.text())
		}
	}
	streams := func() int { return len(up.Requests(http.MethodGet)) }
	eventually(t, "each replica listens to the upstream", func() bool { return streams() >= 2 })
	up.SetTools(upstreamtest.Echo, answers("fresh", "", upstreamtest.Text("new")))
	eventually(t, "the upstream is heard", func() bool { return up.Changed() >= 2 })
	for i, l := range listeners {
		l.wait("data: " + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`)
		// More than a window of list_changed passes.
		for beats := 0; beats < 6; {
			switch line := receive(t, "a keep-alive", l.lines); {
			case strings.HasPrefix(line, ": keep-alive"):
				beats++
			case strings.HasPrefix(line, "data: "):
				t.Errorf("replica %d also says %s, want one list_changed", i, line)
			}
		}
		if got := first.on(k, i).tools(); !slices.Contains(got, "tracker__fresh") {
			t.Errorf("tools at replica %d = %v, want tracker__fresh among them", i, got)
		}
		if got := first.on(k, i).call("tracker__fresh", `{}`); got.text() != "new" {
			t.Errorf("the new tool at replica %d = %q", i, got.text())
		}
	}
	up.SetTools(answers("fresh", "", upstreamtest.Text("new")))
	up.Changed()
	for i, l := range listeners {
		l.wait("data: ")
		eventually(t, "the tool is gone", func() bool { return !slices.Contains(first.on(k, i).tools(), "tracker__echo") })
		a := first.on(k, i).post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tracker__echo","arguments":{}}}`)
		if code, reason := rpcError(a); code != -32602 || reason != "tool_not_found" {
			t.Errorf("a removed tool at replica %d = %s, want -32602 tool_not_found", i, a.body)
		}
		if got := first.on(k, i).call("run_tool", `{"vendor":"tracker","name":"echo","input":{}}`); !got.IsError || !strings.Contains(got.text(), `"tool_not_found"`) {
			t.Errorf("a removed tool by run_tool at replica %d = %s, want tool_not_found", i, got.text())
		}
	}
}

// C11: nothing of the client's own request reaches an upstream.
func TestFieldC11NothingOfTheClientsReachesTheUpstream(t *testing.T) {
	t.Parallel()
	for _, modernUpstream := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modernUpstream), func(t *testing.T) {
			t.Parallel()
			k := servertest.Start(t, servertest.Options{})
			up := upstreamtest.Start(t, upstreamtest.Options{Modern: modernUpstream})
			addUpstream(t, k, "tracker", up, 60)
			c := connect(t, k, "2025-11-25")
			theirs := []string{"Cookie: a=canary-cookie", "X-Api-Key: canary-key", "User-Agent: canary-agent", "Mcp-Canary: canary-mcp", "X-Forwarded-For: 203.0.113.77", "Traceparent: 00-canary-trace"}
			body := `{"jsonrpc":"2.0","id":"canary-id","method":"tools/call","params":{"name":"tracker__echo","arguments":{"a":1},"_meta":{"canary":"meta","progressToken":"canary-token"}}}`
			if got := resultOf(t, c.post(body, theirs...)); got.IsError || string(got.Structured) != `{"a":1}` {
				t.Fatalf("echo = %s", got.text())
			}
			m := stateless(c).request("tools/call", `"name":"tracker__echo","arguments":{"a":1}`, append(theirs, "Mcp-Name: tracker__echo")...)
			if got := resultOf(t, m); got.IsError {
				t.Fatalf("echo at 2026-07-28 = %s", m.body)
			}
			wire := up.Wire()
			for _, secret := range []string{"canary", c.token, c.session, "203.0.113.77", "Cookie:", "Authorization:", "probe", "2025-11-25 "} {
				if strings.Contains(wire, secret) {
					t.Errorf("%q of the client reached the upstream", secret)
				}
			}
			if n := up.Runs("echo"); n != 2 {
				t.Errorf("echo ran %d times, want 2", n)
			}
		})
	}
}

// C07: an upstream that hangs costs its own calls alone, and they end by naming it.
func TestFieldC07HungUpstreamBesideAHealthyOne(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	hung, well := upstreamtest.Start(t, upstreamtest.Options{}), upstreamtest.Start(t, upstreamtest.Options{})
	addUpstream(t, k, "hung", hung, 2)
	addUpstream(t, k, "well", well, 60)
	c := connect(t, k, "2025-11-25")
	arrived := make(chan struct{}, 16)
	hung.Script(func(_ http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		arrived <- struct{}{}
		select {
		case <-hung.Done():
		case <-r.Context().Done():
		}
		return true
	})
	for replica := range 2 {
		at := c.on(k, replica)
		began := time.Now()
		f := at.start(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hung__echo","arguments":{}}}`)
		receive(t, "the call", arrived)
		listed := len(hung.Requests("tools/list"))
		if got := at.tools(); !slices.Contains(got, "hung__echo") || !slices.Contains(got, "well__echo") || len(hung.Requests("tools/list")) != listed {
			t.Errorf("tools beside a hung upstream = %v, want all of them, from memory", got)
		}
		for range 5 {
			if got := at.call("well__echo", `{"a":1}`); got.IsError {
				t.Errorf("the healthy upstream answers %s", got.text())
			}
		}
		if len(f.events) != 0 || time.Since(began) > 2*time.Second {
			t.Errorf("the healthy upstream took %s beside a hung one", time.Since(began))
		}
		got := f.next()
		for _, want := range []string{`"isError":true`, `\"timeout\"`, strings.TrimSuffix(strings.TrimPrefix(hung.URL, "http://"), "/mcp")} {
			if !strings.Contains(got, want) {
				t.Errorf("a call that hangs ends with %s, want %s in it", got, want)
			}
		}
		if took := time.Since(began); took < 2*time.Second || took > 10*time.Second {
			t.Errorf("a call that hangs ended after %s, want its upstream's 2 s", took)
		}
	}
}

// A call that ran out of time says that it may have been carried out: an agent that is told only of the time makes it again.
func TestACallThatRanOutOfTimeSaysThatItsOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWaiter()
	k := servertest.Start(t, servertest.Options{})
	addUpstream(t, k, "tracker", upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{w.tool()}}), 60)
	c := connect(t, k, "2025-11-25")
	got := c.call("run_tool", `{"vendor":"tracker","name":"wait","timeoutSeconds":1}`)
	if !got.IsError || !strings.Contains(got.text(), `"timeout"`) || !strings.Contains(got.text(), "Whether the call was carried out is not known") {
		t.Errorf("a call that ran out of its second = %s, want that its outcome is not known", got.text())
	}
	if got := receive(t, "its end", w.ended); got != "cancelled" {
		t.Errorf("the call was %s, want cancelled", got)
	}
}

// A tool that asks a client that cannot be asked is no fault of the gateway's: not in the answer, not in what is kept of a
// run, and not in the audit.
func TestAToolThatCannotAskIsNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	s := newTalker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	if got := c.call("run_tool", `{"vendor":"talk","name":"ask"}`); !strings.Contains(got.text(), `"ask_unavailable"`) {
		t.Errorf("a call that asks = %s, want ask_unavailable", got.text())
	}
	var run struct{ RunID string }
	unmarshal(t, string(c.call("run_tool", `{"vendor":"talk","name":"ask","detached":true}`).Structured), &run)
	if got := c.call("run_status", `{"runId":"`+run.RunID+`","waitSeconds":20}`); !strings.Contains(got.text(), `"reason":"ask_unavailable"`) {
		t.Errorf("a detached call that asks = %s, want ask_unavailable", got.text())
	}
	eventually(t, "both are written down as ask_unavailable", func() bool { return audited(t, k, "ask_unavailable") == 2 })
}
