package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// A talker is a source of tools that talk to the client while they run.
type talker struct {
	started   chan string   // which tool began
	release   chan struct{} // lets wait finish
	cancelled chan struct{} // a context ended
}

func newTalker() *talker {
	return &talker{make(chan string, 64), make(chan struct{}), make(chan struct{}, 64)}
}

func (*talker) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for _, name := range []string{"wait", "progress", "ask", "log"} {
		list = append(list, catalog.Tool{Vendor: "talk", Name: name, Title: name, Description: "Talks.", ReadOnly: true, InputSchema: jsontext.Value(`{"type":"object"}`)})
	}
	return list, nil
}

func (s *talker) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	s.started <- r.Tool.Name
	switch r.Tool.Name {
	case "wait":
		select {
		case <-s.release:
		case <-ctx.Done():
			s.cancelled <- struct{}{}
			return catalog.Output{}, ctx.Err()
		}
	case "progress":
		for i := range 20 {
			r.Client.Progress(catalog.Progress{Done: float64(i), Total: 20, Message: fmt.Sprintf("step %d", i)})
		}
	case "log":
		for _, level := range []string{"debug", "info", "error"} {
			r.Client.Log(level, "talk", jsontext.Value(`"at `+level+`"`))
		}
	case "ask":
		a, err := r.Client.Ask(ctx, catalog.Question{Key: "q", Message: "Which?", Schema: jsontext.Value(`{"type":"object","properties":{"x":{"type":"string"}}}`)})
		if err != nil {
			return catalog.Output{}, err
		}
		b, err := json.Marshal(map[string]any{"action": a.Action, "content": json.RawMessage(orNull(a.Content))})
		return catalog.Output{Value: b}, err
	}
	return catalog.Output{Value: jsontext.Value(`"done"`)}, nil
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// A flow is one POST whose answer is read as it comes.
type flow struct {
	t      *testing.T
	resp   *http.Response
	cancel context.CancelFunc
	events chan string // data of each event; closed at the end
	lines  chan string // everything
}

func (c *client) start(t *testing.T, body string, headers ...string) *flow {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &flow{t: t, cancel: cancel, events: make(chan string, 1024), lines: make(chan string, 4096)}
	f.resp = c.send(ctx, http.MethodPost, c.url, strings.NewReader(body), headers...) //nolint:bodyclose // closed when the test ends
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(f.events)
		defer close(f.lines)
		for s := bufio.NewScanner(f.resp.Body); s.Scan(); {
			f.lines <- s.Text()
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				f.events <- data
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = f.resp.Body.Close()
		<-done
	})
	return f
}

func (f *flow) next() string {
	f.t.Helper()
	select {
	case e, ok := <-f.events:
		if !ok {
			f.t.Fatal("the stream ended")
		}
		return e
	case <-time.After(patience):
		f.t.Fatal("nothing came")
	}
	return ""
}

