package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
)

// A caller is the official client, spoken to by a test that looks at whole results.
type caller struct {
	t *testing.T
	p *e2e.Process
}

// reply is what the client programs answer, with the result as the client has it.
type reply struct {
	Error, Protocol string
	Tools           []struct{ Name string }
	Result          map[string]any
	Progress        []float64
}

func dial(t *testing.T, client, url string, args ...string) *caller {
	t.Helper()
	c := &caller{t, e2e.NewProgram(t, e2e.Client(t, client)).Start(append([]string{url}, args...)...)}
	if hello := c.next(); hello.Error != "" {
		t.Fatalf("%s to %s: %s", client, url, hello.Error)
	}
	return c
}

func (c *caller) next() (r reply) {
	c.t.Helper()
	c.p.Next(&r)
	return r
}

func (c *caller) names() (names []string) {
	c.t.Helper()
	c.p.Send(map[string]any{"list": true})
	r := c.next()
	if r.Error != "" {
		c.t.Fatalf("list: %s", r.Error)
	}
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// call is the result of a tool without what 2026-07-28 adds to each.
func (c *caller) call(tool, args string) reply {
	c.t.Helper()
	c.p.Send(map[string]any{"call": tool, "arguments": json.RawMessage(args)})
	r := c.next()
	if r.Error != "" {
		c.t.Errorf("call %s: %s", tool, r.Error)
	}
	delete(r.Result, "resultType")
	delete(r.Result, "_meta")
	return r
}

// A toolCall is one that answers the same each time.
type toolCall struct{ tool, args string }

var (
	sdkCalls        = []toolCall{{"echo", `{"message":"héllo \u2028"}`}, {"picture", `{}`}, {"fail", `{}`}, {"work", `{}`}}
	everythingCalls = []toolCall{
		{"echo", `{"message":"hi"}`},
		{"get-sum", `{"a":1,"b":2}`},
		{"get-structured-content", `{"location":"New York"}`},
		{"get-tiny-image", `{}`},
		{"get-resource-links", `{"count":2}`},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`},
		{"trigger-long-running-operation", `{"duration":0.2,"steps":4}`},
	}
)

// TestServersBehindTheGateway: what official servers answer official clients is the same with the gateway between them,
// whatever either of them speaks.
func TestServersBehindTheGateway(t *testing.T) {
	t.Parallel()
	for program, server := range map[string]struct {
		calls []toolCall
		tells string // a call that reports progress; "" is none
	}{
		"sdk-v1":     {sdkCalls, "work"},
		"sdk-v2":     {sdkCalls, "work"},
		"plain":      {sdkCalls, ""},
		"everything": {everythingCalls, "trigger-long-running-operation"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			p := e2e.NewProgram(t, e2e.Server(t, program+".mjs")).Start()
			var s said
			p.Next(&s)
			kit := servertest.Start(t, servertest.Options{})
			token := behind(t, kit, s.URL)
			direct := dial(t, "sdk-v2.mjs", s.URL, "none", "auto")
			direct.names() // from then on the client holds results against their output schemas
			through := map[string]*caller{
				"v1":        dial(t, "sdk-v1.mjs", kit.URL+"/mcp", token),
				"v2":        dial(t, "sdk-v2.mjs", kit.URL+"/mcp", token, "auto"),
				"v2 legacy": dial(t, "sdk-v2.mjs", kit.URL+"/mcp", token, "legacy"),
			}
			for name, c := range through {
				got := c.names()
				for _, call := range server.calls {
					if !slices.Contains(got, "theirs__"+call.tool) {
						t.Errorf("%s: tools = %q, want theirs__%s among them", name, got, call.tool)
					}
				}
			}
			for _, call := range server.calls {
				want := direct.call(call.tool, call.args)
				for name, c := range through {
					got := c.call("theirs__"+call.tool, call.args)
					if diff := cmp.Diff(want.Result, got.Result); diff != "" {
						t.Errorf("%s: %s (-direct +through the gateway):\n%s", name, call.tool, diff)
					}
					if call.tool == server.tells && name != "v1" && (len(got.Progress) == 0 || !slices.Equal(got.Progress, want.Progress)) {
						t.Errorf("%s: %s progress = %v, want %v", name, call.tool, got.Progress, want.Progress)
					}
				}
			}
		})
	}
}

// behind puts a server behind the gateway, by the name theirs, and makes an agent that may call all its tools.
func behind(t *testing.T, kit *servertest.Kit, url string) (token string) {
	t.Helper()
	all := true
	u := kit.Upstream(t, upstream.Addition{Name: "theirs", URL: url, Settings: store.UpstreamSettings{TrustHints: true, ListAll: &all, ConnectSeconds: 30, CallSeconds: 60}})
	agent, token := kit.Agent(t)
	err := kit.DB.As(t.Context(), kit.Owner, func(tx *store.Tx) error {
		tools, err := tx.UpstreamTools(t.Context(), u.ID)
		for _, tool := range tools {
			if err := tx.Approve(t.Context(), agent.ID, store.Approval{
				Tool: u.Name + "__" + tool.Name, ConnectionID: u.Connection, Version: int(tool.Version), Decision: store.Allow,
			}); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil || u.Tools == 0 {
		t.Fatalf("upstream %s: %d tools, %q, %v", url, u.Tools, u.LastError, err)
	}
	return token
}
