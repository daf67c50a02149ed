package bus_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// An ear is a listener that keeps what it hears.
type ear struct {
	events chan bus.Event
	resets chan struct{}
}

func newEar() *ear { return &ear{make(chan bus.Event, 4096), make(chan struct{}, 64)} }

func (e *ear) Hear(ev bus.Event) { e.events <- ev }
func (e *ear) Reset()            { e.resets <- struct{}{} }

// run runs a bus on dsn until the test ends.
func run(t *testing.T, dsn string) (*bus.Bus, *ear) {
	t.Helper()
	b, e := bus.New(bus.Config{URL: dsn, Log: slog.New(slog.DiscardHandler)}), newEar()
	b.Listen(e)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return b, e
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: still not so", what)
		}
	}
}

func get[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s came", what)
		panic("unreachable")
	}
}

func send(t *testing.T, dsn string, events ...bus.Event) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, e := range events {
		if _, err := conn.Exec(t.Context(), `SELECT pg_notify($1, $2)`, bus.Channel, e.Payload()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEventsReachEveryReplicaInOrder(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	one, first := run(t, dsn)
	two, second := run(t, dsn)
	until(t, "both healthy", func() bool { return one.Healthy() && two.Healthy() })
	var sent []bus.Event
	for i := range 200 {
		sent = append(sent, bus.Event{Topic: bus.Agent, ID: strconv.Itoa(i)})
	}
	send(t, dsn, sent...)
	for _, e := range []*ear{first, second} {
		for _, want := range sent {
			if got := get(t, "event", e.events); got != want {
				t.Fatalf("heard %v, want %v", got, want)
			}
		}
	}
}

// A bus is not healthy before it has heard itself, and tells its listeners to read anew first.
func TestResetComesBeforeHealth(t *testing.T) {
	t.Parallel()
	b := bus.New(bus.Config{URL: storetest.URL(t), Log: slog.New(slog.DiscardHandler)})
	if b.Healthy() {
		t.Error("a bus that does not run is healthy")
	}
	line := storetest.NewLine(t, storetest.URL(t))
	line.Stall()
	stuck, e := run(t, line.DSN)
	if stuck.Healthy() || len(e.resets) > 0 {
		t.Error("a bus without a connection is healthy, or reset its listeners")
	}
	line.Flow()
	get(t, "reset", e.resets)
	until(t, "healthy", stuck.Healthy)
}

func TestCutConnectionsAreMadeUpFor(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	line := storetest.NewLine(t, dsn)
	b, e := run(t, line.DSN)
	get(t, "reset", e.resets)
	for range 3 {
		until(t, "healthy", b.Healthy)
		line.Cut()
		get(t, "reset", e.resets) // whatever came in between is read anew
		until(t, "healthy again", b.Healthy)
		send(t, dsn, bus.Event{Topic: bus.List, ID: "after"})
		if got := get(t, "event", e.events); got.ID != "after" {
			t.Errorf("heard %v", got)
		}
	}
}

// Packets that are dropped without a word are the worst case: nothing fails, and nothing arrives.
func TestSilenceIsNoticed(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	line := storetest.NewLine(t, dsn)
	b, e := run(t, line.DSN)
	get(t, "reset", e.resets)
	until(t, "healthy", b.Healthy)
	line.Stall()
	stalled := time.Now()
	send(t, dsn, bus.Event{Topic: bus.Credential, ID: "missed"})
	until(t, "not healthy", func() bool { return !b.Healthy() })
	if took := time.Since(stalled); took > bus.Silence+time.Second {
		t.Errorf("silence was noticed after %v, want about %v", took, bus.Silence)
	}
	line.Flow()
	line.Cut()
	get(t, "reset", e.resets)
	until(t, "healthy again", b.Healthy)
}

// What was held up on the way is not taken for news: health counts from when a heartbeat was sent, and by the time it
// is back, what was sent meanwhile was heard or is read anew.
func TestLateHeartbeatsAreNotHealth(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	line := storetest.NewLine(t, dsn)
	b, e := run(t, line.DSN)
	get(t, "reset", e.resets)
	for range 3 {
		until(t, "healthy", b.Healthy)
		for len(e.events)+len(e.resets) > 0 {
			select {
			case <-e.events:
			case <-e.resets:
			}
		}
		line.Stall()
		send(t, dsn, bus.Event{Topic: bus.Credential, ID: "late"})
		until(t, "not healthy", func() bool { return !b.Healthy() })
		line.Flow() // everything held back arrives at once, and is old
		until(t, "healthy again", b.Healthy)
		if len(e.events)+len(e.resets) == 0 {
			t.Error("the bus is healthy and neither heard what was sent nor told anybody to read anew")
		}
	}
}

func BenchmarkHealthy(b *testing.B) {
	bb := bus.New(bus.Config{})
	for b.Loop() {
		if bb.Healthy() {
			b.Fatal("healthy")
		}
	}
}
