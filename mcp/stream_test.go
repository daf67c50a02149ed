package mcp_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// one is a kit of one replica: what streams say to one another crosses replicas only with the bus.
var one = servertest.Options{Replicas: 1}

const listChanged = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestPromoteTellsTheAgentsStreams(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, one)
	c := connect(t, k, "2025-06-18")
	second := &client{t: t, url: c.url, token: c.token}
	second.open("2025-11-25")
	other := connect(t, k, "2025-06-18") // another agent
	older, newer, theirs, foreign := c.listen(), c.listen(), second.listen(), other.listen()

	c.call("promote", `{"vendor":"builtin","name":"reshape"}`)
	newer.wait(listChanged)
	theirs.wait(listChanged)
	c.call("promote", `{"vendor":"builtin","name":"reshape"}`) // changes nothing
	k.StopAll()
	if lines := append(append(older.ended(), newer.ended()...), foreign.ended()...); slices.Contains(lines, listChanged) {
		t.Errorf("a message came twice in one session, or to another agent: %q", lines)
	}
}

func TestIdleStreamsAreKeptAlive(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, KeepAlive: 20 * time.Millisecond})
	l := connect(t, k, "2025-06-18").listen()
	l.wait(": keep-alive")
	l.wait(": keep-alive")
}

// A stream costs a goroutine, a descriptor and a look at the database every 15 s, so nobody has as many as they like.
func TestStreamsOfASessionAndAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, one)
	c := connect(t, k, "2025-06-18")
	oldest := c.listen()
	for range 3 {
		c.listen()
	}
	newest := c.listen() // the fifth of the session
	oldest.ended()
	c.call("promote", `{"vendor":"builtin","name":"reshape"}`)
	newest.wait(listChanged)

	var last *listener
	for n := 4; n < 100; n++ {
		if n%4 == 0 {
			c.open("2025-06-18")
		}
		last = c.listen()
	}
	c.open("2025-06-18")
	a := c.do(http.MethodGet, c.url, nil)
	if !slowDown(a) {
		t.Errorf("the stream past the last = %d %s, want 429 rate_limited with Retry-After", a.status, a.body)
	}
	connect(t, k, "2025-06-18").listen() // another agent's
	last.cancel()
	for late := time.After(patience); ; {
		resp := c.send(t.Context(), http.MethodGet, c.url, nil)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-late:
			t.Fatalf("after one stream was closed, GET = %d", resp.StatusCode)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestStreamsEndWithSessionAgentAndGateway(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{KeepAlive: 20 * time.Millisecond}) // two replicas
	ended := connect(t, k, "2025-06-18")
	one, two := ended.listen(), ended.listen()
	if a := ended.do(http.MethodDelete, ended.url, nil); a.status != http.StatusNoContent {
		t.Fatalf("DELETE = %d %s, want 204", a.status, a.body)
	}
	one.ended()
	two.ended()

	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-06-18")
	revoked := c.listen()
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent.ID) }); err != nil {
		t.Fatal(err)
	}
	revoked.ended()
	eventually(t, "the token refused on both replicas", onEachReplica(func() bool {
		a := c.post(ping)
		return a.status == http.StatusUnauthorized && strings.Contains(a.body, "token_unknown")
	}))

	last := connect(t, k, "2025-06-18").listen()
	k.StopAll()
	last.ended()
}

// A12, as far as it goes without a running call.
func TestDeleteEndsASessionOnEveryReplica(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	c := connect(t, k, "2025-06-18")
	other := &client{t: t, url: c.url, token: c.token}
	other.open("2025-06-18")
	if a := c.do(http.MethodDelete, c.url, nil); a.status != http.StatusNoContent || a.body != "" {
		t.Fatalf("DELETE = %d %q, want 204", a.status, a.body)
	}
	eventually(t, "the session ended on both replicas", onEachReplica(func() bool { return c.post(ping).status == http.StatusNotFound }))
	for range 2 { // once on each replica
		for _, method := range []string{http.MethodDelete, http.MethodPost, http.MethodGet} {
			if a := c.do(method, c.url, strings.NewReader(ping)); a.status != http.StatusNotFound {
				t.Errorf("%s after DELETE = %d %s, want 404", method, a.status, a.body)
			}
		}
	}
	if a := other.post(ping); a.status != http.StatusOK {
		t.Errorf("the agent's other session = %d, want it alive", a.status)
	}
	c.open("2025-06-18")
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("a new session = %d", a.status)
	}
}

func TestSessionsLiveThirtyDays(t *testing.T) {
	t.Parallel()
	clock := newClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	k := servertest.Start(t, servertest.Options{Private: true, Now: clock.now})
	k.Owner = organisation(t, k)
	c := connect(t, k, "2025-06-18")
	clock.add(30*24*time.Hour - time.Minute)
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("after 30 days less a minute = %d %s, want 200", a.status, a.body)
	}
	k.Restart() // a new sealing key is made by now; the old one still opens
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("after a key rotation = %d %s, want 200", a.status, a.body)
	}
	clock.add(2 * time.Minute)
	if a := c.post(ping); a.status != http.StatusNotFound {
		t.Errorf("after 30 days and a minute = %d, want 404", a.status)
	}
}

// A renewed token takes its own streams along and nobody else's: those of the new token, and what an agent does in the
// moment after it was made, go on.
func TestRenewalEndsTheOldTokensStreamsAlone(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	for range 10 {
		agent, old := k.Agent(t)
		first := &client{t: t, url: k.URL + "/mcp", token: old}
		first.open("2025-06-18") // at once: the agent was made this moment
		if got := first.call("find_tool", `{"query":"reshape"}`); got.IsError {
			t.Fatalf("the first call of a new agent = %s", got.text())
		}
		before := first.listen()
		var token string
		err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) (err error) {
			token, err = tx.RenewAgentToken(t.Context(), agent.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		second := &client{t: t, url: k.URL + "/mcp", token: token}
		second.open("2025-06-18")
		after := second.listen()
		if got := second.call("find_tool", `{"query":"reshape"}`); got.IsError {
			t.Fatalf("the first call with the new token = %s", got.text())
		}
		before.ended()
		second.call("promote", `{"vendor":"builtin","name":"reshape"}`)
		after.wait(listChanged)
	}
}
