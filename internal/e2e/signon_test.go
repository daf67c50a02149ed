package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// startSignOn starts a gateway where people may sign in at a real provider.
func startSignOn(t *testing.T) *servertest.Kit {
	t.Helper()
	return servertest.Start(t, servertest.Options{SignOn: func(redirect string) servertest.SignOn {
		p := e2e.NewProgram(t, e2e.Server(t, "oidc-provider.mjs")).Start(redirect)
		var said struct{ URL string }
		p.Next(&said)
		return servertest.SignOn{OIDCIssuer: said.URL, OIDCClientID: "graft", OIDCClientSecret: "CANARY-e2e-oidc", OIDCName: "Example ID"}
	}})
}

// atProvider signs in at the provider, whose page comes by itself, as name.
func (v *visitor) atProvider(name, heading string) {
	v.t.Helper()
	v.SeeText("h1", "Provider")
	v.Fill("[name=login]", name)
	v.arrive("button", heading)
}

// An account at a provider is added, signs in and goes, in every look.
func TestSignOn(t *testing.T) {
	t.Parallel()
	kit := startSignOn(t)
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		v := &visitor{Page: p, t: t, url: kit.URL}
		owner := storetest.Organisation(t, kit.DB)
		v.enter(kit, owner)
		v.Visit(v.url + "/settings")
		v.arrive(`a[href="/settings/identities/new"]`, "Single sign-on")
		v.look("identity-new")
		v.Fill("#name", "Work")
		v.Submit("main .btn.primary")
		v.atProvider(owner.User.String(), "Settings")
		v.SeeText("#toasts", "Work is added.")
		v.SeeText("[aria-labelledby=identities]", "Work")
		v.look("settings-signon")
		v.arrive(`[aria-labelledby=identities] .end a`, "Rename Work")
		v.look("identity-rename")

		v.signOut()
		v.Visit(v.url + "/agents/new?from=here")
		v.look("signin-signon")
		v.Submit(withProvider) // which knows them already, so it leads back at once
		v.SeeText("h1", "New agent")
		if got := v.eval(`location.pathname + location.search`); got != "/agents/new?from=here" {
			t.Errorf("signed in at %s, want where they were going", got)
		}
		v.Visit(v.url + "/settings")
		v.SeeText("[aria-labelledby=identities]", "last used")
	})
	if strings.Contains(kit.Log.String(), "CANARY") {
		t.Error("the log says the client's secret")
	}
}

// withProvider is the button that goes to the provider.
const withProvider = `form[action="/sign-in/oidc"] .btn`

// Without scripts too somebody joins at the provider, signs in and, a stranger to it, is refused.
func TestSignOnWithoutScripts(t *testing.T) {
	t.Parallel()
	kit := startSignOn(t)
	view := e2e.Phone
	view.NoScript = true
	v := &visitor{Page: e2e.StartBrowser(t).Page(t, view), t: t, url: kit.URL}
	v.Visit(v.url + "/signin")
	v.Submit(withProvider)
	v.SeeText("h1", "Provider")
	v.Fill("[name=login]", "ana-"+kit.Owner.User.String())
	if got := v.Submit("button"); got != http.StatusUnauthorized {
		t.Errorf("a stranger = %d, want 401", got)
	}
	v.SeeText("h1", "Nobody here signs in with that account")
	v.Forgive() // the status
	v.look("signon-stranger")

	var token string
	err := kit.DB.As(t.Context(), kit.Owner, func(tx *store.Tx) (err error) {
		_, token, err = tx.CreateInvite(t.Context(), "ana-"+kit.Owner.User.String()+"@join.example", store.RoleMember)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v.Visit(v.url + "/invite/" + token)
	v.look("join-signon")
	v.Fill("#name", "Ana")
	v.Submit(`[formaction$="/oidc"]`)
	v.SeeText("h1", "Hello, Ana")
	v.signOut()
	v.Submit(withProvider)
	v.SeeText("h1", "Hello, Ana")
}
