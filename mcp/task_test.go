package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// tasked is the _meta of a client that takes tasks and shows forms.
const tasked = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
	`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

func (m *modern) tasks(method, params, name string) answer {
	m.t.Helper()
	return m.post(statelessBody(method, params, tasked), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
}

// A taskShown is a task on the wire.
type taskShown struct {
	Type   string `json:"resultType"`
	ID     string `json:"taskId"`
	Status string
	Text   string `json:"statusMessage"`
	Inputs map[string]struct {
		Method string
		Params struct{ Message string }
	} `json:"inputRequests"`
	Result *result
	Error  *struct{ Code int }
	TTL    int64             `json:"ttlMs"`
	Meta   map[string]any    `json:"_meta"`
	State  json.RawMessage   `json:"requestState"`
	Items  []json.RawMessage `json:"content"`
}

func taskOf(t *testing.T, a answer) (s taskShown) {
	t.Helper()
	var m struct{ Result *taskShown }
	if err := json.Unmarshal(a.payload(), &m); err != nil || m.Result == nil {
		t.Fatalf("answer %d = %.400s, %v", a.status, a.body, err)
	}
	return *m.Result
}

func (m *modern) task(id string) taskShown {
	m.t.Helper()
	return taskOf(m.t.(*testing.T), m.tasks("tasks/get", `"taskId":"`+id+`"`, id))
}

func (m *modern) callAsTask(tool string) taskShown {
	m.t.Helper()
	return taskOf(m.t.(*testing.T), m.tasks("tools/call", `"name":"`+tool+`"`, tool))
}

func TestALongCallIsAnsweredWithATask(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	first, second := stateless(c), stateless(c)
	first.client, second.client = *first.at(k, 0), *second.at(k, 1)
	made := first.callAsTask("work__wait")
	if made.Type != "task" || made.Status != "working" || made.TTL <= 0 || made.Meta["graft/runId"] != made.ID || made.Text != "" && made.Text != "1/2 half" {
		t.Fatalf("the call = %+v, want a task", made)
	}
	if got := second.task(made.ID); got.Type != "complete" || got.Status != "working" {
		t.Errorf("tasks/get on the other replica = %+v", got)
	}
	other := stateless(connect(t, k, "2025-11-25"))
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		a := other.tasks(method, `"taskId":"`+made.ID+`"`, made.ID)
		if code, word := rpcError(a); code != -32602 || word != "run_not_found" {
			t.Errorf("another agent's %s = %s", method, a.body)
		}
		a = first.request(method, `"taskId":"`+made.ID+`"`, "Mcp-Name: "+made.ID)
		if code, _ := rpcError(a); code != -32021 {
			t.Errorf("%s of a client that takes none = %s", method, a.body)
		}
		a = first.tasks(method, `"taskId":"`+made.ID+`"`, "another")
		if code, _ := rpcError(a); code != -32020 {
			t.Errorf("%s with another Mcp-Name = %s", method, a.body)
		}
	}
	close(s.release)
	eventually(t, "the task completed", func() bool {
		got := second.task(made.ID)
		return got.Status == "completed" && got.Result.text() == `{"done":true}`
	})
	if got := first.callAsTask("work__wait"); got.Type != "complete" || got.ID != "" || len(got.Items) != 1 {
		t.Errorf("a call that is quick = %+v, want its result", got)
	}
	if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + made.ID + `"}}`); !strings.Contains(a.body, "-32601") {
		t.Errorf("tasks/get in the sessions era = %s", a.body)
	}
}

func TestATaskIsCancelledFromTheOtherReplica(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	first, second := &modern{*stateless(c).at(k, 0)}, &modern{*stateless(c).at(k, 1)}
	made := first.callAsTask("work__wait")
	if got := taskOf(t, second.tasks("tasks/cancel", `"taskId":"`+made.ID+`"`, made.ID)); got.Type != "complete" || got.ID != "" {
		t.Errorf("tasks/cancel = %+v", got)
	}
	s.endedWithin(t, time.Second)
	eventually(t, "the task is cancelled", func() bool { return first.task(made.ID).Status == "cancelled" })
}

