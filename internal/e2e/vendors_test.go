//go:build vendors

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// newClaude is Claude Code with folders of its own, also where the developer has named others.
func newClaude(t *testing.T, env ...string) *e2e.Program {
	t.Helper()
	return e2e.NewProgram(t, e2e.Vendor(t, "@anthropic-ai/claude-code/cli-wrapper.cjs"), append([]string{
		"CLAUDE_CONFIG_DIR=" + t.TempDir(), "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	}, env...)...)
}

// newCodex is Codex with folders of its own. It keeps tokens there too, not in the developer's keyring.
func newCodex(t *testing.T, env ...string) *e2e.Program {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("mcp_oauth_credentials_store = \"file\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return e2e.NewProgram(t, e2e.Vendor(t, "@openai/codex/bin/codex.js"), append([]string{"CODEX_HOME=" + home}, env...)...)
}

func TestVendorClaudeCode(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	_, token := kit.Agent(t)
	claude := newClaude(t)
	run := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := claude.Run(args...)
		if code != 0 {
			t.Fatalf("claude %v = exit %d\n%s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	run("mcp", "add", "--transport", "http", "graft", kit.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	run("mcp", "add", "--transport", "http", "wrong", kit.URL+"/mcp", "--header", "Authorization: Bearer wrong")
	for range 2 { // the second time against restarted gateways
		list := run("mcp", "list")
		if got := line(list, "graft:"); !strings.Contains(got, "Connected") {
			t.Errorf("claude mcp list = %q, want graft connected", list)
		}
		if got := line(list, "wrong:"); got == "" || strings.Contains(got, "Connected") {
			t.Errorf("claude mcp list = %q, want wrong not connected", list)
		}
		kit.Restart()
	}
}

func TestVendorCodex(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	_, token := kit.Agent(t)
	codex := newCodex(t, "GRAFT_TOKEN="+token)
	stdout, stderr, code := codex.Run("mcp", "add", "graft", "--url", kit.URL+"/mcp", "--bearer-token-env-var", "GRAFT_TOKEN")
	if code != 0 {
		t.Fatalf("codex mcp add = exit %d\n%s%s", code, stdout, stderr)
	}
	for range 2 { // the second time against restarted gateways
		codexGraft(t, codex).check(t)
		kit.Restart()
	}
}

// startCodex starts Codex as its editor plug-ins do, by a protocol that needs no model. It is JSON-RPC, with the word left
// out.
func startCodex(t *testing.T, codex *e2e.Program) *stdio {
	t.Helper()
	server := &stdio{t: t, p: codex.Start("app-server")}
	server.ask("initialize", map[string]any{"clientInfo": map[string]any{"name": "graft-e2e", "title": "graft-e2e", "version": "1.0.0"}}, &struct{}{})
	server.p.Send(map[string]any{"method": "initialized"})
	return server
}

// codexServer is what Codex says of a server.
type codexServer struct {
	Name       string
	AuthStatus string
	Tools      map[string]any
}

// codexGraft asks Codex for what it knows of graft.
func codexGraft(t *testing.T, codex *e2e.Program) codexServer {
	t.Helper()
	var list struct{ Data []codexServer }
	startCodex(t, codex).ask("mcpServerStatus/list", map[string]any{}, &list)
	i := slices.IndexFunc(list.Data, func(s codexServer) bool { return s.Name == "graft" })
	if i < 0 {
		t.Fatalf("servers of Codex = %v, want graft among them", list.Data)
	}
	return list.Data[i]
}

// check wants what an agent is offered.
func (s codexServer) check(t *testing.T) {
	t.Helper()
	for _, want := range []string{"find_tool", "run_tool"} {
		if _, there := s.Tools[want]; !there {
			t.Errorf("Codex has %+v, want %s among the tools", s, want)
		}
	}
}

// line returns the first line of text that begins so.
func line(text, beginning string) string {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, beginning) {
			return l
		}
	}
	return ""
}
