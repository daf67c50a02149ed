package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestAnEndedConnectionIsUnavailableOnce(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := openSingle(t, dsn)
	c := storetest.Organisation(t, db)
	killer := connect(t, storetest.Superuser(t, dsn))
	err := db.As(t.Context(), c, func(tx *store.Tx) error {
		run(t, killer, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'graft' AND datname = current_database()`)
		_, err := tx.Members(t.Context())
		return err
	})
	if !errors.Is(err, unavailable) {
		t.Errorf("As() = %v, want %v", err, unavailable)
	}
	if got := reason.Of(err); got.Word != reason.Unavailable {
		t.Errorf("reason.Of(As()) = %v, want %v", got, reason.Unavailable)
	}
	do(t, db, c, func(tx *store.Tx) error { _, err := tx.Members(t.Context()); return err })
}

func TestAnUnreachableDatabaseIsUnavailableUntilItIsBack(t *testing.T) {
	t.Parallel()
	line := newLine(t, storetest.PrivateURL(t))
	db := openSingle(t, line.dsn)
	c := storetest.Organisation(t, db)
	use := map[string]func(context.Context) error{
		"As":     func(ctx context.Context) error { return db.As(ctx, c, func(*store.Tx) error { return nil }) },
		"System": func(ctx context.Context) error { _, err := db.System().AnyUser(ctx); return err },
		"Ping":   db.Ping,
	}
	line.cut()
	for name, fn := range use {
		if err := fn(t.Context()); !errors.Is(err, unavailable) {
			t.Errorf("%s() on a line that is cut = %v, want %v", name, err, unavailable)
		}
	}
	line.restore(t)
	for name, fn := range use {
		if err := fn(t.Context()); err != nil {
			t.Errorf("%s() on a line that is back = %v, want nil", name, err)
		}
	}
	line.freeze()
	for name, fn := range use {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := fn(ctx); !errors.Is(err, unavailable) {
			t.Errorf("%s() on a line that is dead = %v, want %v", name, err, unavailable)
		}
		cancel()
	}
	line.cut()
	line.restore(t)
	for name, fn := range use {
		if err := fn(t.Context()); err != nil {
			t.Errorf("%s() on a line that is back again = %v, want nil", name, err)
		}
	}
}

// TestALoginThatIsRefusedIsUnavailable: whatever keeps us from a connection, the caller's token is not to blame.
func TestALoginThatIsRefusedIsUnavailable(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := openSingle(t, dsn)
	t.Cleanup(storetest.Outage(t, dsn))
	var err error
	for range 2 { // the first may still meet the connection that was ended
		err = db.Ping(t.Context())
	}
	if !errors.Is(err, unavailable) || sqlstate(err) != "55000" {
		t.Errorf("Ping() of a database that takes no connections = %v, want %v (SQLSTATE 55000)", err, unavailable)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://%zz": "read database url: ",
		"postgres://127.0.0.1:1/x?connect_timeout=5": "reach database: ",
	} {
		_, err := store.Open(t.Context(), store.Config{URL: dsn})
		if err == nil || err.Error()[:min(len(err.Error()), len(want))] != want {
			t.Errorf("Open(%q) = %v, want %q", dsn, err, want)
		}
	}
}

// A line is a way to the database that can be cut.
type line struct {
	dsn     string
	network string
	address string // of the database

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	frozen   chan struct{}
	pumps    sync.WaitGroup
}

func newLine(t *testing.T, dsn string) *line {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{}
	l.network, l.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	l.listen(t, storetest.Address(t))
	l.dsn = (&url.URL{Scheme: "postgres", User: url.User(cfg.User), Host: l.listener.Addr().String(), Path: cfg.Database, RawQuery: "sslmode=disable"}).String()
	t.Cleanup(func() {
		l.cut()
		l.pumps.Wait()
	})
	return l
}

func (l *line) listen(t *testing.T, address string) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.frozen = ln, make(chan struct{})
	l.pumps.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			l.connect(near)
		}
	})
}

// connect ties a connection to one of the database, unless the line is frozen: then nobody answers.
func (l *line) connect(near net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, near)
	frozen := l.frozen
	far, err := (&net.Dialer{}).DialContext(context.Background(), l.network, l.address)
	if err != nil {
		_ = near.Close()
		return
	}
	l.conns = append(l.conns, far)
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		l.pumps.Go(func() { pump(pair[0], pair[1], frozen) })
	}
}

// pump copies until either side ends, and swallows what comes once frozen is closed.
func pump(from, to net.Conn, frozen chan struct{}) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-frozen:
			if err != nil {
				return
			}
			continue
		default:
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// cut ends every connection and takes no new one.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// restore takes connections again.
func (l *line) restore(t *testing.T) {
	t.Helper()
	l.listen(t, l.listener.Addr().String())
}

// freeze keeps connections open and lets nothing through.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.frozen)
}
