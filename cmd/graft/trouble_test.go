package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// A trouble is a gateway with some upstreams of which the first hangs and the second floods, while it is on.
type trouble struct {
	t         testing.TB
	url       string
	token     string
	upstreams []*upstreamtest.Server
}

func newTrouble(t testing.TB, upstreams int) *trouble {
	t.Helper()
	h := newHome(t)
	env := []string{"GRAFT_EGRESS_ALLOW=127.0.0.0/8", "GRAFT_RATE_MCP=off"}
	h.serveQuietly(env...)
	h.ok("user", "add", "--email", "ana@example.com")
	tr := &trouble{t: t, url: "http://" + h.listen + "/mcp", token: strings.TrimSpace(h.ok("agent", "add", "--name", "hermes"))}
	for i := range upstreams {
		srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{upstreamtest.Echo}, ListChanged: true, Forgetful: true})
		h.ok(env[0], "upstream", "add", "--name", fmt.Sprintf("u%d", i), "--url", srv.URL, "--trust-hints", "--list-all")
		tr.upstreams = append(tr.upstreams, srv)
	}
	return tr
}

// begin makes the trouble, and callers who run into it, until the returned function is called.
func (tr *trouble) begin() (end func()) {
	over := make(chan struct{})
	tr.upstreams[0].Script(func(_ http.ResponseWriter, r *http.Request, _ upstreamtest.Message) bool {
		wait(over, r)
		return true
	})
	tr.upstreams[1].Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if r.Method != http.MethodGet && m.Method != "tools/call" {
			return false
		}
		flood(over, w, r)
		return true
	})
	ctx, cancel := context.WithCancel(tr.t.Context())
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			c := tr.caller(fmt.Sprintf("u%d__echo", i%2))
			if c.open(ctx) != nil {
				return // it is over
			}
			// Not as fast as refusals come: what is measured is the trouble, not eight callers more.
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				_, _ = c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, c.tool)) // fails, as it should
			}
		})
	}
	return func() {
		close(over)
		cancel()
		callers.Wait()
		tr.upstreams[0].Script(nil)
		tr.upstreams[1].Script(nil)
	}
}

// wait hangs until all is over, or the client has gone.
func wait(over <-chan struct{}, r *http.Request) {
	select {
	case <-over:
	case <-r.Context().Done():
	}
}

// flood sends what nobody asked for, as fast as it is taken.
func flood(over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	burst := strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"+
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"more\"}}\n\n", 16)
	for {
		select {
		case <-over:
			return
		case <-r.Context().Done():
			return
		default:
		}
		if _, err := io.WriteString(w, burst); err != nil {
			return
		}
	}
}

func (tr *trouble) caller(tool string) *caller {
	return &caller{road: road{name: tool, url: tr.url, token: tr.token, tool: tool}, client: fleetClient}
}

// A quarter is how the others fared for a while: the times of calls and of lists, sorted.
type quarter struct{ calls, lists []time.Duration }

// fare makes calls of each upstream that is well, four at a time, and lists beside them.
func (tr *trouble) fare(calls, lists int) quarter {
	tr.t.Helper()
	var q quarter
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			took := tr.timed(calls/4, func(n int) (tool, body string) {
				tool = fmt.Sprintf("u%d__echo", 2+(i+n)%(len(tr.upstreams)-2))
				return tool, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d}}}`, n+1, tool, n)
			})
			mu.Lock()
			defer mu.Unlock()
			q.calls = append(q.calls, took...)
		})
	}
	all.Go(func() {
		q.lists = tr.timed(lists, func(n int) (string, string) {
			return fmt.Sprintf(`"u%d__echo"`, len(tr.upstreams)-1), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{}}`, n+1)
		})
	})
	all.Wait()
	slices.Sort(q.calls)
	slices.Sort(q.lists)
	return q
}

// timed makes requests one after the other, in a session of their own, and says how long each took. An answer must be no
// error, and hold what the request says that it must.
func (tr *trouble) timed(n int, request func(int) (must, body string)) []time.Duration {
	ctx := tr.t.Context()
	c := tr.caller("")
	if err := c.open(ctx); err != nil {
		tr.t.Error(err)
		return nil
	}
	took := make([]time.Duration, 0, n)
	for i := range n {
		must, body := request(i)
		if strings.Contains(body, "tools/call") {
			must = fmt.Sprintf(`"structuredContent":{"n":%d}`, i)
		}
		began := time.Now()
		answer, err := c.post(ctx, body)
		took = append(took, time.Since(began))
		if err != nil || !strings.Contains(string(answer), must) {
			tr.t.Errorf("%s = %.300s (%v), want %s in it", body, answer, err, must)
			return took
		}
	}
	return took
}

func at(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*part), len(sorted)-1)]
}

func TestOthersAnswerWhileOneUpstreamHangsAndOneFloods(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t, 4)
	end := tr.begin()
	defer end()
	tr.fare(40, 40)
}

// BenchmarkTrouble is 20 upstreams of which one hangs and one floods, beside the same when all are well, in turn. The bars:
// 99 of 100 lists within 10 ms, and the others' calls within 1.2 times of quiet.
func BenchmarkTrouble(b *testing.B) {
	tr := newTrouble(b, 20)
	tr.fare(80, 20) // every session is open
	var quiet, troubled quarter
	for b.Loop() {
		for range 4 {
			q := tr.fare(1000, 250)
			end := tr.begin()
			t := tr.fare(1000, 250)
			end()
			quiet = quarter{append(quiet.calls, q.calls...), append(quiet.lists, q.lists...)}
			troubled = quarter{append(troubled.calls, t.calls...), append(troubled.lists, t.lists...)}
		}
	}
	b.ReportMetric(0, "ns/op") // of all of it, which says nothing
	for _, list := range [][]time.Duration{quiet.calls, quiet.lists, troubled.calls, troubled.lists} {
		slices.Sort(list)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(at(troubled.lists, .99)), "list-p99-ms")
	b.ReportMetric(ms(at(quiet.lists, .99)), "quiet-list-p99-ms")
	b.ReportMetric(ms(at(troubled.calls, .5)), "call-p50-ms")
	b.ReportMetric(ms(at(quiet.calls, .5)), "quiet-call-p50-ms")
	b.ReportMetric(float64(at(troubled.calls, .5))/float64(at(quiet.calls, .5)), "call-p50-ratio")
	b.ReportMetric(float64(at(troubled.calls, .99))/float64(at(quiet.calls, .99)), "call-p99-ratio")
}
