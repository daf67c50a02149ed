package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// The cases E01 to E10 of field reports: what becomes of a call's arguments. They are held to the tool's schema as they
// stand: nothing is turned into another type, filled in or left out, and what fits goes on byte for byte.

// An elsewhere is a source of tools whose schemas came from elsewhere. A tool answers with the arguments it got.
type elsewhere struct {
	tools []catalog.Tool
	mu    sync.Mutex
	ran   []string // names of tools, and what they were given
}

// from makes a source of one tool a schema, called t0, t1 and so on. A schema that cannot be listed fails the test.
func from(t *testing.T, schemas ...string) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	for i, raw := range schemas {
		schema, err := catalog.NormalizeInput(jsontext.Value(raw))
		if err != nil {
			t.Fatalf("NormalizeInput(%s) = %v", raw, err)
		}
		e.tools = append(e.tools, catalog.Tool{
			Vendor: "else", Name: fmt.Sprintf("t%d", i), Title: "T", Description: "A tool for tests.", ReadOnly: true, InputSchema: schema,
		})
	}
	return e
}

func (e *elsewhere) Tools(context.Context, store.Caller) ([]catalog.Tool, error) { return e.tools, nil }

func (e *elsewhere) Run(_ context.Context, r catalog.Run) (catalog.Output, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ran = append(e.ran, r.Tool.Name+" "+string(r.Args))
	return catalog.Output{Value: r.Args}, nil
}

func (e *elsewhere) runs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.ran...)
}

// calling starts a gateway with the source, and an agent's session.
func calling(t *testing.T, e *elsewhere) *client {
	t.Helper()
	return connect(t, servertest.Start(t, servertest.Options{Sources: []catalog.Source{e}}), "2025-11-25")
}

// fits calls a tool directly and through run_tool, and expects the arguments back as they were, byte for byte.
func (c *client) fits(tool, args string) {
	c.t.Helper()
	if got := c.call("else__"+tool, args); got.IsError || got.text() != args {
		c.t.Errorf("%s with %.200s = %.400s, want the arguments as they were", tool, args, got.text())
	}
	if got := c.call("run_tool", `{"vendor":"else","name":"`+tool+`","input":`+args+`}`); got.IsError || got.text() != args {
		c.t.Errorf("run_tool of %s with %.200s = %.400s, want the arguments as they were", tool, args, got.text())
	}
}

// refuses calls a tool both ways, and expects input_invalid with a problem at each of the places: "pointer: words".
func (c *client) refuses(tool, args string, problems ...string) {
	c.t.Helper()
	for name, sent := range map[string]string{"else__" + tool: args, "run_tool": `{"vendor":"else","name":"` + tool + `","input":` + args + `}`} {
		got := c.call(name, sent)
		var r struct {
			Error    string            `json:"error"`
			Reason   string            `json:"reason"`
			Problems []catalog.Problem `json:"problems"`
			Schema   json.RawMessage   `json:"inputSchema"`
		}
		if err := json.Unmarshal([]byte(got.text()), &r); err != nil || !got.IsError || r.Error != "refused" || r.Reason != "input_invalid" || len(r.Schema) == 0 {
			c.t.Errorf("%s with %.200s = %.400s, want it refused as input_invalid with the schema", name, sent, got.text())
			continue
		}
		if len(r.Problems) != len(problems) {
			c.t.Errorf("%s with %.200s has problems %q, want %d", name, sent, r.Problems, len(problems))
		}
		for _, want := range problems {
			at, words, _ := strings.Cut(want, ": ")
			found := false
			for _, p := range r.Problems {
				found = found || p.Path == at && strings.Contains(p.Problem, words)
			}
			if !found {
				c.t.Errorf("%s with %.200s has problems %q, want one at %q that says %q", name, sent, r.Problems, at, words)
			}
		}
	}
}

