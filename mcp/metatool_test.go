package mcp_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

func TestFindPromoteCallDemote(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	meta := []string{"find_tool", "run_tool", "run_status", "read_result", "promote", "demote", "request_connection", "request_credential"}
	if diff := cmp.Diff(meta, c.tools()); diff != "" {
		t.Errorf("tools of a new agent (-want +got):\n%s", diff)
	}

	var found struct {
		Tools []struct {
			Vendor, Name, Tool, Source, Description string
			Promoted                                bool
			InputSchema                             json.RawMessage
			Annotations                             struct{ ReadOnlyHint, DestructiveHint *bool }
		}
		Connections []json.RawMessage
		More        int
		Note        string
	}
	structured(t, c.call("find_tool", `{"query":"reshape some json"}`), &found)
	if len(found.Tools) != 1 || found.Tools[0].Tool != "builtin__reshape" || found.Tools[0].Vendor != "builtin" || found.Tools[0].Promoted ||
		found.Tools[0].Annotations.ReadOnlyHint == nil || !*found.Tools[0].Annotations.ReadOnlyHint || found.Connections == nil {
		t.Fatalf("find_tool = %+v, want builtin__reshape, not promoted, read-only", found)
	}
	if got := c.call("run_tool", `{"vendor":"builtin","name":"reshape","input":{"shape":{"n":9007199254740993}}}`); string(got.Structured) != `{"n":9007199254740993}` || got.IsError {
		t.Errorf("run_tool of a tool that is not promoted = %s", got.Structured)
	}

	type change struct {
		Tool              string
		Promoted, Changed bool
		WorkingSetSize    int
	}
	for _, x := range []struct {
		tool string
		want change
	}{
		{"promote", change{"builtin__reshape", true, true, 1}},
		{"promote", change{"builtin__reshape", true, false, 1}},
		{"demote", change{"builtin__reshape", false, true, 0}},
		{"demote", change{"builtin__reshape", false, false, 0}},
		{"promote", change{"builtin__reshape", true, true, 1}},
	} {
		var got change
		structured(t, c.call(x.tool, `{"vendor":"builtin","name":"reshape"}`), &got)
		if got != x.want {
			t.Errorf("%s = %+v, want %+v", x.tool, got, x.want)
		}
	}
	eventually(t, "builtin__reshape in the list", onEachReplica(func() bool {
		return cmp.Equal(append(meta, "builtin__reshape"), c.tools())
	}))
	if got := c.call("builtin__reshape", `{"shape":[1,"two",null]}`); got.text() != `[1,"two",null]` || got.Structured != nil {
		t.Errorf("builtin__reshape = %q %s", got.text(), got.Structured)
	}
	// Another agent's list is its own.
	if got := connect(t, k, "2025-11-25").tools(); len(got) != len(meta) {
		t.Errorf("another agent's tools = %v, want the meta-tools alone", got)
	}
}

func structured(t *testing.T, r result, v any) {
	t.Helper()
	if r.IsError {
		t.Fatalf("result is an error: %s", r.text())
	}
	if string(r.Structured) != r.text() {
		t.Errorf("text %s is not the structured content %s", r.text(), r.Structured)
	}
	if err := json.Unmarshal(r.Structured, v); err != nil {
		t.Fatal(err)
	}
}

