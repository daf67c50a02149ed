package server_test

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

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// within is how soon a revocation holds on every replica, also with the bus cut.
const within = time.Second

// lines gives each replica of a kit its own line to the bus.
type lines struct {
	t  *testing.T
	mu sync.Mutex
	l  []*storetest.Line
}

func (ls *lines) direct(dsn string) string {
	l := storetest.NewLine(ls.t, dsn)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.l = append(ls.l, l)
	return l.DSN
}

func (ls *lines) all(do func(*storetest.Line)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.l {
		do(l)
	}
}

// known asks both replicas with a token until each remembers it.
func known(t *testing.T, k *servertest.Kit, token string) {
	t.Helper()
	for _, r := range k.Replicas() {
		for range 3 {
			if a := ping1(t, k, r, token); a.status != http.StatusBadRequest {
				t.Fatalf("a live token = %d %s, want it let through to 400 session_required", a.status, a.body)
			}
		}
	}
}

func ping1(t *testing.T, k *servertest.Kit, r *servertest.Replica, token string) answer {
	t.Helper()
	return ask(t, bare, "POST", r.URL+"/mcp", ping, "Authorization: Bearer "+token, "Content-Type: application/json", "Host: "+strings.TrimPrefix(k.URL, "http://"))
}

// refusedWithin waits until both replicas refuse a token, and returns how long the slower took.
func refusedWithin(t *testing.T, k *servertest.Kit, token string, since time.Time) time.Duration {
	t.Helper()
	for _, r := range k.Replicas() {
		for {
			a := ping1(t, k, r, token)
			if a.status == http.StatusUnauthorized && strings.Contains(a.body, `"reason":"token_unknown"`) {
				break
			}
			if time.Since(since) > 10*within {
				t.Fatalf("%s still takes the token after %v: %d %s", r.URL, time.Since(since), a.status, a.body)
			}
		}
	}
	return time.Since(since)
}

// healthy waits until no replica's bus is cut.
func healthy(t *testing.T, k *servertest.Kit, want bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(20 * time.Second); ; {
		all := true
		for _, r := range k.Replicas() {
			cut := strings.Contains(ask(t, bare, "GET", r.URL+"/readyz", "").body, `"bus":"cut`)
			all = all && cut != want
		}
		if all {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the bus is not healthy=%v everywhere", want)
		}
	}
}

// Whatever ends a token, the next request is refused on every replica.
func TestRevocationHoldsOnEveryReplica(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	healthy(t, k, true)
	member := storetest.Member(t, k.DB, k.Owner, store.RoleMember)
	other := storetest.Organisation(t, k.DB)
	agents := map[string]store.Caller{"agent": k.Owner, "token": k.Owner, "member": member, "organisation": other}
	acts := map[string]func(store.Agent) error{
		"agent": func(a store.Agent) error {
			return k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
		},
		"token": func(a store.Agent) error {
			return k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
				_, err := tx.RenewAgentToken(t.Context(), a.ID)
				return err
			})
		},
		"member": func(store.Agent) error {
			return k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), member.User) })
		},
		"organisation": func(store.Agent) error { return k.DB.System().DeleteOrganisation(t.Context(), other.Org) },
	}
	_, bystander := k.Agent(t)
	known(t, k, bystander)
	for what, end := range map[string]func(*store.Tx, access) error{
		"grant":        func(tx *store.Tx, a access) error { _, err := tx.EndGrant(t.Context(), a.holder.Grant); return err },
		"access token": func(tx *store.Tx, a access) error { return tx.DenyToken(t.Context(), a.id, time.Now().Add(time.Hour)) },
		"its agent":    func(tx *store.Tx, a access) error { return tx.RevokeAgent(t.Context(), a.holder.Agent) },
	} {
		a := connect(t, k)
		known(t, k, a.token)
		as := k.Owner
		if what == "access token" {
			as = a.holder
		}
		began := time.Now()
		if err := k.DB.As(t.Context(), as, func(tx *store.Tx) error { return end(tx, a) }); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if took := refusedWithin(t, k, a.token, began); took > within {
			t.Errorf("%s: refused everywhere after %v, want %v", what, took, within)
		}
	}
	for what, owner := range agents {
		a, token := storetest.Agent(t, k.DB, owner, "ends-with-"+what)
		known(t, k, token)
		began := time.Now()
		if err := acts[what](a); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if took := refusedWithin(t, k, token, began); took > within {
			t.Errorf("%s: refused everywhere after %v, want %v", what, took, within)
		}
	}
	known(t, k, bystander)
}

