package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Lock keeps everybody from a table of dsn's database until unlock is called.
func Lock(t testing.TB, dsn, table string) (unlock func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = conn.Close(ctx) })
	t.Cleanup(unlock)
	if _, err := conn.Exec(ctx, `BEGIN; LOCK TABLE `+pgx.Identifier{table}.Sanitize()+` IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	return unlock
}
