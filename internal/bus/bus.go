package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Channel is the name that every replica listens on.
const Channel = "graft"

const (
	// Beat is the pause between heartbeats.
	Beat = 250 * time.Millisecond
	// Silence is how long nothing may be heard before the bus counts as cut.
	Silence = 750 * time.Millisecond
	// connectTimeout bounds one attempt to connect, and one heartbeat.
	connectTimeout = 2 * time.Second
)

// A Topic is what an event is about.
type Topic string

// The topics.
const (
	beat Topic = "beat" // id: the replica's own, a dot, and when it was sent on that replica's clock

	// Agent: what a replica keeps of the agent moved, other than its list. id: the agent.
	Agent Topic = "agent"
	// List: the agent's list of tools moved. id: the agent.
	List Topic = "list"
	// Credential: a token of the agent ended, and the agent goes on with another. id: the agent.
	Credential Topic = "credential"
	// Revoked: the agent ended, and with it everything it holds. id: the agent.
	Revoked Topic = "revoked"
	// Session: the session was ended. id: the session.
	Session Topic = "session"
	// Member: somebody is no longer a member, or has another role. id: the organisation.
	Member Topic = "member"
	// Tools: the tools of the organisation moved: one came, went, or changed. id: the organisation.
	Tools Topic = "tools"
	// Ask: an ask was answered, withdrawn, or ran out. id: the ask.
	Ask Topic = "ask"
	// Run: a run ended, or is to end. id: the run.
	Run Topic = "run"
	// Message: a message waits for a request of the session. id: the session.
	Message Topic = "message"
)

// An Event says that something moved.
type Event struct {
	Topic Topic
	ID    string
}

// Payload is the event as it travels.
func (e Event) Payload() string { return string(e.Topic) + " " + e.ID }

// A Listener hears events. Both methods return at once.
type Listener interface {
	// Hear is told one event.
	Hear(Event)
	// Reset says that events may have been missed.
	Reset()
}

// Config is what a Bus needs.
type Config struct {
	// URL is a direct connection to the database: LISTEN through a transaction pooler hears nothing.
	URL string
	Log *slog.Logger
}

// A Bus hears what happens on other replicas. Run must run; until it has heard itself the bus is not healthy.
type Bus struct {
	c         Config
	self      string // id of this replica's heartbeats
	mu        sync.Mutex
	listeners []Listener
	born      time.Time
	heard     atomic.Int64 // when the heartbeat that last came back was sent, since born; 0: none since the last reset
}

// New makes a Bus that listens once Run runs.
func New(c Config) *Bus {
	return &Bus{c: c, self: fmt.Sprintf("%016x", rand.Uint64()), born: time.Now()}
}

// Listen adds a listener. It is called before Run.
func (b *Bus) Listen(l Listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(b.listeners, l)
}

// Healthy reports whether what was heard can be relied on: everything that was sent until Silence ago has arrived.
// Postgres delivers in the order of commits, so what was committed before a heartbeat was sent has come before it.
func (b *Bus) Healthy() bool {
	heard := time.Duration(b.heard.Load())
	return heard != 0 && time.Since(b.born)-heard < Silence
}

// Run listens until ctx ends, and connects again whenever the connection is lost or silent.
func (b *Bus) Run(ctx context.Context) {
	for wait := time.Duration(0); ; wait = min(max(2*wait, 50*time.Millisecond), 2*time.Second) {
		if !sleep(ctx, wait) {
			return
		}
		began := time.Now()
		err := b.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			wait = 0
		}
		b.c.Log.WarnContext(ctx, "bus cut", slog.Any("err", err))
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// errSilent is a connection that is up and delivers nothing.
var errSilent = errors.New("nothing heard")

// listen connects, resets the listeners, and hears until something goes wrong.
func (b *Bus) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer b.close(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+Channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// From here on nothing is missed; what came before is made up for.
	b.reset()

	beats := make(chan struct{})
	go func() {
		defer close(beats)
		cancel(b.beat(ctx))
	}()
	defer func() { <-beats }()
	defer cancel(nil)
	for {
		wait, stop := context.WithTimeout(ctx, Silence)
		n, err := conn.WaitForNotification(wait)
		stop()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if wait.Err() != nil {
				return errSilent
			}
			return err
		}
		topic, id, _ := strings.Cut(n.Payload, " ")
		b.hear(Event{Topic(topic), id})
	}
}

func (b *Bus) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cfg, err := pgx.ParseConfig(b.c.URL)
	if err != nil {
		return nil, fmt.Errorf("read database url: %w", err)
	}
	cfg.RuntimeParams["application_name"] = "graft bus"
	return pgx.ConnectConfig(ctx, cfg)
}

// close lets a connection go, also one whose other end is not there any more.
func (b *Bus) close(conn *pgx.Conn) {
	b.heard.Store(0)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = conn.Close(ctx)
}

// reset tells every listener that events may have been missed. The bus is healthy once its own heartbeat has come
// back after that.
func (b *Bus) reset() {
	b.heard.Store(0)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.listeners {
		l.Reset()
	}
}

func (b *Bus) hear(e Event) {
	if e.Topic == beat {
		if sent, ok := strings.CutPrefix(e.ID, b.self+"."); ok {
			if ns, err := strconv.ParseInt(sent, 10, 64); err == nil {
				b.heard.Store(ns)
			}
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.listeners {
		l.Hear(e)
	}
}

// beat sends this replica's heartbeats on a second connection, so that a heartbeat that comes back has gone the whole
// way through the database.
func (b *Bus) beat(ctx context.Context) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(late)
	}()
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	for {
		if err := b.notify(ctx, conn, Event{beat, b.self + "." + strconv.FormatInt(int64(time.Since(b.born)), 10)}); err != nil {
			return fmt.Errorf("send heartbeat: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (b *Bus) notify(ctx context.Context, conn *pgx.Conn, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, `SELECT pg_notify($1, $2)`, Channel, e.Payload())
	return err
}
