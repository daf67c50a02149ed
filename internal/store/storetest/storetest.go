package storetest

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/migrations"
)

// ClusterEnv names a cluster that already runs for this run of the tests, by the DSN of its superuser. `make test`
// sets it; without it each test process starts a cluster of its own, where nothing is durable unless benchmarks run.
const ClusterEnv = "GRAFT_TEST_CLUSTER"

// login is the ordinary role that tests connect as.
const login = "graft_test_login"

var (
	admin    string // DSN of the superuser
	template string // name of the migrated database that others are cloned from
	clones   atomic.Int64

	inMain  bool
	stop    = func() {} // what cluster started
	cluster = sync.OnceValue(func() error { return start(context.Background()) })
	shared  = sync.OnceValues(func() (string, error) { return clone(context.Background()) })
)

// Main runs a package's tests with a cluster behind them, which the first test that wants a database starts. It is
// the body of TestMain in every package that uses the database. What else a package has to put away is done after.
func Main(m *testing.M, after ...func()) {
	inMain = true
	code := m.Run()
	for _, do := range after {
		do()
	}
	stop()
	os.Exit(code)
}

// need starts the cluster if no test has.
func need(t testing.TB) {
	t.Helper()
	if !inMain {
		t.Fatal("the package's TestMain must be storetest.Main, which stops what is started here")
	}
	if err := cluster(); err != nil {
		t.Fatalf("start a database: %v\n`make test` installs what is missing.", err)
	}
}

// start finds or starts the cluster and makes the template.
func start(ctx context.Context) error {
	if admin = os.Getenv(ClusterEnv); admin != "" {
		stop = func() { dropAll(ctx) }
	} else {
		dir, err := os.MkdirTemp("", "graft-test-")
		if err != nil {
			return err
		}
		c, err := embedpg.Start(ctx, embedpg.Config{DataDir: dir, Throwaway: !benchmarking()})
		if err != nil {
			_ = os.RemoveAll(dir)
			return err
		}
		admin = c.URL("postgres")
		stop = func() {
			_ = c.Stop(ctx)
			_ = os.RemoveAll(dir)
		}
	}
	if err := makeTemplate(ctx); err != nil {
		return fmt.Errorf("make template database: %w", err)
	}
	return nil
}

// benchmarking reports whether benchmarks run, which measure what is durable: their cluster is one as serve's.
func benchmarking() bool {
	f := flag.Lookup("test.bench")
	return f != nil && f.Value.String() != ""
}

// makeTemplate makes the login and the template once for each content of the migrations, whichever test process
// comes first.
func makeTemplate(ctx context.Context) error {
	template = "graft_template_" + contentHash()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(7061)`); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, login).Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := conn.Exec(ctx, `CREATE ROLE `+login+` LOGIN CREATEROLE CREATEDB`); err != nil {
			return err
		}
	}
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, template).Scan(&there); err != nil || there {
		return err
	}
	// Made under another name and renamed, so that a template is there whole or not at all.
	making := template + "_making"
	for _, q := range []string{
		`DROP DATABASE IF EXISTS ` + making + ` WITH (FORCE)`,
		`CREATE DATABASE ` + making + ` OWNER ` + login,
	} {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	if err := migrations.Up(ctx, as(login, making), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE `+making+` RENAME TO `+template)
	return err
}

