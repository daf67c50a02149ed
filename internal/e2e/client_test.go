package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// marker is what each client asks builtin__reshape to hand back.
const marker = "carried there and back"

// reshape is the arguments of run_tool that do so.
func reshape() map[string]any {
	return map[string]any{"vendor": "builtin", "name": "reshape", "input": map[string]any{"shape": map[string]any{"said": marker}}}
}

// toolResult is the part of a tools/call result that the tests read.
type toolResult struct {
	IsError bool `json:"isError"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func (r toolResult) check(t *testing.T) {
	t.Helper()
	if r.IsError || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, marker) {
		t.Errorf("run_tool = %+v, want %q in its text", r, marker)
	}
}

// tools is the part of a tools/list result that the tests read.
type tools []struct {
	Name string `json:"name"`
}

func (ts tools) check(t *testing.T) {
	t.Helper()
	for _, want := range []string{"find_tool", "run_tool"} {
		if !ts.have(want) {
			t.Errorf("tools = %v, want %s among them", ts, want)
		}
	}
}

func (ts tools) have(name string) bool {
	for _, tool := range ts {
		if tool.Name == name {
			return true
		}
	}
	return false
}

func TestSDKv1(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	_, token := kit.Agent(t)
	client := e2e.NewProgram(t, e2e.Client(t, "sdk-v1.mjs")).Start(kit.URL+"/mcp", token)
	var answer struct {
		Session, Error, Protocol, Instructions string
		Server                                 struct{ Name string }
		Tools                                  tools
		Result                                 toolResult
	}
	client.Next(&answer)
	if answer.Error != "" || answer.Server.Name != "graft" || answer.Session == "" {
		t.Fatalf("connect = %+v, want graft and a session", answer)
	}
	session := answer.Session
	client.Send(map[string]any{"list": true})
	client.Next(&answer)
	answer.Tools.check(t)
	call := func() {
		t.Helper()
		answer.Result = toolResult{}
		client.Send(map[string]any{"call": "run_tool", "arguments": reshape()})
		client.Next(&answer)
		if answer.Error != "" || answer.Session != session {
			t.Errorf("call = error %q in session %q, want none in %q", answer.Error, answer.Session, session)
		}
		answer.Result.check(t)
	}
	call()
	kit.Restart()
	call()
}

func TestInspector(t *testing.T) {
	t.Parallel()
	for era, protocol := range map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			kit := servertest.Start(t, servertest.Options{})
			_, token := kit.Agent(t)
			inspector := e2e.NewProgram(t, e2e.Script(t, "mcp-inspector"))
			inspect := func(answer any, args ...string) {
				t.Helper()
				args = append([]string{
					"--cli", kit.URL + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + token,
					"--protocol-era", era, "--format", "json",
				}, args...)
				stdout, stderr, code := inspector.Run(args...)
				if code != 0 {
					t.Fatalf("inspector %v = exit %d\n%s%s", args, code, stdout, stderr)
				}
				if err := json.Unmarshal([]byte(stdout), answer); err != nil {
					t.Fatalf("inspector %v printed %q: %v", args, stdout, err)
				}
			}
			var hello struct {
				Result struct{ ProtocolVersion string }
			}
			inspect(&hello, "--method", "initialize")
			if got := hello.Result.ProtocolVersion; got != protocol {
				t.Errorf("protocol version = %s, want %s", got, protocol)
			}
			for range 2 { // the second time against restarted gateways
				var list struct{ Result struct{ Tools tools } }
				inspect(&list, "--method", "tools/list")
				list.Result.Tools.check(t)
				arguments, err := json.Marshal(reshape())
				if err != nil {
					t.Fatal(err)
				}
				var call struct{ Result toolResult }
				inspect(&call, "--method", "tools/call", "--tool-name", "run_tool", "--tool-args-json", string(arguments))
				call.Result.check(t)
				kit.Restart()
			}
		})
	}
}

func TestMCPRemote(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	_, token := kit.Agent(t)
	seen := watchSessions(t, kit.URL)
	remote := e2e.NewProgram(t, e2e.Script(t, "mcp-remote")).Start(seen.url+"/mcp", "--header", "Authorization: Bearer "+token,
		"--transport", "http-only")
	through := &stdio{t: t, p: remote}
	through.initialize()
	var list struct{ Tools tools }
	through.ask("tools/list", map[string]any{}, &list)
	list.Tools.check(t)
	var sessions [2][]string
	for i := range sessions { // the second time against restarted gateways
		var result toolResult
		through.ask("tools/call", map[string]any{"name": "run_tool", "arguments": reshape()}, &result)
		result.check(t)
		sessions[i] = seen.sessions()
		kit.Restart()
	}
	if before, after := sessions[0], sessions[1]; len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("sessions after the restart = %v, want those opened before it: %v", after, before)
	}
}

// TestMCPRemoteFromTheURLAlone has mcp-remote register, open a browser and go on once somebody has allowed it there.
func TestMCPRemoteFromTheURLAlone(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	owner := newPerson(t, kit)
	opened, env := fakeBrowser(t)
	remote := e2e.NewProgram(t, e2e.Script(t, "mcp-remote"), env...).Start(kit.URL+"/mcp", "--transport", "http-only")
	var address []byte
	eventually(t, "mcp-remote opens a browser", func() (there bool) {
		var err error
		address, err = os.ReadFile(opened)
		return err == nil
	})
	back := owner.allow(string(address), "MCP CLI Proxy")
	if _, page, err := owner.open(http.MethodGet, back.String(), nil); err != nil || !strings.Contains(page, "uthoriz") {
		t.Errorf("mcp-remote was told %s: %v: %s", back, err, page)
	}
	through := &stdio{t: t, p: remote}
	through.initialize()
	var list struct{ Tools tools }
	through.ask("tools/list", map[string]any{}, &list)
	list.Tools.check(t)
	var result toolResult
	through.ask("tools/call", map[string]any{"name": "run_tool", "arguments": reshape()}, &result)
	result.check(t)
}

// fakeBrowser is what a program starts in place of the browser, by variables for it. It writes the address down that it is
// to open, in the file opened.
func fakeBrowser(t *testing.T) (opened string, env []string) {
	t.Helper()
	dir := t.TempDir()
	opened = filepath.Join(dir, "address")
	command := filepath.Join(dir, "open") // what macOS calls it
	script := fmt.Sprintf("#!/bin/sh\nprintf %%s \"$1\" >'%[1]s.new' && mv '%[1]s.new' '%[1]s'\n", opened)
	if err := os.WriteFile(command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return opened, []string{
		"BROWSER=" + command, "DISPLAY=", "WAYLAND_DISPLAY=", "XDG_CURRENT_DESKTOP=", "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
}

// stdio is a server that is spoken to on stdin and stdout.
type stdio struct {
	t  *testing.T
	p  *e2e.Process
	id int
}

// initialize opens the session.
func (s *stdio) initialize() {
	s.t.Helper()
	var hello struct{ ServerInfo struct{ Name string } }
	s.ask("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "graft-e2e", "version": "1.0.0"},
	}, &hello)
	if got, want := hello.ServerInfo.Name, "graft"; got != want {
		s.t.Errorf("serverInfo.name = %q, want %q", got, want)
	}
	s.p.Send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// ask sends a request and decodes its result.
func (s *stdio) ask(method string, params, result any) {
	s.t.Helper()
	s.id++
	s.p.Send(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	var answer struct {
		ID     int
		Result json.RawMessage
		Error  json.RawMessage
	}
	for answer.ID != s.id { // notifications come between
		s.p.Next(&answer)
	}
	if answer.Error != nil {
		s.t.Fatalf("%s = error %s", method, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		s.t.Fatalf("%s = %s: %v", method, answer.Result, err)
	}
}

// sessionWatch is a proxy that notes which session ids clients use.
type sessionWatch struct {
	url string

	mu   sync.Mutex
	seen map[string]bool
}

func watchSessions(t *testing.T, target string) *sessionWatch {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	w := &sessionWatch{seen: map[string]bool{}}
	proxy := httptest.NewServer(servertest.WithoutLoss(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			w.note(r.In.Header.Get("Mcp-Session-Id"))
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // a restart cuts streams
	}))
	t.Cleanup(proxy.Close)
	w.url = proxy.URL
	return w
}

func (w *sessionWatch) note(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if session != "" {
		w.seen[session] = true
	}
}

func (w *sessionWatch) sessions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.seen))
}
