package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
	"github.com/getgraft/graft/internal/vault"
)

func TestEachAgentHasItsOwnSession(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("demo", srv.URL)
	before := count(srv, "initialize")
	a, b := r.agent(), r.agent()
	for range 3 {
		r.must(a, "demo__count", `{}`)
	}
	if got, want := r.must(b, "demo__count", `{}`), upstreamtest.Text("1"); got != want {
		t.Errorf("count of the second agent = %s, want %s: state crossed agents", got, want)
	}
	if got, want := r.must(a, "demo__count", `{}`), upstreamtest.Text("4"); got != want {
		t.Errorf("count of the first agent = %s, want %s", got, want)
	}
	if n := count(srv, "initialize") - before; n > 3 { // and one that listens
		t.Errorf("initialize = %d for two agents, want at most 3", n)
	}
}

func TestEffectsAreBelievedOnlyWhereAPersonTrustsTheHints(t *testing.T) {
	t.Parallel()
	listed := func(name, annotations string) upstreamtest.Tool {
		return upstreamtest.Tool{Name: name, Listed: fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":%s}`, name, annotations)}
	}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{
		listed("read", `{"readOnlyHint":true}`), listed("append", `{"destructiveHint":false,"idempotentHint":true,"title":"Append"}`), listed("plain", `{}`), listed("odd", `{"readOnlyHint":"yes"}`),
	}})
	r := one(t)
	u := r.add("demo", srv.URL)
	effects := func() map[string][3]bool {
		got := map[string][3]bool{}
		for name, tool := range r.tools() {
			got[name] = [3]bool{tool.ReadOnly, tool.Destructive, tool.Idempotent}
		}
		return got
	}
	want := map[string][3]bool{"demo__read": {true, false, false}, "demo__append": {false, false, true}, "demo__plain": {false, true, false}, "demo__odd": {false, true, false}}
	if diff := cmp.Diff(want, effects()); diff != "" {
		t.Errorf("effects, trusted (-want +got):\n%s", diff)
	}
	if title := r.tools()["demo__append"].Title; title != "Append" {
		t.Errorf("title = %q, want that of the annotations", title)
	}
	if err := r.Change(t.Context(), r.owner, u.ID, store.UpstreamSettings{ConnectSeconds: 10, CallSeconds: 60}); err != nil {
		t.Fatal(err)
	}
	write := [3]bool{false, true, false}
	want = map[string][3]bool{"demo__read": write, "demo__append": write, "demo__plain": write, "demo__odd": write}
	eventually(t, "tools to be destructive writes", func() bool { return cmp.Equal(want, effects()) })
}

func TestASecretThatIsNotSetStopsItsUpstreamAlone(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: "s3cret"})
	open := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("open", open.URL)
	u := r.tryAdd("closed", srv.URL, upstream.Header{Name: "authorization", Value: "Bearer ${TOKEN}"})
	if u.State != store.UpstreamFailing || u.LastErrorWord != "upstream_unauthorized" || !strings.Contains(u.LastError, "the secret TOKEN, which is not set") {
		t.Errorf("Add() = %s %s: %s, want failing for want of TOKEN", u.State, u.LastErrorWord, u.LastError)
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("requests = %d, want none without the secret", n)
	}
	a := r.agent()
	r.must(a, "open__echo", `{"n":1}`)
	set := func(value string) {
		t.Helper()
		if _, err := r.SetSecret(t.Context(), r.owner, "TOKEN", vault.NewSecret([]byte(value))); err != nil {
			t.Fatal(err)
		}
	}
	set("s3cret")
	if err := r.Refresh(t.Context(), r.owner, u.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its tools", func() bool { return len(r.tools()) == 4 })
	r.must(a, "closed__count", `{}`)

	// A new value ends the sessions that the old one opened.
	set("other")
	eventually(t, "the old session to end", func() bool { return srv.Sessions() == 0 })
	_, err := r.try(a, "closed__count", `{}`)
	assertRefused(t, "call with another value", err, reason.UpstreamUnauthorized)
	if err := r.house.db.As(t.Context(), r.owner, func(tx *store.Tx) error { return tx.RemoveSecret(t.Context(), "TOKEN") }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the secret to be missed", func() bool {
		_, err := r.try(a, "closed__count", `{}`)
		return strings.Contains(reason.Of(err).Message, "the secret TOKEN, which is not set")
	})
	r.must(a, "open__echo", `{"n":2}`)
}

