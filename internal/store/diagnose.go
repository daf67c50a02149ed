package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckURL reports whether url can be read as the address of a database. The error holds no part of url: where one
// cannot be read, its password may be anywhere.
func CheckURL(url string) error {
	_, err := pgxpool.ParseConfig(url)
	if err == nil {
		return nil
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return errors.New("names a file of keys or certificates that cannot be read")
	}
	return errors.New("cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in the password, and so on")
}

// Unreached is one line, without a password, that says where no connection was had and why. ok is false where err is
// of anything else.
func Unreached(err error) (line string, ok bool) {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return "", false
	}
	at := failed.Config.Host
	if !filepath.IsAbs(at) { // a unix socket's folder is
		at = net.JoinHostPort(at, strconv.Itoa(int(failed.Config.Port)))
	}
	return fmt.Sprintf("cannot reach the database at %s: %s", at, causeOf(failed)), true
}

// causeOf is what the server said, else what the network did, else the last that was tried.
func causeOf(err *pgconn.ConnectError) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Message
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	lines := strings.Split(err.Unwrap().Error(), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// A Diagnosis is what an operator wants to know of a database.
type Diagnosis struct {
	Version   int      // of Postgres, as in server_version_num: 150018 is 15.18
	Login     string   // the role that connections log in as
	Superuser bool     // whether it is a superuser, or bypasses row-level security
	Missing   []string // of our three roles, those that the login cannot take on
	Now       time.Time
}

// Diagnose asks the database about itself, outside any tenant.
func (db *DB) Diagnose(ctx context.Context) (d Diagnosis, err error) {
	err = db.run(ctx, "BEGIN READ ONLY", func(tx pgx.Tx) (err error) {
		d, err = one[Diagnosis](ctx, tx, `
			SELECT current_setting('server_version_num')::int AS version, current_user::text AS login,
			       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS superuser,
			       ARRAY(SELECT r FROM unnest(ARRAY['graft_owner', 'graft_app', 'graft_system']) WITH ORDINALITY AS roles (r, n)
			             WHERE NOT EXISTS (SELECT FROM pg_roles p WHERE p.rolname = r AND pg_has_role(current_user, p.oid,
			                 CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END))
			             ORDER BY n) AS missing,
			       clock_timestamp() AS now`, nil)
		return err
	})
	return d, err
}

// errProved ends the transaction of ProveTenancy, which never commits.
var errProved = errors.New("proved")

// ProveTenancy makes two organisations and a foreign row, looks from the one for the other's, and rolls all of it
// back. An error says that this database does not keep tenants apart, whatever the login may do.
func (db *DB) ProveTenancy(ctx context.Context) error {
	err := db.run(ctx, "BEGIN; SET LOCAL ROLE graft_system", func(tx pgx.Tx) error {
		now := db.Now()
		mine, theirs := NewID[OrgKind](now), NewID[OrgKind](now)
		user := NewID[UserKind](now)
		for _, org := range []OrgID{mine, theirs} {
			if _, err := exec(ctx, tx, `INSERT INTO organisation (id, name, created_at) VALUES (@id, @name, @now)`,
				pgx.StrictNamedArgs{"id": org, "name": "proof " + org.String(), "now": now}); err != nil {
				return err
			}
		}
		if _, err := exec(ctx, tx, `INSERT INTO user_account (id, email, created_at) VALUES (@id, @email, @now)`,
			pgx.StrictNamedArgs{"id": user, "email": user.String() + "@proof.invalid", "now": now}); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `INSERT INTO member (org_id, user_id, role, created_at) VALUES (@org, @user, 'owner', @now)`,
			pgx.StrictNamedArgs{"org": theirs, "user": user, "now": now}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL ROLE graft_app`); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `SELECT set_config('graft.org', @org, true)`, pgx.StrictNamedArgs{"org": mine.hex()}); err != nil {
			return err
		}
		seen, err := value[int](ctx, tx, `
			SELECT (SELECT count(*) FROM organisation WHERE id <> @mine)
			     + (SELECT count(*) FROM member)
			     + (SELECT count(*) FROM user_account)`, pgx.StrictNamedArgs{"mine": mine})
		if err != nil {
			return err
		}
		if seen != 0 {
			return fmt.Errorf("a transaction of one organisation sees %d rows of others", seen)
		}
		return errProved
	})
	if errors.Is(err, errProved) {
		return nil
	}
	return err
}
