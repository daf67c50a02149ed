package oauth

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

func caller() store.Caller {
	now := time.Now()
	return store.Caller{
		Org: store.NewID[store.OrgKind](now), User: store.NewID[store.UserKind](now), Agent: store.NewID[store.AgentKind](now),
		Role: store.RoleMember, Via: store.ViaBearer,
	}
}

func memory(t testing.TB, healthy func() bool) *verified {
	t.Helper()
	v, err := newVerified(healthy, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// count asks count times and says how often the look-up was made.
func count(t *testing.T, v *verified, hash store.TokenHash, times int, found store.Caller, err error) int {
	t.Helper()
	asked := 0
	for range times {
		got, gotErr := v.resolve(t.Context(), hash, func(context.Context) (proven, error) {
			asked++
			return proven{Caller: found}, err
		})
		if got != found && err == nil || !errors.Is(gotErr, err) {
			t.Errorf("resolve = %v, %v; want %v, %v", got, gotErr, found, err)
		}
	}
	return asked
}

func TestWhatIsRememberedAndForgotten(t *testing.T) {
	t.Parallel()
	var cut atomic.Bool
	v := memory(t, func() bool { return !cut.Load() })
	c, other := caller(), caller()
	hash, otherHash := store.HashToken("a"), store.HashToken("b")
	step := func(name string, want int) {
		t.Helper()
		if got := count(t, v, hash, 5, c, nil); got != want {
			t.Errorf("%s: asked %d times of 5, want %d", name, got, want)
		}
	}
	step("first", 1)
	count(t, v, otherHash, 1, other, nil)
	step("remembered", 0)
	v.Hear(bus.Event{Topic: bus.List, ID: c.Agent.String()})
	step("after its list moved", 0)
	v.Hear(bus.Event{Topic: bus.Credential, ID: other.Agent.String()})
	step("after another agent's token ended", 0)
	v.Hear(bus.Event{Topic: bus.Credential, ID: c.Agent.String()})
	step("after its own ended", 1)
	v.Hear(bus.Event{Topic: bus.Member, ID: c.Org.String()})
	step("after a member of its organisation left", 1)
	v.Reset()
	step("after a reset", 1)
	cut.Store(true)
	step("while the bus is cut", 5)
	cut.Store(false)
	step("once it is back", 0)
	if got := count(t, v, store.HashToken("unknown"), 3, store.Caller{}, errors.New("not found")); got != 3 {
		t.Errorf("a failure was remembered: asked %d times of 3", got)
	}
}

// What is nobody's is remembered as such, so that a client that goes on with an ended token costs nothing.
func TestUnknownTokensAreRememberedToo(t *testing.T) {
	t.Parallel()
	v := memory(t, func() bool { return true })
	if got := count(t, v, store.HashToken("ended"), 5, store.Caller{}, reason.NotFound); got != 1 {
		t.Errorf("asked %d times of 5, want 1", got)
	}
}

// A look-up that was under way while something ended may have read the past: it is not remembered.
func TestALookUpDuringARevocationIsNotKept(t *testing.T) {
	t.Parallel()
	for name, hear := range map[string]func(*verified, store.Caller){
		"credential": func(v *verified, c store.Caller) { v.Hear(bus.Event{Topic: bus.Credential, ID: c.Agent.String()}) },
		"member":     func(v *verified, c store.Caller) { v.Hear(bus.Event{Topic: bus.Member, ID: c.Org.String()}) },
		"reset":      func(v *verified, _ store.Caller) { v.Reset() },
	} {
		v, c, hash := memory(t, func() bool { return true }), caller(), store.HashToken(name)
		_, err := v.resolve(t.Context(), hash, func(context.Context) (proven, error) {
			hear(v, c)
			return proven{Caller: c}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if asked := count(t, v, hash, 1, c, nil); asked != 1 {
			t.Errorf("%s: what was read before it is remembered", name)
		}
	}
}

// Who asks after a revocation does not join a look-up that began before it, and what that finds is not kept.
func TestNobodyJoinsALookUpOfThePast(t *testing.T) {
	t.Parallel()
	v, c, hash := memory(t, func() bool { return true }), caller(), store.HashToken("x")
	reading, release := make(chan struct{}), make(chan struct{})
	var past sync.WaitGroup
	past.Go(func() {
		_, _ = v.resolve(t.Context(), hash, func(context.Context) (proven, error) {
			close(reading)
			<-release
			return proven{Caller: c}, nil // what was so before the revocation
		})
	})
	<-reading
	v.Hear(bus.Event{Topic: bus.Revoked, ID: c.Agent.String()})
	if _, err := v.resolve(t.Context(), hash, func(context.Context) (proven, error) { return proven{}, reason.NotFound }); !errors.Is(err, reason.NotFound) {
		t.Errorf("after the revocation resolve = %v, want not found", err)
	}
	close(release)
	past.Wait()
	if _, err := v.resolve(t.Context(), hash, func(context.Context) (proven, error) { return proven{}, reason.NotFound }); !errors.Is(err, reason.NotFound) {
		t.Errorf("once the old look-up is done resolve = %v, want not found", err)
	}
}

// Many who want to know the same at once cause one look-up, and one of them leaving spoils it for nobody.
func TestOneLookUpForAll(t *testing.T) {
	t.Parallel()
	v, c, hash := memory(t, func() bool { return true }), caller(), store.HashToken("x")
	var asked atomic.Int64
	entered, release := make(chan struct{}, 64), make(chan struct{})
	ask := func(ctx context.Context) (proven, error) {
		asked.Add(1)
		entered <- struct{}{}
		<-release
		return proven{Caller: c}, ctx.Err()
	}
	first, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _ = v.resolve(first, hash, ask) }) // it leaves
	<-entered
	for range 32 {
		all.Go(func() {
			if got, err := v.resolve(t.Context(), hash, ask); err != nil || got != c {
				t.Errorf("resolve = %v, %v", got, err)
			}
		})
	}
	leave()
	close(release)
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want 1", n)
	}
}

// BenchmarkVerify is the way of every request: the header, the hash, the memory.
func BenchmarkVerify(b *testing.B) {
	v := &Verifier{verified: memory(b, func() bool { return true })}
	token, hash := store.NewToken(store.StaticTokenPrefix)
	c := caller()
	if _, err := v.resolve(b.Context(), hash, func(context.Context) (proven, error) { return proven{Caller: c}, nil }); err != nil {
		b.Fatal(err)
	}
	h := http.Header{"Authorization": {"Bearer " + token}}
	b.ReportAllocs()
	for b.Loop() {
		if got, err := v.Verify(b.Context(), h); err != nil || got != c {
			b.Fatal(got, err)
		}
	}
}

// BenchmarkVerifyAccess is the same for an access token, whose end is looked at each time.
func BenchmarkVerifyAccess(b *testing.B) {
	v := &Verifier{verified: memory(b, func() bool { return true })}
	token := strings.Repeat("a", 36) + "." + strings.Repeat("b", 480) + "." + strings.Repeat("c", 86) // as long as ours are
	c := caller()
	c.Grant = store.NewID[store.GrantKind](time.Now())
	if _, err := v.resolve(b.Context(), store.HashToken(token), func(context.Context) (proven, error) {
		return proven{c, time.Now().Add(time.Hour)}, nil
	}); err != nil {
		b.Fatal(err)
	}
	h := http.Header{"Authorization": {"Bearer " + token}}
	b.ReportAllocs()
	for b.Loop() {
		if got, err := v.Verify(b.Context(), h); err != nil || got != c {
			b.Fatal(got, err)
		}
	}
}

// What is forgotten leaves nothing in the index, or it would grow with every token that there ever was.
func TestTheIndexHasWhatIsKnown(t *testing.T) {
	t.Parallel()
	v := memory(t, func() bool { return true })
	c, other := caller(), caller()
	other.Org = c.Org
	for _, step := range []struct {
		end  func()
		left int
	}{
		{func() {}, 3},
		{func() { v.Hear(bus.Event{Topic: bus.Credential, ID: c.Agent.String()}) }, 1},
		{func() { v.Hear(bus.Event{Topic: bus.Member, ID: c.Org.String()}) }, 0},
		{v.Reset, 0},
		{func() { v.Hear(bus.Event{Topic: bus.Revoked, ID: "none"}) }, 3},
	} {
		count(t, v, store.HashToken("one"), 1, c, nil)
		count(t, v, store.HashToken("two"), 1, c, nil)
		count(t, v, store.HashToken("three"), 1, other, nil)
		step.end()
		var agents, orgs int
		for _, hashes := range v.byAgent {
			agents += len(hashes)
		}
		for _, hashes := range v.byOrg {
			orgs += len(hashes)
		}
		if known := v.known.Len(); known != step.left || agents != known || orgs != known || len(v.byAgent) > 2 || len(v.byOrg) > 1 {
			t.Errorf("%d are known, %d by agent and %d by organisation, want %d", known, agents, orgs, step.left)
		}
	}
}

// BenchmarkHear is what each token that ends costs every request, which waits for it: with as many known as ever are.
func BenchmarkHear(b *testing.B) {
	v := memory(b, func() bool { return true })
	var some store.Caller
	for n := range maxVerified {
		some = caller()
		v.keep(store.HashToken(strconv.Itoa(n)), proven{Caller: some}, nil, 0)
	}
	e := bus.Event{Topic: bus.Credential, ID: some.Agent.String()}
	hash := store.HashToken("again")
	for b.Loop() {
		v.keep(hash, proven{Caller: some}, nil, v.moved)
		v.Hear(e)
	}
}
