package mcp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/servertest"
)

// The cases A01 to A15 of field reports, each under its own number. A10, A12 and A16 belong to streams of running
// calls, which come later; what of them holds already is in stream_test.go.

const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`

func TestA01StaleSessionIs404(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	k.Restart()
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("the session after a restart = %d %s, want 200", a.status, a.body)
	}
	real := c.session
	for _, id := range []string{"7b1e0000-dead-4000-8000-00000000beef", "x", strings.Repeat("A", 5000), real[:len(real)-2], real + "A", real + "=", " " + real + "x"} {
		c.session = id
		for method, body := range map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, http.MethodGet: "", http.MethodDelete: ""} {
			a := c.do(method, c.url, strings.NewReader(body))
			code, word := rpcError(a)
			if a.status != http.StatusNotFound || code != -32001 || word != "session_not_found" {
				t.Errorf("%s with session %.20q = %d code %d %q, want 404 -32001 session_not_found", method, id, a.status, code, word)
			}
			if method == http.MethodPost && !strings.Contains(a.body, `"id":5`) {
				t.Errorf("POST with session %.20q answers %s, want the request's id", id, a.body)
			}
		}
	}
	c.session = real
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("the real session afterwards = %d", a.status)
	}
}

func TestA02MissingSessionIs400(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	c.session = ""
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		a := c.do(method, c.url, strings.NewReader(ping))
		if _, word := rpcError(a); a.status != http.StatusBadRequest || word != "session_required" {
			t.Errorf("%s without a session = %d %s, want 400 session_required", method, a.status, a.body)
		}
		if a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s without a session made one", method)
		}
	}
}

func TestA03NotificationsAnd202(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":404}}`,
		`{"jsonrpc":"2.0","method":"notifications/x_unknown"}`,
		`{"jsonrpc":"2.0","id":99,"result":{}}`,
		`{"jsonrpc":"2.0","id":"99","error":{"code":-1,"message":"no"}}`,
	} {
		a := c.post(body)
		if a.status != http.StatusAccepted || a.body != "" || a.header.Get("Content-Length") != "0" {
			t.Errorf("POST %s = %d %q (Content-Length %q), want 202 and nothing", body, a.status, a.body, a.header.Get("Content-Length"))
		}
	}
}

func TestA04AcceptIsNegotiated(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	for accept, want := range map[string]string{
		"text/event-stream": "text/event-stream",
		"application/json":  "application/json",
		"*/*":               "application/json",
		"":                  "application/json",
		"application/json;q=0.9, text/event-stream;q=0.8":       "application/json",
		"Text/Event-Stream , APPLICATION/JSON":                  "application/json",
		"application/*":                                         "application/json",
		"text/*":                                                "text/event-stream",
		"application/json;q=0, text/event-stream":               "text/event-stream",
		"text/html, application/json; charset=utf-8, broken;;;": "application/json",
	} {
		a := c.post(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, "Accept: "+accept)
		if got := a.header.Get("Content-Type"); a.status != http.StatusOK || got != want {
			t.Errorf("Accept %q = %d %q, want 200 %q", accept, a.status, got, want)
		}
		if want == "text/event-stream" {
			data, ok := strings.CutPrefix(a.body, "event: message\ndata: ")
			if !ok || !strings.HasSuffix(data, "\n\n") || !json.Valid([]byte(strings.TrimSpace(data))) {
				t.Errorf("Accept %q answers %.200q, want one event of one line of JSON", accept, a.body)
			}
		}
	}
	a := c.post(ping, "Accept: text/html")
	if _, word := rpcError(a); a.status != http.StatusNotAcceptable || word != "not_acceptable" {
		t.Errorf("Accept text/html = %d %s, want 406", a.status, a.body)
	}
}

