package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// An app is a client on the person's computer that waits for an answer.
type app struct {
	url string
	got chan url.Values
}

func startApp(t *testing.T) *app {
	t.Helper()
	a := &app{got: make(chan url.Values, 10)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.got <- r.URL.Query()
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><html lang="en"><title>App</title><link rel="icon" href="data:,"><main><h1>Back in the app</h1></main>`)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL + "/callback"
	return a
}

// answer is what the app was told, once.
func (a *app) answer(t *testing.T) url.Values {
	t.Helper()
	select {
	case q := <-a.got:
		return q
	case <-time.After(30 * time.Second):
		t.Fatal("the app was told nothing")
		return nil
	}
}

// toldNothing expects that the app hears nothing more.
func (a *app) toldNothing(t *testing.T) {
	t.Helper()
	select {
	case q := <-a.got:
		t.Errorf("the app was told once more: %v", q)
	default:
	}
}

// isAsked has an app begin in this browser, and returns the path that it is led to.
func (v *visitor) isAsked(kit *servertest.Kit, redirectURI string) string {
	v.t.Helper()
	return v.isAskedBy(kit, "state=s1", &consent.Request{
		ClientID: "https://claude.ai/oauth/mcp-client.json", ClientName: "Claude", Document: []byte(`{}`), RedirectURI: redirectURI, State: "s1",
		Challenge: strings.Repeat("c", 43), Scope: "mcp",
	})
}

// isAskedBy is isAsked for a query; proven is nil where that is looked at only once somebody has signed in.
func (v *visitor) isAskedBy(kit *servertest.Kit, query string, proven *consent.Request) string {
	v.t.Helper()
	desk := consent.NewDesk(consent.Config{DB: kit.DB, Issuer: v.url, Now: time.Now})
	id, token, err := desk.Begin(v.t.Context(), query, proven)
	if err != nil {
		v.t.Fatal(err)
	}
	c := consent.BrowserCookie(id, token, false)
	v.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: v.url, HTTPOnly: &c.HttpOnly, SameSite: network.CookieSameSiteLax})
		return err
	}))
	return "/consent/" + id
}

// An app asks, somebody signs in first, the app is connected, and is disconnected.
func TestConsent(t *testing.T) {
	t.Parallel()
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		v, kit := firstVisitor(t, p)
		connectsAnApp(t, v, kit)
	})
}

func TestConsentWithoutScripts(t *testing.T) {
	t.Parallel()
	view := e2e.Phone
	view.NoScript = true
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, view))
	connectsAnApp(t, v, kit)
}

func connectsAnApp(t *testing.T, v *visitor, kit *servertest.Kit) {
	v.welcome(kit)
	v.Visit(v.url + "/agents/new") // which has no stream that the end of the session could meet
	v.signOut()
	client := startApp(t)
	path := v.isAsked(kit, client.url)
	v.Visit(v.url + path)
	v.SeeText("h1", "Sign in")
	v.Fill("#email", visitorEmail)
	v.Fill("#password", visitorPassword)
	v.arrive(withPassword, "Let Claude work in Northfield?")
	if got := v.Path(); got != path {
		t.Errorf("after the sign-in: %s, want %s", got, path)
	}
	v.SeeText("main", "Name not verified")
	v.SeeText("main", "any program on this computer could receive it")
	v.SeeText("main", "in 9 min")
	v.look("consent")

	v.Fill("#name", "a/b")
	v.refused(".decide .primary", http.StatusUnprocessableEntity, "Use 1 to 64 letters")
	if got := v.eval(`document.querySelector("#name").value`); got != "a/b" {
		t.Errorf("name = %q, want what was typed", got)
	}
	v.Forgive()
	v.Fill("#name", "Claude")
	v.Click(".decide .primary")
	v.SeeText("h1", "Back in the app")
	if q := client.answer(t); !store.WellFormed(store.CodePrefix, q.Get("code")) || q.Get("state") != "s1" || q.Get("iss") != v.url {
		t.Errorf("the app was told %v, want a code, the state and who says so", q)
	}

	// Back leads to a page that says that it is over.
	if got := v.Visit(v.url + path); got != http.StatusGone {
		t.Errorf("the answered request = %d, want 410", got)
	}
	v.SeeText("h1", "This request has ended")
	v.look("consent-ended")

	v.Visit(v.url + "/agents")
	v.look("agents")
	v.arrive(`main .head a[href="/apps"]`, "Connected apps")
	v.SeeText("main table", "Claude")
	v.look("apps")
	agent := `main table td.wide a[href^="/agents/"]`
	if v.View().Width < e2e.Desk.Width {
		agent = `main table .narrow a`
	}
	v.arrive(agent, "Claude")
	v.SeeText("[aria-labelledby=apps]", "connected by you")
	v.look("agent-with-app")
	v.arrive(`[aria-labelledby=apps] a.btn`, "Disconnect Claude?")
	v.look("app-end")
	v.arrive("main .btn.solid", "Claude")
	v.SeeText("#toasts", "Claude is disconnected.")
	v.SeeText("[aria-labelledby=apps]", "Disconnected here by you.")
	v.look("agent-app-ended")

	// A second one, of an app that has a scheme of its own and is not installed: the page stays and says what to do.
	v.Visit(v.url + v.isAsked(kit, "cursor://anysphere.cursor-mcp/oauth/callback"))
	v.SeeText("main", "claims addresses that begin with cursor:")
	v.Click(`label[for="agent-old"]`)
	v.See("#which")
	if v.visible("#name") {
		t.Error("the name of a new agent is asked for where an existing one is chosen")
	}
	v.look("consent-existing")
	v.Click(".decide .btn:not(.primary)")
	v.SeeText("h1", "Back to Claude")
	v.SeeText("main", "Nothing was connected.")
	if got := v.attribute("a[data-onward]", "href"); !strings.HasPrefix(got, "cursor://anysphere.cursor-mcp/oauth/callback?error=access_denied") {
		t.Errorf("the way on is %q, want the app's", got)
	}
	v.Forgive() // the way to an app that is not installed
	v.look("onward")
	client.toldNothing(t) // who is told twice redeems twice
}

// A press that was meant for what was in front of the page a moment ago connects nothing.
func TestConsentTakesNoAnswerAtOnce(t *testing.T) {
	t.Parallel()
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, e2e.Desk))
	v.welcome(kit)
	client := startApp(t)
	asks := func(when string) {
		t.Helper()
		v.See("html[data-settled]")
		if got := v.Text("h1"); !strings.HasPrefix(got, "Let Claude work in") {
			t.Errorf("%s the page is %q, want the question", when, got)
		}
		client.toldNothing(t)
	}
	const connect = `button.primary[value="allow"]`
	v.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `addEventListener('DOMContentLoaded', () => document.querySelector('` + connect + `')?.click())`,
		})
		return err
	}))
	v.Visit(v.url + v.isAsked(kit, client.url))
	asks("after a press at its load")
	for when, press := range map[string]string{
		"after a press as it comes to the front": `dispatchEvent(new Event('focus')); document.querySelector('` + connect + `').click()`,
		"after Enter as it comes to the front":   `dispatchEvent(new Event('focus')); document.getElementById('consent').requestSubmit(document.querySelector('#consent button[hidden]'))`,
		"after a press as it comes to view":      `document.dispatchEvent(new Event('visibilitychange')); document.querySelector('` + connect + `').click()`,
	} {
		v.Do(chromedp.Evaluate[chromedp.Void](press))
		asks(when)
	}
	v.Click(connect)
	v.SeeText("h1", "Back in the app")
	if q := client.answer(t); q.Get("code") == "" {
		t.Errorf("the app was told %v, want a code", q)
	}
}

// Who an app with a document is, is looked at once somebody has signed in: what is wrong with its request is then the app's to
// hear, behind the form to sign in, which Chromium holds to form-action.
func TestConsentLooksAtADocumentAfterTheSignIn(t *testing.T) {
	t.Parallel()
	const document = "https://app.example/client.json"
	kit := servertest.Start(t, servertest.Options{Private: true, Documents: map[string]string{
		document: `{"client_id": "` + document + `", "client_name": "App", "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}`,
	}})
	v := &visitor{Page: e2e.StartBrowser(t).Page(t, e2e.Phone), t: t, url: kit.URL}
	v.welcome(kit)
	client := startApp(t)
	ask := func(change ...string) string {
		q := url.Values{
			"client_id": {document}, "redirect_uri": {client.url}, "state": {"s1"}, "response_type": {"code"}, "scope": {"mcp"},
			"code_challenge": {strings.Repeat("c", 43)}, "code_challenge_method": {"S256"},
		}
		for i := 0; i < len(change); i += 2 {
			q.Set(change[i], change[i+1])
		}
		return q.Encode()
	}
	signsIn := func(path, heading string) {
		t.Helper()
		v.Visit(v.url + "/agents/new") // which has no stream that the end of the session could meet
		v.signOut()
		v.Visit(v.url + path)
		v.SeeText("h1", "Sign in")
		v.Fill("#email", visitorEmail)
		v.Fill("#password", visitorPassword)
		v.Click(withPassword)
		v.SeeText("h1", heading)
	}
	signsIn("/mcp/oauth/authorize?"+ask(), "Let App work in Northfield?")

	// Most of what is wrong is seen before anybody signs in. This request began while the gateway still took it.
	signsIn(v.isAskedBy(kit, ask("prompt", "none"), nil), "Back in the app")
	if q := client.answer(t); q.Get("error") != "interaction_required" || q.Get("state") != "s1" || q.Get("iss") != v.url || q.Has("code") {
		t.Errorf("the app was told %v, want interaction_required, its state and who says so", q)
	}

	v.Visit(v.url + "/agents/new")
	v.signOut()
	v.Visit(v.url + "/mcp/oauth/authorize?" + ask("redirect_uri", "https://elsewhere.example/callback"))
	v.Fill("#email", visitorEmail)
	v.Fill("#password", visitorPassword)
	v.refused(withPassword, http.StatusBadRequest, "an address that it did not register")
	client.toldNothing(t)
}

