package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// in runs fn as c and returns its result.
func in[T any](t *testing.T, db *store.DB, c store.Caller, fn func(*store.Tx) (T, error)) (v T, err error) {
	t.Helper()
	err = db.As(t.Context(), c, func(tx *store.Tx) (err error) {
		v, err = fn(tx)
		return err
	})
	return v, err
}

// must runs fn as c; its error ends the test.
func must[T any](t *testing.T, db *store.DB, c store.Caller, fn func(*store.Tx) (T, error)) T {
	t.Helper()
	v, err := in(t, db, c, fn)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// do runs fn as c; its error ends the test.
func do(t *testing.T, db *store.DB, c store.Caller, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.As(t.Context(), c, fn); err != nil {
		t.Fatal(err)
	}
}

// bearer is what a token of the agent comes in as.
func bearer(maker store.Caller, a store.Agent) store.Caller {
	return store.Caller{Org: maker.Org, User: a.UserID, Agent: a.ID, Role: maker.Role, Via: store.ViaBearer}
}

// clock is a time that moves when it is told to.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	var c clock
	c.nanos.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	return &c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// connect opens a connection that ends with the test and goes around the store.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// run executes statements one after the other.
func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// number is the answer to a question about a count.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// sqlstate is the code Postgres gave err, or "".
func sqlstate(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// eventually waits until done says so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatalf("waited 20 s for: %s", what)
		}
	}
}
