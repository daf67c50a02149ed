package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/store/storetest"
)

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