func TestA05IDsAreEchoed(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	for _, id := range []string{`0`, `-1`, `""`, `"0"`, `"req/\u00fc"`, `"req/ü"`, `9007199254740993`, `18446744073709551616`} {
		a := c.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`; a.status != http.StatusOK || a.body != want {
			t.Errorf("id %s = %d %s, want %s", id, a.status, a.body, want)
		}
	}
	for _, id := range []string{`null`, `{}`, `true`, `[1]`, `1.5`} {
		a := c.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if code, _ := rpcError(a); a.status != http.StatusBadRequest || code != -32600 || !strings.Contains(a.body, `"id":null`) {
			t.Errorf("id %s = %d %s, want 400 -32600 with id null", id, a.status, a.body)
		}
	}
	if a := c.post(`{"jsonrpc":"2.0","method":"ping"}`); a.status != http.StatusAccepted {
		t.Errorf("no id = %d, want 202", a.status)
	}
}

func TestA07ProtocolVersionHeader(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	for _, v := range []string{"1900-01-01", "not-a-version", "2027-01-01", "2024-11-05"} {
		a := c.post(ping, "MCP-Protocol-Version: "+v)
		code, word := rpcError(a)
		if a.status != http.StatusBadRequest || code != -32022 || word != "version_unsupported" || !strings.Contains(a.body, `"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"]`) {
			t.Errorf("version header %q = %d %s, want 400 -32022 with what is supported", v, a.status, a.body)
		}
	}
	for _, v := range []string{"", "2025-06-18", "2025-11-25"} {
		if a := c.post(ping, "MCP-Protocol-Version: "+v); a.status != http.StatusOK {
			t.Errorf("version header %q = %d, want 200", v, a.status)
		}
	}
	for asked, want := range map[string]string{
		"2099-01-01": "2025-11-25", "2026-07-28": "2025-11-25", "2024-11-05": "2025-11-25", "2025-03-26": "2025-03-26", "2025-11-25": "2025-11-25",
	} {
		a := c.post(initialize(asked), "Mcp-Session-Id:", "MCP-Protocol-Version: 1900-01-01")
		if a.status != http.StatusOK || !strings.Contains(a.body, `"protocolVersion":"`+want+`"`) {
			t.Errorf("initialize %s = %d %.120s, want %s", asked, a.status, a.body, want)
		}
	}
}

func TestA08Batches(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	const two = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		c := connect(t, k, version)
		for _, body := range []string{two, `[]`, `[1,2]`, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`} {
			a := c.post(body)
			if code, _ := rpcError(a); a.status != http.StatusBadRequest || code != -32600 || !strings.Contains(a.body, `"id":null`) {
				t.Errorf("%s: POST %s = %d %s, want 400 -32600 with id null", version, body, a.status, a.body)
			}
		}
	}
	c := connect(t, k, "2025-03-26")
	for _, x := range []struct {
		body   string
		status int
		ids    []string
		codes  []int
	}{
		{two, 200, []string{"1", "2"}, []int{0, 0}},
		{`[]`, 400, nil, []int{-32600}},
		{`[1,2]`, 200, []string{"null", "null"}, []int{-32600, -32600}},
		{`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":7,"result":{}}]`, 202, nil, nil},
		{`[{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}},{"jsonrpc":"2.0","id":"b","method":"nope"}]`, 200, []string{`"a"`, `"b"`}, []int{-32600, -32601}},
		{`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 100) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, nil, []int{-32600}},
	} {
		a := c.post(x.body)
		if a.status != x.status {
			t.Errorf("POST %.80s = %d %.200s, want %d", x.body, a.status, a.body, x.status)
			continue
		}
		if x.ids == nil {
			continue
		}
		var answers []struct {
			ID    json.RawMessage `json:"id"`
			Error struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(a.body), &answers); err != nil {
			t.Errorf("POST %.80s = %.200s, want an array", x.body, a.body)
			continue
		}
		var ids []string
		var codes []int
		for _, r := range answers {
			ids, codes = append(ids, string(r.ID)), append(codes, r.Error.Code)
		}
		if diff := cmp.Diff([]any{x.ids, x.codes}, []any{ids, codes}); diff != "" {
			t.Errorf("POST %.80s (-want +got):\n%s", x.body, diff)
		}
	}
}

func TestA09GetIsAStreamOrNothing(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	l := c.listen()
	if got := l.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type = %q, want text/event-stream", got)
	}
	if l.resp.Header.Get("X-Accel-Buffering") != "no" || l.resp.Header.Get("Cache-Control") != "no-store" || l.resp.Header.Get("Content-Length") != "" {
		t.Errorf("headers = %v, want no buffering, no store, no length", l.resp.Header)
	}
	a := c.do(http.MethodGet, c.url, nil, "Accept: text/html,application/xhtml+xml")
	if a.status != http.StatusNotAcceptable || strings.Contains(a.header.Get("Content-Type"), "html") {
		t.Errorf("GET by a browser = %d %s, want 406 and no page", a.status, a.header.Get("Content-Type"))
	}
	if a := c.do(http.MethodGet, c.url, nil, "Authorization:", "Accept: text/html"); a.status != http.StatusUnauthorized {
		t.Errorf("GET by a browser without a token = %d, want 401", a.status)
	}
}

func TestA11SessionIsNoCredential(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	_, sibling := k.Agent(t)
	other := servertest.Start(t, servertest.Options{}) // another organisation on the same database and keys
	_, foreign := other.Agent(t)
	for name, token := range map[string]string{"an agent of the same organisation": sibling, "an agent of another": foreign} {
		thief := &client{t: t, url: c.url, token: token, session: c.session, version: c.version}
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			a := thief.do(method, c.url, strings.NewReader(ping))
			if a.status != http.StatusUnauthorized || !strings.Contains(a.body, `"reason":"session_mismatch"`) ||
				!strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s with the session of %s = %d %s, want 401 session_mismatch", method, name, a.status, a.body)
			}
		}
	}
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("the session afterwards = %d, want it alive", a.status)
	}
}

func TestA13BigAndOddStrings(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")

	odd, err := json.Marshal("\u2028\u2029\x00🌱\r\n\r\n\"\\/\x7f")
	if err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":`+string(odd)+`}}}`, "Accept: "+accept)
		if strings.ContainsAny(string(a.payload()), "\n\r") {
			t.Errorf("as %s the answer has a raw line break: %q", accept, a.body)
		}
		if got := resultOf(t, a).text(); got != string(odd) {
			t.Errorf("as %s reshape returned %q, want %q", accept, got, odd)
		}
	}

	big := strings.Repeat("graft 🌱 \\u2028 ", 3<<20/16)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":"` + big + `"}}}`
	if len(body) < 3<<20 {
		t.Fatalf("the body has %d bytes, want 3 MiB", len(body))
	}
	a := c.post(body)
	text := resultOf(t, a).text()
	if n := utf8.RuneCountInString(text); n > invoke.MaxResult || !strings.HasPrefix(text, `{"result":null,"truncated":true,"head":"`) {
		t.Errorf("3 MiB came back as %d characters beginning %.60q, want at most %d that say truncated", n, text, invoke.MaxResult)
	}

	over := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":"` + strings.Repeat("x", 4<<20) + `"}}}`)
	if _, word := rpcError(over); over.status != http.StatusRequestEntityTooLarge || word != "too_large" {
		t.Errorf("over 4 MiB = %d %.200s, want 413 as a JSON-RPC error", over.status, over.body)
	}
	lone := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":"\ud800"}}}`)
	if code, _ := rpcError(lone); code != -32700 {
		t.Errorf("a lone surrogate = %d %s, want -32700", lone.status, lone.body)
	}
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("ping afterwards = %d", a.status)
	}
}