// C06: the upstream restarts and forgets its sessions.
func TestFieldC06ALostSessionIsOpenedOnceForAll(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("demo", srv.URL)
	a := r.agent()
	r.must(a, "demo__count", `{}`)
	eventually(t, "what listens to have been", func() bool { return count(srv, http.MethodDelete) == 2 })
	before, runs := count(srv, "initialize"), srv.Runs("count")
	srv.Forget()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := r.try(a, "demo__count", `{}`); err != nil {
				t.Errorf("call after the session was lost = %v, want a result", err)
			}
		})
	}
	all.Wait()
	if n := count(srv, "initialize") - before; n != 1 {
		t.Errorf("initialize after the session was lost = %d for 10 callers, want 1", n)
	}
	if n := srv.Runs("count") - runs; n != 10 {
		t.Errorf("executions = %d for 10 calls, want 10", n)
	}
}

func TestOnlyAReadIsSentAgainWhenTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	r := one(t)
	cut := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r.add("demo", srv.URL)
	a := r.agent()
	r.must(a, "demo__count", `{}`)
	for _, tt := range []struct {
		tool  string
		cuts  int // how many calls lose their connection
		calls int // that arrive
		ok    bool
	}{{"demo__echo", 1, 2, true}, {"demo__echo", 2, 2, false}, {"demo__count", 1, 1, false}} {
		var calls atomic.Int64
		srv.Script(func(w http.ResponseWriter, _ *http.Request, m upstreamtest.Message) bool {
			lose := m.Method == "tools/call" && int(calls.Add(1)) <= tt.cuts
			if lose {
				cut(w)
			}
			return lose
		})
		_, err := r.try(a, tt.tool, `{}`)
		if n := int(calls.Load()); (err == nil) != tt.ok || n != tt.calls {
			t.Errorf("%s with %d cuts = %v after %d calls, want %d calls", tt.tool, tt.cuts, err, n, tt.calls)
		}
		if err != nil && (!errors.Is(err, upstream.ErrOutcomeUnknown) || !strings.Contains(reason.Of(err).Message, "not known")) {
			t.Errorf("%s = %v, want that the outcome is not known", tt.tool, err)
		}
	}
}

// C07: one upstream hangs, one is slow to connect to, one is well.
func TestFieldC07AHungUpstreamCostsItsOwnCallsOnly(t *testing.T) {
	t.Parallel()
	hang := upstreamtest.Tool{Name: "hang", Run: func(c *upstreamtest.Call) string {
		<-c.Done()
		return upstreamtest.Text("late")
	}}
	hung := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{hang, upstreamtest.Count}})
	well := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("well", well.URL)
	u, err := r.Add(t.Context(), r.owner, upstream.Addition{Name: "hung", URL: hung.URL, Settings: store.UpstreamSettings{ConnectSeconds: 1, CallSeconds: 2}})
	if err != nil || u.State != store.UpstreamOK {
		t.Fatalf("Add() = %+v, %v", u, err)
	}
	a, b := r.agent(), r.agent()
	r.must(b, "hung__count", `{}`)
	var calls sync.WaitGroup
	began := time.Now()
	for range 100 {
		calls.Go(func() {
			_, err := r.try(a, "hung__hang", `{}`)
			if word := reason.Of(err).Word; word != reason.Timeout && word != reason.UpstreamUnavailable || !strings.Contains(reason.Of(err).Message, "127.0.0.1") && !strings.Contains(reason.Of(err).Message, "hung") {
				t.Errorf("call of the one that hangs = %v, want timeout, or busy, by name", err)
			}
		})
	}
	eventually(t, "calls to hang", func() bool { return hung.Runs("hang") >= 60 })
	listed := time.Now()
	r.tools()
	r.must(a, "well__echo", `{}`)
	if took := time.Since(listed); took > time.Second {
		t.Errorf("a list and a call beside one that hangs took %v, want no wait", took)
	}
	calls.Wait()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("100 calls of the one that hangs took %v, want them bounded", took)
	}
	if got, want := r.must(b, "hung__count", `{}`), upstreamtest.Text("2"); got != want {
		t.Errorf("the other agent's count = %s, want %s: a timeout evicted its session", got, want)
	}
}

