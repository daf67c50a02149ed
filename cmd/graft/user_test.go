package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/store/storetest"
)

// own is the environment of a Postgres of one's own.
func (h *home) own(url string) []string {
	h.t.Helper()
	return []string{"GRAFT_DATABASE_URL=" + url, "GRAFT_MASTER_KEY=" + strings.TrimSpace(h.ok("key", "new"))}
}

func TestUserAddSaysWhatItDid(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own(storetest.PrivateURL(t))
	graft := func(args ...string) outcome {
		t.Helper()
		return h.run(append(append([]string{}, env...), args...)...)
	}
	const works = " The link works once, for three days:\n"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--email", "ana@acme.example"}, 0, "Made the organisation acme.example; ana@acme.example is its owner." + works},
		{[]string{"--email", "Bob@acme.example"}, 0, "bob@acme.example is in acme.example, as member." + works},
		{[]string{"--email", "bob@acme.example"}, 0, "bob@acme.example is in acme.example, as member." + works},
		{[]string{"--email", "bob@acme.example", "--role", "auditor"}, 1, "graft: bob@acme.example is a member already, as member. Roles are not changed here.\n"},
		{[]string{"--email", "aud@acme.example", "--role", "auditor"}, 0, "aud@acme.example is in acme.example, as auditor." + works},
		{[]string{"--email", "cy@other.example", "--org", "Other"}, 0, "Made the organisation Other; cy@other.example is its owner." + works},
		{[]string{"--email", "dee@other.example"}, 2, "graft: There are several organisations: acme.example, Other. Say which with --org.\n"},
	} {
		got := graft(append([]string{"user", "add"}, tt.args...)...)
		if got.code != tt.code || got.errout != tt.want || link.MatchString(strings.TrimSpace(got.out)) != (tt.code == 0) {
			t.Errorf("user add %v = %+v, want exit %d and %q", tt.args, got, tt.code, tt.want)
		}
	}
	var made struct {
		Role, Organisation string
		OrganisationMade   bool
	}
	if err := json.Unmarshal([]byte(graft("user", "add", "--email", "eve@third.example", "--org", "Third", "--json").out), &made); err != nil || fmt.Sprint(made) != "{owner Third true}" {
		t.Errorf("user add --json = %+v, %v, want the role, and that the organisation was made", made, err)
	}
	got := graft("agent", "add", "--name", "x", "--org", "acme.example", "--user", "AUD@acme.example")
	if want := (outcome{1, "", "graft: aud@acme.example is an auditor, who reads only.\n"}); got != want {
		t.Errorf("agent add for an auditor = %+v, want %+v", got, want)
	}
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
	if got.code != 1 || strings.Count(got.out, "not asked: the schema is older") != 2 || !strings.Contains(got.out, "10 checks, 1 failed, 2 not asked\n") {
		t.Errorf("doctor before migrating = exit %d\n%s", got.code, got.out)
	}
	if got := graft("migrate"); got.code != 0 {
		t.Fatalf("migrate = %+v", got)
	}
	if got := graft("doctor"); got.code != 0 || !strings.Contains(got.out, "10 checks, 0 failed\n") || !strings.Contains(got.out, "none sealed yet") {
		t.Errorf("doctor after migrating = exit %d\n%s", got.code, got.out)
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
