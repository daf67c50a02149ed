package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
)

// modern is a client of 2026-07-28.
type modern struct{ client }

func stateless(c *client) *modern { return &modern{client{t: c.t, url: c.url, token: c.token}} }

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func statelessBody(method, params, meta string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`
}

func (m *modern) request(method, params string, headers ...string) answer {
	m.t.Helper()
	return m.post(statelessBody(method, params, meta), append([]string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}, headers...)...)
}

func (m *modern) startStateless(t *testing.T, method, params string, headers ...string) *flow {
	t.Helper()
	return m.start(t, statelessBody(method, params, meta), append([]string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}, headers...)...)
}

func TestDiscoverSaysWhatInitializeSays(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	var init, found struct {
		Result struct {
			Capabilities json.RawMessage
			Instructions string
			ServerInfo   json.RawMessage
			// of discover
			SupportedVersions []string
			ResultType        string
			TTLMs             int
			CacheScope        string
			Meta              map[string]json.RawMessage `json:"_meta"`
		}
	}
	unmarshal(t, c.post(initialize("2025-11-25"), "Mcp-Session-Id:").body, &init)
	a := stateless(c).request("server/discover", "")
	unmarshal(t, a.body, &found)
	r := found.Result
	if bare := strings.Replace(string(r.Capabilities), `"extensions":{"io.modelcontextprotocol/tasks":{}},`, "", 1); bare == string(r.Capabilities) {
		t.Errorf("discover = %s, want the extension for tasks, which sessions have not", a.body)
	} else {
		r.Capabilities = json.RawMessage(bare)
	}
	if a.status != http.StatusOK || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("discover = %d, session %q", a.status, a.header.Get("Mcp-Session-Id"))
	}
	if r.Instructions != init.Result.Instructions || string(r.Capabilities) != string(init.Result.Capabilities) || string(r.Meta["io.modelcontextprotocol/serverInfo"]) != string(init.Result.ServerInfo) {
		t.Errorf("discover says %s, initialize %+v", a.body, init)
	}
	if strings.Join(r.SupportedVersions, " ") != "2026-07-28 2025-11-25 2025-06-18 2025-03-26" || r.ResultType != "complete" || r.TTLMs <= 0 || r.CacheScope != "private" {
		t.Errorf("discover = %s", a.body)
	}
}

func unmarshal(t *testing.T, body string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), v); err != nil {
		t.Fatalf("%.300s: %v", body, err)
	}
}

func TestStatelessRequests(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newTalker()}})
	m := stateless(connect(t, k, "2025-11-25"))
	list := m.request("tools/list", "")
	if list.status != http.StatusOK || !strings.Contains(list.body, `"resultType":"complete"`) || !strings.Contains(list.body, `"cacheScope":"private"`) || !strings.Contains(list.body, `"name":"find_tool"`) {
		t.Errorf("tools/list = %d %.300s", list.status, list.body)
	}
	call := m.request("tools/call", `"name":"builtin__reshape","arguments":{"shape":9007199254740993}`, "Mcp-Name: builtin__reshape")
	if call.status != http.StatusOK || resultOf(t, call).text() != "9007199254740993" || !strings.Contains(call.body, `"resultType":"complete"`) {
		t.Errorf("tools/call = %d %s", call.status, call.body)
	}
	version := "MCP-Protocol-Version: 2026-07-28"
	for name, x := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"no header":              {statelessBody("tools/list", "", meta), []string{"Mcp-Method: tools/list"}, 400, -32020},
		"no meta":                {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, []string{version, "Mcp-Method: tools/list"}, 400, -32602},
		"no params":              {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{version, "Mcp-Method: tools/list"}, 400, -32602},
		"no capabilities":        {statelessBody("tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), []string{version, "Mcp-Method: tools/list"}, 400, -32602},
		"another version inside": {strings.Replace(statelessBody("tools/list", "", meta), "2026-07-28", "2025-11-25", 1), []string{version, "Mcp-Method: tools/list"}, 400, -32020},
		"a future version":       {strings.Replace(statelessBody("tools/list", "", meta), "2026-07-28", "2099-01-01", 1), []string{"MCP-Protocol-Version: 2099-01-01", "Mcp-Method: tools/list"}, 400, -32022},
		"no method header":       {statelessBody("tools/list", "", meta), []string{version}, 400, -32020},
		"another method header":  {statelessBody("tools/list", "", meta), []string{version, "Mcp-Method: tools/call"}, 400, -32020},
		"no name header":         {statelessBody("tools/call", `"name":"builtin__reshape"`, meta), []string{version, "Mcp-Method: tools/call"}, 400, -32020},
		"another name header":    {statelessBody("tools/call", `"name":"talk__wait"`, meta), []string{version, "Mcp-Method: tools/call", "Mcp-Name: builtin__reshape"}, 400, -32020},
		"name in base64":         {statelessBody("tools/call", `"name":"builtin__reshape","arguments":{"shape":1}`, meta), []string{version, "Mcp-Method: tools/call", "Mcp-Name: =?base64?YnVpbHRpbl9fcmVzaGFwZQ==?="}, 200, 0},
		"initialize":             {statelessBody("initialize", "", meta), []string{version, "Mcp-Method: initialize"}, 404, -32601},
		"ping":                   {statelessBody("ping", "", meta), []string{version, "Mcp-Method: ping"}, 404, -32601},
		"setLevel":               {statelessBody("logging/setLevel", "", meta), []string{version, "Mcp-Method: logging/setLevel"}, 404, -32601},
		"a batch":                {`[` + statelessBody("tools/list", "", meta) + `]`, []string{version, "Mcp-Method: tools/list"}, 400, -32600},
		"an unknown tool":        {statelessBody("tools/call", `"name":"nope"`, meta), []string{version, "Mcp-Method: tools/call", "Mcp-Name: nope"}, 400, -32602},
		"a session id beside it": {statelessBody("tools/list", "", meta), []string{version, "Mcp-Method: tools/list", "Mcp-Session-Id: nonsense"}, 200, 0},
	} {
		a := m.post(x.body, x.headers...)
		if code, _ := rpcError(a); a.status != x.status || code != x.code {
			t.Errorf("%s = %d %.300s, want %d with code %d", name, a.status, a.body, x.status, x.code)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := m.do(method, m.url, nil, version); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
			t.Errorf("%s = %d Allow %q, want 405 POST", method, a.status, a.header.Get("Allow"))
		}
	}
	if a := m.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, version); a.status != http.StatusAccepted {
		t.Errorf("a notification = %d, want 202", a.status)
	}
}

func TestListenTellsOfTheList(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-11-25")
	m := stateless(c)
	f := m.startStateless(t, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true}`)
	deaf := m.startStateless(t, "subscriptions/listen", `"notifications":{}`)
	tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	if got, want := f.next(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+tag+`}}`; got != want {
		t.Errorf("first = %s\nwant    %s", got, want)
	}
	if got := deaf.next(); !strings.Contains(got, `"notifications":{},`) {
		t.Errorf("first of one that asked for nothing = %s", got)
	}
	c.call("promote", `{"vendor":"builtin","name":"reshape"}`)
	if got, want := f.next(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+tag+`}}`; got != want {
		t.Errorf("then = %s\nwant   %s", got, want)
	}
	k.StopAll()
	if got, want := f.next(), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",`+tag+`}}`; got != want {
		t.Errorf("at the end = %s\nwant         %s", got, want)
	}
	if got := deaf.next(); strings.Contains(got, "list_changed") {
		t.Errorf("one that asked for nothing was told %s", got)
	}
}