// C13: the credential is refused.
func TestFieldC13ARefusedCredentialMakesNoStorm(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: "right"})
	r := one(t)
	u := r.add("demo", srv.URL, upstream.Header{Name: "Authorization", Value: "Bearer right"})
	a := r.agent()
	r.must(a, "demo__count", `{}`)
	if err := r.SetHeaders(t.Context(), r.owner, u.ID, []upstream.Header{{Name: "Authorization", Value: "Bearer wrong"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old session to end", func() bool { return srv.Sessions() == 0 })
	before := len(srv.Requests())
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := r.try(a, "demo__count", `{}`)
			assertRefused(t, "call", err, reason.UpstreamUnauthorized)
		})
	}
	all.Wait()
	if n := len(srv.Requests()) - before; n > 8 { // one to open, and the one that listens
		t.Errorf("requests for 50 calls that are refused = %d, want a few", n)
	}
	eventually(t, "the page to say so", func() bool {
		got := upstreamByName(t, r, "demo")
		return got.State == store.UpstreamFailing && got.LastErrorWord == "upstream_unauthorized"
	})
	if !r.tools()["demo__count"].Stale {
		eventually(t, "the tools to be stale", func() bool { return r.tools()["demo__count"].Stale })
	}
}

func upstreamByName(t testing.TB, r *replica, name string) (u store.Upstream) {
	t.Helper()
	if err := r.house.db.As(t.Context(), r.owner, func(tx *store.Tx) (err error) {
		u, err = tx.UpstreamByName(t.Context(), name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestADeadUpstreamIsTriedAgainAndComesBack(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("demo", srv.URL)
	a := r.agent()
	var arrived atomic.Int64
	srv.Script(func(w http.ResponseWriter, _ *http.Request, m upstreamtest.Message) bool {
		if m.Method == "initialize" {
			arrived.Add(1)
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	for range 200 {
		_, err := r.try(a, "demo__echo", `{}`)
		assertRefused(t, "call of a dead upstream", err, reason.UpstreamUnavailable)
	}
	if n := arrived.Load(); n > 20 {
		t.Errorf("attempts to open a session for 200 calls = %d, want a few", n)
	}
	srv.Script(nil)
	eventually(t, "the upstream to be tried again", func() bool {
		_, err := r.try(a, "demo__echo", `{}`)
		return err == nil
	})
	eventually(t, "the tools to be fresh", func() bool { return !r.tools()["demo__echo"].Stale })
}

// C09: one tells of a change, and one does not.
func TestFieldC09AChangeIsSeen(t *testing.T) {
	t.Parallel()
	loud := upstreamtest.Start(t, upstreamtest.Options{ListChanged: true})
	silent := upstreamtest.Start(t, upstreamtest.Options{})
	h := newHouse(t)
	r, other := h.replica(upstream.Config{ListEvery: 300 * time.Millisecond}), h.replica(upstream.Config{})
	r.add("loud", loud.URL)
	r.add("silent", silent.URL)
	a := r.agent()
	r.must(a, "silent__echo", `{}`)
	other.must(a, "loud__echo", `{}`) // it listens, with the usual time to live
	eventually(t, "somebody to listen", func() bool { return loud.Changed() > 0 })
	more := upstreamtest.Tool{Name: "more", Run: func(*upstreamtest.Call) string { return upstreamtest.Text("more") }}
	loud.SetTools(upstreamtest.Echo, more)
	silent.SetTools(upstreamtest.Echo, more)
	if loud.Changed() == 0 {
		t.Fatal("nobody listens any more")
	}
	for _, name := range []string{"loud", "silent"} {
		for _, at := range []*replica{r, other} {
			eventually(t, name+"'s new tool, and the one that is gone", func() bool {
				tools := at.tools()
				_, has := tools[name+"__more"]
				_, had := tools[name+"__count"]
				return has && !had
			})
		}
	}
	other.must(a, "loud__more", `{}`)
}

func TestSessionsEndWhenWhatTheyAreForDoes(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	h := newHouse(t)
	r := h.replica(upstream.Config{})
	u := r.add("demo", srv.URL)
	agent, _ := storetest.Agent(t, h.db, h.owner, "Worker")
	a := store.Caller{Org: h.owner.Org, User: h.owner.User, Agent: agent.ID, Role: h.owner.Role, Via: store.ViaBearer}
	r.must(a, "demo__count", `{}`)
	r.must(r.agent(), "demo__count", `{}`)
	eventually(t, "two sessions of agents", func() bool { return srv.Sessions() == 2 })
	revoke := func(fn func(*store.Tx) error) {
		t.Helper()
		if err := h.db.As(t.Context(), h.owner, fn); err != nil {
			t.Fatal(err)
		}
	}
	revoke(func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent.ID) })
	eventually(t, "the revoked agent's session to end", func() bool { return srv.Sessions() == 1 })
	revoke(func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) })
	eventually(t, "the revoked upstream's sessions to end", func() bool { return srv.Sessions() == 0 })
	if n := len(r.tools()); n != 0 {
		t.Errorf("tools after the upstream was revoked = %d, want none", n)
	}

	// A call that is under way ends with its upstream.
	hang := upstreamtest.Tool{Name: "hang", Run: func(c *upstreamtest.Call) string { <-c.Done(); return upstreamtest.Text("") }}
	slow := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{hang}})
	s := r.add("slow", slow.URL)
	ended := make(chan error, 1)
	go func() {
		_, err := r.try(r.agent(), "slow__hang", `{}`)
		ended <- err
	}()
	eventually(t, "the call to hang", func() bool { return slow.Runs("hang") == 1 })
	revoke(func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), s.ID) })
	select {
	case err := <-ended:
		assertRefused(t, "call of a revoked upstream", err, reason.Cancelled)
	case <-time.After(patience):
		t.Error("the call goes on after its upstream was revoked")
	}

	// So do all, when the gateway stops.
	last := upstreamtest.Start(t, upstreamtest.Options{})
	r.add("last", last.URL)
	r.must(r.agent(), "last__count", `{}`)
	r.stop()
	if n := last.Sessions(); n != 0 {
		t.Errorf("sessions after the gateway stopped = %d, want 0", n)
	}
}

