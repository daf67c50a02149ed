package rpc

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
)

// Codes of JSON-RPC 2.0 §5.1.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Refused is the code of a refusal that JSON-RPC has no code for; its reason stands in the error's data. It is in
// the range that JSON-RPC leaves to servers, and below the part MCP keeps for itself (-32020 to -32099).
const Refused = -32000

// An Error is a JSON-RPC error object. It is a value to be answered, not a Go error.
type Error struct {
	Code    int
	Message string
	// Reason is put into data.reason. "" means reason.RequestInvalid.
	Reason reason.Word
	// Details are put into data beside the reason.
	Details map[string]any
}

// Word is the reason a program may branch on.
func (e *Error) Word() reason.Word {
	if e.Reason == "" {
		return reason.RequestInvalid
	}
	return e.Reason
}

// FromRefusal is the error object of a refusal that ends the request as such.
func FromRefusal(r *reason.Refusal) *Error {
	code := Refused
	if r.Word == reason.Internal {
		code = InternalError
	}
	return &Error{Code: code, Message: r.Message, Reason: r.Word, Details: r.Details}
}

// AppendResult appends the response that carries result, which must be valid JSON, to b.
func AppendResult(b []byte, id ID, result jsontext.Value) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id.String()...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// AppendError appends the response that carries e to b. A request whose id could not be read is answered with null
// (JSON-RPC 2.0 §5).
func AppendError(b []byte, id ID, e *Error) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id.String()...)
	b = fmt.Appendf(b, `,"error":{"code":%d,"message":`, e.Code)
	b = AppendString(b, e.Message)
	b = append(b, `,"data":{"reason":`...)
	b = AppendString(b, string(e.Word()))
	b = appendMembers(b, e.Details)
	return append(b, "}}}"...)
}

// appendMembers appends the members of m, each after a comma, in the order of their names.
func appendMembers(b []byte, m map[string]any) []byte {
	if len(m) == 0 {
		return b
	}
	o, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return b
	}
	return append(append(b, ','), o[1:len(o)-1]...)
}

// AppendString appends s to b as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error is about invalid UTF-8, which it has replaced
	return b
}

// AppendEvent appends message, one line of JSON, to b as one server-sent event.
func AppendEvent(b, message []byte) []byte {
	b = append(b, "event: message\ndata: "...)
	b = append(b, message...)
	return append(b, "\n\n"...)
}

// OneLine is v without the line breaks that would end a server-sent event early. JSON strings cannot hold raw line
// breaks, so only white space between tokens changes.
func OneLine(v jsontext.Value) jsontext.Value {
	for _, c := range v {
		if c == '\n' || c == '\r' {
			w := v.Clone()
			if err := w.Compact(jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true)); err != nil {
				return jsontext.Value("null")
			}
			return w
		}
	}
	return v
}
