package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/oidc/oidctest"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

func TestSettingsOfAProviderAreWholeOrNone(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := server.SignOn{OIDCIssuer: "https://login.example.com/realms/main", OIDCClientID: "graft", OIDCClientSecret: "s3cret", OIDCName: "Example ID"}
	for name, x := range map[string]struct {
		change func(*server.SignOn)
		wrong  string // "" is fine
	}{
		"nothing":                 {func(o *server.SignOn) { *o = server.SignOn{} }, ""},
		"all":                     {func(*server.SignOn) {}, ""},
		"no name":                 {func(o *server.SignOn) { o.OIDCName = "" }, ""},
		"a file":                  {func(o *server.SignOn) { o.OIDCClientSecret, o.OIDCClientSecretFile = "", file("s3cret\n") }, ""},
		"a name alone":            {func(o *server.SignOn) { *o = server.SignOn{OIDCName: "Example ID"} }, "GRAFT_OIDC_ISSUER"}, // and the rest
		"no issuer":               {func(o *server.SignOn) { o.OIDCIssuer = "" }, "GRAFT_OIDC_ISSUER"},
		"an issuer over http":     {func(o *server.SignOn) { o.OIDCIssuer = "http://login.example.com" }, "GRAFT_OIDC_ISSUER"},
		"an issuer with a query":  {func(o *server.SignOn) { o.OIDCIssuer += "?a=b" }, "GRAFT_OIDC_ISSUER"},
		"no client":               {func(o *server.SignOn) { o.OIDCClientID = "" }, "GRAFT_OIDC_CLIENT_ID"},
		"a client of two lines":   {func(o *server.SignOn) { o.OIDCClientID = "a\nb" }, "GRAFT_OIDC_CLIENT_ID"},
		"no secret":               {func(o *server.SignOn) { o.OIDCClientSecret = "" }, "GRAFT_OIDC_CLIENT_SECRET"},
		"a secret of spaces":      {func(o *server.SignOn) { o.OIDCClientSecret = " \n" }, "GRAFT_OIDC_CLIENT_SECRET"},
		"a secret and a file":     {func(o *server.SignOn) { o.OIDCClientSecretFile = file("s3cret") }, "GRAFT_OIDC_CLIENT_SECRET"},
		"no such file":            {func(o *server.SignOn) { o.OIDCClientSecret, o.OIDCClientSecretFile = "", "/nope" }, "GRAFT_OIDC_CLIENT_SECRET_FILE"},
		"an empty file":           {func(o *server.SignOn) { o.OIDCClientSecret, o.OIDCClientSecretFile = "", file("\n") }, "GRAFT_OIDC_CLIENT_SECRET_FILE"},
		"a name that is too long": {func(o *server.SignOn) { o.OIDCName = strings.Repeat("a", 41) }, "GRAFT_OIDC_NAME"},
		"a name of two lines":     {func(o *server.SignOn) { o.OIDCName = "a\nb" }, "GRAFT_OIDC_NAME"},
	} {
		c := fine()
		c.SignOn = good
		x.change(&c.SignOn)
		err := c.Check()
		if (err == nil) != (x.wrong == "") || err != nil && (!strings.HasPrefix(err.Error(), x.wrong+" ") || name != "a name alone" && strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: Check() = %v, want %q named alone", name, err, x.wrong)
		}
	}
}

func TestWithoutAProviderNothingIsServedForOne(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	owner := k.SignIn(t, k.Owner)
	for path, method := range map[string]string{
		"/sign-in/oidc": http.MethodPost, "/sign-in/oidc/callback": http.MethodGet, "/confirm/oidc": http.MethodPost, "/invite/x/oidc": http.MethodPost,
		"/settings/identities": http.MethodPost, "/settings/identities/new": http.MethodGet,
	} {
		if a := ask(t, owner, method, k.URL+path, "", form); a.status != http.StatusNotFound {
			t.Errorf("%s %s = %d, want 404", method, path, a.status)
		}
	}
}

// One replica sends the browser to the provider and another takes it back; the log of neither says what passed by.
func TestAnyReplicaTakesBackWhomAnotherSent(t *testing.T) {
	t.Parallel()
	op := oidctest.Start(t)
	k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) {
		c.SignOn = server.SignOn{OIDCIssuer: op.URL, OIDCClientID: oidctest.ClientID, OIDCClientSecret: oidctest.Secret, OIDCName: "Example ID"}
	}})
	_, err := k.DB.System().AddIdentity(t.Context(), store.Identity{UserID: k.Owner.User, Issuer: op.URL, Subject: op.Subject, Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	onward := regexp.MustCompile(`href="([^"]+)" data-onward`)
	for range 3 { // whichever replicas they meet
		a := ask(t, browser, http.MethodPost, k.URL+"/sign-in/oidc", "next=/agents", form)
		at := onward.FindStringSubmatch(a.body)
		if a.status != http.StatusOK || at == nil {
			t.Fatalf("POST /sign-in/oidc = %d:\n%s", a.status, a.body)
		}
		back := op.Visit(t, strings.ReplaceAll(at[1], "&amp;", "&"))
		if a = ask(t, browser, http.MethodGet, k.URL+server.SignOnPath+"?"+back.Encode(), ""); a.status != http.StatusSeeOther || a.header.Get("Location") != "/agents" {
			t.Fatalf("the way back = %d to %q, want /agents:\n%s", a.status, a.header.Get("Location"), a.body)
		}
	}
	k.StopAll()
	for _, secret := range append([]string{"CANARY"}, op.Issued...) {
		if strings.Contains(k.Log.String(), secret) {
			t.Errorf("the log says %q", secret)
		}
	}
}

func TestAProviderThatIsAwayStopsNoStart(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, Configure: func(c *server.Config) {
		c.SignOn = server.SignOn{OIDCIssuer: "http://127.0.0.1:1", OIDCClientID: "graft", OIDCClientSecret: "secret"}
	}})
	page := ask(t, bare, http.MethodGet, k.URL+"/signin", "")
	if page.status != http.StatusOK || !strings.Contains(page.body, "Continue with 127.0.0.1:1") {
		t.Errorf("GET /signin = %d:\n%s", page.status, page.body)
	}
	page = ask(t, bare, http.MethodPost, k.URL+"/sign-in/oidc", "", form)
	if page.status != http.StatusBadGateway || !strings.Contains(page.body, "No answer from 127.0.0.1:1") {
		t.Errorf("POST /sign-in/oidc = %d:\n%s", page.status, page.body)
	}
}

func TestAttemptsAtTheProviderAreCountedAsThoseWithAPassword(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, Configure: func(c *server.Config) { c.SignOn, c.RateSignIn = provider, "2/m" }})
	for route, want := range map[string]int{"GET " + server.SignOnPath: http.StatusUnauthorized, "POST /invite/nothing/oidc": http.StatusGone} {
		method, path, _ := strings.Cut(route, " ")
		for n := range 3 {
			if n == 2 {
				want = http.StatusTooManyRequests
			}
			if a := ask(t, bare, method, k.URL+path, "", form); a.status != want {
				t.Errorf("%s for the %d. time = %d, want %d", route, n+1, a.status, want)
			}
		}
	}
}