func TestA14WrongTypeMethodAndSlash(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(ping))
	_ = z.Close()
	for _, x := range []struct {
		name, method, url, body string
		headers                 []string
		status                  int
	}{
		{"slash", "POST", c.url + "/", ping, nil, 200},
		{"query", "POST", c.url + "?x=1", ping, nil, 200},
		{"charset", "POST", c.url, ping, []string{"Content-Type: application/json; charset=utf-8"}, 200},
		{"case of the type", "POST", c.url, ping, []string{"Content-Type: Application/JSON"}, 200},
		{"text/plain", "POST", c.url, ping, []string{"Content-Type: text/plain"}, 415},
		{"no type", "POST", c.url, ping, []string{"Content-Type:"}, 415},
		{"gzip", "POST", c.url, packed.String(), []string{"Content-Encoding: gzip"}, 415},
		{"identity", "POST", c.url, ping, []string{"Content-Encoding: identity"}, 200},
		{"PUT", "PUT", c.url, ping, nil, 405},
		{"PATCH", "PATCH", c.url, ping, nil, 405},
		{"HEAD", "HEAD", c.url, "", nil, 405},
		{"PUT without a token", "PUT", c.url, ping, []string{"Authorization:"}, 401},
		{"below it", "POST", c.url + "/x", ping, nil, 404},
	} {
		a := c.do(x.method, x.url, strings.NewReader(x.body), x.headers...)
		if a.status != x.status || a.header.Get("Location") != "" {
			t.Errorf("%s = %d %s (Location %q), want %d", x.name, a.status, a.body, a.header.Get("Location"), x.status)
		}
		if x.status == 405 && a.header.Get("Allow") != "POST, GET, DELETE" {
			t.Errorf("%s: Allow = %q", x.name, a.header.Get("Allow"))
		}
		if strings.Contains(a.header.Get("Content-Type"), "html") {
			t.Errorf("%s answers a page", x.name)
		}
	}
}