// Multi round-trip: the question is the result, and the state that comes back is bound to agent, tool and arguments.
func TestInputRequired(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newTalker()}})
	m := stateless(connect(t, k, "2025-11-25"))
	asking := strings.Replace(meta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1)
	call := func(m *modern, params string) answer {
		return m.post(statelessBody("tools/call", `"name":"talk__ask",`+params, asking), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: talk__ask")
	}
	var first struct {
		Result struct {
			ResultType    string
			InputRequests map[string]struct {
				Method string
				Params struct{ Mode, Message string }
			}
			RequestState string
		}
	}
	unmarshal(t, call(m, `"arguments":{"b":1,"a":2}`).body, &first)
	q := first.Result.InputRequests["q"]
	if first.Result.ResultType != "input_required" || q.Method != "elicitation/create" || q.Params.Mode != "form" || q.Params.Message != "Which?" || first.Result.RequestState == "" {
		t.Fatalf("first = %+v", first)
	}
	state := `"requestState":"` + first.Result.RequestState + `"`
	answerTo := `,"inputResponses":{"q":{"action":"accept","content":{"x":"y"}}}`
	again := call(m, `"arguments":{"a":2,"b":1},`+state+answerTo) // the order of members is nothing
	if got := resultOf(t, again); got.text() != `{"action":"accept","content":{"x":"y"}}` {
		t.Errorf("with the answer = %s", again.body)
	}
	for name, params := range map[string]string{
		"without the answer":          `"arguments":{"a":2,"b":1},` + state,
		"with a nonsensical answer":   `"arguments":{"a":2,"b":1},` + state + `,"inputResponses":{"q":{"action":"maybe"}}`,
		"with an answer to no state":  `"arguments":{"a":2,"b":1}` + answerTo,
		"with an answer of other key": `"arguments":{"a":2,"b":1},` + state + `,"inputResponses":{"z":{"action":"accept"}}`,
	} {
		if a := call(m, params); !strings.Contains(a.body, `"resultType":"input_required"`) {
			t.Errorf("%s = %s, want it asked again", name, a.body)
		}
	}
	other := stateless(connect(t, k, "2025-11-25"))
	tampered := []byte(first.Result.RequestState)
	tampered[len(tampered)/2] ^= 1
	for name, a := range map[string]answer{
		"other arguments": call(m, `"arguments":{"a":3,"b":1},`+state+answerTo),
		"another agent":   call(other, `"arguments":{"a":2,"b":1},`+state+answerTo),
		"tampered":        call(m, `"arguments":{"a":2,"b":1},"requestState":"`+string(tampered)+`"`+answerTo),
		"no text":         call(m, `"arguments":{"a":2,"b":1},"requestState":5`+answerTo),
	} {
		if code, _ := rpcError(a); a.status != http.StatusBadRequest || code != -32602 {
			t.Errorf("%s = %d %s, want 400 -32602", name, a.status, a.body)
		}
	}
	// Without the capability nothing is asked.
	a := m.request("tools/call", `"name":"talk__ask"`, "Mcp-Name: talk__ask")
	if code, _ := rpcError(a); a.status != http.StatusBadRequest || code != -32021 || !strings.Contains(a.body, "requiredCapabilities") {
		t.Errorf("without the capability = %d %s, want 400 -32021", a.status, a.body)
	}
}