// With the keyboard alone one signs in, chooses and connects.
func TestConsentByKeyboardAlone(t *testing.T) {
	t.Parallel()
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, e2e.Desk))
	v.welcome(kit)
	v.Visit(v.url + "/agents/new") // which has no stream that the end of the session could meet
	v.signOut()
	client := startApp(t)
	v.Visit(v.url + v.isAsked(kit, client.url))
	v.standsAt("Email")
	v.Press(visitorEmail)
	v.tabTo("Password")
	v.Press(visitorPassword)
	v.Press(kb.Enter)
	v.SeeText("h1", "Let Claude work in Northfield?")
	v.tabTo("Not you?")
	v.tabTo("A new agent")
	v.tabTo("Name of the new agent")
	v.Press(" at my desk") // after what stands there, which Tab has marked
	v.tabTo("Cancel")
	v.tabTo("Connect")
	v.Press(kb.Enter)
	v.SeeText("h1", "Back in the app")
	if q := client.answer(t); q.Get("code") == "" {
		t.Errorf("the app was told %v, want a code", q)
	}

	// Enter in the field connects: it never cancels.
	v.Visit(v.url + v.isAsked(kit, client.url))
	v.tabTo("Name of the new agent")
	v.Press("by Enter")
	v.Press(kb.Enter)
	v.SeeText("h1", "Back in the app")
	if q := client.answer(t); q.Get("code") == "" {
		t.Errorf("the app was told %v, want a code", q)
	}
	v.Visit(v.url + "/agents")
	v.SeeText("#agent-rows", "by Enter")
}

