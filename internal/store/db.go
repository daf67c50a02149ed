package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is the database. It has no method that takes SQL.
type DB struct {
	pool      *pgxpool.Pool
	writer    *pgxpool.Pool // the audit log's alone: whoever takes all of pool stops no call
	now       func() time.Time
	insertJob JobInserter // nil until InsertJobsWith
}

// Config says how to reach the database.
type Config struct {
	// URL is a postgres:// URL or a keyword string, as pgx takes it. Required.
	URL string
	// MaxConns bounds the pool; 0 means 16. The audit log's writer has two more.
	MaxConns int32
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// writerConns is how many connections the audit log's writer has: one, and one in place of that while it is cut off.
const writerConns = 2

// Open makes a pool and reaches the database once.
func Open(ctx context.Context, c Config) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("read database url: %w", err)
	}
	cfg.MaxConns = 16
	if c.MaxConns > 0 {
		cfg.MaxConns = c.MaxConns
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "5000"
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "10000"
	cfg.ConnConfig.RuntimeParams["application_name"] = "graft"
	apart := cfg.Copy()
	apart.MaxConns = writerConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach database: %w", err)
	}
	writer, err := pgxpool.NewWithConfig(ctx, apart) // connects when it is first used
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	return &DB{pool: pool, writer: writer, now: c.Now}, nil
}

// Close waits for what is running and closes the pools.
func (db *DB) Close() {
	db.pool.Close()
	db.writer.Close()
}

// Now is the clock that stored times come from, cut to what Postgres keeps.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Microsecond) }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return unavailable(db.pool.Ping(ctx)) }

// A Tx is one transaction of one Caller. Every query on tenant data is a method of it.
type Tx struct {
	tx        pgx.Tx
	caller    Caller
	now       time.Time
	insertJob JobInserter
}

// Caller is who the transaction acts for.
func (tx *Tx) Caller() Caller { return tx.caller }

// As runs fn in a transaction that sees c's organisation alone, and commits if fn returns nil. A serialization
// failure runs fn again, so fn has no effect outside SQL. An unreachable database is reason.Unavailable.
func (db *DB) As(ctx context.Context, c Caller, fn func(*Tx) error) error {
	if err := c.check(); err != nil {
		return err
	}
	begin := "BEGIN; SET LOCAL ROLE graft_app; SET LOCAL graft.org = '" + c.Org.hex() + "'"
	return db.run(ctx, begin, func(tx pgx.Tx) error { return fn(&Tx{tx, c, db.Now(), db.insertJob}) })
}

// tries bounds how often a closure runs when transactions collide.
const tries = 4

func (db *DB) run(ctx context.Context, begin string, fn func(pgx.Tx) error) error {
	return db.runIn(ctx, db.pool, begin, fn)
}

func (db *DB) runIn(ctx context.Context, pool *pgxpool.Pool, begin string, fn func(pgx.Tx) error) error {
	return again(ctx, func() error { return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{BeginQuery: begin}, fn) })
}

// act is As with one statement, in one round trip: it says how many rows that touched. What is sent before one Sync is one
// transaction (PostgreSQL's protocol, "Pipelining"), which needs no BEGIN and COMMIT.
func (db *DB) act(ctx context.Context, c Caller, sql string, args pgx.StrictNamedArgs) (rows int64, err error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	err = again(ctx, func() error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('role', 'graft_app', true), set_config('graft.org', @org, true)`, pgx.StrictNamedArgs{"org": c.Org.hex()})
		b.Queue(sql, args).Exec(func(tag pgconn.CommandTag) error {
			rows = tag.RowsAffected()
			return nil
		})
		// The pool drops a connection on which the batch failed half way, and Postgres its transaction.
		return absent(db.pool.SendBatch(ctx, &b).Close())
	})
	return rows, err
}

// again runs a transaction until it did not collide with another.
func again(ctx context.Context, transaction func() error) error {
	for n := 1; ; n++ {
		err := transaction()
		if c := code(err); n == tries || c != "40001" && c != "40P01" {
			return unavailable(err)
		}
		if err := pause(ctx, n); err != nil {
			return unavailable(err)
		}
	}
}

// pause waits a random while, longer after each try: two transactions that collided and begin again at once collide again.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(rand.N(time.Duration(n) * 20 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// all collects every row into T by column name: a column without a field, or a field without a column, is an error.
func all[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.StrictNamedArgs) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	return list, absent(err)
}

// one collects exactly one row; none is reason.NotFound.
func one[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.StrictNamedArgs) (T, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	return v, absent(err)
}

// value collects one row of one column; none is reason.NotFound.
func value[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.StrictNamedArgs) (T, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	return v, absent(err)
}

// exec runs sql and says how many rows it touched. A row that refers to one that is missing or foreign is
// reason.NotFound.
func exec(ctx context.Context, tx pgx.Tx, sql string, args pgx.StrictNamedArgs) (int64, error) {
	tag, err := tx.Exec(ctx, sql, args)
	return tag.RowsAffected(), absent(err)
}
