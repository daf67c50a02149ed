package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tamper runs a statement on dsn's database as the cluster's superuser, whom neither row-level security nor a grant
// binds: what somebody could do who took the database over. It says how many rows that touched.
func Tamper(t testing.TB, dsn, sql string, args ...any) int64 {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	tag, err := conn.Exec(ctx, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// Denied reports whether one of the gateway's roles lacks the right to run a statement. What it may run is undone.
func Denied(t testing.TB, dsn, role, sql string) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; SET LOCAL ROLE `+pgx.Identifier{role}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), sql)
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501" // insufficient_privilege
}
