package main_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// A ledger is an upstream with a tool that writes and one that reads, and what each was called with.
type ledger struct {
	mu    sync.Mutex
	wrote map[string]int // by the arguments
}

func (l *ledger) tools() []upstreamtest.Tool {
	return []upstreamtest.Tool{
		{Name: "write", Run: func(c *upstreamtest.Call) string {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.wrote[string(c.Args)]++
			return upstreamtest.Text("written")
		}},
		{
			Name: "read", Listed: `{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
			Run: func(*upstreamtest.Call) string { return upstreamtest.Text("read") },
		},
	}
}

// An acknowledgement is a call that its client got the result of.
type acknowledgement struct {
	tool, args string
	at         time.Time
	took       time.Duration
}

// acknowledged calls a tool of the ledger, and reports whether its result came.
func (c *agentClient) acknowledged(ctx context.Context, tool, args string) (a acknowledgement, ok bool, err error) {
	began := time.Now()
	resp, err := c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ledger__`+tool+`","arguments":`+args+`}}`)
	if err != nil {
		return a, false, nil // cut off: nobody was told anything
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	at := time.Now()
	switch {
	case err != nil, resp.StatusCode == http.StatusBadGateway:
		return a, false, nil
	case strings.Contains(string(b), `"isError":true`) || !strings.Contains(string(b), `"result":`):
		return a, false, fmt.Errorf("%s %s = %s %s", tool, args, resp.Status, b)
	}
	return acknowledgement{tool, args, at, at.Sub(began)}, true, nil
}

// A replica that is killed under load takes no call with effects out of the audit: whatever an upstream received, or a
// client was told of, was announced there. Of reads it takes what was not yet written, at most of the last 50 ms.
func TestKilledReplicaLosesNoCallWithEffects(t *testing.T) {
	t.Parallel()
	l := &ledger{wrote: map[string]int{}}
	up := upstreamtest.Start(t, upstreamtest.Options{Tools: l.tools(), Forgetful: true})
	f := newFleet(t)
	f.env = append(f.env, "GRAFT_EGRESS_ALLOW=127.0.0.0/8")
	f.run("upstream", "add", "--name", "ledger", "--url", up.URL, "--trust-hints")
	var tokens []string
	for i := range 4 {
		name := fmt.Sprintf("agent-%d", i)
		tokens = append(tokens, strings.TrimSpace(f.run("agent", "add", "--name", name)))
		newHome(t).allow(strings.TrimPrefix(f.env[0], "GRAFT_DATABASE_URL="), name, "ledger", "write")
	}
	survivor := f.add()
	var (
		mu     sync.Mutex
		acks   []acknowledgement
		kills  []time.Time
		all    sync.WaitGroup
		calls  atomic.Int64
		failed = make(chan error, 64)
	)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for n := range 8 { // a writer and a reader of each agent
		tool := []string{"write", "read"}[n%2]
		all.Go(func() {
			c, err := f.connect(t.Context(), tokens[n/2])
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				var a acknowledgement
				var ok bool
				if a, ok, err = c.acknowledged(t.Context(), tool, fmt.Sprintf(`{"key":"%d-%d"}`, n, i)); ok {
					mu.Lock()
					acks = append(acks, a)
					mu.Unlock()
					calls.Add(1)
				}
			}
			if err != nil {
				failed <- err
			}
		})
	}
	for range 3 {
		victim := f.add()
		until := calls.Load() + 200 + rand.Int64N(200) //nolint:gosec // when to kill
		for late := time.After(time.Minute); calls.Load() < until && len(failed) == 0; {
			select {
			case <-time.After(time.Millisecond):
			case <-late:
				t.Fatalf("%d calls in a minute", calls.Load())
			}
		}
		kills = append(kills, time.Now())
		_ = victim.end(syscall.SIGKILL)
		f.drop(victim)
	}
	stop()
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if err := survivor.end(syscall.SIGTERM); err != nil { // which writes what it took
		t.Errorf("SIGTERM: %v\n%s", err, survivor.errout)
	}
	f.account(l, acks, kills)
	if got := f.run("audit", "verify"); !strings.HasPrefix(got, "ok: ") {
		t.Errorf("audit verify = %s", got)
	}
}

// account holds what clients were told and the upstream received against the audit.
func (f *fleet) account(l *ledger, acks []acknowledgement, kills []time.Time) {
	f.t.Helper()
	announced, recorded := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(f.run("audit", "export")) {
		var e struct{ Kind, Tool, Digest, Outcome string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.t.Fatal(err)
		}
		switch {
		case e.Kind == "intent":
			announced[e.Digest] = true
		case e.Kind == "call":
			recorded[e.Digest] = true
		}
	}
	digest := func(args string) string { return hex.EncodeToString(rpc.Digest(jsontext.Value(args))) }
	for args, n := range l.wrote {
		if n != 1 {
			f.t.Errorf("%s was written %d times", args, n)
		}
		if !announced[digest(args)] {
			f.t.Errorf("%s was written and stands nowhere in the audit", args)
		}
	}
	var slowest time.Duration // what the machine takes to write stands in the writes
	writes, reads, missing := 0, 0, 0
	for _, a := range acks {
		if a.tool == "write" {
			writes, slowest = writes+1, max(slowest, a.took)
		}
	}
	// A recorded entry waits for a write of the log under way, and for its own.
	bound := 50*time.Millisecond + 2*slowest
	for _, a := range acks {
		switch {
		case a.tool == "write":
			if !announced[digest(a.args)] || l.wrote[a.args] != 1 {
				f.t.Errorf("%s was acknowledged: announced %v, written %d times", a.args, announced[digest(a.args)], l.wrote[a.args])
			}
		case recorded[digest(a.args)]:
			reads++
		default:
			missing++
			if !justBefore(kills, a.at, bound) {
				f.t.Errorf("the read %s was acknowledged at %s and stands nowhere in the audit; at most those of %s before %v may not", a.args, a.at, bound, kills)
			}
		}
	}
	if writes < 100 || reads < 100 {
		f.t.Errorf("%d writes and %d reads were acknowledged; the load was none", writes, reads)
	}
	f.t.Logf("%d writes, %d reads and %d reads lost within %s of %d kills; the upstream received %d writes", writes, reads, missing, bound, len(kills), len(l.wrote))
}

// justBefore reports whether at is within bound before one of the kills, or in the moment that one takes.
func justBefore(kills []time.Time, at time.Time, bound time.Duration) bool {
	for _, kill := range kills {
		if ago := kill.Sub(at); ago <= bound && ago >= -bound {
			return true
		}
	}
	return false
}