func TestFieldE01ArgumentsAbsentNullOrEmpty(t *testing.T) {
	t.Parallel()
	e := from(t, `{"type":"object"}`, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)
	c := calling(t, e)
	post := func(tool, arguments string) answer {
		return c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__` + tool + `"` + arguments + `}}`)
	}
	for _, arguments := range []string{``, `,"arguments":null`, `,"arguments":{}`} {
		if got := resultOf(t, post("t0", arguments)); got.IsError || got.text() != `{}` {
			t.Errorf("a call with %q = %s, want it to run with {}", arguments, got.text())
		}
		if got := resultOf(t, post("t1", arguments)); !got.IsError || !strings.Contains(got.text(), `missing property 'q'`) {
			t.Errorf("a call with %q that needs q = %s, want it refused naming q", arguments, got.text())
		}
	}
	for _, arguments := range []string{`,"arguments":[]`, `,"arguments":"{}"`, `,"arguments":7`, `,"arguments":false`} {
		if code, _ := rpcError(post("t0", arguments)); code != -32602 {
			t.Errorf("a call with %q has code %d, want -32602", arguments, code)
		}
	}
	if got := e.runs(); len(got) != 3 || got[0] != "t0 {}" {
		t.Errorf("ran %q, want t0 three times", got)
	}
}

func TestFieldE02IntegersAbove2To53(t *testing.T) {
	t.Parallel()
	e := from(t, `{"type":"object","properties":{"id":{"type":"integer"},"m":{"type":"integer"},"u":{"type":"integer","maximum":18446744073709551615},`+
		`"e":{"type":"integer"},"z":{"type":"integer"},"neg":{"type":"integer"},"f":{"type":"number"},"one":{"enum":[9007199254740993]}}}`)
	c := calling(t, e)
	c.fits("t0", `{"id":9007199254740993,"m":9223372036854775807,"u":18446744073709551615,"f":0.1,"e":1e3,"z":1.0,"neg":-0}`)
	c.fits("t0", `{"f":1E400,"one":9007199254740993}`)
	c.refuses("t0", `{"u":18446744073709551616}`, "/u: maximum")
	c.refuses("t0", `{"one":9007199254740992}`, "/one: 9007199254740993")
	c.refuses("t0", `{"id":9007199254740992.5}`, "/id: integer")
}

func TestFieldE03StringsForOtherTypes(t *testing.T) {
	t.Parallel()
	e := from(t, `{"type":"object","properties":{"n":{"type":"integer"},"b":{"type":"boolean"},"t":{"type":"array","items":{"type":"string"}},"o":{"type":"object"},"s":{"type":"string"}}}`)
	c := calling(t, e)
	c.refuses("t0", `{"n":"3","b":"true","t":"[\"x\"]","o":"{\"k\":1}","s":"[1]"}`,
		"/n: got string, want integer", "/b: got string, want boolean", "/t: got string, want array", "/o: got string, want object")
	for _, n := range []string{`"3.5"`, `"abc"`, `"0x10"`, `3.5`} {
		c.refuses("t0", `{"n":`+n+`}`, "/n: want integer")
	}
	c.fits("t0", `{"s":"[1]","n":3}`)
	c.fits("t0", `{"s":"007"}`)
	if got := e.runs(); len(got) != 4 {
		t.Errorf("ran %q, want what fits alone", got)
	}
}

func TestFieldE04NullEmptyAndUnknown(t *testing.T) {
	t.Parallel()
	const properties = `"properties":{"q":{"type":"string"},"limit":{"type":"integer"},"page_size":{"type":"integer"}},"required":["q"]`
	c := calling(t, from(t, `{"type":"object",`+properties+`}`, `{"type":"object",`+properties+`,"additionalProperties":false}`))
	for _, tool := range []string{"t0", "t1"} {
		c.refuses(tool, `{"q":"x","limit":null}`, "/limit: got null, want integer")
		c.refuses(tool, `{"q":"x","limit":""}`, "/limit: got string, want integer")
		c.refuses(tool, `{"q":null}`, "/q: got null, want string")
	}
	c.fits("t0", `{"q":"x","maxLimit":5}`)
	c.fits("t0", `{"q":"x","_meta":{}}`)
	c.refuses("t1", `{"q":"x","maxLimit":5}`, `: 'maxLimit' not allowed; did you mean "limit"?`)
	c.refuses("t1", `{"q":"x","pagesize":5}`, `: did you mean "page_size"?`)
	c.refuses("t1", `{"q":"x","Limit":5}`, `: did you mean "limit"?`)
	c.refuses("t1", `{"q":"x","_meta":{}}`, ": additional properties '_meta' not allowed")
}

