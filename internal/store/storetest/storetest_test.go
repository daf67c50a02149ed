package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/migrations"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

type login struct {
	Name                 string
	Super, Bypass, Login bool
}

// whoami is the role that a connection to dsn acts as.
func whoami(t *testing.T, dsn string) (l login) {
	t.Helper()
	err := connect(t, dsn).QueryRow(t.Context(), `SELECT rolname, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = current_user`).
		Scan(&l.Name, &l.Super, &l.Bypass, &l.Login)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTestsConnectAsAnOrdinaryRole(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"shared": storetest.URL(t), "private": storetest.PrivateURL(t), "empty": storetest.EmptyURL(t),
	} {
		want := login{"graft_test_login", false, false, true}
		if got := whoami(t, dsn); got != want {
			t.Errorf("%s database: role = %+v, want %+v", name, got, want)
		}
		if got := whoami(t, storetest.Superuser(t, dsn)); !got.Super {
			t.Errorf("%s database: Superuser() = %+v, want a superuser", name, got)
		}
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	if a, b := storetest.URL(t), storetest.URL(t); a != b {
		t.Errorf("URL() = %q and %q, want one database for the package", a, b)
	}
	seen := map[string]bool{storetest.URL(t): true}
	for _, dsn := range []string{storetest.PrivateURL(t), storetest.PrivateURL(t), storetest.EmptyURL(t), storetest.EmptyURL(t)} {
		if seen[dsn] {
			t.Errorf("%q was given out twice", dsn)
		}
		seen[dsn] = true
	}
	for name, tt := range map[string]struct {
		dsn  string
		want int64
	}{"shared": {storetest.URL(t), migrations.Latest()}, "private": {storetest.PrivateURL(t), migrations.Latest()}, "empty": {storetest.EmptyURL(t), 0}} {
		if got, err := storetest.Open(t, tt.dsn, nil).System().SchemaVersion(t.Context()); err != nil || got != tt.want {
			t.Errorf("schema of a database that is %s = %d, %v, want %d", name, got, err, tt.want)
		}
	}
	if found, err := storetest.Open(t, storetest.PrivateURL(t), nil).System().AnyUser(t.Context()); err != nil || found {
		t.Errorf("AnyUser() in a private database = %v, %v, want false", found, err)
	}
	dsn := storetest.PrivateURL(t)
	storetest.Rewind(t, dsn)
	if got, err := storetest.Open(t, dsn, nil).System().SchemaVersion(t.Context()); err != nil || got != migrations.Latest()-1 {
		t.Errorf("schema after Rewind() = %d, %v, want %d", got, err, migrations.Latest()-1)
	}
}

func TestEachTestHasItsOrganisation(t *testing.T) {
	t.Parallel()
	db, a := storetest.New(t)
	other, b := storetest.New(t)
	if a.Org == b.Org || a.User == b.User || a.Role != store.RoleOwner || a.Via != store.ViaSession {
		t.Errorf("New() = %+v and %+v, want owners of two organisations", a, b)
	}
	m := storetest.Member(t, db, a, store.RoleAuditor)
	agent, token := storetest.Agent(t, db, a, "Worker")
	got, err := other.System().Bearer(t.Context(), store.HashToken(token)) // the database is one
	if want := (store.Bearer{Org: a.Org, User: a.User, Agent: agent.ID, Role: store.RoleOwner}); err != nil || got != want {
		t.Errorf("Bearer() of Agent()'s token = %+v, %v, want %+v", got, err, want)
	}
	for c, want := range map[store.Caller]int{a: 2, m: 2, b: 1} {
		err := db.As(t.Context(), c, func(tx *store.Tx) error {
			members, err := tx.Members(t.Context())
			if len(members) != want {
				return fmt.Errorf("Members() = %v, want %d", members, want)
			}
			return err
		})
		if err != nil {
			t.Errorf("as %+v: %v", c, err)
		}
	}
}

func TestAnOutageEnds(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	restore := storetest.Outage(t, dsn)
	for range 2 {
		if err := db.Ping(t.Context()); err == nil {
			t.Error("Ping() during an outage = nil, want an error")
		}
	}
	if _, err := db.System().AnyUser(t.Context()); !errors.Is(err, &reason.Refusal{Word: reason.Unavailable}) {
		t.Errorf("AnyUser() during an outage = %v, want %s", err, reason.Unavailable)
	}
	restore()
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("Ping() after the outage = %v, want nil", err)
	}
}

// TestManyTestProcessesShareOneCluster runs this binary several times on a cluster of this test's, which is new: they
// make one template and leave nothing else.
func TestManyTestProcessesShareOneCluster(t *testing.T) {
	t.Parallel()
	c, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: t.TempDir(), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestTestsConnectAsAnOrdinaryRole$", "-test.v")
			cmd.Env = append(cmd.Environ(), storetest.ClusterEnv+"="+c.URL("postgres"))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("a test process on the shared cluster: %v\n%s", err, out)
			}
		})
	}
	all.Wait()
	var templates, left int
	err = connect(t, c.URL("postgres")).QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE datname LIKE 'graft\_template\_%'), count(*) FILTER (WHERE datname LIKE 'graft\_test\_%' OR datname LIKE '%\_making')
		FROM pg_database`).Scan(&templates, &left)
	if err != nil || templates != 1 || left != 0 {
		t.Errorf("templates = %d, databases left = %d, %v, want 1 and 0", templates, left, err)
	}
}

func TestHoldersFindWhatStandsInClear(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	owner := storetest.Organisation(t, db)
	if _, err := db.System().OrganisationKey(t.Context(), owner.Org, func() ([]byte, error) { return []byte("a canary in bytes"), nil }); err != nil {
		t.Fatal(err)
	}
	storetest.Agent(t, db, owner, "canary-in-text")
	for text, want := range map[string][]string{"canary in bytes": {"seal_key"}, "canary-in-text": {"agent"}, "canary nowhere": nil} {
		if got := storetest.Holders(t, dsn, text); !slices.Equal(got, want) {
			t.Errorf("Holders(%q) = %v, want %v", text, got, want)
		}
	}
}