// The same with the listeners' connections closed under them, and with every packet to them dropped in silence.
func TestRevocationHoldsWithTheBusCut(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*storetest.Line){"cut": (*storetest.Line).Cut, "silent": (*storetest.Line).Stall} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ls := &lines{t: t}
			k := servertest.Start(t, servertest.Options{DirectURL: ls.direct})
			healthy(t, k, true)
			for n := range 5 {
				a, token := storetest.Agent(t, k.DB, k.Owner, fmt.Sprintf("%s-%d", name, n))
				known(t, k, token)
				ls.all(harm)
				began := time.Now()
				err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
				if err != nil {
					t.Fatal(err)
				}
				if took := refusedWithin(t, k, token, began); took > within {
					t.Errorf("refused everywhere after %v, want %v", took, within)
				}
				ls.all((*storetest.Line).Flow)
				ls.all((*storetest.Line).Cut)
				healthy(t, k, true)

				app := connect(t, k)
				known(t, k, app.token)
				ls.all(harm)
				began = time.Now()
				err = k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { _, err := tx.EndGrant(t.Context(), app.holder.Grant); return err })
				if err != nil {
					t.Fatal(err)
				}
				if took := refusedWithin(t, k, app.token, began); took > within {
					t.Errorf("an app is refused everywhere after %v, want %v", took, within)
				}
				ls.all((*storetest.Line).Flow)
				ls.all((*storetest.Line).Cut)
				healthy(t, k, true)
			}
		})
	}
}

// While the bus is cut, requests go on being answered: slower, by the database.
func TestRequestsAreServedWithTheBusCut(t *testing.T) {
	t.Parallel()
	ls := &lines{t: t}
	k := servertest.Start(t, servertest.Options{DirectURL: ls.direct})
	_, token := k.Agent(t)
	healthy(t, k, true)
	ls.all((*storetest.Line).Stall)
	healthy(t, k, false)
	known(t, k, token)
	if a := ask(t, bare, "GET", k.URL+"/readyz", ""); a.status != http.StatusOK {
		t.Errorf("/readyz with the bus cut = %d %s, want 200: the replica serves", a.status, a.body)
	}
}

// In steady state a request is no transaction: what it needs is remembered. What is written down of calls goes together,
// at most 40 times a second on each replica.
func TestSteadyStateAsksTheDatabaseNothing(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Private: true})
	k.Owner = organisation(t, k)
	_, token := k.Agent(t)
	headers := []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
	opened := ask(t, bare, "POST", k.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers...)
	headers = append(headers, "Mcp-Session-Id: "+opened.header.Get("Mcp-Session-Id"))
	healthy(t, k, true)
	bodies := []string{
		ping, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":1}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"find_tool","arguments":{"query":"reshape"}}}`,
	}
	serve := func(n int) {
		for i := range n {
			if a := ask(t, bare, "POST", k.URL+"/mcp", bodies[i%len(bodies)], headers...); a.status != http.StatusOK {
				t.Fatalf("request %d = %d %s", i, a.status, a.body)
			}
		}
	}
	serve(4 * len(bodies)) // each replica remembers now
	idle := transactionsPerSecond(t, k, func() {})
	const requests = 1200
	busy := transactionsPerSecond(t, k, func() { serve(requests) })
	if busy > idle+2*40+20 {
		t.Errorf("%.0f transactions a second under load, %.0f idle: requests cause some", busy, idle)
	}
}

