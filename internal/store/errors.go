package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/getgraft/graft/internal/reason"
)

// code is the SQLSTATE inside err, or "".
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// absent makes reason.NotFound of an err that says so in Postgres's words: no row; a reference to a row that is
// missing or foreign (23503, foreign_key_violation); or a text that no row holds, since Postgres stores neither NUL nor
// broken UTF-8 (22021, character_not_in_repertoire).
func absent(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return reason.NotFound
	}
	if c := code(err); c == "23503" || c == "22021" {
		return fmt.Errorf("%w (%w)", reason.NotFound, err)
	}
	return err
}

// unavailable marks an err that means "no database" as such, so that the edge answers 503 and never blames the
// caller's token. A refusal and the caller's own cancellation pass through.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if r := (*reason.Refusal)(nil); errors.As(err, &r) {
		return err
	}
	if !lost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", reason.Refuse(reason.Unavailable, "The database cannot be reached. Try again shortly."), err)
}

// lost reports whether err is of the database's state and not of the statement: no connection was had, for whatever
// reason; class 08; an administrator's shutdown (57P01 to 57P04) or a statement that took too long (57014); transactions
// that collided until the last try (40001, 40P01); a database that only reads, as after a failover (25006); one without
// room, memory or connections (class 53); or an error that Postgres did not send at all.
func lost(err error) bool {
	if connect := (*pgconn.ConnectError)(nil); errors.As(err, &connect) {
		return true
	}
	if c := code(err); c != "" {
		return slices.ContainsFunc(lostCodes, func(lost string) bool { return strings.HasPrefix(c, lost) })
	}
	return pgconn.SafeToRetry(err) || pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded) || isNet(err)
}

// lostCodes are beginnings of their SQLSTATEs.
var lostCodes = []string{"08", "53", "57P", "57014", "40001", "40P01", "25006"}

// isNet reports whether err came from the socket.
func isNet(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// IsAbsent reports whether err says that a row is missing or foreign.
func IsAbsent(err error) bool { return errors.Is(err, reason.NotFound) }

// IsUnavailable reports whether err says that the database cannot be reached.
func IsUnavailable(err error) bool {
	return errors.Is(err, &reason.Refusal{Word: reason.Unavailable})
}
