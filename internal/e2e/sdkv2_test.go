package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// TestSDKv2 drives the official SDK in both of its eras through everything that crosses replicas.
func TestSDKv2(t *testing.T) {
	t.Parallel()
	for _, era := range []struct{ mode, protocol string }{
		{"auto", "2026-07-28"},
		{"legacy", "2025-11-25"},
	} {
		t.Run(era.mode, func(t *testing.T) {
			t.Parallel()
			f, kit, token := startFixture(t, servertest.Options{})
			client := &sdkV2{t: t, p: e2e.NewProgram(t, e2e.Client(t, "sdk-v2.mjs")).Start(kit.URL+"/mcp", token, era.mode)}
			hello := client.next()
			if hello.Protocol != era.protocol || hello.Server.Name != "graft" || (hello.Session != "") != (era.mode == "legacy") {
				t.Fatalf("connect = %+v, want graft at %s", hello, era.protocol)
			}
			client.do(map[string]any{"list": true}).Tools.check(t)
			client.exercise(f, hello.Session)
			kit.Restart()
			if era.mode == "auto" {
				if got := client.do(map[string]any{"closed": true}).Closed; got != "graceful" {
					t.Errorf("the subscription ended %q, want graceful", got)
				}
				client.do(map[string]any{"listen": true}) // the SDK leaves that to its user
			}
			client.exercise(f, hello.Session)
		})
	}
}

type sdkV2 struct {
	t *testing.T
	p *e2e.Process
}

// v2Answer is what sdk-v2.mjs says.
type v2Answer struct {
	Session, Error, Protocol, Closed string
	Server                           struct{ Name string }
	Tools                            tools
	Result                           toolResult
	Progress                         []float64
	Asked                            []string
	Aborted                          bool
	Calls                            int
}

func (c *sdkV2) next() (a v2Answer) {
	c.t.Helper()
	c.p.Next(&a)
	return a
}

func (c *sdkV2) do(command map[string]any) v2Answer {
	c.t.Helper()
	c.p.Send(command)
	a := c.next()
	if a.Error != "" {
		c.t.Fatalf("%v = error %q", command, a.Error)
	}
	return a
}

// exercise calls, is asked, cancels and hears of a change, all in the session.
func (c *sdkV2) exercise(f *fixture, session string) {
	c.t.Helper()
	c.do(map[string]any{"call": "run_tool", "arguments": reshape()}).Result.check(c.t)
	if got, want := c.do(map[string]any{"call": "test_tool_with_progress"}).Progress, []float64{0, 50, 100}; !slices.Equal(got, want) {
		c.t.Errorf("progress = %v, want %v", got, want)
	}
	for tool, want := range map[string]struct {
		asked []string
		last  string
	}{
		"test_input_required_result_multiple_inputs": {
			[]string{"What is your name?", "What is your favourite colour?"}, `color: accept {"color":"blue"}`,
		},
		"test_input_required_result_multi_round": {
			[]string{"Step 1: What is your name?", "Step 2: What is your favorite color?"}, `step2: accept {"color":"blue"}`,
		},
	} {
		a := c.do(map[string]any{"call": tool})
		slices.Sort(a.Asked)
		slices.Sort(want.asked) // questions of one round have no order
		if !slices.Equal(a.Asked, want.asked) || a.Result.last() != want.last {
			c.t.Errorf("%s asked %q and answered %q, want %q and %q", tool, a.Asked, a.Result.last(), want.asked, want.last)
		}
	}
	if a := c.do(map[string]any{"cancel": "wait_for_cancel"}); !a.Aborted || a.Session != session {
		c.t.Errorf("cancel = %+v, want aborted in session %q", a, session)
	}
	select {
	case <-f.cancelled:
	case <-time.After(30 * time.Second):
		c.t.Error("the call that the client aborted went on")
	}
	before := c.do(map[string]any{"list": true}).Tools.have(changingTool)
	a := c.do(map[string]any{"change": "test_trigger_tool_change"})
	if moved := a.Calls%2 == 1; (a.Tools.have(changingTool) != before) != moved {
		c.t.Errorf("%s listed before %d changes: %v, and after: %v", changingTool, a.Calls, before, a.Tools.have(changingTool))
	}
}

// last is the text of the last content.
func (r toolResult) last() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[len(r.Content)-1].Text
}
