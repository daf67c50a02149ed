package mcp

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

var runToolTool = metaTool{run: runTool, Tool: catalog.Tool{
	Name: "run_tool", Title: "Run a tool", Destructive: true,
	Description: "Runs any tool by vendor and name as find_tool gives them, whether or not it is in the list. Called for a tool that was just " +
		"promoted and is not in the client's list yet, or that is needed only once. Answers with the tool's own result, or with detached with " +
		"{runId, status} at once: run_status then tells how it goes. A refusal carries reason: tool_not_found for an unknown name, input_invalid " +
		"with problems and inputSchema when input does not fit, awaiting_approval with a url for the person.",
	InputSchema: jsontext.Value(`{"type":"object","properties":{` + vendorAndName + `,` +
		`"input":{"type":"object","description":"The tool's arguments, as its inputSchema says."},` +
		`"detached":{"type":"boolean","default":false,"description":"Do not wait for the result."},` +
		`"timeoutSeconds":{"type":"integer","minimum":1,"maximum":3600,"description":"How long the run may take. The tool's own limit when absent."}},` +
		`"required":["vendor","name"],"additionalProperties":false}`),
}}

var runStatusTool = metaTool{run: runStatus, Tool: catalog.Tool{
	Name: "run_status", Title: "Status of a run", ReadOnly: true,
	Description: "Called after a detached run was started, or to fetch the result of a call whose answer did not arrive. Answers {runId, tool, status, " +
		"progress, result}: status is running, succeeded, failed, cancelled or lost (the gateway stopped in the middle, and whether the run took effect is " +
		"not known). With waitSeconds it waits for the run to end. Without runId it answers {runs}, the last ten runs of this agent.",
	InputSchema: jsontext.Value(`{"type":"object","properties":{` +
		`"runId":{"type":"string","maxLength":64,"description":"As run_tool gave it. Absent: the last ten runs."},` +
		`"waitSeconds":{"type":"number","minimum":0,"maximum":20,"default":0,"description":"How long to wait for the run to end."}},` +
		`"additionalProperties":false}`),
}}

var readResultTool = metaTool{run: readResult, Tool: catalog.Tool{
	Name: "read_result", Title: "Read a stored result", ReadOnly: true,
	Description: "Called when a result was too long and came back as {truncated, head, resultRef}. Answers {ref, offset, text, nextOffset, total}: a " +
		"part of the whole result's JSON text, from offset on, counted in characters. Calling again with nextOffset as offset reads on; without " +
		"nextOffset the end is reached. A stored result is kept for 24 hours.",
	InputSchema: jsontext.Value(`{"type":"object","properties":{` +
		`"ref":{"type":"string","minLength":1,"maxLength":64,"description":"The resultRef."},` +
		`"offset":{"type":"integer","minimum":0,"maximum":2000000000,"default":0,"description":"Where to begin, in characters."}},` +
		`"required":["ref"],"additionalProperties":false}`),
}}

func runTool(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	var in struct {
		Vendor   string         `json:"vendor"`
		Name     string         `json:"name"`
		Input    jsontext.Value `json:"input"`
		Detached bool           `json:"detached"`
		Timeout  float64        `json:"timeoutSeconds"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	known, err := q.h.c.Catalog.Of(ctx, q.caller)
	if err != nil {
		return nil, err
	}
	call := invoke.Call{
		Caller: q.caller, Tool: catalog.Tool{Vendor: in.Vendor, Name: in.Name}.Wire(), Args: in.Input, Client: q,
		Timeout: time.Duration(in.Timeout) * time.Second,
	}
	if entry, err := known.Named(in.Vendor, in.Name); err == nil {
		call.Tool = entry.Wire() // where it was named as its source knows it
	}
	if !in.Detached {
		return q.invoke(ctx, call)
	}
	q.use(ctx, call.Tool)() // noted once: no run lasts as long as a tool may be idle
	id, err := q.h.c.Invoker.Detach(ctx, call)
	if err != nil {
		return nil, err
	}
	return asResult(struct {
		ID     store.RunID     `json:"runId"`
		Status store.RunStatus `json:"status"`
	}{id, store.RunRunning})
}

// runShown is a run as run_status tells it.
type runShown struct {
	ID        store.RunID     `json:"runId"`
	Tool      string          `json:"tool"`
	Status    store.RunStatus `json:"status"`
	Reason    reason.Word     `json:"reason,omitzero"`
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt,omitzero"`
	Progress  []string        `json:"progress"`
	Result    jsontext.Value  `json:"result,omitzero"`
}

func showRun(r store.Run) runShown {
	return runShown{ID: r.ID, Tool: r.Tool, Status: r.Status, Reason: r.Reason, StartedAt: r.StartedAt, EndedAt: r.EndedAt, Progress: append([]string{}, r.Progress...)}
}

func runStatus(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	var in struct {
		ID   string  `json:"runId"`
		Wait float64 `json:"waitSeconds"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	if in.ID == "" {
		return lastRuns(ctx, q)
	}
	id, err := store.ParseID[store.RunKind](in.ID)
	if err != nil {
		return nil, reason.Refuse(reason.RunNotFound, "%s is not the id of a run. Without an id, run_status lists the last ten.", clip(in.ID))
	}
	s, err := q.h.c.Invoker.Status(ctx, q.caller, id, time.Duration(in.Wait*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	shown := showRun(s.Run)
	shown.Result = s.Result
	return asResult(shown)
}

func lastRuns(ctx context.Context, q *request) (jsontext.Value, error) {
	list, err := q.h.c.Invoker.Last(ctx, q.caller)
	if err != nil {
		return nil, err
	}
	out := struct {
		Runs []runShown `json:"runs"`
	}{Runs: []runShown{}}
	for _, r := range list {
		out.Runs = append(out.Runs, showRun(r))
	}
	return asResult(out)
}

func readResult(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	var in struct {
		Ref    string  `json:"ref"`
		Offset float64 `json:"offset"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	w, err := q.h.c.Invoker.ReadResult(ctx, q.caller, in.Ref, int(in.Offset))
	if err != nil {
		return nil, err
	}
	return asResult(w)
}

// gone reports whether the client has left, as far as can be known.
func (q *request) gone() bool {
	select {
	case <-q.x.left:
		return true
	case <-q.left:
		return true
	default:
		return false
	}
}
