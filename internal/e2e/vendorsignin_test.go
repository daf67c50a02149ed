//go:build vendors

package e2e_test

import (
	"bufio"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

const (
	claudeDocument = "https://claude.ai/oauth/claude-code-client-metadata"
	codexDocument  = "https://chatgpt.com/oauth/codex/client.json"
)

// The documents that the vendors' clients say who they are with, as the operator gives them: the tests fetch nothing.
var vendorDocuments = servertest.Options{Documents: map[string]string{
	claudeDocument: `{"client_id": "` + claudeDocument + `", "client_name": "Claude Code",
		"redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}`,
	codexDocument: `{"client_id": "` + codexDocument + `", "client_name": "Codex",
		"redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}`,
}}

// A vendorSignIn is a vendor's client with the gateway's URL alone, and the person whom it asks.
type vendorSignIn struct {
	t      *testing.T
	owner  *person
	opened string // where the browser writes the address down
}

// signsIn answers what the client opens the browser for, and waits until the client has ended. The client is known by the
// document, or has registered where that is "".
func (v *vendorSignIn) signsIn(client *e2e.Process, app, document string) {
	v.t.Helper()
	var address []byte
	eventually(v.t, app+" opens a browser", func() bool {
		var err error
		address, err = os.ReadFile(v.opened)
		return err == nil
	})
	asked, err := url.Parse(string(address))
	if err != nil {
		v.t.Fatal(err)
	}
	if id := asked.Query().Get("client_id"); id == "" || document != "" && id != document || document == "" && strings.Contains(id, "://") {
		v.t.Errorf("client_id = %q, want that of the document %q, of a registration where that is empty", id, document)
	}
	back := v.owner.allow(string(address), app)
	if _, page, err := v.owner.open(http.MethodGet, back.String(), nil); err != nil {
		v.t.Errorf("%s was told %s: %v: %s", app, back, err, page)
	}
	client.Drain()
	if err := os.Remove(v.opened); err != nil { // the next one is another
		v.t.Fatal(err)
	}
}

var appEnd = regexp.MustCompile(`href="(/agents/[^"]+/apps/[^"]+/end)"`)

// disconnects presses Disconnect for the one app that is connected.
func (v *vendorSignIn) disconnects(app string) {
	v.t.Helper()
	at := v.owner.kit.URL
	_, page, err := v.owner.open(http.MethodGet, at+"/apps", nil)
	end := appEnd.FindStringSubmatch(page)
	if err != nil || end == nil {
		v.t.Fatalf("no app to disconnect: %v: %s", err, page)
	}
	if _, page, err = v.owner.open(http.MethodPost, at+html.UnescapeString(end[1]), nil); err != nil || !strings.Contains(page, app+" is disconnected.") {
		v.t.Fatalf("disconnect %s: %v: %s", app, err, page)
	}
}

// TestVendorClaudeCodeFromTheURLAlone has Claude Code sign in, list the tools, be disconnected and sign in once more.
func TestVendorClaudeCodeFromTheURLAlone(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, vendorDocuments)
	opened, env := fakeBrowser(t)
	v := &vendorSignIn{t, newPerson(t, kit), opened}
	noModel := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(noModel.Close)
	claude := newClaude(t, append(env, "ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL="+noModel.URL,
		"MCP_CONNECTION_NONBLOCKING=false")...) // it tells its tools once it is connected
	list := func(want string) {
		t.Helper()
		stdout, stderr, code := claude.Run("mcp", "list")
		if got := line(stdout, "graft:"); code != 0 || !strings.Contains(got, want) {
			t.Errorf("claude mcp list = exit %d, %q, want %s\n%s", code, stdout, want, stderr)
		}
	}
	if stdout, stderr, code := claude.Run("mcp", "add", "--transport", "http", "--scope", "user", "graft", kit.URL+"/mcp"); code != 0 {
		t.Fatalf("claude mcp add = exit %d\n%s%s", code, stdout, stderr)
	}
	list("Needs authentication")
	v.signsIn(claude.StartInTerminal("mcp", "login", "graft"), "Claude Code", claudeDocument)
	list("Connected")
	kit.Restart()
	list("Connected")
	if got := claudeTools(t, claude); !slices.Contains(got, "mcp__graft__find_tool") || !slices.Contains(got, "mcp__graft__run_tool") {
		t.Errorf("tools = %v, want those of graft among them", got)
	}

	v.disconnects("Claude Code")
	list("Needs authentication")
	v.signsIn(claude.StartInTerminal("mcp", "login", "graft"), "Claude Code", claudeDocument)
	list("Connected")
}

// claudeTools is what Claude Code says that it would offer to the model, before it finds out that there is none.
func claudeTools(t *testing.T, claude *e2e.Program) []string {
	t.Helper()
	stdout, stderr, _ := claude.Run("-p", "--output-format", "stream-json", "--verbose", "hello")
	scanner := bufio.NewScanner(strings.NewReader(stdout))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var said struct {
			Subtype string
			Tools   []string
		}
		if err := json.Unmarshal(scanner.Bytes(), &said); err == nil && said.Subtype == "init" {
			return said.Tools
		}
	}
	t.Fatalf("claude -p told no tools: %q\n%s", stdout, stderr)
	return nil
}

// TestVendorCodexFromTheURLAlone has Codex sign in, call a tool, be disconnected and sign in once more.
func TestVendorCodexFromTheURLAlone(t *testing.T) {
	t.Parallel()
	for registration, document := range map[string]string{"dcr": "", "cimd": codexDocument} {
		t.Run(registration, func(t *testing.T) {
			t.Parallel()
			kit := servertest.Start(t, vendorDocuments)
			opened, env := fakeBrowser(t)
			v := &vendorSignIn{t, newPerson(t, kit), opened}
			codex := newCodex(t, env...)
			v.signsIn(codex.Start("mcp", "add", "graft", "--url", kit.URL+"/mcp", "--oauth-client-registration", registration), "Codex", document)
			for range 2 { // the second time against restarted gateways
				codexGraft(t, codex).check(t)
				kit.Restart()
			}
			codexCalls(t, codex)

			v.disconnects("Codex")
			if got := codexGraft(t, codex); got.AuthStatus != "notLoggedIn" || len(got.Tools) != 0 {
				t.Errorf("once it is disconnected Codex has %+v, want no sign-in and no tools", got)
			}
			v.signsIn(codex.Start("mcp", "login", "graft", "--oauth-client-registration", registration), "Codex", document)
			codexGraft(t, codex).check(t)
		})
	}
}

// codexCalls has Codex call a tool, for a thread that no model has a part in.
func codexCalls(t *testing.T, codex *e2e.Program) {
	t.Helper()
	server := startCodex(t, codex)
	var begun struct{ Thread struct{ ID string } }
	server.ask("thread/start", map[string]any{"ephemeral": true}, &begun)
	var result toolResult
	server.ask("mcpServer/tool/call", map[string]any{
		"threadId": begun.Thread.ID, "server": "graft", "tool": "run_tool", "arguments": reshape(),
	}, &result)
	result.check(t)
}