func TestA15PingAndUnknownMethods(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.session = c.post(initialize("2025-06-18")).header.Get("Mcp-Session-Id")
	// Not initialized yet.
	for _, x := range []struct {
		body string
		code int
	}{
		{ping, 0},
		{`{"jsonrpc":"2.0","id":5,"method":"resources/list"}`, -32601},
		{`{"jsonrpc":"2.0","id":5,"method":""}`, -32601},
		{`{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}`, -32602},
		{`{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{}}`, -32601},
		{ping, 0},
	} {
		a := c.post(x.body)
		if code, _ := rpcError(a); a.status != http.StatusOK || code != x.code || !strings.Contains(a.body, `"id":5`) {
			t.Errorf("%s = %d %s, want 200 with code %d and id 5", x.body, a.status, a.body, x.code)
		}
	}
}

// A06 needs the origin rules; they are the server's, and so is their test. Here: what a browser client goes through.
func TestA06PreflightThenRefusalThenInitialize(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	const origin = "http://localhost:6274" // a loopback origin lets any local page in
	pre := c.do(http.MethodOptions, c.url, nil, "Authorization:", "Origin: "+origin, "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: authorization,content-type,mcp-protocol-version,mcp-session-id,last-event-id")
	if pre.status != http.StatusNoContent {
		t.Fatalf("preflight = %d %s, want 204", pre.status, pre.body)
	}
	for _, h := range []string{"authorization", "content-type", "mcp-protocol-version", "mcp-session-id", "last-event-id"} {
		if !strings.Contains(strings.ToLower(pre.header.Get("Access-Control-Allow-Headers")), h) {
			t.Errorf("preflight does not allow %s", h)
		}
	}
	for _, m := range []string{"GET", "POST", "DELETE"} {
		if !strings.Contains(pre.header.Get("Access-Control-Allow-Methods"), m) {
			t.Errorf("preflight does not allow %s", m)
		}
	}
	answers := map[string]answer{
		"preflight": pre,
		"401":       c.post(initialize("2025-06-18"), "Authorization:", "Origin: "+origin),
		"200":       c.post(initialize("2025-06-18"), "Origin: "+origin),
		"404":       c.post(ping, "Origin: "+origin, "Mcp-Session-Id: nonsense"),
		"405":       c.do(http.MethodPut, c.url, nil, "Origin: "+origin),
	}
	for name, a := range answers {
		if a.header.Get("Access-Control-Allow-Origin") != origin || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: Allow-Origin = %q, Allow-Credentials = %q", name, a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Access-Control-Allow-Credentials"))
		}
		for _, h := range []string{"WWW-Authenticate", "Mcp-Session-Id", "MCP-Protocol-Version", "Retry-After"} {
			if !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), h) {
				t.Errorf("%s does not expose %s", name, h)
			}
		}
	}
	if got := fmt.Sprint(answers["401"].status, answers["200"].status, answers["404"].status); got != "401 200 404" {
		t.Errorf("statuses = %s, want 401 200 404", got)
	}
	if a := c.post(initialize("2025-06-18"), "Origin: https://evil.example"); a.status != http.StatusForbidden {
		t.Errorf("a page of another origin = %d, want 403", a.status)
	}
}
