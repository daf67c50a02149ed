package mcp_test

import (
	"slices"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/job"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// lastUsed is when an agent last used a tool of its working set; zero for never, or for a tool that is not in it.
func lastUsed(t *testing.T, k *servertest.Kit, c store.Caller, agent store.AgentID, tool string) (at time.Time) {
	t.Helper()
	err := k.DB.As(t.Context(), c, func(tx *store.Tx) error {
		set, err := tx.WorkingSet(t.Context(), agent)
		for _, p := range set {
			if p.Tool == tool && p.LastUsedAt != nil {
				at = *p.LastUsedAt
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTheUseOfAPromotedToolIsWrittenDown(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newProbe()}})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	for _, name := range []string{"fail", "refuse", "foreign", "wait"} {
		if got := c.call("promote", `{"vendor":"probe","name":"`+name+`"}`); got.IsError {
			t.Fatal(got.text())
		}
	}
	c.call("probe__fail", `{}`) // a call that failed was a call
	c.call("run_tool", `{"vendor":"probe","name":"refuse"}`)
	c.call("run_tool", `{"vendor":"probe","name":"foreign","detached":true}`)
	c.call("probe__panic", `{}`) // not of the working set
	used := func(tool string) bool { return !lastUsed(t, k, k.Owner, agent.ID, tool).IsZero() }
	eventually(t, "the use of three tools", func() bool {
		return used("probe__fail") && used("probe__refuse") && used("probe__foreign")
	})
	if used("probe__wait") || used("probe__panic") {
		t.Error("a tool that was not called counts as used")
	}
}

func TestTheSweepIsHeardOnEveryReplicaAndLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	clock := newClock(time.Now())
	p := newProbe()
	k := servertest.Start(t, servertest.Options{Private: true, Now: clock.now, Sources: []catalog.Source{p}})
	owner := organisation(t, k)
	k.Owner = owner
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	for _, name := range []string{"wait", "refuse"} {
		if got := c.call("promote", `{"vendor":"probe","name":"`+name+`"}`); got.IsError {
			t.Fatal(got.text())
		}
	}
	has := func(tool string) func() bool {
		return func() bool { return slices.Contains(c.tools(), tool) }
	}
	sweep := job.SweepWorkingSets(k.DB)
	done := make(chan answer, 1)
	go func() {
		done <- c.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe__wait","arguments":{}}}`)
	}()
	<-p.started
	l := c.listen()
	clock.add(22 * 24 * time.Hour)
	eventually(t, "that the call under way is noted", func() bool {
		return lastUsed(t, k, owner, agent.ID, "probe__wait").Equal(clock.now().Truncate(time.Microsecond))
	})
	if err := sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wait("data: ") // list_changed
	eventually(t, "that the idle tool is off the list", onEachReplica(func() bool { return !has("probe__refuse")() }))
	if !onEachReplica(has("probe__wait"))() {
		t.Error("the tool that runs was demoted")
	}
	close(p.release)
	if got := resultOf(t, <-done); got.text() != `"done"` {
		t.Errorf("the call = %s, want done", got.text())
	}
}
