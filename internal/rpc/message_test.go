package rpc_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// A05, E05: ids are echoed as they came, and names are exact.
func TestParseReadsOneMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in   string
		id, method string
		code       int
	}{
		{"integer id", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "7", "ping", 0},
		{"zero id", `{"jsonrpc":"2.0","id":0,"method":"ping"}`, "0", "ping", 0},
		{"negative id", `{"jsonrpc":"2.0","id":-1,"method":"ping"}`, "-1", "ping", 0},
		{"empty string id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, `""`, "ping", 0},
		{"string that looks like a number", `{"jsonrpc":"2.0","id":"0","method":"ping"}`, `"0"`, "ping", 0},
		{"escaped string id keeps its escapes", `{"jsonrpc":"2.0","id":"req/\u00fc","method":"ping"}`, `"req/\u00fc"`, "ping", 0},
		{"id beyond 2^53", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "9007199254740993", "ping", 0},
		{"no id is a notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, "null", "notifications/x", 0},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"array id", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, "null", "", rpc.InvalidRequest},
		{"method in another case", `{"jsonrpc":"2.0","id":1,"Method":"tools/list"}`, "1", "", rpc.InvalidRequest},
		{"another case beside the exact one is ignored", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, "1", "ping", 0},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, "null", "", rpc.ParseError},
		{"name twice deep inside", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{"to":"a","to":"b"}}}`, "null", "", rpc.ParseError},
		{"name twice by escape", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"to":1,"t\u006f":2}}`, "null", "", rpc.ParseError},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":5}`, "1", "", rpc.InvalidRequest},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, "1", "", rpc.MethodNotFound},
		{"params is an array", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, "1", "ping", rpc.InvalidParams},
		{"params is null", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, "1", "ping", rpc.InvalidParams},
		{"no version", `{"id":1,"method":"ping"}`, "1", "", rpc.InvalidRequest},
		{"version 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "1", "", rpc.InvalidRequest},
		{"version as number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, "1", "", rpc.InvalidRequest},
		{"response", `{"jsonrpc":"2.0","id":99,"result":{}}`, "99", "", 0},
		{"response with null result", `{"jsonrpc":"2.0","id":99,"result":null}`, "99", "", 0},
		{"response without id", `{"jsonrpc":"2.0","result":{}}`, "null", "", rpc.InvalidRequest},
		{"response with both", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, "1", "", rpc.InvalidRequest},
		{"request and response at once", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, "1", "", rpc.InvalidRequest},
		{"not JSON", `{"jsonrpc":`, "null", "", rpc.ParseError},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, "null", "", rpc.ParseError},
		{"a string", `"hello"`, "null", "", rpc.InvalidRequest},
		{"null", `null`, "null", "", rpc.InvalidRequest},
		{"nothing", ``, "null", "", rpc.ParseError},
		{"lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"s":"\ud800"}}`, "null", "", rpc.ParseError},
		{"bytes that are not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "null", "", rpc.ParseError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, failed := rpc.Parse([]byte(c.in))
			code := 0
			if failed != nil {
				code = failed.Code
			}
			if code != c.code || m.ID.String() != c.id || m.Method != c.method {
				t.Errorf("Parse(%s) = id %s, method %q, code %d; want %s, %q, %d", c.in, m.ID, m.Method, code, c.id, c.method, c.code)
			}
		})
	}
}

func TestParamsStayRaw(t *testing.T) {
	t.Parallel()
	const params = `{"u":18446744073709551615,"z":1.0,"neg":-0, "s":"\u2028\u0000"}`
	m, failed := rpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":` + params + `}`))
	if failed != nil || string(m.Params) != params {
		t.Errorf("params = %s (%v), want the bytes that came: %s", m.Params, failed, params)
	}
}

func TestBatchSplitsArraysOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		ok   bool
		code int
	}{
		{`{"jsonrpc":"2.0"}`, 0, false, 0},
		{` [ {"a":1}, 2 ]`, 2, true, 0},
		{`[]`, 0, true, rpc.InvalidRequest},
		{`[{"a":1,"a":2}]`, 0, true, rpc.ParseError},
		{`[`, 0, true, rpc.ParseError},
		{``, 0, false, 0},
	} {
		members, ok, failed := rpc.Batch([]byte(c.in))
		code := 0
		if failed != nil {
			code = failed.Code
		}
		if failed != nil {
			members = nil
		}
		if len(members) != c.n || ok != c.ok || code != c.code {
			t.Errorf("Batch(%s) = %d members, %v, code %d; want %d, %v, %d", c.in, len(members), ok, code, c.n, c.ok, c.code)
		}
	}
}

