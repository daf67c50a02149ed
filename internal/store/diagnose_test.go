package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestDiagnoseSaysWhoWeAre(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	super := connect(t, storetest.Superuser(t, dsn))
	run(t, super, `DROP ROLE IF EXISTS graft_test_stranger`, `CREATE ROLE graft_test_stranger LOGIN`)
	version := number(t, super, `SELECT current_setting('server_version_num')::int`)
	for login, want := range map[string]store.Diagnosis{
		dsn:                               {Login: "graft_test_login"},
		storetest.Superuser(t, dsn):       {Login: roleOf(t, storetest.Superuser(t, dsn)), Superuser: true},
		as(t, dsn, "graft_test_stranger"): {Login: "graft_test_stranger", Missing: []string{"graft_owner", "graft_app", "graft_system"}},
	} {
		got, err := storetest.Open(t, login, nil).Diagnose(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Now.IsZero() || int64(got.Version) != version {
			t.Errorf("Diagnose() = %+v, want a time and version %d", got, version)
		}
		got.Version, got.Now = 0, want.Now
		if len(got.Missing) == 0 {
			got.Missing = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Diagnose() (-want +got):\n%s", diff)
		}
	}
}

// as is dsn with another login.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	if !strings.Contains(dsn, "graft_test_login@") {
		t.Fatalf("%s names no login", dsn)
	}
	return strings.Replace(dsn, "graft_test_login@", role+"@", 1)
}

func roleOf(t *testing.T, dsn string) (role string) {
	t.Helper()
	if err := connect(t, dsn).QueryRow(t.Context(), `SELECT current_user::text`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	return role
}

func TestCheckURLTellsNothingOfTheURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://graft:secret@db.internal:5433/graft?sslmode=disable", "postgres://x", "host=/run/pg user=graft password=secret"} {
		if err := store.CheckURL(url); err != nil {
			t.Errorf("CheckURL(%q) = %v, want nil", url, err)
		}
	}
	for _, url := range []string{
		"nonsense", "postgres://graft:secret/word@db/graft", "postgres://graft:sec:ret@db:secret/graft", "postgres://graft:secret@db:99999/graft",
		"postgres://graft:secret@db/graft?sslmode=secret", "host=db password=secret port", "postgres://graft:secret@db/graft?sslmode=verify-full&sslrootcert=/secret",
		"postgres://graft:secret@db/graft?pool_max_conns=secret",
	} {
		if err := store.CheckURL(url); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec:") {
			t.Errorf("CheckURL(%q) = %v, want an error without a part of it", url, err)
		}
	}
}

func TestUnreachedIsOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()
	socket := t.TempDir()
	dsn := storetest.PrivateURL(t)
	for _, tt := range []struct{ url, want string }{
		{"postgres://graft:secret@127.0.0.1:1/x", "cannot reach the database at 127.0.0.1:1: connect: connection refused"},
		{"postgres://graft:secret@127.0.0.1:1,localhost:1/x", "cannot reach the database at 127.0.0.1:1: connect: connection refused"},
		{"host=" + socket + " user=graft password=secret", "cannot reach the database at " + socket + ": connect: no such file or directory"},
		{as(t, dsn, "graft_test_nobody"), `: role "graft_test_nobody" does not exist`},
	} {
		_, err := store.Open(t.Context(), store.Config{URL: tt.url})
		got, ok := store.Unreached(fmt.Errorf("do it: %w", err))
		if !ok || !strings.Contains(got, tt.want) || strings.ContainsAny(got, "\n\t") || strings.Contains(err.Error(), "secret") {
			t.Errorf("Unreached(%v) = %q, %v, want one line with %q", err, got, ok, tt.want)
		}
	}
	if line, ok := store.Unreached(reason.NotFound); ok {
		t.Errorf("Unreached() of another error = %q, want none", line)
	}
}

// TestProveTenancyBites breaks one lock after the other; the proof must see each.
func TestProveTenancyBites(t *testing.T) {
	t.Parallel()
	for name, login := range logins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.PrivateURL(t)
			db := storetest.Open(t, login(t, dsn), nil)
			super := connect(t, storetest.Superuser(t, dsn))
			if err := db.ProveTenancy(t.Context()); err != nil {
				t.Errorf("ProveTenancy() = %v, want nil", err)
			}
			for _, lock := range [][2]string{
				{`ALTER TABLE member DISABLE ROW LEVEL SECURITY`, `ALTER TABLE member ENABLE ROW LEVEL SECURITY`},
				{`ALTER TABLE organisation DISABLE ROW LEVEL SECURITY`, `ALTER TABLE organisation ENABLE ROW LEVEL SECURITY`},
				{`ALTER POLICY tenant ON member USING (true)`, `ALTER POLICY tenant ON member USING (org_id = current_org())`},
			} {
				run(t, super, lock[0])
				if err := db.ProveTenancy(t.Context()); err == nil {
					t.Errorf("ProveTenancy() after %s = nil, want an error", lock[0])
				}
				run(t, super, lock[1])
			}
			if err := db.ProveTenancy(t.Context()); err != nil {
				t.Errorf("ProveTenancy() with all locks again = %v, want nil", err)
			}
			for _, table := range []string{"organisation", "user_account", "member"} {
				if n := number(t, super, `SELECT count(*) FROM `+table); n != 0 {
					t.Errorf("rows of %s after the proof = %d, want none left", table, n)
				}
			}
		})
	}
}
