package invoke

import (
	"bytes"
	"context"
	"log/slog"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// maxRaw is how many bytes a CallToolResult may have to pass through untouched.
const maxRaw = 4 << 20

// leniently reads what a server elsewhere wrote: one doubled member, or half of a character, hides nothing else of it.
var leniently = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// shape makes a CallToolResult of what a tool returned. What is too long to answer with is kept whole for a day, and its
// head is answered.
func (a *attempt) shape(ctx context.Context, out catalog.Output) (jsontext.Value, error) {
	if out.Raw == nil {
		return rpc.ToolResult(a.bound(ctx, out.Value)), nil
	}
	a.failed = isError(out.Raw)
	if len(out.Raw) > maxRaw {
		head := a.bound(ctx, out.Raw)
		if a.failed {
			return rpc.FailedResult(head), nil
		}
		return rpc.ToolResult(head), nil
	}
	raw, err := a.withContent(ctx, out.Raw)
	if err == nil && len(raw) > MaxResult {
		raw, err = a.boundTexts(ctx, raw)
	}
	return rpc.OneLine(raw), err
}

// withContent gives a result without content one, for clients that read no other: the structured content as text (MCP
// 2025-11-25, Tools, Structured Content). That it may not be what the output schema says is for the client to judge.
func (a *attempt) withContent(ctx context.Context, raw jsontext.Value) (jsontext.Value, error) {
	if bytes.Contains(raw, []byte(`"content"`)) && !bytes.Contains(raw, []byte(`"structuredContent"`)) {
		return raw, nil // most results, and none is read twice for it
	}
	var r struct {
		Content    jsontext.Value `json:"content"`
		Structured jsontext.Value `json:"structuredContent,omitzero"`
		Rest       jsontext.Value `json:",embed"`
	}
	if json.Unmarshal(raw, &r, leniently) != nil {
		return nil, errNoResult
	}
	switch r.Content.Kind() {
	case 0, 'n':
	case '[':
		if some := len(bytes.TrimSpace(r.Content[1:])) > len("]"); some || r.Structured == nil {
			return raw, nil
		}
	default:
		return raw, nil // odd, and the client's to judge
	}
	r.Content = jsontext.Value("[]")
	if r.Structured != nil {
		r.Content = append(rpc.AppendString([]byte(`[{"type":"text","text":`), string(a.bound(ctx, r.Structured))), "}]"...)
	}
	return json.Marshal(r, leniently, jsontext.PreserveRawStrings(true))
}

var errNoResult = reason.Refuse(reason.ToolFailed, "The tool ran and answered with something that is not a result of MCP: it cannot be read.")

// bound cuts a value that is too long, and keeps it.
func (a *attempt) bound(ctx context.Context, value jsontext.Value) jsontext.Value {
	if fits(value) {
		return value
	}
	return Bound(value, a.keep(ctx, value))
}

// boundTexts cuts the text blocks of a CallToolResult that are too long; everything else passes through.
func (a *attempt) boundTexts(ctx context.Context, raw jsontext.Value) (jsontext.Value, error) {
	var whole struct {
		Content []jsontext.Value `json:"content"`
		Rest    jsontext.Value   `json:",embed"`
	}
	if json.Unmarshal(raw, &whole, leniently) != nil {
		return nil, errNoResult
	}
	cut := false
	for n, block := range whole.Content {
		var b struct {
			Type string         `json:"type"`
			Text string         `json:"text"`
			Rest jsontext.Value `json:",embed"`
		}
		if json.Unmarshal(block, &b, leniently) != nil || b.Type != "text" || fits([]byte(b.Text)) {
			continue
		}
		quoted := rpc.AppendString(nil, b.Text)
		b.Text = string(Bound(quoted, a.keep(ctx, quoted)))
		short, err := json.Marshal(b, leniently, jsontext.PreserveRawStrings(true))
		if err != nil {
			return nil, err
		}
		whole.Content[n], cut = short, true
	}
	if !cut {
		return raw, nil
	}
	return json.Marshal(whole, leniently, jsontext.PreserveRawStrings(true))
}

func fits(text []byte) bool { return len(text) <= MaxResult || utf8.RuneCount(text) <= MaxResult }

// keep stores a value whole and returns the reference to read it by; "" where it cannot be stored.
func (a *attempt) keep(ctx context.Context, value jsontext.Value) (ref string) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	id := store.NewID[store.ResultKind](a.c.Now())
	box, err := a.box(ctx)
	if err == nil {
		body := box.Seal([]byte(id.String()), value)
		err = a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) error { return tx.KeepResult(ctx, a.call.Caller.Agent, id, body) })
	}
	if err != nil {
		a.c.Log.WarnContext(ctx, "long result not kept", slog.Any("err", err), slog.String("run", a.run.String()))
		return ""
	}
	return id.String()
}

// isError reports whether a CallToolResult says of itself that the tool failed.
func isError(result jsontext.Value) bool {
	if !bytes.Contains(result, []byte(`"isError"`)) {
		return false // most results, and none is read twice for it
	}
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r, leniently) == nil && r.IsError
}
