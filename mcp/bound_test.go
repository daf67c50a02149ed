package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// behind is a gateway with an upstream called tracker behind it, whose hints are believed.
func behind(t *testing.T, listAll bool, tools ...upstreamtest.Tool) (*servertest.Kit, *upstreamtest.Server, store.Upstream) {
	t.Helper()
	k := servertest.Start(t, servertest.Options{})
	up := upstreamtest.Start(t, upstreamtest.Options{Tools: tools})
	u := k.Upstream(t, upstream.Addition{Name: "tracker", URL: up.URL, Settings: store.UpstreamSettings{TrustHints: true, ListAll: &listAll, ConnectSeconds: 10, CallSeconds: 60}})
	return k, up, u
}

func TestAnUpstreamsToolsAreListedWhole(t *testing.T) {
	t.Parallel()
	k, up, _ := behind(t, true, upstreamtest.Echo, upstreamtest.Count)
	c := connect(t, k, "2025-11-25")
	want := []string{"find_tool", "run_tool", "run_status", "read_result", "promote", "demote", "request_connection", "request_credential", "tracker__count", "tracker__echo"}
	if diff := cmp.Diff(want, c.tools()); diff != "" {
		t.Fatalf("tools (-want +got):\n%s", diff)
	}
	if got := c.call("tracker__echo", `{"n":9007199254740993}`); got.IsError || string(got.Structured) != `{"n":9007199254740993}` {
		t.Errorf("tracker__echo = %s, want its arguments", got.text())
	}
	if got := c.call("run_tool", `{"vendor":"tracker","name":"echo","input":{"a":1}}`); got.IsError || string(got.Structured) != `{"a":1}` {
		t.Errorf("run_tool = %s, want the arguments", got.text())
	}
	if got := c.call("tracker__count", `{}`); !strings.Contains(got.text(), `"awaiting_approval"`) || up.Runs("count") != 0 {
		t.Errorf("tracker__count, which says nothing of its effects, = %s after %d runs, want it to wait for a person", got.text(), up.Runs("count"))
	}
}

func TestAnAgentBoundToAnUpstreamSeesItAlone(t *testing.T) {
	t.Parallel()
	k, up, u := behind(t, false, upstreamtest.Echo, upstreamtest.Count)
	agent, token := k.Agent(t)
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.SetPassthrough(t.Context(), agent.ID, u.ID) })
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	opened := c.post(initialize("2025-11-25"))
	if strings.Contains(opened.body, "find_tool") || !strings.Contains(opened.body, "Handoffs:") {
		t.Errorf("instructions of a bound agent: %s, want nothing about tools it has not", opened.body)
	}
	if diff := cmp.Diff([]string{"count", "echo"}, c.tools()); diff != "" {
		t.Fatalf("tools (-want +got):\n%s", diff)
	}
	if got := c.call("echo", `{"a":1}`); got.IsError || string(got.Structured) != `{"a":1}` {
		t.Errorf("echo = %s, want its arguments", got.text())
	}
	if got := c.call("count", `{}`); !strings.Contains(got.text(), `"awaiting_approval"`) || up.Runs("count") != 0 {
		t.Errorf("count = %s, want it to wait for a person like any other", got.text())
	}
	for _, name := range []string{"tracker__echo", "find_tool", "run_tool", "builtin__reshape", ""} {
		if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`); !strings.Contains(a.body, `-32602`) {
			t.Errorf("%q = %s, want -32602: it is none of the agent's tools", name, a.body)
		}
	}
	err = k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.SetPassthrough(t.Context(), agent.ID, store.UpstreamID{}) })
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent has its meta-tools back", onEachReplica(func() bool { return len(c.tools()) == 8 }))
}

// An upstream that comes, changes or goes is seen by every agent, and told on open streams.
func TestListsFollowTheirUpstream(t *testing.T) {
	t.Parallel()
	k, _, u := behind(t, true, upstreamtest.Echo)
	c := connect(t, k, "2025-11-25")
	l := c.listen()
	if got := c.tools(); len(got) != 9 {
		t.Fatalf("tools = %v, want the upstream's among them", got)
	}
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) }); err != nil {
		t.Fatal(err)
	}
	l.wait(listChanged)
	eventually(t, "the upstream's tools are gone", onEachReplica(func() bool { return len(c.tools()) == 8 }))
	if a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tracker__echo","arguments":{}}}`); !strings.Contains(a.body, "-32602") {
		t.Errorf("a tool of a revoked upstream = %s, want -32602", a.body)
	}
}