func callBody(id, tool, extra string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"talk__` + tool + `"` + extra + `}}`
}

// mcp-go sends progress to the wrong stream of a session, and loses the last notification before a result.
func TestFaultProgressIsOnItsOwnStreamAndNoneIsLost(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newTalker()}})
	c := connect(t, k, "2025-06-18")
	listener := c.listen()
	type run struct {
		token string
		flow  *flow
	}
	var runs []run
	for i := range 8 {
		token := fmt.Sprintf(`"t%d"`, i)
		if i%2 == 0 {
			token = fmt.Sprint(900719925474099300 + i)
		}
		runs = append(runs, run{token, c.start(t, callBody(fmt.Sprint(i), "progress", `,"_meta":{"progressToken":`+token+`}`))})
	}
	for i, r := range runs {
		for step := range 20 {
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":20,"message":"step %d"}}`, r.token, step, step)
			got := r.flow.next()
			if step == 0 { // the first says under which id the call is found should its answer not arrive
				got = regexp.MustCompile(`"_meta":\{"graft/runId":"run_[0-9a-z]{26}"\},`).ReplaceAllString(got, "")
				if strings.Count(got, "graft/runId") > 0 || !strings.HasPrefix(got, `{"jsonrpc"`) {
					t.Errorf("stream %d: %s", i, got)
				}
			}
			if got != want {
				t.Fatalf("stream %d: %s, want %s", i, got, want)
			}
		}
		if got := r.flow.next(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"result"`, i)) {
			t.Errorf("stream %d ends with %s, want its result", i, got)
		}
		if _, more := <-r.flow.events; more {
			t.Errorf("stream %d goes on after its result", i)
		}
	}
	// Without a token nobody is told, and a client that takes JSON alone gets its result.
	if a := c.post(callBody("1", "progress", "")); a.header.Get("Content-Type") != "application/json" {
		t.Errorf("without a token the answer is %s", a.header.Get("Content-Type"))
	}
	if a := c.post(callBody("1", "progress", `,"_meta":{"progressToken":1}`), "Accept: application/json"); a.header.Get("Content-Type") != "application/json" || resultOf(t, a).text() != `"done"` {
		t.Errorf("for JSON alone the answer is %s %s", a.header.Get("Content-Type"), a.body)
	}
	k.StopAll()
	for _, line := range listener.ended() {
		if strings.Contains(line, "progress") {
			t.Errorf("progress on the GET stream: %s", line)
		}
	}
}

// A10: a long call turns into a stream with headers at once, and is kept alive by comments.
func TestA10LongCallsBecomeStreams(t *testing.T) {
	t.Parallel()
	s := newTalker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}, KeepAlive: 30 * time.Millisecond})
	c := connect(t, k, "2025-06-18")
	f := c.start(t, callBody("1", "wait", "")) // returns when the headers are there
	if h := f.resp.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Length") != "" {
		t.Errorf("headers = %v", h)
	}
	for comments := 0; comments < 3; {
		if strings.HasPrefix(<-f.lines, ":") {
			comments++
		}
	}
	close(s.release)
	if got := f.next(); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("the answer = %s", got)
	}
}

// In the sessions era a closed connection does not cancel; a notification does, whichever replica it reaches. At
// 2026-07-28 closing the response cancels.
func TestCancellation(t *testing.T) {
	t.Parallel()
	s := newTalker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-06-18")
	cancel := func(id string) {
		if a := c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`); a.status != http.StatusAccepted {
			t.Fatalf("cancelled = %d %s", a.status, a.body)
		}
	}
	ended := func(what string) {
		t.Helper()
		select {
		case <-s.cancelled:
		case <-time.After(patience):
			t.Fatalf("%s was not cancelled", what)
		}
	}
	// The call and its cancellation land on the same and on different replicas: the proxy takes turns.
	inTurns := func(name string, calls int) {
		t.Helper()
		for i := range calls {
			id := fmt.Sprintf(`"%s-%d"`, name, i)
			f := c.start(t, callBody(id, "wait", ""))
			<-s.started
			if i%2 == 0 {
				c.post(ping)
			}
			cancel(`"someone-elses"`)
			cancel(id)
			ended(id)
			if got := f.next(); !strings.Contains(got, `"id":`+id) || !strings.Contains(got, "cancelled") {
				t.Errorf("the cancelled call answers %s", got)
			}
		}
	}
	inTurns("call", 4)

	// mcp-go compares ids by how they print, so that "5" cancels 5. What is cancelled after it, on every replica, ends
	// alone: by then "5" has been heard everywhere.
	five := c.start(t, callBody("5", "wait", ""))
	<-s.started
	cancel(`"5"`)
	c.post(ping)
	cancel(`"5"`)
	inTurns("after", 2)
	select {
	case <-s.cancelled:
		t.Fatal(`"5" cancelled 5`)
	default:
	}
	cancel("5")
	ended("5")
	five.next()

	gone := c.start(t, callBody("9", "wait", ""))
	<-s.started
	gone.cancel()
	modern := stateless(c)
	dropped := modern.startStateless(t, "tools/call", `"name":"talk__wait"`, `Mcp-Name: talk__wait`)
	<-s.started
	dropped.cancel()
	ended("the call whose answer was closed at 2026-07-28") // of the two, only that one
	select {
	case <-s.cancelled:
		t.Error("a closed connection cancelled a call of the sessions era")
	default:
	}
	close(s.release)
}

