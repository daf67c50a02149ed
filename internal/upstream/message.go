package upstream

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A message is what a server sends: an answer, a request or a notification. It is read less strictly than what a client
// sends us (package rpc): servers answer with an id of null, and one tool with a doubled member or a byte that is not UTF-8
// must not hide the others of its list. Names are matched exactly.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  jsontext.Value `json:"error"`
}

func (m message) hasID() bool { return len(m.ID) > 0 && m.ID.Kind() != 'n' }

// answers reports whether m answers the request of that id. An error without an id can only mean the request that it
// came back for.
func (m message) answers(id int64) bool {
	if m.Method != "" || m.Result == nil && m.Error == nil {
		return false
	}
	if !m.hasID() {
		return m.Error != nil
	}
	return string(m.ID) == strconv.FormatInt(id, 10)
}

var leniently = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// parse reads one message, or a batch of them, which servers of 2025-03-26 may send.
func parse(data []byte) ([]message, error) {
	if jsontext.Value(data).Kind() == '[' {
		var batch []message
		err := json.Unmarshal(data, &batch, leniently)
		return batch, err
	}
	var one [1]message
	err := json.Unmarshal(data, &one[0], leniently)
	return one[:], err
}

// A remoteError is a JSON-RPC error that a server answered with.
type remoteError struct {
	code    int64
	message string // what the server says; bounded, on one line
	status  int    // of HTTP, where it was not 200
}

// Error implements error. It is for our log: the message is the server's.
func (e *remoteError) Error() string { return fmt.Sprintf("error %d: %s", e.code, e.message) }

// asError reads a JSON-RPC error object, whatever is wrong with it.
func asError(v jsontext.Value, status int) *remoteError {
	var o struct {
		Code    jsontext.Value `json:"code"`
		Message jsontext.Value `json:"message"`
	}
	e := &remoteError{message: "It said no more.", status: status}
	if json.Unmarshal(v, &o) != nil {
		return e
	}
	e.code, _ = strconv.ParseInt(string(o.Code), 10, 64)
	var text string
	if json.Unmarshal(o.Message, &text) == nil && text != "" {
		e.message = sentence(text)
	}
	return e
}

// sentence is a server's text as a part of ours: on one line, without control characters, at most 1,000 bytes.
func sentence(text string) string {
	b := make([]byte, 0, min(len(text), 1000))
	for _, r := range text {
		if unicode.IsControl(r) {
			r = ' '
		}
		if len(b)+utf8.RuneLen(r) > 1000 {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}