// Of several organisations one is chosen, and what was typed stays.
func TestConsentInSeveralOrganisations(t *testing.T) {
	t.Parallel()
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprintf("scripts %t", script), func(t *testing.T) {
			t.Parallel()
			view := e2e.Phone
			view.NoScript = !script
			v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, view))
			v.welcome(kit)
			if _, _, err := kit.DB.System().Enrol(t.Context(), "Southfield", visitorEmail, store.RoleOwner); err != nil {
				t.Fatal(err)
			}
			client := startApp(t)
			v.Visit(v.url + v.isAsked(kit, client.url))
			v.SeeText("h1", "Let Claude work in Northfield?")
			v.look("consent-several")
			v.Fill("#name", "typed before")
			v.eval(`(() => { const s = document.querySelector("#org"); s.value = [...s.options].find(o => o.text === "Southfield").value; return s.value })()`)
			v.arrive("#org + .btn", "Let Claude work in Southfield?")
			if got := v.eval(`document.querySelector("#name").value`); got != "typed before" {
				t.Errorf("name = %q, want what was typed", got)
			}
			v.Click(".decide .primary")
			v.SeeText("h1", "Back in the app")
			if q := client.answer(t); q.Get("code") == "" {
				t.Errorf("the app was told %v, want a code", q)
			}
		})
	}
}
