package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// RenameUser gives a user another name.
func (s *System) RenameUser(ctx context.Context, user UserID, name string) error {
	if err := CheckName("name", name, 80); err != nil {
		return err
	}
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `UPDATE user_account SET name = @name WHERE id = @user`, pgx.StrictNamedArgs{"user": user, "name": name})
		return err
	})
}

// ChangePassword sets a user's password and ends their sessions but keep, of which it returns how many there were. It is
// set first, as UseLink does and for the same reason.
func (s *System) ChangePassword(ctx context.Context, user UserID, hash string, keep TokenHash) (ended int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if _, err := exec(ctx, tx, `UPDATE user_account SET password = @hash WHERE id = @user`, pgx.StrictNamedArgs{"user": user, "hash": hash}); err != nil {
			return err
		}
		ended, err = endOthers(ctx, tx, user, keep, s.db.Now())
		return err
	})
	return ended, err
}

// A WebSession is a browser that a user is signed in with.
type WebSession struct {
	Hash      []byte // of its cookie
	Data      []byte
	ExpiresAt time.Time
}

// WebSessions lists a user's browser sessions, the last used first.
func (s *System) WebSessions(ctx context.Context, user UserID) (list []WebSession, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		list, err = all[WebSession](ctx, tx, `
			SELECT hash, data, expires_at FROM web_session WHERE user_id = @user AND expires_at > @now ORDER BY expires_at DESC, hash`,
			pgx.StrictNamedArgs{"user": user, "now": s.db.Now()})
		return err
	})
	return list, err
}

// EndWebSession ends a user's session. One that is not there, or somebody else's, is reason.NotFound.
func (s *System) EndWebSession(ctx context.Context, user UserID, hash TokenHash) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `DELETE FROM web_session WHERE hash = @hash AND user_id = @user`, pgx.StrictNamedArgs{"hash": hash[:], "user": user})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// EndOtherWebSessions ends a user's sessions but keep, and returns how many there were.
func (s *System) EndOtherWebSessions(ctx context.Context, user UserID, keep TokenHash) (ended int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		ended, err = endOthers(ctx, tx, user, keep, s.db.Now())
		return err
	})
	return ended, err
}

// endOthers counts those that still went on.
func endOthers(ctx context.Context, tx pgx.Tx, user UserID, keep TokenHash, now time.Time) (int64, error) {
	return value[int64](ctx, tx, `
		WITH ended AS (DELETE FROM web_session WHERE user_id = @user AND hash <> @keep RETURNING expires_at)
		SELECT count(*) FROM ended WHERE expires_at > @now`, pgx.StrictNamedArgs{"user": user, "keep": keep[:], "now": now})
}