func contentHash() string {
	h := sha256.New()
	names, _ := fs.Glob(migrations.Files, "*.sql")
	for _, n := range names {
		b, _ := fs.ReadFile(migrations.Files, n)
		fmt.Fprintf(h, "%s %d\n%s", n, len(b), b)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// as is the DSN of a role in a database of the cluster.
func as(role, database string) string {
	u, err := url.Parse(admin)
	if err != nil {
		return ""
	}
	q := u.Query() // a user named here would win
	q.Del("user")
	q.Del("password")
	u.RawQuery = q.Encode()
	u.User = url.User(role)
	u.Path = "/" + database
	return u.String()
}

// clone makes a database from the template and returns the ordinary login's DSN to it.
func clone(ctx context.Context) (string, error) {
	name := fmt.Sprintf("graft_test_%d_%d", os.Getpid(), clones.Add(1))
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template+` OWNER `+login+` STRATEGY file_copy`)
	return as(login, name), err
}

// dropAll removes this process's databases from a cluster that goes on.
func dropAll(ctx context.Context) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	for n := int64(1); n <= clones.Load(); n++ {
		_, _ = conn.Exec(ctx, fmt.Sprintf(`DROP DATABASE IF EXISTS graft_test_%d_%d WITH (FORCE)`, os.Getpid(), n))
	}
}

// URL is the DSN of the package's database, as the ordinary login.
func URL(t testing.TB) string {
	t.Helper()
	need(t)
	u, err := shared()
	if err != nil {
		t.Fatalf("clone database: %v", err)
	}
	return u
}

// PrivateURL is the DSN of a fresh migrated database that no other test sees.
func PrivateURL(t testing.TB) string {
	t.Helper()
	need(t)
	u, err := clone(t.Context())
	if err != nil {
		t.Fatalf("clone database: %v", err)
	}
	return u
}

// EmptyURL is the DSN of a fresh database without our schema.
func EmptyURL(t testing.TB) string {
	t.Helper()
	need(t)
	name := fmt.Sprintf("graft_test_%d_%d", os.Getpid(), clones.Add(1))
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `CREATE DATABASE `+name+` OWNER `+login); err != nil {
		t.Fatal(err)
	}
	return as(login, name)
}

// Superuser is dsn's database through the cluster's superuser, for what only it may do or must not be able to.
func Superuser(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	a, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	a.Path = u.Path
	return a.String()
}

// Open opens dsn with a small pool that closes with the test.
func Open(t testing.TB, dsn string, now func() time.Time) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: dsn, MaxConns: 6, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// New is the package's database and the owner of a fresh organisation in it.
func New(t testing.TB) (*store.DB, store.Caller) {
	t.Helper()
	db := Open(t, URL(t), nil)
	return db, Organisation(t, db)
}

var organisations atomic.Int64

// Organisation makes a fresh organisation with one owner, and returns the owner as a web session would.
func Organisation(t testing.TB, db *store.DB) store.Caller {
	t.Helper()
	n := organisations.Add(1)
	o, user, err := db.System().Enrol(t.Context(), fmt.Sprintf("Org %d-%d", os.Getpid(), n), fmt.Sprintf("owner-%d-%d@example.com", os.Getpid(), n), store.RoleOwner)
	if err != nil {
		t.Fatal(err)
	}
	return store.Caller{Org: o.ID, User: user, Role: store.RoleOwner, Via: store.ViaSession}
}

// Member makes one more member of c's organisation, and returns them as a web session would.
func Member(t testing.TB, db *store.DB, c store.Caller, role store.Role) store.Caller {
	t.Helper()
	var o store.Organisation
	err := db.As(t.Context(), c, func(tx *store.Tx) (err error) {
		o, err = tx.Organisation(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, user, err := db.System().Enrol(t.Context(), o.Name, fmt.Sprintf("member-%d-%d@example.com", os.Getpid(), organisations.Add(1)), role)
	if err != nil {
		t.Fatal(err)
	}
	return store.Caller{Org: c.Org, User: user, Role: role, Via: store.ViaSession}
}

// Agent makes an agent of c's and returns it with its token.
func Agent(t testing.TB, db *store.DB, c store.Caller, name string) (store.Agent, string) {
	t.Helper()
	var a store.Agent
	var token string
	err := db.As(t.Context(), c, func(tx *store.Tx) (err error) {
		a, token, err = tx.CreateAgent(t.Context(), name, c.User)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, token
}