func TestFieldE05CaseVariantAndDuplicateKeys(t *testing.T) {
	t.Parallel()
	e := from(t, `{"type":"object","properties":{"to":{"type":"string"}}}`, `{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":false}`)
	c := calling(t, e)
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__t0","Name":"else__t1","arguments":{}}}`)
	if got := resultOf(t, a); got.IsError {
		t.Errorf("name beside Name = %s, want name alone to count", got.text())
	}
	if code, _ := rpcError(c.post(`{"jsonrpc":"2.0","id":1,"Method":"tools/list"}`)); code == 0 {
		t.Error("Method counts as method")
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"else__t1"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__t0","name":"else__t1"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__t1","arguments":{"to":"a","to":"b"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__t1","arguments":{"x":[{"to":"a","\u0074o":"b"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_tool","arguments":{"vendor":"else","name":"t1","input":{"to":"a","to":"b"}}}}`,
	} {
		if code, _ := rpcError(c.post(body)); code != -32700 && code != -32600 {
			t.Errorf("%s has code %d, want -32700 or -32600", body, code)
		}
	}
	c.fits("t0", `{"to":"a","To":"b"}`)
	c.refuses("t1", `{"to":"a","To":"b"}`, ": additional properties 'To' not allowed")
	if got := strings.Join(e.runs(), "; "); strings.Contains(got, "t1") {
		t.Errorf("ran %s, want t1 never", got)
	}
}

func TestFieldE06PatternsFormatsAndDrafts(t *testing.T) {
	t.Parallel()
	one := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	schemas := []string{
		one(`{"type":"string","pattern":"^(?!x).+$"}`),
		one(`{"type":"string","pattern":"^[\\w-]+\\Z","minLength":2}`),
		one(`{"type":"number","minimum":0,"exclusiveMinimum":true}`),
		one(`{"type":"string","format":"uri"}`),
		one(`{"type":"string","format":"date-time"}`),
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string","format":"date-time"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`,
		`{"$schema":"https://example.com/a/draft/of/my/own","type":"object","properties":{"a":{"type":"string"}}}`,
		one(`{"not":{"pattern":"(?=y)"}}`),
		one(`{"oneOf":[{"type":"string","format":"email"},{"type":"string","format":"uri"}]}`),
		`{"type":"object","patternProperties":{"^(?!x)":{"type":"string"}},"additionalProperties":false}`,
		one(`{"type":"string","pattern":"^[a-c]+$"}`),
	}
	c := calling(t, from(t, schemas...))
	c.fits("t0", `{"a":"x"}`)
	c.fits("t1", `{"a":"a-b"}`)
	c.refuses("t1", `{"a":"a"}`, "/a: minLength")
	c.fits("t2", `{"a":0.1}`)
	c.refuses("t2", `{"a":0}`, "/a: exclusiveMinimum")
	c.fits("t3", `{"a":""}`)
	c.fits("t4", `{"a":"2026-01-02 03:04"}`)
	c.fits("t5", `{"a":"2026-01-02 03:04"}`)
	c.refuses("t6", `{"a":0}`, "/a: exclusiveMinimum")
	c.fits("t7", `{"a":"x"}`)
	c.refuses("t7", `{"a":1}`, "/a: want string")
	c.fits("t8", `{"a":"z"}`)
	c.fits("t9", `{"a":"a@b.example"}`)
	c.fits("t10", `{"a":"x"}`)
	c.refuses("t11", `{"a":"d"}`, "/a: does not match pattern")

	kept, err := catalog.NormalizeInput(jsontext.Value(schemas[0]))
	if err != nil || string(kept) != schemas[0] {
		t.Errorf("NormalizeInput() = %s, %v, want the pattern kept", kept, err)
	}
	s, err := catalog.CompileSchema(kept)
	if err != nil || fmt.Sprint(s.Unchecked()) != "[/properties/a/pattern]" {
		t.Errorf("Unchecked() = %v, %v, want where the pattern stands", s.Unchecked(), err)
	}
	if _, err := catalog.NormalizeInput(jsontext.Value(one(`{"type":"strng"}`))); err == nil || !strings.Contains(err.Error(), "/properties/a/type") {
		t.Errorf("a type that is none = %v, want an error naming where it stands", err)
	}
}

