package storetest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

type login struct {
	Name                         string
	Super, Bypass, Login, Inside bool
}

// whoami is the role that a connection to dsn acts as.
func whoami(t *testing.T, dsn string) (l login) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	err = conn.QueryRow(t.Context(), `
		SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, has_database_privilege(current_database(), 'CONNECT')
		FROM pg_roles WHERE rolname = current_user`).Scan(&l.Name, &l.Super, &l.Bypass, &l.Login, &l.Inside)
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
		want := login{"graft_test_login", false, false, true, true}
		if got := whoami(t, dsn); got != want {
			t.Errorf("%s database: role = %+v, want %+v", name, got, want)
		}
		if got := whoami(t, storetest.Superuser(t, dsn)); !got.Super {
			t.Errorf("%s database: Superuser() = %+v, want a superuser", name, got)
		}
	}
}
