package invoke

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

func newCall(r *runs, agent store.AgentID) *attempt {
	i := &Invoker{c: Config{Now: time.Now}, runs: r}
	return i.attempt(Call{Caller: store.Caller{Agent: agent}})
}

// A gateway that stops waits for its calls, cancels those that take too long, and is not held up by one that does not
// obey.
func TestStopIsNotHeldUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes    time.Duration
		obeys    bool
		left     int
		stopped  time.Duration
		cut      bool
		wantWord reason.Word
	}{
		"in time":        {takes: time.Second, stopped: time.Second},
		"too long":       {takes: time.Hour, obeys: true, stopped: 30 * time.Second, cut: true, wantWord: reason.Unavailable},
		"does not obey":  {takes: time.Hour, left: 1, stopped: 30*time.Second + cutTime, cut: true, wantWord: reason.Unavailable},
		"obeys too late": {takes: 40 * time.Second, stopped: 40 * time.Second, cut: true, wantWord: reason.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRuns()
				a := newCall(r, store.AgentID{})
				life, end, err := a.begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				release := make(chan struct{})
				defer close(release) // of what is left
				go func() {
					defer end()
					obeyed := life.Done()
					if !tt.obeys {
						obeyed = nil
					}
					select {
					case <-time.After(tt.takes):
					case <-release:
					case <-obeyed:
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				if left := r.stop(ctx); left != tt.left {
					t.Errorf("%d calls were left, want %d", left, tt.left)
				}
				if took := time.Since(began); took != tt.stopped {
					t.Errorf("it took %v to stop, want %v", took, tt.stopped)
				}
				var why *reason.Refusal
				if cut := errors.As(context.Cause(life), &why); cut != tt.cut || cut && why.Word != tt.wantWord {
					t.Errorf("the call ended for %v, want cut off %v", context.Cause(life), tt.cut)
				}
				if _, _, err := newCall(r, store.AgentID{}).begin(t.Context()); !errors.Is(err, &reason.Refusal{Word: reason.Unavailable}) {
					t.Errorf("a call after the stop = %v, want unavailable", err)
				}
			})
		})
	}
}

func TestARevokedAgentsCallsEnd(t *testing.T) {
	t.Parallel()
	r := newRuns()
	one, other := store.NewID[store.AgentKind](time.Now()), store.NewID[store.AgentKind](time.Now())
	ended, _, _ := newCall(r, one).begin(t.Context())
	lives, _, _ := newCall(r, other).begin(t.Context())
	r.endAgent(one)
	if ended.Err() == nil || lives.Err() != nil {
		t.Errorf("of the revoked agent %v, of another %v", ended.Err(), lives.Err())
	}
}

// While it is decided whether a call becomes a run, its end waits; a call that asked its client stays with it.
func TestACallBecomesARunOrItDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, run := range []bool{true, false} {
			k := newKept(newCall(newRuns(), store.AgentID{}), catalog.Nobody{}, false)
			if !k.offer() {
				t.Fatal("a call under way cannot become a run")
			}
			over := make(chan bool, 1)
			go func() { over <- k.over() }()
			synctest.Wait()
			if len(over) > 0 {
				t.Error("it ended before it was decided")
			}
			k.settle(run)
			if got := <-over; got != run {
				t.Errorf("it ended as a run: %v, want %v", got, run)
			}
			if k.offer() && !run {
				t.Error("a call that has ended became a run")
			}
		}
		k := newKept(newCall(newRuns(), store.AgentID{}), needy{}, true)
		if _, err := k.Ask(t.Context(), catalog.Question{Key: "q"}); err == nil {
			t.Fatal("Ask of a client that needs input answered")
		}
		if k.offer() {
			t.Error("a call that needs input became a run")
		}
	})
}

// A needy client answers a question only when the call is made again.
type needy struct{ catalog.Nobody }

func (needy) Ask(_ context.Context, q catalog.Question) (catalog.Answer, error) {
	return catalog.Answer{}, &catalog.NeedInput{Questions: []catalog.Question{q}}
}

// Lines of progress that could not be written down come before those that came since, and all of them are bounded.
func TestProgressIsBoundedAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	k := newKept(newCall(newRuns(), store.AgentID{}), nil, false)
	tell := func(from, to int) {
		for n := from; n < to; n++ {
			k.Progress(catalog.Progress{Done: float64(n), Message: strings.Repeat("x", 1<<10)})
			if len(k.progress) > 2*maxProgress {
				t.Fatalf("%d lines wait", len(k.progress))
			}
		}
	}
	tell(0, 1000)
	lines := k.takeProgress()
	tell(1000, 1010)
	k.putBack(lines)
	got := k.takeProgress()
	if len(got) != maxProgress || !strings.HasPrefix(got[0], "810 ") || !strings.HasPrefix(got[len(got)-1], fmt.Sprint(1009)) {
		t.Errorf("%d lines, %.8q to %.8q, want the last 200 in order", len(got), got[0], got[len(got)-1])
	}
}
