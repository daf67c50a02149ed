package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/store/storetest"
)

// What goes wrong is a page too: it says what happened and where to go on.
func TestPagesOfFailure(t *testing.T) {
	t.Parallel()
	chromium := e2e.StartBrowser(t)
	dark := e2e.Desk
	dark.Dark = true
	for _, view := range []e2e.View{e2e.Phone, dark} {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			v, kit := firstVisitor(t, chromium.Page(t, view))
			v.fails("/signin", http.StatusOK, "Sign in", "Nobody has an account here yet.")
			v.fails("/nowhere", http.StatusNotFound, "Not found", "Sign in")
			v.fails("/setup/grftl_spent", http.StatusGone, "This link has ended", "whoever runs Graft makes a new one")

			token, err := kit.DB.System().NewWelcomeLink(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v.Visit(v.url + "/setup/" + token)
			v.Fill("#name", "Ana")
			v.Fill("#email", visitorEmail)
			v.Fill("#organisation", "Northfield")
			v.Fill("#password", "passwordpassword")
			v.refused("main .btn.primary", http.StatusUnprocessableEntity, "One answer needs another look.")
			if !v.is(`document.querySelector("#organisation").value === "Northfield" && document.activeElement.id === "password" && !document.activeElement.value`) {
				t.Error("a refused welcome lost what was typed, kept the password, or does not begin at it")
			}
			v.Fill("#password", visitorPassword)
			v.arrive("main .btn.primary", "Hello, Ana")
			v.fails("/setup/"+token, http.StatusGone, "This link has ended", "If you have set a password")
			v.fails("/agents/agt_00000000000000000000000000", http.StatusNotFound, "Not found", "Go home")

			v.Visit(otherSite(t, v.url))
			v.refused("button", http.StatusForbidden, "This form was sent from another site, so nothing was done.")
			v.Visit(v.url)
			v.SeeText("main", "No agents yet")

			v.Visit(v.url + "/agents/new") // which asks for nothing more
			restore := storetest.Outage(t, kit.DSN)
			v.fails("/agents", http.StatusServiceUnavailable, "Graft cannot answer just now", "Go home")
			restore()
			eventually(t, "the database is back", func() bool { return v.Visit(v.url+"/agents") == http.StatusOK })
			v.SeeText("h1", "Agents") // and nobody was signed out

			v.signOut()
			v.Fill("#email", visitorEmail)
			v.Fill("#password", "not that one at all")
			v.refused(withPassword, http.StatusUnauthorized, "That email and password do not belong together.")
			if !v.is(`document.querySelector("#email").value === "` + visitorEmail + `" && document.activeElement.id === "password"`) {
				t.Error("a refused sign-in lost the address, or does not begin at the password")
			}
		})
	}
}

// fails opens a path that leads to a page of failure.
func (v *visitor) fails(path string, status int, heading, text string) {
	v.t.Helper()
	if got := v.Visit(v.url + path); got != status {
		v.t.Errorf("%s = %d, want %d", path, got, status)
	}
	v.SeeText("h1", heading)
	v.SeeText("main", text)
	v.look(fmt.Sprintf("%d-%s", status, heading))
}

// refused submits a form that is not taken.
func (v *visitor) refused(selector string, status int, text string) {
	v.t.Helper()
	if got := v.Submit(selector); got != status {
		v.t.Errorf("%s = %d, want %d", v.Path(), got, status)
	}
	v.SeeText("main", text)
	v.look(fmt.Sprintf("%d-%s", status, text))
}

// otherSite serves a page with a form to the gateway that would make an agent.
func otherSite(t *testing.T, gateway string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Other</title><link rel="icon" href="data:,">
			<form method="post" action="%s/agents"><input type="hidden" name="name" value="planted"><button>Win</button></form>`, gateway)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
