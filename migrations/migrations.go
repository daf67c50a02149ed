package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files holds the SQL, as it is embedded in the binary.
//
//go:embed *.sql
var Files embed.FS

// Up makes the roles where they are missing and runs the migrations that url's database lacks. Any number of
// processes may call it at once; one works, the others wait and find nothing to do.
func Up(ctx context.Context, url string, log *slog.Logger) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database url: %w", err)
	}
	if err := ensureRoles(ctx, cfg); err != nil {
		return fmt.Errorf("make database roles: %w", err)
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(asOwner))
	defer func() { _ = db.Close() }()
	p, err := provider(cfg, db)
	if err != nil {
		return err
	}
	done, err := p.Up(ctx)
	for _, r := range done {
		log.InfoContext(ctx, "migrated", slog.Int64("version", r.Source.Version), slog.Duration("took", r.Duration))
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		return fmt.Errorf("migrate: a table is in use by a long transaction, try again later: %w", err)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// asOwner is what a connection does first.
func asOwner(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SET ROLE graft_owner; SET lock_timeout = '5s'`)
	return err
}

// provider knows every migration, in SQL and in Go.
func provider(cfg *pgx.ConnConfig, db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // a look every second, for five minutes
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, Files, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(riverUp(cfg)))
}

// Latest is the version of the newest SQL file: the schema this binary needs. No migration in Go is the newest.
func Latest() int64 {
	names, err := fs.Glob(Files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0
	}
	number, _, _ := strings.Cut(names[len(names)-1], "_")
	v, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// roles is safe to run again and again, and asks for no right that it does not need: where an administrator made
// the roles, the login need not be able to. Since version 16 a role can be another's member without the right to
// take it on, as a role is of those it made.
const roles = `
DO $$
DECLARE
  r text;
  taking_on text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
  FOREACH r IN ARRAY ARRAY['graft_owner', 'graft_app', 'graft_system'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', r);
    END IF;
    IF NOT pg_has_role(current_user, r, taking_on) THEN
      EXECUTE format('GRANT %I TO CURRENT_USER', r);
    END IF;
  END LOOP;
  IF NOT has_schema_privilege('graft_owner', 'public', 'CREATE') THEN
    GRANT USAGE, CREATE ON SCHEMA public TO graft_owner;
  END IF;
  IF NOT has_schema_privilege('graft_app', 'public', 'USAGE') OR NOT has_schema_privilege('graft_system', 'public', 'USAGE') THEN
    GRANT USAGE ON SCHEMA public TO graft_app, graft_system;
  END IF;
END $$`

// lacking is what an administrator has to run before the login can run roles: a statement a line, "" where nothing.
const lacking = `
SELECT concat_ws(E'\n',
  CASE WHEN NOT (me.rolsuper OR me.rolcreaterole) AND count(p.oid) < 3
    THEN format('ALTER ROLE %I CREATEROLE', current_user) END,
  CASE WHEN NOT (me.rolsuper OR me.rolcreaterole AND version < 160000)
      AND bool_or(NOT pg_has_role(current_user, p.oid, taking_on) AND NOT pg_has_role(current_user, p.oid, 'MEMBER WITH ADMIN OPTION'))
    THEN format('GRANT graft_owner, graft_app, graft_system TO %I', current_user) END,
  CASE WHEN NOT coalesce(bool_or(r = 'graft_owner' AND has_schema_privilege(p.oid, public.oid, 'CREATE')), false)
      AND NOT pg_has_role(current_user, public.nspowner, 'USAGE') AND NOT has_schema_privilege(public.oid, 'CREATE WITH GRANT OPTION')
    THEN CASE public.nspowner WHEN 'pg_database_owner'::regrole
      THEN format('ALTER DATABASE %I OWNER TO %I', current_database(), current_user)
      ELSE format('ALTER SCHEMA public OWNER TO %I', current_user) END END)
FROM unnest(ARRAY['graft_owner', 'graft_app', 'graft_system']) AS r
  LEFT JOIN pg_roles p ON p.rolname = r
  CROSS JOIN (SELECT * FROM pg_roles WHERE rolname = current_user) AS me
  CROSS JOIN (SELECT * FROM pg_namespace WHERE nspname = 'public') AS public
  CROSS JOIN (SELECT version, CASE WHEN version >= 160000 THEN 'SET' ELSE 'MEMBER' END AS taking_on
              FROM (SELECT current_setting('server_version_num')::int AS version) AS v) AS of_server
GROUP BY me.rolsuper, me.rolcreaterole, public.oid, public.nspowner, version`

// roleLock is the advisory lock that serialises role making within one database: "graft" in ASCII.
const roleLock = 0x6772616674

func ensureRoles(ctx context.Context, cfg *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(roleLock)); err != nil {
		return err
	}
	var lacks string
	if err := conn.QueryRow(ctx, lacking).Scan(&lacks); err != nil {
		return err
	}
	if lacks != "" {
		return fmt.Errorf("login %s may not do this; as an administrator run in this database: %s;", cfg.User, strings.ReplaceAll(lacks, "\n", "; "))
	}
	for try := 1; ; try++ {
		_, err := conn.Exec(ctx, roles)
		if !collided(err) || try == 10 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		}
	}
}

// collided reports whether err came of two databases of one cluster making the same role in the same moment: roles
// belong to the cluster and the lock to the database. On a second look the other's work is there.
func collided(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "23505", "42710", "XX000": // unique violation, duplicate object, "tuple concurrently updated"
		return true
	}
	return false
}
