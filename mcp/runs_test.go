package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// A worker is a source of tools that take long.
type worker struct {
	started chan struct{}
	release chan struct{} // lets wait finish
	ended   chan error    // how the context of wait stood when it ended
}

func newWorker() *worker {
	return &worker{make(chan struct{}, 64), make(chan struct{}), make(chan error, 64)}
}

func (*worker) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for _, name := range []string{"wait", "flood", "ask", "need"} {
		list = append(list, catalog.Tool{
			Vendor: "work", Name: name, Title: name, Description: "Works.", ReadOnly: true,
			InputSchema: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		})
	}
	return append(list, catalog.Tool{Vendor: "work", Name: "write", Title: "write", Description: "Writes.", InputSchema: jsontext.Value(`{"type":"object"}`)}), nil
}

func (s *worker) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	question := catalog.Question{Key: "q", Message: "Which?", Schema: jsontext.Value(`{"type":"object","properties":{"x":{"type":"string"}}}`)}
	switch r.Tool.Name {
	case "wait":
		r.Client.Progress(catalog.Progress{Done: 1, Total: 2, Message: "half"})
		s.started <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
		}
		s.ended <- ctx.Err()
		if ctx.Err() != nil {
			return catalog.Output{}, ctx.Err()
		}
	case "flood":
		for n := range 20_000 {
			r.Client.Progress(catalog.Progress{Done: float64(n), Message: "\x00\xff" + strings.Repeat("é", 2_000)})
		}
	case "ask":
		if _, err := r.Client.Ask(ctx, question); err != nil {
			return catalog.Output{}, err
		}
	case "need":
		return catalog.Output{}, &catalog.NeedInput{Questions: []catalog.Question{question}}
	}
	return catalog.Output{Value: jsontext.Value(`{"done":true}`)}, nil
}

// endedWithin waits until wait was cancelled.
func (s *worker) endedWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	began := time.Now()
	select {
	case err := <-s.ended:
		if took := time.Since(began); err == nil || took > limit {
			t.Errorf("the tool ended with %v after %v, want it cancelled within %v", err, took, limit)
		}
	case <-time.After(patience):
		t.Fatal("the tool goes on")
	}
}

// A shown is what run_status says of a run.
type shown struct {
	ID       string `json:"runId"`
	Tool     string
	Status   string
	Reason   string
	Progress []string
	Result   struct {
		result
		Meta map[string]string `json:"_meta"`
	}
}

func (c *client) detach(tool, more string) (run string) {
	c.t.Helper()
	got := c.call("run_tool", `{"vendor":"work","name":"`+tool+`","detached":true`+more+`}`)
	var in shown
	if err := json.Unmarshal(got.Structured, &in); err != nil || got.IsError || in.Status != "running" {
		c.t.Fatalf("run_tool detached = %s", got.text())
	}
	return in.ID
}

func (c *client) status(run string, wait int) (s shown) {
	c.t.Helper()
	got := c.call("run_status", fmt.Sprintf(`{"runId":%q,"waitSeconds":%d}`, run, wait))
	if err := json.Unmarshal(got.Structured, &s); err != nil || got.IsError {
		c.t.Fatalf("run_status = %s", got.text())
	}
	return s
}

func TestADetachedRunIsFollowedFromTheOtherReplica(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	run := c.at(k, 0).detach("wait", "")
	<-s.started
	if got := c.at(k, 1).status(run, 0); got.Status != "running" || got.Tool != "work__wait" {
		t.Errorf("run_status = %+v, want it running", got)
	}
	ended := make(chan shown, 1)
	go func() { ended <- c.at(k, 1).status(run, 20) }()
	close(s.release)
	began := time.Now()
	got := <-ended
	if got.Status != "succeeded" || got.Result.text() != `{"done":true}` || got.Result.Meta["graft/runId"] != run {
		t.Errorf("run_status = %+v, want its result", got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("run_status took %v, want it woken", took)
	}
	if len(got.Progress) != 1 || got.Progress[0] != "1/2 half" {
		t.Errorf("progress = %q", got.Progress)
	}
	other := connect(t, k, "2025-11-25")
	if got := other.call("run_status", `{"runId":"`+run+`"}`); !strings.Contains(got.text(), "run_not_found") {
		t.Errorf("another agent's run_status = %s", got.text())
	}
}

func TestRunStatusListsTheLastTen(t *testing.T) {
	t.Parallel()
	s := newWorker()
	close(s.release)
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	var run string
	for range 12 {
		run = c.detach("wait", "")
		c.status(run, 20)
	}
	var list struct{ Runs []shown }
	if err := json.Unmarshal(c.call("run_status", `{}`).Structured, &list); err != nil || len(list.Runs) != 10 || list.Runs[0].ID != run {
		t.Errorf("run_status = %+v, %v, want the last ten, newest first", list, err)
	}
}

func TestADetachedCallIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	refused := func(args, want string) {
		t.Helper()
		if got := c.call("run_tool", `{"vendor":"work","detached":true,`+args+`}`); !got.IsError || !strings.Contains(got.text(), `"reason":"`+want+`"`) {
			t.Errorf("%s = %s, want %s", args, got.text(), want)
		}
	}
	refused(`"name":"wait","input":{"n":"x"}`, "input_invalid")
	refused(`"name":"none"`, "tool_not_found")
	refused(`"name":"write"`, "awaiting_approval")
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		return tx.Approve(t.Context(), agent.ID, store.Approval{Tool: "work__write", Decision: store.Deny})
	})
	if err != nil {
		t.Fatal(err)
	}
	refused(`"name":"write"`, "tool_denied")
	if got := c.call("run_status", `{}`); got.text() != `{"runs":[]}` {
		t.Errorf("runs = %s, want none of what was refused", got.text())
	}
}

