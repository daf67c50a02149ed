package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/getgraft/graft/internal/store/storetest"
)

// own is the environment of a Postgres of one's own.
func (h *home) own(url string) []string {
	h.t.Helper()
	return []string{"GRAFT_DATABASE_URL=" + url, "GRAFT_MASTER_KEY=" + strings.TrimSpace(h.ok("key", "new"))}
}

// TestOwnPostgresBeforeAndAfterMigrating: every command says what to do first.
func TestOwnPostgresBeforeAndAfterMigrating(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own(storetest.EmptyURL(t))
	graft := func(args ...string) outcome {
		t.Helper()
		return h.run(append(append([]string{}, env...), args...)...)
	}
	for _, args := range [][]string{{"agent", "list"}, {"user", "add", "--email", "ana@example.com"}, {"serve"}} {
		if got := graft(args...); got.code != 1 || got.out != "" || !strings.HasSuffix(got.errout, "is needed: run graft migrate.\n") {
			t.Errorf("%v before migrating = %+v, want exit 1 and what to run", args, got)
		}
	}
	got := graft("doctor")
	if got.code != 1 || strings.Count(got.out, "not asked: the schema is older") != 2 || !strings.Contains(got.out, "11 checks, 1 failed, 2 not asked\n") {
		t.Errorf("doctor before migrating = exit %d\n%s", got.code, got.out)
	}
	if got := graft("migrate"); got.code != 0 {
		t.Fatalf("migrate = %+v", got)
	}
	if got := graft("doctor"); got.code != 0 || !strings.Contains(got.out, "11 checks, 0 failed\n") || !strings.Contains(got.out, "none sealed yet") {
		t.Errorf("doctor after migrating = exit %d\n%s", got.code, got.out)
	}
	if err := h.serve(env...).end(syscall.SIGTERM); err != nil {
		t.Errorf("serve after migrating: %v", err)
	}
	if got := graft("doctor"); got.code != 0 || !sealedKeys.MatchString(got.out) {
		t.Errorf("doctor after serving = exit %d\n%s", got.code, got.out)
	}
	h.nothingLeft("commands on another database")
}

func TestADatabaseThatIsNotThereIsOneLine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own("postgres://graft:hunter2@127.0.0.1:1/x")
	const want = "annot reach the database at 127.0.0.1:1: connect: connection refused"
	for _, args := range [][]string{{"agent", "list"}, {"user", "add", "--email", "ana@example.com"}, {"serve"}, {"migrate"}, {"doctor"}} {
		got := h.run(append(append([]string{}, env...), args...)...)
		said := got.errout
		if args[0] == "doctor" {
			said = got.out
		} else if strings.Count(said, "\n") != 1 {
			t.Errorf("%v says more than a line:\n%s", args, said)
		}
		if got.code != 1 || !strings.Contains(said, want) || strings.Contains(got.out+got.errout, "hunter2") {
			t.Errorf("%v = %+v, want exit 1 and %q", args, got, want)
		}
	}
}
