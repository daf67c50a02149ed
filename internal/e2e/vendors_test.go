//go:build vendors

package e2e_test

import (
	"encoding/json"
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

// codexTools asks Codex, by the protocol of its editor plug-ins, which needs no model, for the tools of graft.
func codexTools(t *testing.T, codex *e2e.Program) []string {
	t.Helper()
	server := codex.Start("app-server")
	ask := func(id int, method string, params any) json.RawMessage {
		t.Helper()
		server.Send(map[string]any{"id": id, "method": method, "params": params})
		var answer struct {
			ID     int
			Result json.RawMessage
		}
		for answer.ID != id { // notifications come between
			server.Next(&answer)
		}
		return answer.Result
	}
	ask(1, "initialize", map[string]any{"clientInfo": map[string]any{"name": "graft-e2e", "title": "graft-e2e", "version": "1.0.0"}})
	server.Send(map[string]any{"method": "initialized"})
	var list struct {
		Data []struct {
			Name  string
			Tools map[string]any
		}
	}
	if err := json.Unmarshal(ask(2, "mcpServerStatus/list", map[string]any{}), &list); err != nil {
		t.Fatalf("mcpServerStatus/list: %v", err)
	}
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