// A12: DELETE ends what runs in the session.
func TestA12DeleteCancelsWhatRuns(t *testing.T) {
	t.Parallel()
	s := newTalker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	for range 2 {
		c := connect(t, k, "2025-06-18")
		c.start(t, callBody("1", "wait", ""))
		<-s.started
		if a := c.do(http.MethodDelete, c.url, nil); a.status != http.StatusNoContent {
			t.Fatalf("DELETE = %d", a.status)
		}
		select {
		case <-s.cancelled:
		case <-time.After(patience):
			t.Fatal("the running call goes on")
		}
	}
}

// A question goes out on the call's own stream, and its answer may reach any replica; one from another session, or
// with an id that was not asked, changes nothing.
func TestElicitationAcrossReplicas(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newTalker()}})
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	open := func(version string) {
		c.session, c.version = "", ""
		a := c.post(strings.Replace(initialize(version), `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
		c.session, c.version = a.header.Get("Mcp-Session-Id"), version
	}
	open("2025-11-25")
	other := connect(t, k, "2025-11-25")
	seen := map[string]bool{}
	for i := range 6 {
		f := c.start(t, callBody(fmt.Sprint(i), "ask", ""))
		var question struct {
			ID     string
			Method string
			Params struct {
				Mode, Message   string
				RequestedSchema json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(f.next()), &question); err != nil || question.Method != "elicitation/create" || question.Params.Mode != "form" || question.Params.Message != "Which?" {
			t.Fatalf("question = %+v, %v", question, err)
		}
		if len(question.ID) < 20 || seen[question.ID] {
			t.Errorf("the id %q can be guessed", question.ID)
		}
		seen[question.ID] = true
		if i%2 == 0 {
			c.post(ping) // turn the proxy
		}
		reply := `{"jsonrpc":"2.0","id":"` + question.ID + `","result":{"action":"accept","content":{"x":"` + fmt.Sprint(i) + `"}}}`
		if a := other.post(reply); a.status != http.StatusAccepted {
			t.Errorf("another session's answer = %d, want 202", a.status)
		}
		if a := c.post(strings.Replace(reply, question.ID, "made-up", 1)); a.status != http.StatusAccepted {
			t.Errorf("an answer to nothing = %d, want 202", a.status)
		}
		if a := c.post(reply); a.status != http.StatusAccepted {
			t.Errorf("the answer = %d, want 202", a.status)
		}
		if got := f.next(); !strings.Contains(got, fmt.Sprintf(`{\"action\":\"accept\",\"content\":{\"x\":\"%d\"}}`, i)) {
			t.Errorf("call %d = %s", i, got)
		}
	}
	for name, reply := range map[string]string{
		"an error":  `"error":{"code":-32603,"message":"no form here"}`,
		"no action": `"result":{"content":{}}`,
	} {
		f := c.start(t, callBody("1", "ask", ""))
		var question struct{ ID string }
		_ = json.Unmarshal([]byte(f.next()), &question)
		c.post(`{"jsonrpc":"2.0","id":"` + question.ID + `",` + reply + `}`)
		if got := f.next(); !strings.Contains(got, "ask_unavailable") {
			t.Errorf("%s = %s, want ask_unavailable", name, got)
		}
	}
	// A client that declared nothing is never asked, and one that takes JSON alone cannot be.
	if got := other.call("talk__ask", `{}`); !got.IsError || !strings.Contains(got.text(), "ask_unavailable") {
		t.Errorf("without the capability = %s", got.text())
	}
	a := c.post(callBody("1", "ask", ""), "Accept: application/json")
	if got := resultOf(t, a); !strings.Contains(got.text(), "ask_unavailable") {
		t.Errorf("for JSON alone = %s", got.text())
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newTalker()}})
	c := connect(t, k, "2025-11-25")
	logged := func() string {
		var got []string
		for e := range c.start(t, callBody("1", "log", "")).events {
			if strings.Contains(e, "notifications/message") {
				got = append(got, e[strings.Index(e, `"at `)+4:strings.LastIndex(e, `"}}`)])
			}
		}
		return strings.Join(got, " ")
	}
	if got := logged(); got != "info error" {
		t.Errorf("logged with no level set: %q, want info and above", got)
	}
	if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`); a.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("setLevel = %s", a.body)
	}
	eventually(t, "the level on both replicas", onEachReplica(func() bool { return logged() == "error" }))
	if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`); !strings.Contains(a.body, "-32602") {
		t.Errorf("setLevel loud = %s", a.body)
	}
}
