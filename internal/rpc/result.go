package rpc

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
)

// ToolResult is the CallToolResult of a JSON value: the value as one text block, and as structuredContent beside it
// when it is an object (MCP 2025-11-25, Tools, Structured Content).
func ToolResult(value jsontext.Value) jsontext.Value { return toolResult(value, false) }

// FailedResult is the CallToolResult of a JSON value by which a tool says that it failed.
func FailedResult(value jsontext.Value) jsontext.Value { return toolResult(value, true) }

// ToolRefusal is the CallToolResult of a call that the gateway did not run. A call that waits for a person says what for
// in place of "refused". requestID is told for an internal error
// alone, so that the log can be searched for it.
func ToolRefusal(r *reason.Refusal, requestID string) jsontext.Value {
	word := "refused"
	if r.Word == reason.Internal || strings.HasPrefix(string(r.Word), "awaiting_") {
		word = string(r.Word)
	}
	b := append([]byte(`{"error":`), quote(word)...)
	b = append(append(b, `,"reason":`...), quote(string(r.Word))...)
	if r.Word == reason.Internal {
		b = append(append(b, `,"requestId":`...), quote(requestID)...)
	}
	b = append(append(b, `,"message":`...), quote(r.Message)...)
	b = appendMembers(b, r.Details)
	return toolResult(append(b, '}'), true)
}

// ToolFailure is the CallToolResult of a tool that ran and failed: its own sentence, and details that a program can use.
func ToolFailure(sentence string, details map[string]any) jsontext.Value {
	b := append([]byte(`{"error":`), quote(sentence)...)
	b = append(append(b, `,"reason":`...), quote(string(reason.ToolFailed))...)
	return toolResult(append(appendMembers(b, details), '}'), true)
}

// WithMeta is a result whose _meta has one more member, or another value of it. Nothing else of the result changes; one
// that is no object stays as it is.
func WithMeta(result jsontext.Value, name string, value jsontext.Value) jsontext.Value {
	if !bytes.Contains(result, []byte(`"_meta"`)) && result.Kind() == '{' {
		b := append(append([]byte(`{"_meta":{`), quote(name)...), ':')
		b = append(append(b, value...), '}')
		rest := bytes.TrimSpace(result[bytes.IndexByte(result, '{')+1:])
		if rest[0] != '}' {
			b = append(b, ',')
		}
		return append(b, rest...)
	}
	var members, meta map[string]jsontext.Value
	if json.Unmarshal(result, &members) != nil || members["_meta"] != nil && json.Unmarshal(members["_meta"], &meta) != nil {
		return result
	}
	if meta == nil {
		meta = map[string]jsontext.Value{}
	}
	meta[name] = value
	var err error
	if members["_meta"], err = json.Marshal(meta, json.Deterministic(true)); err != nil {
		return result
	}
	b, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return result
	}
	return b
}

func toolResult(value jsontext.Value, isError bool) jsontext.Value {
	value = OneLine(value)
	b := append(make([]byte, 0, 2*len(value)+96), `{"content":[{"type":"text","text":`...)
	b = AppendString(b, string(value))
	b = append(b, `}]`...)
	if value.Kind() == '{' {
		b = append(append(b, `,"structuredContent":`...), value...)
	}
	if isError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

func quote(s string) []byte { return AppendString(nil, s) }
