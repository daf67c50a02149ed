package e2e_test

import (
	"net/http"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
)

// The first road of every deployment, in every look: from the welcome link to an agent's first call, and to its end.
func TestFirstRunToFirstCall(t *testing.T) {
	t.Parallel()
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		v, kit := firstVisitor(t, p)
		v.welcome(kit)
		v.SeeText("main", "No agents yet")
		v.SeeText("main", v.url+"/mcp")
		v.look("home-empty")

		v.arrive("main .btn.primary", "New agent")
		v.look("agent-new")
		token := v.makeAgent("hermes-prod")
		v.SeeText("#first-call", "Waiting")
		v.look("agent-made")
		v.Click("[aria-labelledby=token] [data-copy]")
		v.SeeText("#toasts", "Copied")

		v.eval(`document.body.dataset.loaded = "once"`)
		client := connect(t, v.url, token)
		if got := client.call(); got != http.StatusOK {
			t.Errorf("call = %d, want 200", got)
		}
		v.SeeText("#first-call", "Connected")
		v.SeeText("#agent-status", "Last used")
		v.SeeText("#agent-sessions", "Hermes 0.9")
		if v.attribute("body", "data-loaded") != "once" || v.token() != token {
			t.Error("the page was loaded again to show the first call")
		}
		v.look("agent-connected")

		for name, page := range map[string][2]string{"home": {"/", "Hello, Ana"}, "agents": {"/agents", "Agents"}} {
			entry := `#side a[href="` + page[0] + `"]:not(.org)`
			v.side(entry)
			if name == "home" {
				v.look("menu")
			}
			v.arrive(entry, page[1])
			v.SeeText("#agent-rows", "hermes-prod")
			v.look(name)
			v.seesCalls(client)
		}

		v.signOut()
		v.look("signin")
		v.signIn()
		v.side(`#side a[href="/agents"]`)
		v.arrive(`#side a[href="/agents"]`, "Agents")
		v.arrive("#agent-rows a.go", "hermes-prod")
		v.SeeText("[aria-labelledby=token]", "only its fingerprint")
		v.look("agent")

		v.Click("[commandfor=revoke][command=show-modal]")
		v.See("#revoke")
		v.look("revoke")
		v.Click("#revoke [command=close]")
		if v.visible("#revoke") || client.call() != http.StatusOK {
			t.Error("Keep it: the question is still there, or the agent is not")
		}
		v.Click("[commandfor=revoke][command=show-modal]")
		v.arrive("#revoke .btn.solid", "Agents")
		v.SeeText("#toasts", "hermes-prod is revoked.")
		if got := client.call(); got != http.StatusUnauthorized {
			t.Errorf("call of a revoked agent = %d, want 401", got)
		}
		v.SeeText("#agent-rows", "Revoked")
		v.look("agents-revoked")
		v.arrive("#agent-rows a.go", "hermes-prod")
		v.SeeText("main", "hermes-prod is revoked.")
		v.look("agent-revoked")
	})
}

// seesCalls expects the list now shown to follow a client's calls.
func (v *visitor) seesCalls(client *bearer) {
	v.t.Helper()
	const when = "#agent-rows time"
	before := v.attribute(when, "datetime")
	eventually(v.t, v.Path()+" shows a later call", func() bool {
		client.call()
		return v.attribute(when, "datetime") != before
	})
}

// Without scripts the same road leads there by forms and links.
func TestFirstRunToFirstCallWithoutScripts(t *testing.T) {
	t.Parallel()
	browser := e2e.StartBrowser(t)
	view := e2e.Phone
	view.NoScript = true
	v, kit := firstVisitor(t, browser.Page(t, view))
	v.welcome(kit)
	v.arrive("main .btn.primary", "New agent")
	first := v.makeAgent("hermes-prod")
	v.look("agent-made")
	if v.visible("[data-copy], [data-reveal], [data-dismiss]") {
		t.Error("buttons that need the script are shown without it")
	}
	client := connect(t, v.url, first)
	client.call()

	v.side(`#side a[href="/agents"]`)
	v.arrive(`#side a[href="/agents"]`, "Agents")
	v.Fill("[name=q]", "nobody")
	v.arrive(".filters button", "Agents")
	v.SeeText("#agents", "No agent matches “nobody”")
	v.look("agents-none-found")
	v.arrive("#agents .btn", "Agents")
	v.arrive("#agent-rows a.go", "hermes-prod")
	eventually(t, "the session is on the page", func() bool { // which stays fresh by being loaded again
		v.Visit(v.eval("location.href"))
		return v.shows("#agent-sessions", "Hermes 0.9")
	})
	v.look("agent")

	v.arrive(`main a[href$="/token"]`, "Make a new token for hermes-prod?")
	v.look("token-question")
	v.arrive("main .btn.solid", "hermes-prod")
	second := v.token()
	if got := client.call(); got != http.StatusUnauthorized {
		t.Errorf("call with the old token = %d, want 401", got)
	}
	client = connect(t, v.url, second)

	v.arrive(`main a[href$="/revoke"]`, "Revoke hermes-prod?")
	v.look("revoke-question")
	v.arrive("main footer a.btn", "hermes-prod") // Keep it
	if got := client.call(); got != http.StatusOK {
		t.Errorf("call of an agent that was kept = %d, want 200", got)
	}
	v.arrive(`main a[href$="/revoke"]`, "Revoke hermes-prod?")
	v.arrive("main .btn.solid", "Agents")
	if got := client.call(); got != http.StatusUnauthorized {
		t.Errorf("call of a revoked agent = %d, want 401", got)
	}
	v.SeeText("#toasts", "hermes-prod is revoked.")
	v.look("agents-revoked")

	v.signOut()
	v.look("signin")
	v.signIn()
}