func TestDetachedRunsAreBounded(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	for range 20 {
		c.detach("wait", "")
	}
	for range 2 {
		if got := c.call("run_tool", `{"vendor":"work","name":"wait","detached":true}`); !strings.Contains(got.text(), "rate_limited") {
			t.Errorf("the 21st run = %s", got.text())
		}
	}
	close(s.release)
	eventually(t, "a run more once some have ended", func() bool {
		return !c.call("run_tool", `{"vendor":"work","name":"wait","detached":true}`).IsError
	})
}

func TestADetachedRunTimesOut(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	got := c.status(c.detach("wait", `,"timeoutSeconds":1`), 20)
	if got.Status != "failed" || got.Reason != "timeout" || !got.Result.IsError {
		t.Errorf("run_status = %+v, want timeout", got)
	}
}

// A tool that asks its person has nobody to ask in a detached run, and says so.
func TestADetachedRunCannotAsk(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newWorker()}})
	c := connect(t, k, "2025-11-25")
	for _, tool := range []string{"ask", "need"} {
		got := c.status(c.detach(tool, ""), 20)
		if got.Status != "failed" || got.Reason != "ask_unavailable" || !strings.Contains(got.Result.text(), `"reason":"ask_unavailable"`) {
			t.Errorf("%s = %+v, want ask_unavailable", tool, got)
		}
	}
}

// However much a tool tells, and whatever: bounded lines of text are kept, and so is the run's end.
func TestAFloodOfProgressIsBounded(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newWorker()}})
	c := connect(t, k, "2025-11-25")
	got := c.status(c.detach("flood", ""), 20)
	if got.Status != "succeeded" || len(got.Progress) != 200 {
		t.Fatalf("run_status = %s with %d lines, want it succeeded with 200", got.Status, len(got.Progress))
	}
	if line := got.Progress[199]; !strings.HasPrefix(line, "19999  \ufffdé") || len([]rune(line)) != 500 {
		t.Errorf("the last line is %.20q… of %d characters", line, len([]rune(line)))
	}
}

func TestARunIsCancelledFromTheOtherReplica(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut=%v", cut), func(t *testing.T) {
			t.Parallel()
			s := newWorker()
			var mu sync.Mutex
			var lines []*storetest.Line
			k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}, DirectURL: func(dsn string) string {
				mu.Lock()
				defer mu.Unlock()
				l := storetest.NewLine(t, dsn)
				lines = append(lines, l)
				return l.DSN
			}})
			agent, token := k.Agent(t)
			c := &client{t: t, url: k.URL + "/mcp", token: token}
			c.open("2025-11-25")
			run := c.at(k, 0).detach("wait", "")
			<-s.started
			if cut {
				for _, l := range lines {
					l.Stall()
				}
				ready := *c
				ready.token, ready.session = "", ""
				eventually(t, "the bus is cut", func() bool {
					return strings.Contains(ready.at(k, 0).do(http.MethodGet, k.Replicas()[0].URL+"/readyz", nil).body, `"bus":"cut`)
				})
			}
			id, err := store.ParseID[store.RunKind](run)
			if err == nil {
				err = k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
					_, err := tx.CancelRun(t.Context(), agent.ID, id)
					return err
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			s.endedWithin(t, time.Second)
			if got := c.at(k, 1).status(run, 20); got.Status != "cancelled" || got.Reason != "cancelled" {
				t.Errorf("run_status = %+v, want cancelled", got)
			}
			for _, l := range lines {
				l.Flow()
			}
		})
	}
}