func TestParamsAreStrict(t *testing.T) {
	t.Parallel()
	var p struct {
		Name string `json:"name"`
	}
	if e := rpc.Params(jsontext.Value(`{"name":"read","Name":"delete"}`), &p); e != nil || p.Name != "read" {
		t.Errorf("Params = %q, %v; want the exact name", p.Name, e)
	}
	if e := rpc.Params(jsontext.Value(`{"name":5}`), &p); e == nil || e.Code != rpc.InvalidParams || !strings.Contains(e.Message, "/name") {
		t.Errorf("Params(name: 5) = %+v, want invalid params that name it", e)
	}
	if e := rpc.Params(nil, &p); e != nil {
		t.Errorf("Params(nil) = %v", e)
	}
}

func TestErrorsCarryTheirReason(t *testing.T) {
	t.Parallel()
	m, _ := rpc.Parse([]byte(`{"jsonrpc":"2.0","id":"a","method":"m"}`))
	got := string(rpc.AppendError(nil, m.ID, rpc.FromRefusal(reason.Refuse(reason.SessionNotFound, "Ended \"now\".").With("at", 5))))
	want := `{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"Ended \"now\".","data":{"reason":"session_not_found","at":5}}}`
	if got != want {
		t.Errorf("AppendError = %s\nwant %s", got, want)
	}
	got = string(rpc.AppendError(nil, rpc.ID{}, &rpc.Error{Code: rpc.ParseError, Message: "no"}))
	want = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":{"reason":"request_invalid"}}}`
	if got != want {
		t.Errorf("AppendError = %s\nwant %s", got, want)
	}
}

func TestToolResultShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		{`{"a":9007199254740993}`, `{"content":[{"type":"text","text":"{\"a\":9007199254740993}"}],"structuredContent":{"a":9007199254740993}}`},
		{`[1,2]`, `{"content":[{"type":"text","text":"[1,2]"}]}`},
		{`"x"`, `{"content":[{"type":"text","text":"\"x\""}]}`},
		{"{\n\"a\": 1}", `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
	} {
		if got := string(rpc.ToolResult(jsontext.Value(c.value))); got != c.want {
			t.Errorf("ToolResult(%s) = %s\nwant %s", c.value, got, c.want)
		}
	}
	got := rpc.ToolRefusal(reason.Refuse(reason.ToolNotFound, "No such tool.").With("vendor", "x"), "rid")
	want := `{"content":[{"type":"text","text":"{\"error\":\"refused\",\"reason\":\"tool_not_found\",\"message\":\"No such tool.\",\"vendor\":\"x\"}"}],` +
		`"structuredContent":{"error":"refused","reason":"tool_not_found","message":"No such tool.","vendor":"x"},"isError":true}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("ToolRefusal (-want +got):\n%s", diff)
	}
	if got := string(rpc.ToolRefusal(reason.Of(errSecret{}), "rid")); strings.Contains(got, "hunter2") || !strings.Contains(got, `"requestId":"rid"`) {
		t.Errorf("ToolRefusal(internal) = %s, want the request id and no text of the error", got)
	}
}

type errSecret struct{}

func (errSecret) Error() string { return "hunter2" }

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":"\u00fc","method":"ping"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"id":1,"id":2}`, ``, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		members, ok, failed := rpc.Batch(body)
		if ok && failed == nil && len(members) == 0 {
			t.Error("an empty batch was taken")
		}
		m, failed := rpc.Parse(body)
		var answer []byte
		if failed != nil {
			answer = rpc.AppendError(nil, m.ID, failed)
		} else {
			answer = rpc.AppendResult(nil, m.ID, jsontext.Value(`{}`))
			if m.Method == "" && !m.IsResponse() {
				t.Errorf("Parse(%q) took a message that is neither", body)
			}
			if !m.ID.IsZero() && !strings.Contains(string(body), m.ID.String()) {
				t.Errorf("id %s is not the bytes of %q", m.ID, body)
			}
		}
		var v map[string]jsontext.Value
		if err := json.Unmarshal(answer, &v); err != nil {
			t.Errorf("answer %q is not one JSON object: %v", answer, err)
		}
		if strings.ContainsAny(string(answer), "\n\r") {
			t.Errorf("answer %q would split a server-sent event", answer)
		}
	})
}

func TestWithMetaChangesNothingElse(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{}`: `{"_meta":{"k":1}}`,
		` { "content" : [ ] , "n":9007199254740993}`: `{"_meta":{"k":1},"content" : [ ] , "n":9007199254740993}`,
		`{"_meta":{"a":2,"k":0},"content":[]}`:       `{"_meta":{"a":2,"k":1},"content":[]}`,
		`{"content":[{"text":"\"_meta\""}]}`:         `{"_meta":{"k":1},"content":[{"text":"\"_meta\""}]}`,
		`{"_meta":3}`:                                `{"_meta":3}`,
		`[]`:                                         `[]`,
	} {
		if got := rpc.WithMeta(jsontext.Value(result), "k", jsontext.Value("1")); string(got) != want {
			t.Errorf("WithMeta(%s) = %s, want %s", result, got, want)
		}
	}
}
