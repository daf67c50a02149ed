package rpc

import (
	"bytes"
	"errors"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Message is one JSON-RPC request, notification or response.
type Message struct {
	ID     ID             // zero: a notification
	Method string         // "" on a response
	Params jsontext.Value // a JSON object, or nil
	Result jsontext.Value // of a response
	Error  jsontext.Value // of a response
}

// IsNotification reports whether m wants no answer.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether m answers a request of ours.
func (m Message) IsResponse() bool { return m.Result != nil || m.Error != nil }

// An ID is a request's id in the very bytes it came in.
type ID struct{ raw string }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.raw == "" }

// String is the id as JSON; of no id, null.
func (id ID) String() string {
	if id.raw == "" {
		return "null"
	}
	return id.raw
}

var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// ParseID reads an id out of params, as strictly as one of an envelope.
func ParseID(v jsontext.Value) (ID, bool) {
	switch v.Kind() {
	case '"':
		return ID{string(v)}, true
	case '0':
		return ID{string(v)}, integer.Match(v)
	}
	return ID{}, false
}

// envelope is what JSON-RPC 2.0 §4 and §5 name. Members beyond these are ignored.
type envelope struct {
	Version jsontext.Value `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  jsontext.Value `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`
}

// Parse reads one message. The error is ready to be answered; the Message beside it holds the id where one could
// be read, so that the client can tell which request failed.
func Parse(body []byte) (Message, *Error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		var syntactic *jsontext.SyntacticError
		if errors.As(err, &syntactic) {
			return Message{}, &Error{Code: ParseError, Message: "Not valid JSON, or a member stands twice in one object."}
		}
		return Message{}, invalid("A message is a JSON object.")
	}
	if jsontext.Value(bytes.TrimSpace(body)).Kind() != '{' {
		return Message{}, invalid("A message is a JSON object.")
	}
	m := Message{Result: e.Result, Error: e.Error}
	if e.ID != nil {
		id, ok := ParseID(e.ID)
		if !ok {
			return Message{}, invalid("id must be a string or an integer.")
		}
		m.ID = id
	}
	if string(e.Version) != `"2.0"` {
		return m, invalid(`jsonrpc must be "2.0".`)
	}
	if m.IsResponse() {
		return parseResponse(m, e)
	}
	if e.Method.Kind() != '"' || json.Unmarshal(e.Method, &m.Method) != nil {
		return m, invalid("method must be a string.")
	}
	switch e.Params.Kind() {
	case '{':
		m.Params = e.Params
	case 0:
	default:
		return m, &Error{Code: InvalidParams, Message: "params must be an object."}
	}
	if m.Method == "" {
		return m, &Error{Code: MethodNotFound, Message: `There is no method "".`}
	}
	return m, nil
}

func parseResponse(m Message, e envelope) (Message, *Error) {
	if e.Method != nil || m.ID.IsZero() || (e.Result != nil) == (e.Error != nil) {
		return m, invalid("A response has an id and either result or error.")
	}
	return m, nil
}

// Batch splits an array of messages. ok is false where body is not an array; an empty array is an error.
func Batch(body []byte) (members []jsontext.Value, ok bool, failed *Error) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		return nil, false, nil
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, true, &Error{Code: ParseError, Message: "Not valid JSON, or a member stands twice in one object."}
	}
	if len(members) == 0 {
		return nil, true, invalid("A batch holds at least one message.")
	}
	return members, true, nil
}

// Params reads a message's params, or any JSON object, into v with the same strictness: exact case, no duplicates.
// An absent object leaves v alone.
func Params(params jsontext.Value, v any) *Error {
	if params == nil {
		return nil
	}
	if err := json.Unmarshal(params, v); err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) && semantic.JSONPointer != "" {
			return &Error{Code: InvalidParams, Message: "params" + string(semantic.JSONPointer) + " has the wrong type."}
		}
		return &Error{Code: InvalidParams, Message: "params has the wrong shape."}
	}
	return nil
}

func invalid(message string) *Error { return &Error{Code: InvalidRequest, Message: message} }