// What an agent has under way ends with it, whichever era it was called in.
func TestRevokingAnAgentEndsWhatRuns(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	for n := range 2 {
		c.at(k, n).detach("wait", "")
		<-s.started
		(&modern{*c.at(k, n)}).startStateless(t, "tools/call", `"name":"work__wait"`, "Mcp-Name: work__wait", "Mcp-Session-Id:")
		<-s.started
	}
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent.ID) }); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		s.endedWithin(t, time.Second)
	}
}

// In the sessions era a closed connection does not cancel: the result waits as a run.
func TestAResultWaitsForAClientThatLeft(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	tries := 0
	eventually(t, "the result of a call whose client left", func() bool {
		tries++
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if resp, err := post(ctx, c.at(k, 0), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work__wait"}}`); err == nil {
				_ = resp.Body.Close()
			}
		}()
		<-s.started
		cancel()
		<-left
		for range tries { // as long as these take the gateway has to notice; one that has not has nobody to keep it for
			c.at(k, 0).post(ping)
		}
		s.release <- struct{}{}
		if err := <-s.ended; err != nil {
			t.Errorf("the call ended with its client: %v", err)
		}
		var list struct{ Runs []shown }
		if err := json.Unmarshal(c.at(k, 1).call("run_status", `{}`).Structured, &list); err != nil || len(list.Runs) == 0 {
			return false
		}
		got := c.at(k, 1).status(list.Runs[0].ID, 0)
		return got.Status == "succeeded" && got.Result.text() == `{"done":true}` && got.Result.Meta["graft/runId"] == got.ID
	})
}

func post(ctx context.Context, c *client, body string) (*http.Response, error) {
	return postWith(ctx, c, body, http.Header{"Mcp-Session-Id": {c.session}, "Mcp-Protocol-Version": {c.version}})
}

// postWith posts, and fails where the client leaves.
func postWith(ctx context.Context, c *client, body string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = c.host
	req.Header = header
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	header.Set("Authorization", bearer(c.token))
	return plain.Do(req)
}

// A gateway that stops lets its runs finish, and its successor knows how they ended.
func TestARunOutlivesTheStopOfItsReplica(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	run := c.detach("wait", "")
	<-s.started
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		k.StopAll()
	}()
	eventually(t, "the gateway stops", func() bool { return c.post(ping).status == http.StatusBadGateway })
	close(s.release)
	<-stopped
	k.StartAll()
	if got := c.status(run, 0); got.Status != "succeeded" || got.Result.text() != `{"done":true}` {
		t.Errorf("run_status = %+v, want its result", got)
	}
}

// A run whose replica said nothing for a while is lost: nobody knows how far it got.
func TestARunWhoseReplicaIsGoneIsLost(t *testing.T) {
	t.Parallel()
	clock := newClock(time.Now())
	k := servertest.Start(t, servertest.Options{Now: clock.now})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	run := store.NewID[store.RunKind](clock.now())
	self := store.Caller{Org: k.Owner.Org, User: k.Owner.User, Agent: agent.ID, Role: k.Owner.Role, Via: store.ViaBearer}
	err := k.DB.As(t.Context(), self, func(tx *store.Tx) error {
		return tx.StartRun(t.Context(), store.Run{ID: run, AgentID: agent.ID, Tool: "work__wait", StartedAt: clock.now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	clock.add(store.RunSilence + time.Second)
	if got := c.status(run.String(), 20); got.Status != "lost" {
		t.Errorf("run_status = %+v, want lost at once", got)
	}
}

// The end of a run waits for a database that is away when it comes.
func TestTheEndOfARunOutlivesTheDatabasesAbsence(t *testing.T) {
	t.Parallel()
	s := newWorker()
	var line *storetest.Line
	k := servertest.Start(t, servertest.Options{Replicas: 1, Sources: []catalog.Source{s}, URL: func(dsn string) string {
		line = storetest.NewLine(t, dsn)
		return line.DSN
	}})
	c := connect(t, k, "2025-11-25")
	run := c.detach("wait", "")
	<-s.started
	line.Stall()
	line.Cut()
	close(s.release)
	if err := <-s.ended; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the database is missed", func() bool { return strings.Contains(k.Log.String(), "end of a run not kept yet") })
	line.Flow()
	line.Cut()
	eventually(t, "the end of the run is kept", func() bool {
		// Refused for as long as the database is missed.
		got := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_status","arguments":{"runId":"` + run + `"}}}`)
		return strings.Contains(got.body, `"status":"succeeded"`)
	})
}
