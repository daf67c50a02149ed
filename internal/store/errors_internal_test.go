package store

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestTroubleOfTheDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"08006": true, "57P01": true, "57014": true, "40001": true, "40P01": true, "25006": true, "53100": true, "53200": true, "53300": true,
		"23505": false, "42601": false, "22P05": false, "42501": false,
	} {
		if got := IsUnavailable(unavailable(fmt.Errorf("query: %w", &pgconn.PgError{Code: code}))); got != want {
			t.Errorf("%s is unavailable: %v, want %v", code, got, want)
		}
	}
}