// transactionsPerSecond is the database's rate of transactions while do runs, and for at least two seconds.
func transactionsPerSecond(t *testing.T, k *servertest.Kit, do func()) float64 {
	t.Helper()
	before, began := storetest.Transactions(t, k.DSN), time.Now()
	do()
	settle := time.NewTimer(max(2*time.Second-time.Since(began), time.Second)) // the statistics are a second behind
	defer settle.Stop()
	<-settle.C
	after := storetest.Transactions(t, k.DSN)
	return float64(after-before) / time.Since(began).Seconds()
}

// BenchmarkRevocation reports how long a revocation on one replica takes to hold on another.
func BenchmarkRevocation(b *testing.B) {
	k := servertest.Start(b, servertest.Options{})
	var took []time.Duration
	second := k.Replicas()[1]
	for b.Loop() {
		b.StopTimer()
		k.Owner = storetest.Organisation(b, k.DB) // a user makes only so many
		a, token := k.Agent(b)
		for range 3 {
			askReplica(b, k, second, token)
		}
		b.StartTimer()
		began := time.Now()
		err := k.DB.As(b.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(b.Context(), a.ID) })
		if err != nil {
			b.Fatal(err)
		}
		for askReplica(b, k, second, token) != http.StatusUnauthorized {
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

func askReplica(b *testing.B, k *servertest.Kit, r *servertest.Replica, token string) int {
	b.Helper()
	a, err := try(context.WithoutCancel(b.Context()), bare, "POST", r.URL+"/mcp", ping, "Authorization: Bearer "+token, "Content-Type: application/json", "Host: "+strings.TrimPrefix(k.URL, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	return a.status
}

// Open streams close with what they stand on, also where the bus was cut while it ended.
func TestStreamsCloseWithMemberAndOrganisation(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		ls := &lines{t: t}
		k := servertest.Start(t, servertest.Options{DirectURL: ls.direct})
		member := storetest.Member(t, k.DB, k.Owner, store.RoleMember)
		other := storetest.Organisation(t, k.DB)
		healthy(t, k, true)
		open := map[string][]<-chan struct{}{}
		for what, owner := range map[string]store.Caller{"bystander": k.Owner, "member": member, "organisation": other} {
			_, token := storetest.Agent(t, k.DB, owner, "streams-"+what)
			for _, r := range k.Replicas() {
				open[what] = append(open[what], stream(t, k, r, token))
			}
		}
		if cut {
			ls.all((*storetest.Line).Stall)
			healthy(t, k, false)
		}
		if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), member.User) }); err != nil {
			t.Fatal(err)
		}
		if err := k.DB.System().DeleteOrganisation(t.Context(), other.Org); err != nil {
			t.Fatal(err)
		}
		if cut {
			ls.all((*storetest.Line).Flow)
			ls.all((*storetest.Line).Cut)
		}
		for _, what := range []string{"member", "organisation"} {
			for _, ended := range open[what] {
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Errorf("cut %v: a stream of the removed %s is still open", cut, what)
				}
			}
		}
		healthy(t, k, true)
		for _, ended := range open["bystander"] {
			select {
			case <-ended:
				t.Errorf("cut %v: a bystander's stream was closed", cut)
			default:
			}
		}
	}
}

// stream opens a GET stream on a replica and returns what closes when it ends.
func stream(t *testing.T, k *servertest.Kit, r *servertest.Replica, token string) <-chan struct{} {
	t.Helper()
	host := strings.TrimPrefix(k.URL, "http://")
	opened := ask(t, bare, "POST", r.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Authorization: Bearer "+token, "Content-Type: application/json", "Host: "+host)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Accept": {"text/event-stream"}, "Mcp-Session-Id": {opened.header.Get("Mcp-Session-Id")}}
	resp, err := bare.Do(req) //nolint:bodyclose // closed when the stream ends
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET = %v, %v", resp, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	return ended
}
