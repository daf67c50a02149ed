//go:build vendors

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

func TestVendorClaudeCode(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	_, token := kit.Agent(t)
	claude := e2e.NewProgram(t, e2e.Vendor(t, "@anthropic-ai/claude-code/cli-wrapper.cjs"),
		"DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
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
	codex := e2e.NewProgram(t, e2e.Vendor(t, "@openai/codex/bin/codex.js"), "GRAFT_TOKEN="+token)
	stdout, stderr, code := codex.Run("mcp", "add", "graft", "--url", kit.URL+"/mcp", "--bearer-token-env-var", "GRAFT_TOKEN")
	if code != 0 {
		t.Fatalf("codex mcp add = exit %d\n%s%s", code, stdout, stderr)
	}
	for range 2 { // the second time against restarted gateways
		if got := codexTools(t, codex); !slices.Contains(got, "find_tool") || !slices.Contains(got, "run_tool") {
			t.Errorf("tools of graft = %v, want find_tool and run_tool among them", got)
		}
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

// codexTools asks Codex for the tools of graft.
func codexTools(t *testing.T, codex *e2e.Program) []string {
	t.Helper()
	server := startCodex(t, codex)
	var list struct {
		Data []struct {
			Name  string
			Tools map[string]any
		}
	}
	server.ask("mcpServerStatus/list", map[string]any{}, &list)
	var names []string
	for _, s := range list.Data {
		for name := range s.Tools {
			if s.Name == "graft" {
				names = append(names, name)
			}
		}
	}
	return names
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
