package web_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/web"
)

func TestConnectNamesEveryClient(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range web.ConnectBlocks(gateway, "graft") {
		got = append(got, c.Client)
		if c.Where == "" || c.Check == "" || !strings.Contains(c.Code.Text(), gateway) {
			t.Errorf("%s: says where, code with the address, and a check; got %+v", c.Client, c)
		}
		if strings.Count(c.Where+c.Check, "`")%2 != 0 {
			t.Errorf("%s: a ` is open in %q or %q", c.Client, c.Where, c.Check)
		}
	}
	want := []string{"Claude Code", "Codex", "Cursor", "VS Code", "Hermes", "OpenClaw", "Other"}
	if !slices.Equal(got, want) {
		t.Errorf("clients = %q, want %q", got, want)
	}
}

func TestConnectCommandsAreWhatTheClientIsGiven(t *testing.T) {
	t.Parallel()
	for client, want := range map[string][]string{
		"Claude Code": {"mcp", "add", "--transport", "http", "--scope", "user", "graft", gateway, "--header", "Authorization: Bearer ${GRAFT_TOKEN}"},
		"OpenClaw":    {"mcp", "set", "graft", `{"url":"` + gateway + `","transport":"streamable-http","headers":{"Authorization":"Bearer ${GRAFT_TOKEN}"}}`},
	} {
		if diff := cmp.Diff(want, arguments(t, block(t, client))); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", client, diff)
		}
	}
}

func TestConnectCurlSendsTheToken(t *testing.T) {
	t.Parallel()
	got := arguments(t, block(t, "Other"))
	if !slices.Contains(got, gateway) || !slices.Contains(got, "Authorization: Bearer grft_of-this-test") {
		t.Errorf("curl gets %q, want the address and the token", got)
	}
	var hello struct{ Method string }
	if err := json.Unmarshal([]byte(got[len(got)-1]), &hello); err != nil || hello.Method != "initialize" {
		t.Errorf("curl sends %q (%v), want an initialize request", got[len(got)-1], err)
	}
}

func TestConnectFilesParse(t *testing.T) {
	t.Parallel()
	header := map[string]any{"Authorization": "Bearer ${GRAFT_TOKEN}"}
	for client, want := range map[string]map[string]any{
		"Cursor": {"mcpServers": map[string]any{"graft": map[string]any{"url": gateway, "headers": map[string]any{"Authorization": "Bearer ${env:GRAFT_TOKEN}"}}}},
		"VS Code": {
			"inputs":  []any{map[string]any{"id": "graft-token", "type": "promptString", "description": "Graft token", "password": true}},
			"servers": map[string]any{"graft": map[string]any{"type": "http", "url": gateway, "headers": map[string]any{"Authorization": "Bearer ${input:graft-token}"}}},
		},
	} {
		var got map[string]any
		if err := json.Unmarshal([]byte(block(t, client)), &got); err != nil {
			t.Errorf("%s: %v", client, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", client, diff)
		}
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(block(t, "Hermes")), &got); err != nil {
		t.Errorf("Hermes: %v", err)
	}
	want := map[string]any{"mcp_servers": map[string]any{"graft": map[string]any{"url": gateway, "headers": header}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Hermes (-want +got):\n%s", diff)
	}
}

func TestConnectCodexTable(t *testing.T) {
	t.Parallel()
	want := "[mcp_servers.graft]\nurl = \"" + gateway + "\"\nbearer_token_env_var = \"GRAFT_TOKEN\""
	if got := block(t, "Codex"); got != want {
		t.Errorf("Codex block = %q, want %q", got, want)
	}
}

// An agent's name or an odd address must not become a part of a command.
func TestConnectTakesNoCommandFromANameOrAddress(t *testing.T) {
	t.Parallel()
	const odd = "https://[::1]:8080/mcp?a=1&b='$(touch x)'"
	for _, c := range web.ConnectBlocks(odd, "x; touch y") {
		text := c.Code.Text() + c.Where + c.Check
		if strings.Contains(text, "touch y") {
			t.Errorf("%s: the name is in %q, want graft in its place", c.Client, text)
		}
		if c.Client == "Claude Code" || c.Client == "Other" {
			if got := arguments(t, c.Code.Text()); !slices.Contains(got, odd) {
				t.Errorf("%s: arguments = %q, want the address as one of them", c.Client, got)
			}
		}
	}
}

func block(t *testing.T, client string) string {
	t.Helper()
	for _, c := range web.ConnectBlocks(gateway, "graft") {
		if c.Client == client {
			return c.Code.Text()
		}
	}
	t.Fatalf("no block for %s", client)
	return ""
}

// arguments lets a shell read the command, and returns what its program is given.
func arguments(t *testing.T, command string) []string {
	t.Helper()
	name, _, _ := strings.Cut(command, " ")
	script := name + `() { for a in "$@"; do printf '%s\0' "$a"; done; }` + "\n" + command
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = []string{"GRAFT_TOKEN=grft_of-this-test"}
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sh reads %q: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}
