package mcp

import (
	"context"
	"errors"
	"log/slog"
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

// callParams are the params of tools/call, in both eras.
type callParams struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Meta      struct {
		ProgressToken jsontext.Value `json:"progressToken"`
	} `json:"_meta"`
	Responses map[string]jsontext.Value `json:"inputResponses"` // 2026-07-28
	State     jsontext.Value            `json:"requestState"`   // 2026-07-28
}

// call runs a tool. Only a name that nothing has is a JSON-RPC error; whatever else goes wrong is a result that the
// model can read (MCP 2025-11-25, Tools, Error Handling).
func (q *request) call(ctx context.Context) (jsontext.Value, *rpc.Error) {
	var p callParams
	if failed := rpc.Params(q.m.Params, &p); failed != nil {
		return nil, failed
	}
	args, failed := arguments(p.Arguments)
	if failed != nil {
		return nil, failed
	}
	if k := p.Meta.ProgressToken.Kind(); k == '"' || k == '0' {
		q.progressToken = p.Meta.ProgressToken
	}
	if q.era == stateless {
		if failed := q.readResponses(p, args); failed != nil {
			return nil, failed
		}
	}
	meta, wire, err := q.h.named(ctx, q.caller, p.Name)
	if err != nil {
		return nil, q.h.failed(ctx, "read view", err)
	}
	result, err := q.run(ctx, meta, wire, args)
	if err == nil {
		return result, nil
	}
	var needs *catalog.NeedInput
	if errors.As(err, &needs) {
		return q.inputRequired(p, args, needs)
	}
	if failed := needsCapability(err); failed != nil && q.era == stateless {
		return nil, failed
	}
	r := invoke.Refusal(err)
	if r.Word == reason.ToolNotFound && meta == nil {
		return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "Unknown tool: " + clip(p.Name) + ".", Reason: reason.ToolNotFound}
	}
	if isOurs(r) {
		q.h.c.Log.ErrorContext(ctx, "tool call failed", slog.Any("err", err), slog.String("request_id", q.h.c.RequestID(ctx)),
			slog.String("agent", q.caller.Agent.String()))
	}
	return rpc.ToolRefusal(r, q.h.c.RequestID(ctx)), nil
}

func (q *request) run(ctx context.Context, meta *metaTool, wire string, args jsontext.Value) (jsontext.Value, error) {
	if meta != nil {
		return meta.call(ctx, q, args)
	}
	return q.invoke(ctx, invoke.Call{Caller: q.caller, Tool: wire, Args: args, Client: q})
}

// named is what a name means to an agent: a meta-tool, or the wire name of a tool. "" is nothing, as is a name that is
// longer than any tool's: it would be carried on into the working set and the log.
func (h *Handler) named(ctx context.Context, c store.Caller, name string) (meta *metaTool, wire string, err error) {
	v, err := h.view(ctx, c)
	if err != nil {
		return nil, "", err
	}
	if v.bound != nil {
		return nil, v.bound[name], nil
	}
	if len(name) > catalog.MaxWire {
		return nil, "", nil
	}
	return h.metaTool(name), name, nil
}

// invoke carries a call out. In the sessions era a client that has left may come back for the result, which is kept for
// it as a run.
func (q *request) invoke(ctx context.Context, call invoke.Call) (jsontext.Value, error) {
	defer q.use(ctx, call.Tool)()
	call.Began = q.began
	if q.can&canTask != 0 {
		return q.invokeTask(ctx, call)
	}
	done, err := q.h.c.Invoker.Do(ctx, call)
	if q.era == sessions && q.gone() && ctx.Err() == nil {
		if kept := done.Keep(ctx, err); kept != nil {
			q.h.c.Log.ErrorContext(ctx, "result not kept", slog.Any("err", kept), slog.String("request_id", q.h.c.RequestID(ctx)))
		}
	}
	return done.Result, err
}

// arguments takes an absent or null value for {}: they are optional in a CallToolRequest.
func arguments(v jsontext.Value) (jsontext.Value, *rpc.Error) {
	switch v.Kind() {
	case 0, 'n':
		return empty, nil
	case '{':
		return v, nil
	}
	return nil, &rpc.Error{Code: rpc.InvalidParams, Message: "params.arguments must be an object."}
}

func isOurs(r *reason.Refusal) bool { return r.Word == reason.Internal }

// stateLife is how long the answer to a question may take.
const stateLife = 24 * time.Hour

// A callState is what comes back with the answers to a call's questions: it binds them to the call that asked, and
// carries the answers of earlier rounds. The client keeps it and cannot read or change it.
type callState struct {
	Tool    string                    `json:"t"`
	Digest  []byte                    `json:"d"` // of the arguments
	Expires time.Time                 `json:"e"`
	Asked   []string                  `json:"q"` // keys of the questions of this round
	Answers map[string]catalog.Answer `json:"a,omitzero"`
}

// input is a question to the client's person inside a result.
type input struct {
	Method string       `json:"method"`
	Params elicitParams `json:"params"`
}

func (q *request) input(question catalog.Question) input {
	return input{string(mcpgo.MethodElicitationCreate), q.elicitation(question)}
}

// inputRequired is the result that asks the client's person (2026-07-28, Multi Round-Trip Requests).
func (q *request) inputRequired(p callParams, args jsontext.Value, needs *catalog.NeedInput) (jsontext.Value, *rpc.Error) {
	state := callState{Tool: p.Name, Digest: rpc.Digest(args), Expires: q.h.now().Add(stateLife), Answers: q.answers}
	inputs := map[string]input{}
	for _, question := range needs.Questions {
		inputs[question.Key] = q.input(question)
		state.Asked = append(state.Asked, question.Key)
	}
	plain, err := json.Marshal(state, json.Deterministic(true))
	if err != nil {
		return nil, q.h.failed(context.Background(), "write request state", err)
	}
	result, err := json.Marshal(struct {
		Type   string           `json:"resultType"`
		Inputs map[string]input `json:"inputRequests"`
		State  string           `json:"requestState"`
	}{"input_required", inputs, sealText(q.h.c.Sessions, q.statePlace(), plain)}, json.Deterministic(true))
	if err != nil {
		return nil, q.h.failed(context.Background(), "write input request", err)
	}
	return result, nil
}

func (q *request) statePlace() []byte { return []byte("request state " + q.caller.Agent.String()) }

// readResponses opens the state of an earlier round and takes the answers to what that round asked. A state that was
// changed, ran out, or belongs to another call is refused; an answer that is missing or makes no sense is asked for
// again.
func (q *request) readResponses(p callParams, args jsontext.Value) *rpc.Error {
	if p.State == nil {
		return nil // answers to nothing that was asked
	}
	bad := &rpc.Error{Code: rpc.InvalidParams, Message: "params.requestState does not belong to this call. Call again without it."}
	var text string
	if json.Unmarshal(p.State, &text) != nil {
		return bad
	}
	plain, err := openText(q.h.c.Sessions, q.statePlace(), text)
	var state callState
	if err != nil || json.Unmarshal(plain, &state) != nil {
		return bad
	}
	if state.Tool != p.Name || string(state.Digest) != string(rpc.Digest(args)) || q.h.now().After(state.Expires) {
		return bad
	}
	q.answers = state.Answers
	if q.answers == nil {
		q.answers = map[string]catalog.Answer{}
	}
	for _, key := range state.Asked {
		if a, err := readAnswer(p.Responses[key]); err == nil {
			q.answers[key] = a
		}
	}
	return nil
}