// What goes wrong with a call is a result that a model can act on; E01, E04 and E10 of the field cases among it.
func TestCallsThatDoNotFit(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	for _, x := range []struct{ name, args, reason, says string }{
		{"builtin__reshape", `{}`, "input_invalid", "shape"},
		{"builtin__reshape", `{"shape":1,"Shape":2}`, "input_invalid", "Shape"},
		{"find_tool", `{"query":""}`, "input_invalid", "/query"},
		{"find_tool", `{"query":"a b c"}`, "input_invalid", "word"},
		{"find_tool", `{"query":"x y","limit":0}`, "input_invalid", "/limit"},
		{"find_tool", `{"query":5}`, "input_invalid", "/query"},
		{"find_tool", `{"query":"json","cursor":"abc"}`, "input_invalid", "cursor is not one that find_tool gave"},
		{"find_tool", `{"query":"json","cursor":""}`, "input_invalid", "/cursor"},
		{"run_tool", `{"vendor":"builtin","name":"nope"}`, "tool_not_found", "nope"},
		{"run_tool", `{"vendor":"builtin","name":"reshape"}`, "input_invalid", "shape"},
		{"run_tool", `{"vendor":"builtin","name":"reshape","input":[]}`, "input_invalid", "/input"},
		{"promote", `{"vendor":"github","name":"list"}`, "tool_not_found", "find_tool"},
		{"demote", `{"vendor":"builtin"}`, "input_invalid", "name"},
	} {
		got := c.call(x.name, x.args)
		var body struct {
			Error, Reason, Message string
			Problems               []struct{ Path, Problem string }
			InputSchema            json.RawMessage
		}
		if err := json.Unmarshal([]byte(got.text()), &body); err != nil || !got.IsError || body.Error != "refused" || body.Reason != x.reason {
			t.Errorf("%s %s = %s, want a refusal %s", x.name, x.args, got.text(), x.reason)
			continue
		}
		if !strings.Contains(got.text(), x.says) {
			t.Errorf("%s %s = %s, want it to say %q", x.name, x.args, got.text(), x.says)
		}
		if strings.Contains(x.says, "/") && len(body.Problems) == 0 {
			t.Errorf("%s %s names no problem: %s", x.name, x.args, got.text())
		}
	}
	for _, x := range []struct {
		params string
		code   int
	}{
		{`{"name":"no_such_tool"}`, -32602},
		{`{"name":"builtin__nope","arguments":{}}`, -32602},
		{`{"name":"builtin__reshape","arguments":[]}`, -32602},
		{`{"name":"builtin__reshape","arguments":"{}"}`, -32602},
		{`{"name":7}`, -32602},
		{`{}`, -32602},
		{`{"Name":"builtin__reshape","arguments":{"shape":1}}`, -32602},
		{`{"name":"builtin__reshape","arguments":{"shape":1,"shape":2}}`, -32700},
	} {
		a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + x.params + `}`)
		if code, _ := rpcError(a); code != x.code {
			t.Errorf("tools/call %s = %s, want code %d", x.params, a.body, x.code)
		}
	}
	long := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("long", 250_000) + `"}}`)
	if code, _ := rpcError(long); code != -32602 {
		t.Errorf("tools/call of a name of 1 MB = %.200s, want code -32602", long.body)
	}
	eventually(t, "what was refused to be written down", func() bool { return audited(t, k, "tool_not_found") >= 3 })
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		links, err := tx.AuditEntries(t.Context(), store.AuditFilter{})
		for _, l := range links {
			if len(l.Tool) > 200 {
				t.Errorf("a name of %d bytes is in the log", len(l.Tool))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Absent, null and empty arguments are one.
	for _, params := range []string{`{"name":"builtin__reshape"}`, `{"name":"builtin__reshape","arguments":null}`} {
		a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
		if r := resultOf(t, a); !r.IsError || !strings.Contains(r.text(), "input_invalid") {
			t.Errorf("tools/call %s = %s, want input_invalid that names shape", params, r.text())
		}
	}
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"made-up"}}`)
	if code, _ := rpcError(a); code != -32602 {
		t.Errorf("tools/list with a made-up cursor = %s, want -32602", a.body)
	}
}

// E02: numbers go both ways as they were written.
func TestNumbersAreNotRounded(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	const shape = `{"id":9007199254740993,"m":9223372036854775807,"u":18446744073709551615,"f":0.1,"e":1e3,"z":1.0,"neg":-0}`
	for name, got := range map[string]result{
		"direct":   c.call("builtin__reshape", `{"shape":`+shape+`}`),
		"run_tool": c.call("run_tool", `{"vendor":"builtin","name":"reshape","input":{"shape":`+shape+`}}`),
	} {
		if got.text() != shape || string(got.Structured) != shape {
			t.Errorf("%s = %s and %s, want %s", name, got.text(), got.Structured, shape)
		}
	}
}

// The list is what a model and a client's filters see, so its form is held here: names, lengths, hints, schemas, and
// descriptions that state and do not command.
func TestListedToolsAreWellFormed(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	c.call("promote", `{"vendor":"builtin","name":"reshape"}`)
	eventually(t, "builtin__reshape in the list", onEachReplica(func() bool { return len(c.tools()) == 9 }))
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var m struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              map[string]any
				Annotations              struct {
					Title                         string
					ReadOnlyHint, DestructiveHint *bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Result.Tools) != 9 {
		t.Fatalf("%d tools listed, want 9", len(m.Result.Tools))
	}
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	command := regexp.MustCompile(`(?i)\b(never|always|must|do not|don't|you|your|please)\b`)
	for _, tool := range m.Result.Tools {
		if !name.MatchString(tool.Name) || tool.Title == "" || tool.Annotations.Title != tool.Title {
			t.Errorf("tool %q has title %q and %q", tool.Name, tool.Title, tool.Annotations.Title)
		}
		if n := len(tool.Description); n < 80 || n > 2048 {
			t.Errorf("%s: description of %d characters", tool.Name, n)
		}
		if found := command.FindString(tool.Description); found != "" {
			t.Errorf("%s: description commands: %q", tool.Name, found)
		}
		if tool.Annotations.ReadOnlyHint == nil || tool.Annotations.DestructiveHint == nil {
			t.Errorf("%s: a hint is not set", tool.Name)
		}
		if tool.InputSchema["type"] != "object" || tool.InputSchema["anyOf"] != nil || tool.InputSchema["oneOf"] != nil || tool.InputSchema["allOf"] != nil {
			t.Errorf("%s: schema root %v", tool.Name, tool.InputSchema)
		}
	}
	hints := fmt.Sprint()
	for _, tool := range m.Result.Tools {
		hints += fmt.Sprintf("%s %v %v\n", tool.Name, *tool.Annotations.ReadOnlyHint, *tool.Annotations.DestructiveHint)
	}
	want := "find_tool true false\nrun_tool false true\nrun_status true false\nread_result true false\npromote false false\ndemote false false\nrequest_connection false false\nrequest_credential false false\nbuiltin__reshape true false\n"
	if hints != want {
		t.Errorf("hints (read-only, destructive):\n%swant:\n%s", hints, want)
	}
	if again := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); again.body != a.body {
		t.Error("two lists differ byte for byte")
	}
}

// What is counted about an agent reaches the console's tables within the batch, across replicas.
func TestUseIsWrittenDown(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-06-18")
	k.StopAll() // flushes
	var sessions []store.MCPSession
	var got store.Agent
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) (err error) {
		if sessions, err = tx.Sessions(t.Context(), agent.ID, 10); err != nil {
			return err
		}
		got, err = tx.Agent(t.Context(), agent.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.LastUsedAt == nil || len(sessions) != 1 || sessions[0].ClientName != "probe" || sessions[0].Protocol != "2025-06-18" || sessions[0].Address != "127.0.0.1" {
		t.Errorf("agent used at %v, sessions %+v; want one of probe 1 from 127.0.0.1", got.LastUsedAt, sessions)
	}
}