// A default is the tool's own to apply: arguments go on as they came.
func TestFieldE07DefaultsAreNotApplied(t *testing.T) {
	t.Parallel()
	c := calling(t, from(t, `{"type":"object","properties":{"page":{"type":"integer","default":1},"tag":{"type":"string"},"n":{"type":["string","null"],"default":null}}}`))
	c.fits("t0", `{}`)
	c.fits("t0", `{"n":null}`)
	c.refuses("t0", `{"page":null}`, "/page: got null, want integer")
}

func TestFieldE08References(t *testing.T) {
	t.Parallel()
	fetched := make(chan string, 8)
	recorder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched <- r.URL.Path
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(recorder.Close)
	for _, ref := range []string{recorder.URL + "/s.json", "http://169.254.169.254/s.json", "file:///etc/hosts", "s.json", "#/$defs/missing", "#missing"} {
		for _, raw := range []string{
			`{"$ref":"` + ref + `"}`, `{"type":"object","properties":{"a":{"$ref":"` + ref + `"}}}`,
			`{"$id":"` + recorder.URL + `/","type":"object","properties":{"a":{"$ref":"` + ref + `"}}}`,
			`{"$schema":"` + recorder.URL + `/meta","type":"object","properties":{"a":{"$ref":"` + ref + `"}}}`,
		} {
			if got, err := catalog.NormalizeInput(jsontext.Value(raw)); err == nil {
				t.Errorf("NormalizeInput(%s) = %s, want it left out", raw, got)
			}
		}
	}
	e := from(t, `{"type":"object","properties":{"n":{"$ref":"#/$defs/node","description":"The root."}},"$defs":{"node":{"type":"object",`+
		`"properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},"required":["v"]}}}`)
	c := calling(t, e)
	c.fits("t0", `{"n":{"v":1,"next":{"v":2,"next":{"v":3}}}}`)
	c.refuses("t0", `{"n":{"v":1,"next":{"v":2,"next":{"v":"x"}}}}`, "/n/next/next/v: want integer")
	if !strings.Contains(string(e.tools[0].InputSchema), `"$ref":"#/$defs/node","description":"The root."`) {
		t.Errorf("listed schema = %s, want what stands beside the reference kept", e.tools[0].InputSchema)
	}
	select {
	case path := <-fetched:
		t.Errorf("%s was fetched", path)
	default:
	}
}

func TestFieldE09UnicodeKeys(t *testing.T) {
	t.Parallel()
	const nfc, nfd = "na\u00efve", "nai\u0308ve"
	c := calling(t, from(t, `{"type":"object","properties":{"`+nfc+`":{"type":"integer"},"a.b":{"type":"integer"},"$x":{"type":"integer"},`+
		`"__proto__":{"type":"integer"},"":{"type":"integer"},"a/b~c":{"type":"integer"}}}`))
	c.fits("t0", `{"`+nfc+`":1,"`+nfd+`":"another key","a.b":1,"$x":1,"__proto__":1,"":1,"a/b~c":1}`)
	c.refuses("t0", `{"`+nfc+`":"x","a.b":"x","$x":"x","__proto__":"x","":"x","a/b~c":"x"}`,
		"/"+nfc+": want integer", "/a.b: want integer", "/$x: want integer", "/__proto__: want integer", "/: want integer", "/a~1b~0c: want integer")
}

func TestFieldE10ProblemsAreToldToTheModel(t *testing.T) {
	t.Parallel()
	c := calling(t, from(t, `{"type":"object","properties":{"to":{"type":"string"},"kind":{"enum":["mail","chat"]},"deep":{"type":"array","items":{"type":"integer"}}},"required":["to","kind"]}`))
	c.refuses("t0", `{"kind":"fax","deep":[1,"x"]}`, ": missing property 'to'", "/kind: 'mail', 'chat'", "/deep/1: want integer")
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__missing","arguments":{}}}`)
	if code, word := rpcError(a); code != -32602 || word != "tool_not_found" {
		t.Errorf("an unknown tool = %s, want -32602 tool_not_found", a.body)
	}
	for _, dump := range []string{"map[", "0x", "jsonschema", "graft:input"} {
		if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"else__t0","arguments":{"kind":{"a":1}}}}`); strings.Contains(a.body, dump) {
			t.Errorf("a refusal holds %q: %s", dump, a.body)
		}
	}
}
