package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
		{[]string{"--email", "bob@acme.example", "--role", "auditor"}, 1, "graft: bob@acme.example is a member already, as member. To change that, run graft user role.\n"},
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

func TestUserRoleRemoveAndLink(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own(storetest.PrivateURL(t))
	graft := func(args ...string) outcome {
		t.Helper()
		return h.run(append(append([]string{}, env...), args...)...)
	}
	for _, user := range []string{"ana@acme.example", "bob@acme.example"} {
		if got := graft("user", "add", "--email", user); got.code != 0 {
			t.Fatalf("user add = %+v", got)
		}
	}
	if got := graft("user", "add", "--email", "cy@other.example", "--org", "Other"); got.code != 0 {
		t.Fatalf("user add = %+v", got)
	}
	if got := graft("agent", "add", "--name", "hermes", "--user", "bob@acme.example", "--org", "acme.example"); got.code != 0 {
		t.Fatalf("agent add = %+v", got)
	}
	const last = "graft: An organisation keeps its last owner. Make somebody else one first.\n"
	in := []string{"--org", "acme.example"}
	for _, tt := range []struct {
		args []string
		want outcome
	}{
		{[]string{"role", "--email", "bob@acme.example", "--role", "auditor"}, outcome{2, "", "graft: An auditor reads only and has no agents. Revoke theirs first: 1 live.\n"}},
		{[]string{"role", "--email", "bob@acme.example", "--role", "king"}, outcome{2, "", "graft: \"king\" is not a role. Use owner, admin, member or auditor.\n"}},
		{[]string{"role", "--email", "ana@acme.example", "--role", "admin"}, outcome{1, "", last}},
		{[]string{"remove", "--email", "ana@acme.example"}, outcome{1, "", last}},
		{[]string{"role", "--email", "BOB@acme.example", "--role", "owner"}, outcome{0, "bob@acme.example is owner now, and was member.\n", ""}},
		{[]string{"role", "--email", "ana@acme.example", "--role", "admin"}, outcome{0, "ana@acme.example is admin now, and was owner.\n", ""}},
		{[]string{"role", "--email", "ana@acme.example", "--role", "owner"}, outcome{0, "ana@acme.example is owner now, and was admin.\n", ""}},
		{[]string{"role", "--email", "cy@other.example", "--role", "owner"}, outcome{1, "", "graft: cy@other.example is not a member of the organisation.\n"}},
		{[]string{"remove", "--email", "cy@other.example"}, outcome{1, "", "graft: cy@other.example is not a member of the organisation.\n"}},
		{[]string{"remove", "--email", "bob@acme.example"}, outcome{0, "bob@acme.example is removed. Ended: 1 agent, 0 connected apps, 0 open invites.\n", ""}},
		{[]string{"remove", "--email", "bob@acme.example"}, outcome{1, "", "graft: bob@acme.example is not a member of the organisation.\n"}},
	} {
		if got := graft(append(append([]string{"user"}, tt.args...), in...)...); got != tt.want {
			t.Errorf("user %v = %+v, want %+v", tt.args, got, tt.want)
		}
	}
	if got := graft("agent", "list", "--org", "acme.example"); !strings.Contains(got.out, "revoked ") {
		t.Errorf("agent list = %+v, want the agent revoked", got)
	}
	for email, want := range map[string]string{
		"nobody@acme.example": "graft: nobody@acme.example: nobody has this account. To make it, run graft user add.\n",
		"bob@acme.example":    "graft: bob@acme.example is in no organisation, so a link would lead nowhere. An invite brings them back.\n",
	} {
		if got := graft("user", "link", "--email", email); got != (outcome{1, "", want}) {
			t.Errorf("user link of %s = %+v, want %q", email, got, want)
		}
	}
	got := graft("user", "link", "--email", "ANA@acme.example") // needs no organisation
	if got.code != 0 || !link.MatchString(strings.TrimSpace(got.out)) || !strings.HasPrefix(got.errout, "The link of ana@acme.example works once, for three days.") {
		t.Errorf("user link = %+v", got)
	}
	log := graft("audit", "export", "--org", "acme.example").out
	for _, line := range []string{"Made bob@acme.example owner, who was member", "Removed bob@acme.example, who was owner", "Made a sign-in link for usr_"} {
		if !strings.Contains(log, line) {
			t.Errorf("the audit log lacks %q:\n%s", line, log)
		}
	}
	if n := strings.Count(log, "who was member"); n != 1 {
		t.Errorf("bob's role is in the log %d times, want once:\n%s", n, log)
	}
}

// Lost access: the operator's link sets a new password while the server runs.
func TestUserLinkLetsSomebodyBackIn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own(storetest.PrivateURL(t))
	h.serve(env...)
	graft := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(h.ok(append(append([]string{}, env...), args...)...))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(to string, form url.Values) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	use := func(link, password string) int {
		return post(link, url.Values{"name": {"Ana"}, "password": {password}})
	}
	first := graft("user", "add", "--email", "ana@acme.example")
	if got := use(first, "seven green kettles sing"); got != http.StatusSeeOther {
		t.Fatalf("first link = %d, want 303", got)
	}
	fresh := graft("user", "link", "--email", "ana@acme.example")
	if got := use(fresh, "eight blue kettles hum"); got != http.StatusSeeOther {
		t.Fatalf("fresh link = %d, want 303", got)
	}
	base, _, _ := strings.Cut(fresh, "/setup/")
	for password, want := range map[string]int{"seven green kettles sing": http.StatusUnauthorized, "eight blue kettles hum": http.StatusSeeOther} {
		if got := post(base+"/signin", url.Values{"email": {"ana@acme.example"}, "password": {password}}); got != want {
			t.Errorf("signed in with %q = %d, want %d", password, got, want)
		}
	}
	if got := use(fresh, "nine red kettles"); got != http.StatusGone {
		t.Errorf("the link again = %d, want 410", got)
	}
}
