package migrations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/migrations"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// up migrates and says which versions ran.
func up(ctx context.Context, dsn string) (ran []string, err error) {
	var out bytes.Buffer
	err = migrations.Up(ctx, dsn, slog.New(slog.NewTextHandler(&out, nil)))
	for _, m := range regexp.MustCompile(`msg=migrated version=(\d+)`).FindAllStringSubmatch(out.String(), -1) {
		ran = append(ran, m[1])
	}
	return ran, err
}

// every is every version there is, as up names them.
func every() (versions []string) {
	for v := range migrations.Latest() {
		versions = append(versions, strconv.FormatInt(v+1, 10))
	}
	return versions
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// list is the answer to a question about names.
func list(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return names
}

// eventually waits until done says so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
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

// strangers are relations and functions of the schema that graft_owner does not own.
const strangers = `
	SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND relowner <> 'graft_owner'::regrole
	UNION ALL
	SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> 'graft_owner'::regrole`

func TestUpMakesTheSchemaOnce(t *testing.T) {
	t.Parallel()
	for name, login := range map[string]func(testing.TB, string) string{
		"ordinary login": func(_ testing.TB, dsn string) string { return dsn },
		"superuser":      storetest.Superuser,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := login(t, storetest.EmptyURL(t))
			if ran, err := up(t.Context(), dsn); err != nil || !slices.Equal(ran, every()) {
				t.Errorf("Up() ran %v, %v, want %v", ran, err, every())
			}
			if ran, err := up(t.Context(), dsn); err != nil || len(ran) > 0 {
				t.Errorf("Up() again ran %v, %v, want none", ran, err)
			}
			conn := connect(t, dsn)
			if tables := list(t, conn, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`); !slices.Contains(tables, "organisation") {
				t.Errorf("tables = %v, want organisation among them", tables)
			}
			if got := list(t, conn, strangers); len(got) > 0 {
				t.Errorf("%v do not belong to graft_owner", got)
			}
			eventually(t, "no connection and no lock to be left", func() bool { return len(list(t, conn, leftBehind)) == 0 })
		})
	}
}

// leftBehind are connections and locks of others than the asker.
const leftBehind = `
	SELECT 'connection ' || application_name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
	UNION ALL
	SELECT 'lock' FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

func TestManyProcessesMigrateOneDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyURL(t)
	if got := upAtOnce(t, dsn, dsn, dsn, dsn); !slices.Equal(got, every()) {
		t.Errorf("together Up() ran %v, want %v: each once", got, every())
	}
}

// upAtOnce migrates every dsn at once and says in order which versions ran.
func upAtOnce(t *testing.T, dsns ...string) (ran []string) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, dsn := range dsns {
		all.Go(func() {
			versions, err := up(t.Context(), dsn)
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, versions...)
			if err != nil {
				t.Errorf("Up() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	slices.SortFunc(ran, func(a, b string) int { // 10 after 9
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return ran
}

// TestRolesAreMadeOnceForACluster needs a cluster where nobody made them yet.
func TestRolesAreMadeOnceForACluster(t *testing.T) {
	t.Parallel()
	c, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: t.TempDir(), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	super := connect(t, c.URL("postgres"))
	run(t, super, `CREATE ROLE app LOGIN CREATEROLE`, `CREATE ROLE plain LOGIN`)
	dsn := func(role, database string) string {
		u, err := url.Parse(c.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("user", role)
		u.RawQuery = q.Encode()
		return u.String()
	}
	const roles = `SELECT rolname || CASE WHEN rolcanlogin OR rolinherit OR rolsuper OR rolbypassrls THEN '!' ELSE '' END FROM pg_roles WHERE rolname LIKE 'graft\__%' ORDER BY 1`
	three := []string{"graft_app", "graft_owner", "graft_system"}

	// Several databases, in the first moment of the cluster; of one, several processes. Up to version 15
	// the login may also take on roles that somebody else made.
	var version int
	if err := super.QueryRow(t.Context(), `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		if round == 1 && version < 160000 {
			run(t, super, `CREATE ROLE graft_owner NOINHERIT`, `CREATE ROLE graft_app NOINHERIT`, `CREATE ROLE graft_system NOINHERIT`)
		}
		var dsns []string
		for n := range 4 {
			run(t, super, fmt.Sprintf(`CREATE DATABASE d%d OWNER app`, n))
			dsns = append(dsns, dsn("app", fmt.Sprintf("d%d", n)))
		}
		if round == 0 {
			dsns = append(dsns, dsns[0], dsns[1])
		}
		if got, want := len(upAtOnce(t, dsns...)), 4*len(every()); got != want {
			t.Errorf("together Up() ran %d migrations, want %d", got, want)
		}
		if diff := cmp.Diff(three, list(t, super, roles)); diff != "" {
			t.Errorf("roles (-want +got):\n%s", diff)
		}
		for n := range 4 {
			run(t, super, fmt.Sprintf(`DROP DATABASE d%d WITH (FORCE)`, n))
		}
		run(t, super, `DROP ROLE graft_owner, graft_app, graft_system`)
	}

	// A superuser first, then an ordinary login.
	run(t, super, `CREATE DATABASE super`)
	if _, err := up(t.Context(), c.URL("super")); err != nil {
		t.Errorf("Up() as superuser = %v, want nil", err)
	}

	// A login that can make no role, where an administrator made them and gave the schema.
	run(t, super, `CREATE DATABASE given`)
	run(t, connect(t, c.URL("given")), `GRANT CREATE ON SCHEMA public TO graft_owner`, `GRANT graft_owner, graft_app, graft_system TO plain`)
	if ran, err := up(t.Context(), dsn("plain", "given")); err != nil || !slices.Equal(ran, every()) {
		t.Errorf("Up() with roles that were given = %v, %v, want %v", ran, err, every())
	}
}

// TestUpSaysWhatToRun follows what the error says, one statement after the other, until the login can migrate.
func TestUpSaysWhatToRun(t *testing.T) {
	t.Parallel()
	c, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: t.TempDir(), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	super := connect(t, c.URL("postgres"))
	for _, tt := range []struct {
		name   string
		before []string // as the superuser, in database d
		want   string
	}{
		{"no right to anything", nil, "ALTER ROLE plain CREATEROLE; ALTER DATABASE d OWNER TO plain;"},
		{"a database of its own", []string{`ALTER DATABASE d OWNER TO plain`}, "ALTER ROLE plain CREATEROLE;"},
		{"a right to make roles", []string{`ALTER ROLE plain CREATEROLE`}, "ALTER DATABASE d OWNER TO plain;"},
		{"a schema of another's", []string{`ALTER ROLE plain CREATEROLE`, `ALTER SCHEMA public OWNER TO graft`}, "ALTER SCHEMA public OWNER TO plain;"},
		{
			"roles of another's",
			[]string{`CREATE ROLE graft_owner`, `CREATE ROLE graft_app`, `CREATE ROLE graft_system`, `ALTER DATABASE d OWNER TO plain`},
			"GRANT graft_owner, graft_app, graft_system TO plain;",
		},
	} {
		run(t, super, `CREATE ROLE plain LOGIN`, `CREATE DATABASE d`)
		inside := connect(t, c.URL("d"))
		run(t, inside, tt.before...)
		dsn := strings.Replace(c.URL("d"), "user=graft", "user=plain", 1)
		_, err := up(t.Context(), dsn)
		_, advice, found := strings.Cut(fmt.Sprint(err), "login plain may not do this; as an administrator run in this database: ")
		if !found || advice != tt.want {
			t.Errorf("%s: Up() = %v, want %q to run", tt.name, err, tt.want)
		}
		run(t, inside, advice)
		if ran, err := up(t.Context(), dsn); err != nil || !slices.Equal(ran, every()) {
			t.Errorf("%s: Up() after that = %v, %v, want %v", tt.name, ran, err, every())
		}
		run(t, super, `DROP DATABASE d WITH (FORCE)`)
		for _, role := range []string{"graft_owner", "graft_app", "graft_system", "plain"} {
			run(t, super, `DROP ROLE `+role)
		}
	}
}

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// older is a database whose newest migration has not run.
func older(t *testing.T) string { return upTo(t, migrations.Latest()-1) }

// upTo is a database as it was with that version.
func upTo(t *testing.T, version int64) string {
	t.Helper()
	dsn := storetest.EmptyURL(t)
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET ROLE graft_owner`)
		return err
	}))
	defer func() { _ = db.Close() }()
	if _, err := up(t.Context(), storetest.EmptyURL(t)); err != nil { // makes the roles
		t.Fatal(err)
	}
	run(t, connect(t, dsn), `GRANT USAGE, CREATE ON SCHEMA public TO graft_owner`)
	p, err := migrations.Provider(cfg, db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// TestRefreshTokensAreKept: 00015 makes their table anew.
func TestRefreshTokensAreKept(t *testing.T) {
	t.Parallel()
	dsn := upTo(t, 14)
	conn := connect(t, storetest.Superuser(t, dsn))
	run(
		t, conn, `SET session_replication_role = replica`, // whose grant and organisation it is does not matter here
		`INSERT INTO oauth_token (org_id, grant_id, hash, created_at, retired_at, answer) SELECT
			'00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', sha256(n::text::bytea), to_timestamp(n), r, a
		 FROM (VALUES (1, to_timestamp(2), NULL), (2, to_timestamp(3), 'sealed'::bytea), (3, NULL, NULL)) AS t (n, r, a)`,
		`RESET session_replication_role`, // the keys are looked at again when the table is made
		`INSERT INTO organisation (id, name, created_at) VALUES ('00000000-0000-0000-0000-000000000001', 'A', now())`,
		`INSERT INTO user_account (id, email, name, password, created_at) VALUES ('00000000-0000-0000-0000-000000000003', 'a@a.example', '', '', now())`,
		`INSERT INTO member (org_id, user_id, role, created_at) SELECT o.id, u.id, 'owner', now() FROM organisation o, user_account u`,
		`INSERT INTO agent (org_id, id, user_id, name, advanced_tools, created_at) SELECT org_id, '00000000-0000-0000-0000-000000000004', user_id, 'A', false, now() FROM member`,
		`INSERT INTO oauth_grant (org_id, id, agent_id, user_id, client_id, client_name, redirect_uri, scope, created_at)
		 SELECT org_id, '00000000-0000-0000-0000-000000000002', id, user_id, 'c', 'C', 'https://c.example/', 'mcp', now() FROM agent`,
	)
	if _, err := up(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	got := list(t, conn, `
		SELECT concat_ws(' ', extract(epoch FROM created_at)::int, rotated, extract(epoch FROM retired_at)::int, convert_from(answer, 'UTF8'))
		FROM oauth_token t LEFT JOIN oauth_answer a ON a.org_id = t.org_id AND a.hash = t.hash AND a.grant_id = t.grant_id AND a.made_at = t.retired_at
		ORDER BY created_at`)
	if diff := cmp.Diff([]string{"1 f 2", "2 t 3 sealed", "3 t"}, got); diff != "" {
		t.Errorf("tokens, with their answers (-want +got):\n%s", diff)
	}
}

// TestABusyTableStopsTheMigrationNotTheService: a migration that waits for a lock lets nobody else have it either.
func TestABusyTableStopsTheMigrationNotTheService(t *testing.T) {
	t.Parallel()
	dsn := older(t)
	holder := connect(t, storetest.Superuser(t, dsn))
	tables := list(t, holder, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'goose%'`)
	run(t, holder, `BEGIN`, `LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS EXCLUSIVE MODE`)
	start := time.Now()
	ran, err := up(t.Context(), dsn)
	if took := time.Since(start); code(err) != "55P03" || len(ran) > 0 || took > 10*time.Second {
		t.Errorf("Up() beside a long transaction = %v, %v after %v, want lock_not_available (55P03) after about 5 s", ran, err, took)
	}
	if want := "a table is in use by a long transaction"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Up() = %v, want it to say %q", err, want)
	}
	run(t, holder, `ROLLBACK`)
	if ran, err := up(t.Context(), dsn); err != nil || !slices.Equal(ran, every()[len(every())-1:]) {
		t.Errorf("Up() once the table is free = %v, %v, want the last to run", ran, err)
	}
}

func TestUpStopsWithItsContext(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyURL(t)
	holder, watcher := connect(t, dsn), connect(t, dsn)
	run(t, holder, `SELECT pg_advisory_lock(x'6772616674'::bigint)`) // of who makes the roles
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := up(ctx, dsn)
		result <- err
	}()
	eventually(t, "Up to wait for the lock", func() bool {
		return len(list(t, watcher, `SELECT pid::text FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`)) > 0
	})
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("Up() = %v, want %v", err, context.Canceled)
	}
}

func TestUpSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://%zz": "read database url: ",
		"postgres://127.0.0.1:1/x?connect_timeout=5": "make database roles: ",
	} {
		if _, err := up(t.Context(), dsn); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Up(%q) = %v, want %q", dsn, err, want)
		}
	}
}

// texts are the migrations by name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range names {
		b, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

func TestLatestIsTheNewestFile(t *testing.T) {
	t.Parallel()
	var newest int64
	for name := range texts(t) {
		number, _, _ := strings.Cut(name, "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		newest = max(newest, v)
	}
	if got := migrations.Latest(); got != newest || newest == 0 {
		t.Errorf("Latest() = %d, want %d", got, newest)
	}
}

var (
	down      = regexp.MustCompile(`(?m)^--\s*\+goose\s+Down`)
	made      = regexp.MustCompile(`(?i)CREATE\s+TABLE\s+(?:IF NOT EXISTS\s+)?(\w+)`)
	tenanted  = regexp.MustCompile(`tenant_table\('(\w+)'\)`)
	withOrg   = regexp.MustCompile(`(?i)CREATE\s+TABLE\s+(\w+)\s*\([^;]*?\borg_id\s+uuid\s*,`)
	index     = regexp.MustCompile(`(?i)CREATE\s+(?:UNIQUE\s+)?INDEX\s+(CONCURRENTLY\s+)?(?:IF NOT EXISTS\s+)?\w+\s+ON\s+(\w+)`)
	byHand    = regexp.MustCompile(`(?i)CREATE\s+POLICY\s+(tenant|owner)\s+ON\s+(\w+)`)
	byNothing = []string{"organisation", "user_account"} // global tables that tenants see some rows of
)

// faults are what a migration's text has against the rules of doc.go that the catalogue cannot see.
func faults(name, text string) (found []string) {
	if !strings.HasPrefix(text, "-- +goose Up\n") || down.MatchString(text) {
		found = append(found, name+": want -- +goose Up first and no way down")
	}
	var tables, tenants []string
	for _, m := range made.FindAllStringSubmatch(text, -1) {
		tables = append(tables, m[1])
	}
	for _, m := range tenanted.FindAllStringSubmatch(text, -1) {
		tenants = append(tenants, m[1])
	}
	for _, m := range withOrg.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(tenants, m[1]) {
			found = append(found, fmt.Sprintf("%s: %s has org_id but is not made a tenant's by tenant_table()", name, m[1]))
		}
	}
	for _, m := range index.FindAllStringSubmatch(text, -1) {
		if m[1] == "" && !slices.Contains(tables, m[2]) {
			found = append(found, fmt.Sprintf("%s: an index on %s, which is in use, is made without CONCURRENTLY", name, m[2]))
		}
	}
	for _, m := range byHand.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(byNothing, m[2]) {
			found = append(found, fmt.Sprintf("%s: policy %s on %s by hand: tenant_table() makes it", name, m[1], m[2]))
		}
	}
	return found
}

func TestFilesHoldTheRules(t *testing.T) {
	t.Parallel()
	files := texts(t)
	if len(files) == 0 {
		t.Fatal("no migrations")
	}
	for name, text := range files {
		for _, fault := range faults(path.Base(name), text) {
			t.Error(fault)
		}
	}
}

func TestFileRulesBite(t *testing.T) {
	t.Parallel()
	const head = "-- +goose Up\n"
	for text, want := range map[string][]string{
		head + "CREATE TABLE note (\n  org_id uuid,\n  id uuid PRIMARY KEY\n);\nSELECT tenant_table('note');\nCREATE INDEX note_idx ON note (id);": nil,
		"CREATE TABLE x (id uuid);":                             {"f: want -- +goose Up first and no way down"},
		head + "SELECT 1;\n-- +goose Down\nSELECT 2;":           {"f: want -- +goose Up first and no way down"},
		head + "CREATE TABLE note (\n  org_id uuid,\n  n int);": {"f: note has org_id but is not made a tenant's by tenant_table()"},
		head + "CREATE INDEX a_idx ON agent (name);":            {"f: an index on agent, which is in use, is made without CONCURRENTLY"},
		head + "CREATE UNIQUE INDEX a_key ON agent (org_id);":   {"f: an index on agent, which is in use, is made without CONCURRENTLY"},
		head + "CREATE INDEX CONCURRENTLY a_idx ON agent (n);":  nil,
		head + "CREATE POLICY tenant ON note USING (true);":     {"f: policy tenant on note by hand: tenant_table() makes it"},
		head + "CREATE POLICY system ON note USING (true);":     nil,
	} {
		if diff := cmp.Diff(want, faults("f", text)); diff != "" {
			t.Errorf("faults(%q) (-want +got):\n%s", text, diff)
		}
	}
}
