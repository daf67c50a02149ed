package mcp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// list_changed goes out at once, and then at most once at the end of each window, however often the list moves.
func TestListChangedIsSentAtOnceAndOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ss := newStreams()
		c := store.Caller{Agent: store.NewID[store.AgentKind](time.Now())}
		st := newStream(c, store.SessionID{}, listChangedMessage)
		other := newStream(store.Caller{Agent: store.NewID[store.AgentKind](time.Now())}, store.SessionID{}, listChangedMessage)
		for _, st := range []*stream{st, other} {
			if err := ss.add(st); err != nil {
				t.Fatal(err)
			}
		}
		told := func() int {
			synctest.Wait()
			n := 0
			for {
				select {
				case <-st.out:
					n++
				default:
					return n
				}
			}
		}
		for _, step := range []struct {
			name   string
			moves  int
			passes time.Duration
			want   int
		}{
			{"the first time", 1, 0, 1},
			{"again within the window", 5, time.Second, 0},
			{"at the end of the window", 0, time.Second, 1},
			{"within the next window", 3, 1900 * time.Millisecond, 0},
			{"at its end", 0, 100 * time.Millisecond, 1},
			{"nothing moved", 0, time.Minute, 0},
			{"after a quiet time, at once", 1, 0, 1},
		} {
			for range step.moves {
				ss.listChanged(c.Agent)
			}
			<-time.After(step.passes)
			if got := told(); got != step.want {
				t.Errorf("%s: told %d times, want %d", step.name, got, step.want)
			}
		}
		if len(other.out) != 0 {
			t.Error("another agent was told")
		}
		// A stream that closes inside a window leaves nothing behind.
		ss.listChanged(c.Agent)
		ss.remove(st)
		<-time.After(time.Minute)
		if len(ss.of) != 1 || ss.n != 1 {
			t.Errorf("%d agents and %d streams are kept, want the other's", len(ss.of), ss.n)
		}
	})
}

// A reader that does not read costs a bounded buffer, and nobody waits for it.
func TestSlowReadersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ss := newStreams()
		st := newStream(store.Caller{Agent: store.NewID[store.AgentKind](time.Now())}, store.SessionID{}, listChangedMessage)
		if err := ss.add(st); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			ss.listChanged(st.caller.Agent)
			<-time.After(listWindow)
		}
		if len(st.out) != streamBuffer {
			t.Errorf("%d events wait, want the buffer's %d", len(st.out), streamBuffer)
		}
	})
}
