package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Holders are the tables of dsn's database in which a text stands in clear, in any column, as text or as bytes.
func Holders(t testing.TB, dsn, text string) (found []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	list, err := conn.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(list, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var n int
		sql := fmt.Sprintf(`
			SELECT count(*) FROM %s t
			WHERE position($1::text IN t::text) > 0 OR position(encode(convert_to($1::text, 'UTF8'), 'hex') IN t::text) > 0`,
			pgx.Identifier{table}.Sanitize())
		if err := conn.QueryRow(t.Context(), sql, text).Scan(&n); err != nil {
			t.Fatalf("look through %s: %v", table, err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}
