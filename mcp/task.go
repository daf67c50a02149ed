package mcp

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// extensionTasks is the extension with which a call that takes long is answered by a task (SEP-2663, at 2026-07-28). A
// task is a run, under the run's id: what holds for one holds for the other.
const extensionTasks = "io.modelcontextprotocol/tasks"

const (
	// taskAfter is how long a call may take before a client that takes tasks is answered with one: a little less than
	// patience, so that no stream is opened for it.
	taskAfter = patience * 8 / 10
	// pollEvery is how often a client is asked to look at a task.
	pollEvery = time.Second
)

// The methods of the extension.
const (
	methodTasksGet    = "tasks/get"
	methodTasksUpdate = "tasks/update"
	methodTasksCancel = "tasks/cancel"
)

func isTaskMethod(method string) bool {
	return method == methodTasksGet || method == methodTasksUpdate || method == methodTasksCancel
}

// A task is a run as its client sees it: Task with what its status adds (SEP-2663, Tasks).
type task struct {
	Type          string           `json:"resultType,omitzero"`
	ID            store.RunID      `json:"taskId"`
	Status        string           `json:"status"`
	Message       string           `json:"statusMessage,omitzero"`
	CreatedAt     time.Time        `json:"createdAt"`
	LastUpdatedAt time.Time        `json:"lastUpdatedAt"`
	TTL           int64            `json:"ttlMs"`
	Poll          int64            `json:"pollIntervalMs"`
	Inputs        map[string]input `json:"inputRequests,omitzero"`
	Result        jsontext.Value   `json:"result,omitzero"`
	Error         *taskError       `json:"error,omitzero"`
}

type taskError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Reason    reason.Word `json:"reason,omitzero"`
		RequestID string      `json:"requestId"`
	} `json:"data"`
}

// seed is what is known of a task before anything is known of its end.
func seed(r store.Run) task {
	t := task{
		ID: r.ID, Status: "working", CreatedAt: r.StartedAt, LastUpdatedAt: r.SeenAt,
		TTL: store.RunLife.Milliseconds(), Poll: pollEvery.Milliseconds(),
	}
	if n := len(r.Progress); n > 0 {
		t.Message = r.Progress[n-1]
	}
	return t
}

// detailed adds what the status of a run brings. Failed is a task that ended without a result of its tool; a tool that
// says that it failed, and a call that was refused, completed.
func (q *request) detailed(s invoke.Status) task {
	t := seed(s.Run)
	switch {
	case s.Status == store.RunRunning && len(s.Asks) > 0:
		t.Status, t.Inputs = "input_required", map[string]input{}
		for _, question := range s.Asks {
			t.Inputs[question.Key] = q.input(question)
		}
	case s.Status == store.RunRunning:
	case s.Status == store.RunCancelled:
		t.Status = "cancelled"
	case s.Status == store.RunLost:
		t.fail("The gateway stopped in the middle. Whether the call took effect is not known.", "")
	case s.Reason == reason.Internal:
		t.fail(reason.Of(nil).Message, reason.Internal)
	default:
		t.Status, t.Result = "completed", s.Result
	}
	return t
}

func (t *task) fail(message string, word reason.Word) {
	t.Status, t.Message = "failed", message
	t.Error = &taskError{Code: rpc.InternalError, Message: message}
	t.Error.Data.Reason, t.Error.Data.RequestID = word, t.ID.String()
}

// invokeTask carries a call out for a client that takes tasks. One that takes long is answered with a task, which goes on.
func (q *request) invokeTask(ctx context.Context, call invoke.Call) (jsontext.Value, error) {
	done, run, err := q.h.c.Invoker.DoWithin(ctx, call, taskAfter, q.can&canElicitForm != 0)
	if err != nil || run.IsZero() {
		return done.Result, err
	}
	s, err := q.h.c.Invoker.Status(ctx, q.caller, run, 0)
	if err != nil {
		return nil, err
	}
	t := seed(s.Run)
	t.Type = "task"
	result, err := json.Marshal(t)
	return rpc.WithMeta(result, invoke.RunMeta, rpc.AppendString(nil, run.String())), err
}

// task answers the methods of the extension.
func (q *request) task(ctx context.Context) (jsontext.Value, *rpc.Error) {
	if q.can&canTask == 0 {
		return nil, needsTasks()
	}
	var p struct {
		ID        string                    `json:"taskId"`
		Responses map[string]jsontext.Value `json:"inputResponses"`
	}
	if failed := rpc.Params(q.m.Params, &p); failed != nil {
		return nil, failed
	}
	id, err := store.ParseID[store.RunKind](p.ID)
	if err != nil {
		return nil, noTask()
	}
	s, err := q.h.c.Invoker.Status(ctx, q.caller, id, 0)
	if err == nil {
		switch q.m.Method {
		case methodTasksUpdate:
			err = q.updateTask(ctx, id, p.Responses)
		case methodTasksCancel:
			_, err = q.h.c.Invoker.Cancel(ctx, q.caller, id)
		default:
			var result jsontext.Value
			if result, err = json.Marshal(q.detailed(s)); err == nil {
				return result, nil
			}
		}
	}
	switch {
	case err == nil:
		return empty, nil
	case reason.Of(err).Word == reason.RunNotFound:
		return nil, noTask()
	}
	return nil, q.h.failed(ctx, "look at a task", err)
}

// updateTask hands answers to what a task asks. An answer that makes no sense is passed over: its question stays.
func (q *request) updateTask(ctx context.Context, id store.RunID, responses map[string]jsontext.Value) error {
	answers := map[string]catalog.Answer{}
	for key, raw := range responses {
		if a, err := readAnswer(raw); err == nil {
			answers[key] = a
		}
	}
	return q.h.c.Invoker.Answer(ctx, q.caller, id, answers)
}

func noTask() *rpc.Error {
	return &rpc.Error{Code: rpc.InvalidParams, Message: "There is no such task of this agent.", Reason: reason.RunNotFound}
}

// needsTasks says that a client would have to declare the extension.
func needsTasks() *rpc.Error {
	return &rpc.Error{
		Code: mcpgo.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "Tasks are for clients that declare the extension " + extensionTasks + ".",
		Details: map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extensionTasks: map[string]any{}}}},
	}
}

// checkTaskHeader holds Mcp-Name to the id of the task (SEP-2663, Streamable HTTP: Routing Headers).
func checkTaskHeader(header http.Header, m rpc.Message) *rpc.Error {
	var p struct {
		ID string `json:"taskId"`
	}
	if failed := rpc.Params(m.Params, &p); failed != nil {
		return failed
	}
	if name, ok := mcpgo.DecodeHeaderValue(header.Get(mcpgo.HeaderName)); !ok || name != p.ID {
		return mismatch("Mcp-Name is " + quoteOr(header.Get(mcpgo.HeaderName)) + " and params.taskId is " + quoteOr(p.ID) + ".")
	}
	return nil
}

// asksForTasks reports whether a subscription wants to hear of tasks. They are polled here: nothing is sent of them.
func asksForTasks(params jsontext.Value) bool {
	var p struct {
		Notifications struct {
			Tasks []string `json:"taskIds"`
		} `json:"notifications"`
	}
	return rpc.Params(params, &p) == nil && len(p.Notifications.Tasks) > 0
}
