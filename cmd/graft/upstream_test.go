package main_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// feed runs a command that must succeed, with stdin.
func (h *home) feed(stdin string, args ...string) string {
	h.t.Helper()
	cmd := h.command(h.t.Context(), nil, args...)
	var errout bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &errout
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("graft %v = %v\n%s", args, err, &errout)
	}
	return string(out)
}

func TestUpstreamsByCommandWhileTheGatewayRuns(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: "canary-4711", Tools: []upstreamtest.Tool{
		upstreamtest.Echo, upstreamtest.Count,
		{Name: "odd", Listed: `{"name":"odd","inputSchema":{"type":"string"}}`},
		{Name: "typed", Listed: `{"name":"typed","description":"Typed.\nMore.","inputSchema":{},"outputSchema":{"type":"object"}}`},
	}})
	h := newHome(t)
	h.ok("user", "add", "--email", "ana@example.com", "--org", "Acme")
	h.serve()
	const allow = "GRAFT_EGRESS_ALLOW=127.0.0.0/8"
	var said []string
	run := func(args ...string) outcome {
		o := h.run(args...)
		said = append(said, o.out, o.errout)
		return o
	}
	add := []string{"upstream", "add", "--name", "demo", "--url", srv.URL, "--header", "Authorization=Bearer ${TOKEN}", "--trust-hints", "--exclude", "count"}

	// Without its secret, and against the operator's policy, it is kept and said to be wrong.
	if o := run(add...); o.code != 0 || !strings.Contains(o.errout, "graft secret set --name TOKEN") {
		t.Errorf("upstream add without its secret = %d %q, want what sets it", o.code, o.errout)
	}
	if out := h.feed("\ufeffcanary-4711\r\n", "secret", "set", "--name", "TOKEN"); out != "TOKEN is set.\n" {
		t.Errorf("secret set = %q", out)
	}
	if o := run("mcp", "test", "demo"); o.code != 1 || !strings.Contains(o.errout, "GRAFT_EGRESS_ALLOW") {
		t.Errorf("mcp test of a private address = %d %q, want GRAFT_EGRESS_ALLOW", o.code, o.errout)
	}
	if o := run(allow, "mcp", "test", "demo"); o.code != 0 || !strings.HasPrefix(o.out, "demo answers. It has 2 tools; 1 of them declare an output schema.") {
		t.Errorf("mcp test = %d %q %q, want 2 tools, 1 output schema", o.code, o.out, o.errout)
	}
	var tested struct {
		OK                  bool
		Tools, LeftOut      int
		DeclareOutputSchema int
	}
	if o := run(allow, "mcp", "test", "demo", "--json"); json.Unmarshal([]byte(o.out), &tested) != nil || !tested.OK || tested.Tools != 2 || tested.LeftOut != 2 || tested.DeclareOutputSchema != 1 {
		t.Errorf("mcp test --json = %q, want ok with 2 tools, 2 left out", o.out)
	}
	want := `demo (2 tools)
  demo__echo [read-only]  Answers with its arguments.
  demo__typed  Typed.
`
	out := run("mcp", "tools", "demo").out
	if got, rest, _ := strings.Cut(out, "  \""); got != want || !strings.Contains(rest, `count" is left out: It is on the list of tools that are left out.`) || !strings.Contains(rest, `"odd" is left out: The input schema cannot be used`) {
		t.Errorf("mcp tools:\n%s\nwant\n%sand count and odd left out", out, want)
	}
	if out := run("upstream", "override", "--name", "demo", "--tool", "echo", "--description", "Says it again.").out; out != "echo of demo is described as you say.\n" {
		t.Errorf("upstream override = %q", out)
	}
	if out := run("mcp", "tools", "demo").out; !strings.Contains(out, "demo__echo [read-only]  Says it again.") {
		t.Errorf("mcp tools after an override:\n%s", out)
	}
	if out := run("upstream", "override", "--name", "demo", "--tool", "echo").out; out != "echo of demo has its own description again.\n" {
		t.Errorf("upstream override with nothing = %q", out)
	}
	if o := run("upstream", "override", "--name", "demo", "--tool", "missing"); o.code != 1 || !strings.Contains(o.errout, "graft mcp tools demo") {
		t.Errorf("upstream override of no tool = %d %q", o.code, o.errout)
	}
	if out := run("agent", "add", "--name", "Hermes", "--passthrough", "demo", "--json").out; !strings.Contains(out, `"passthrough":"demo"`) {
		t.Errorf("agent add --passthrough = %q", out)
	}
	if o := run("agent", "add", "--name", "Other", "--passthrough", "missing"); o.code != 1 || !strings.Contains(o.errout, `no upstream called "missing"`) {
		t.Errorf("agent add to no upstream = %d %q", o.code, o.errout)
	}
	for _, args := range [][]string{{"mcp", "list"}, {"mcp", "list", "--json"}, {"mcp", "tools", "--json"}, {"upstream", "list"}, {"upstream", "list", "--json"}, {"secret", "list"}, {"secret", "list", "--json"}} {
		if o := run(args...); o.code != 0 || !strings.Contains(o.out, "demo") {
			t.Errorf("graft %v = %d %q %q, want demo in it", args, o.code, o.out, o.errout)
		}
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"upstream", "add", "--name", "execute", "--url", srv.URL}, 2, "kept for Graft"},
		{[]string{"upstream", "add", "--name", "demo", "--url", srv.URL}, 1, "already"},
		{[]string{"upstream", "add", "--name", "b", "--url", srv.URL, "--header", "X"}, 2, "NAME=VALUE"},
		{[]string{"upstream", "add", "--name", "b", "--url", srv.URL, "--header", "authorization=Bearer abc"}, 2, "graft secret set --name TOKEN"},
		{[]string{"upstream", "add", "--name", "b", "--url", srv.URL, "--header", "X-Api-Key=abc"}, 2, "shell's history"},
		{[]string{"upstream", "add", "--name", "b", "--url", srv.URL, "--call-timeout", "2h"}, 2, "hour"},
		{[]string{"mcp", "test", "missing"}, 1, "no upstream"},
		{[]string{"secret", "rm", "--name", "MISSING"}, 1, "no secret"},
		{[]string{"GRAFT_EGRESS_ALLOW=everything", "mcp", "list"}, 2, "GRAFT_EGRESS_ALLOW"},
		{[]string{"GRAFT_EGRESS_ALLOW=0.0.0.0/0", "mcp", "list"}, 2, "GRAFT_EGRESS_ALLOW"},
	} {
		if o := run(tt.args...); o.code != tt.code || !strings.Contains(o.errout, tt.want) {
			t.Errorf("graft %v = %d %q, want %d and %q", tt.args, o.code, o.errout, tt.code, tt.want)
		}
	}
	got := []string{run("secret", "rm", "--name", "TOKEN").out, run("upstream", "rm", "--name", "demo").out}
	if diff := cmp.Diff([]string{"TOKEN is destroyed.\n", "demo is revoked, and its headers are destroyed.\n"}, got); diff != "" {
		t.Errorf("rm (-want +got):\n%s", diff)
	}
	if text := strings.Join(said, "\n"); strings.Contains(text, "canary-4711") {
		t.Errorf("a command printed the secret:\n%s", text)
	}
}