// Until a call is a task, closing its answer cancels it; from then on nothing but tasks/cancel does.
func TestClosingTheAnswerCancelsWhatIsNoTaskYet(t *testing.T) {
	t.Parallel()
	s := newWorker()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	m := stateless(connect(t, k, "2025-11-25"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.started
		cancel()
	}()
	resp, err := postWith(ctx, &m.client, statelessBody("tools/call", `"name":"work__wait"`, tasked), http.Header{
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"work__wait"},
	})
	if err == nil {
		_ = resp.Body.Close()
		t.Fatalf("answered %s before it was closed", resp.Status)
	}
	s.endedWithin(t, 5*time.Second)
}

// An asking source has a tool that asks twice under one key, once it may go on.
type asking struct{ goOn chan struct{} }

func (asking) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	return []catalog.Tool{{Vendor: "asking", Name: "twice", Title: "Twice", Description: "Asks.", ReadOnly: true, InputSchema: jsontext.Value(`{"type":"object"}`)}}, nil
}

func (s asking) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	<-s.goOn
	var said []string
	for range 2 {
		a, err := r.Client.Ask(ctx, catalog.Question{Key: "q", Message: "Which?", Schema: jsontext.Value(`{"type":"object","properties":{"x":{"type":"string"}}}`)})
		if err != nil {
			return catalog.Output{}, err
		}
		var in struct{ X string }
		if err := json.Unmarshal(a.Content, &in); err != nil {
			return catalog.Output{}, err
		}
		said = append(said, in.X)
	}
	b, err := json.Marshal(strings.Join(said, " "))
	return catalog.Output{Value: b}, err
}

// A task asks, and is answered on any replica; a question stays until its answer makes sense.
func TestATaskAsks(t *testing.T) {
	t.Parallel()
	s := asking{make(chan struct{})}
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{s}})
	c := connect(t, k, "2025-11-25")
	first, second := &modern{*stateless(c).at(k, 0)}, &modern{*stateless(c).at(k, 1)}
	made := first.callAsTask("asking__twice")
	close(s.goOn)
	var got taskShown
	eventually(t, "the task asks", func() bool {
		got = second.task(made.ID)
		return got.Status == "input_required"
	})
	if q := got.Inputs["q"]; len(got.Inputs) != 1 || q.Method != "elicitation/create" || q.Params.Message != "Which?" || got.State != nil {
		t.Errorf("inputRequests = %+v", got)
	}
	update := func(responses string) {
		t.Helper()
		if a := second.tasks("tasks/update", `"taskId":"`+made.ID+`","inputResponses":`+responses, made.ID); taskOf(t, a).Type != "complete" {
			t.Errorf("tasks/update = %s", a.body)
		}
	}
	update(`{"q":{"action":"perhaps"},"unknown":{"action":"accept"}}`)
	if got := first.task(made.ID); got.Status != "input_required" {
		t.Errorf("after an answer that makes no sense the task is %s", got.Status)
	}
	update(`{"q":{"action":"accept","content":{"x":"one"}}}`)
	if got := first.task(made.ID); got.Inputs["q"].Method != "" {
		t.Error("a question that was answered is asked again")
	}
	eventually(t, "the task asks again, under another key", func() bool {
		return first.task(made.ID).Inputs["q-2"].Method != ""
	})
	update(`{"q":{"action":"decline"},"q-2":{"action":"accept","content":{"x":"two"}}}`)
	eventually(t, "the task completed", func() bool { return first.task(made.ID).Status == "completed" })
	if got := first.task(made.ID); got.Result.text() != `"one two"` {
		t.Errorf("result = %s", got.Result.text())
	}
}

func TestTasksAreNotTold(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	m := stateless(connect(t, k, "2025-11-25"))
	a := m.request("subscriptions/listen", `"notifications":{"taskIds":["run_1"]}`, "Accept: text/event-stream")
	if code, _ := rpcError(a); code != -32021 || a.status != http.StatusBadRequest {
		t.Errorf("listening for tasks without the extension = %d %s", a.status, a.body)
	}
}