// A gateway that stops while a session is being opened leaves none behind, though the server has it by then.
func TestAStopLeavesNoSessionThatIsBeingOpened(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("demo", srv.URL)
	eventually(t, "the session of the listing to end", func() bool { return srv.Sessions() == 0 })
	opening := make(chan struct{}, 8)
	srv.Script(func(_ http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if m.Method != "notifications/initialized" {
			return false
		}
		opening <- struct{}{}
		<-r.Context().Done()
		return true
	})
	called := make(chan error, 1)
	go func() {
		_, err := r.try(r.agent(), "demo__count", `{}`)
		called <- err
	}()
	<-opening
	<-opening // the watcher's
	r.stop()
	if n := srv.Sessions(); n != 0 {
		t.Errorf("sessions after the gateway stopped = %d, want 0", n)
	}
	if err := <-called; err == nil {
		t.Error("a call in a session that was never opened = nil, want an error")
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := newHouse(t).replica(upstream.Config{IdleAfter: 300 * time.Millisecond, ListEvery: 100 * time.Millisecond})
	r.add("demo", srv.URL)
	a := r.agent()
	r.must(a, "demo__count", `{}`)
	eventually(t, "idle sessions to end", func() bool { return srv.Sessions() == 0 })
	if got, want := r.must(a, "demo__count", `{}`), upstreamtest.Text("1"); got != want {
		t.Errorf("count in a new session = %s, want %s", got, want)
	}
}

// A call in steady state needs no database: the pool is closed while the bus goes on.
func TestCallsNeedNoDatabase(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	r.add("demo", srv.URL)
	a := r.agent()
	r.must(a, "demo__echo", `{}`)
	eventually(t, "the watcher to have begun", func() bool { return count(srv, "initialize") == 3 })
	eventually(t, "the view to be kept", func() bool { _, err := r.try(a, "demo__echo", `{}`); return err == nil && r.bus.Healthy() })
	r.db.Close()
	for n := range 100 {
		if _, err := r.try(a, "demo__echo", fmt.Sprintf(`{"n":%d}`, n)); err != nil {
			t.Fatalf("call %d without a database = %v, want a result", n, err)
		}
	}
}

func TestNobodyElseAddsOrListsUpstreams(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	u := r.add("demo", srv.URL)
	member := storetest.Member(t, r.house.db, r.owner, store.RoleMember)
	_, err := r.Add(t.Context(), member, upstream.Addition{Name: "other", URL: srv.URL})
	assertRefused(t, "Add() by a member", err, reason.Forbidden)
	assertRefused(t, "Refresh() by a member", r.Refresh(t.Context(), member, u.ID), reason.Forbidden)
	stranger := storetest.Organisation(t, r.house.db)
	assertRefused(t, "Refresh() by a stranger", r.Refresh(t.Context(), stranger, u.ID), reason.NotFoundWord)
	if list, err := r.Tools(t.Context(), stranger); err != nil || len(list) != 0 {
		t.Errorf("Tools() of a stranger = %v, %v, want none", list, err)
	}
	_, err = r.Run(t.Context(), catalog.Run{Caller: stranger, Tool: r.tools()["demo__echo"], Client: catalog.Nobody{}})
	assertRefused(t, "Run() by a stranger", err, reason.ToolNotFound)
	for what, in := range map[string]upstream.Addition{
		"reserved name":      {Name: "builtin", URL: srv.URL},
		"name in capitals":   {Name: "Demo", URL: srv.URL},
		"no address":         {Name: "a"},
		"scheme":             {Name: "a", URL: "ftp://example.com"},
		"password":           {Name: "a", URL: "https://u:p@example.com/mcp"},
		"secret in the URL":  {Name: "a", URL: "https://example.com/${TOKEN}"},
		"fragment":           {Name: "a", URL: "https://example.com/#x"},
		"header of ours":     {Name: "a", URL: srv.URL, Headers: []upstream.Header{{Name: "Mcp-Session-Id", Value: "x"}}},
		"header with a line": {Name: "a", URL: srv.URL, Headers: []upstream.Header{{Name: "X-A", Value: "a\r\nb: c"}}},
		"secret's name":      {Name: "a", URL: srv.URL, Headers: []upstream.Header{{Name: "X-A", Value: "${token}"}}},
		"cookie":             {Name: "a", URL: srv.URL, Headers: []upstream.Header{{Name: "Cookie", Value: "a=b"}}},
	} {
		_, err := r.Add(t.Context(), r.owner, in)
		assertRefused(t, "Add() with "+what, err, reason.InputInvalid)
	}
}

func TestAPrivateAddressNamesTheOperatorsSetting(t *testing.T) {
	t.Parallel()
	r := one(t)
	u := r.tryAdd("inside", "https://10.1.2.3/mcp")
	if u.LastErrorWord != "host_not_public" || !strings.Contains(u.LastError, "GRAFT_EGRESS_ALLOW") {
		t.Errorf("last error = %s: %s, want host_not_public and GRAFT_EGRESS_ALLOW", u.LastErrorWord, u.LastError)
	}
	if u = r.tryAdd("plain", "http://1.1.1.1/mcp"); !strings.Contains(u.LastError, "https only") || !strings.Contains(u.LastError, "GRAFT_EGRESS_ALLOW") {
		t.Errorf("last error = %s: %s, want https only and GRAFT_EGRESS_ALLOW", u.LastErrorWord, u.LastError)
	}
}

// twenty agents call in turns; each counts in its own session.
func interleave(t *testing.T, calls int) {
	srv := upstreamtest.Start(t, upstreamtest.Options{Forgetful: true})
	var opened sync.Map
	r := one(t)
	r.add("demo", srv.URL)
	const agents = 20
	tool := r.tools()["demo__count"]
	var all sync.WaitGroup
	for range agents {
		all.Go(func() {
			a := r.agent()
			for n := 1; n <= calls/agents; n++ {
				out, err := r.Run(context.WithoutCancel(t.Context()), catalog.Run{Caller: a, Tool: tool, Client: catalog.Nobody{}})
				if want := upstreamtest.Text(fmt.Sprint(n)); err != nil || string(out.Raw) != want {
					t.Errorf("call %d = %s, %v, want %s: state crossed agents, or a call was lost or made twice", n, out.Raw, err, want)
					return
				}
			}
			opened.Store(a.Agent, true)
		})
	}
	all.Wait()
	if got, most := srv.Sessions(), agents+2; got > most {
		t.Errorf("sessions of %d calls = %d, want at most %d", calls, got, most)
	}
}

func TestFiftyThousandCallsOfTwentyAgentsStayApart(t *testing.T) {
	t.Parallel()
	interleave(t, 50_000)
}

func TestACallHasTheTimeOfItsUpstream(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	r := one(t)
	if _, err := r.Add(t.Context(), r.owner, upstream.Addition{Name: "slow", URL: srv.URL, Settings: store.UpstreamSettings{ConnectSeconds: 5, CallSeconds: 90}}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.tools()["slow__echo"].Timeout, 95*time.Second; got != want {
		t.Errorf("timeout of a tool = %v, want %v: connecting, and the call", got, want)
	}
}

// Who adds an upstream finds its tools at once on the replica that added it: this one never hears the bus.
func TestWhatIsAddedIsThereAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	deaf, err := upstream.NewSource(upstream.Config{DB: h.db, Keys: h.keys, Client: newClient(t), Version: "test", Log: slog.New(slog.DiscardHandler), Healthy: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		if _, err := deaf.Tools(t.Context(), h.owner); err != nil { // remembered from now on
			t.Fatal(err)
		}
		in := upstream.Addition{Name: name, URL: upstreamtest.Start(t, upstreamtest.Options{}).URL}
		u, err := deaf.Add(t.Context(), h.owner, in)
		if err == nil {
			_, err = deaf.Try(t.Context(), h.owner, u.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		list, err := deaf.Tools(t.Context(), h.owner)
		if err != nil || !slices.ContainsFunc(list, func(tool catalog.Tool) bool { return tool.Vendor == name }) {
			t.Errorf("%d tools after %s was added, none of its own: %v", len(list), name, err)
		}
	}
}
