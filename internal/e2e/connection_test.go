package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// asks has an agent call a tool of the gateway, and returns what it is refused with.
func (b *bearer) asks(tool string, args map[string]any) (reason, link string) {
	b.t.Helper()
	_, answer := b.send("tools/call", map[string]any{"name": tool, "arguments": args})
	var got struct {
		Result struct{ Content []struct{ Text string } }
	}
	var said struct{ Reason, URL, Status string }
	text := answer
	if i := strings.Index(answer, "{"); i >= 0 {
		text = answer[i:]
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&got); err != nil || len(got.Result.Content) != 1 {
		b.t.Fatalf("%s = %s: %v", tool, answer, err)
	}
	if err := json.Unmarshal([]byte(got.Result.Content[0].Text), &said); err != nil {
		b.t.Fatal(err)
	}
	return said.Reason + said.Status, said.URL
}

var sentry = map[string]any{
	"vendor": "sentry", "primaryHost": "https://sentry.example/api/0", "hosts": []string{"us.sentry.example"}, "scheme": "bearer", "displayName": "Sentry, Northfield",
	"docsUrl": "https://docs.sentry.example/api/auth",
}

// An agent asks for a connection; a person sees what it is for, enters the token, and ends it later. No page shows the token again.
func TestConnection(t *testing.T) {
	t.Parallel()
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		v, kit := firstVisitor(t, p)
		connectsAVendor(t, v, kit)
	})
}

func TestConnectionWithoutScripts(t *testing.T) {
	t.Parallel()
	view := e2e.Phone
	view.NoScript = true
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, view))
	connectsAVendor(t, v, kit)
}

func connectsAVendor(t *testing.T, v *visitor, kit *servertest.Kit) {
	const token = "CANARY-sntrys-7f3a"
	v.welcome(kit)
	v.Visit(v.url + "/connections")
	v.SeeText("main", "No connections yet")
	v.look("connections-empty")
	v.Visit(v.url + "/agents")
	v.arrive("main .btn.primary", "New agent")
	b := connect(t, v.url, v.makeAgent("hermes"))
	word, link := b.asks("request_connection", sentry)
	if word != "awaiting_connection" {
		t.Fatalf("request_connection = %s, want an ask", word)
	}
	v.Visit(v.url + "/asks")
	v.SeeText("#asks", "hermes asks for a connection to")
	v.look("asks-connection")

	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Visit(v.url + at.Path + "?t=x" + at.Query().Get("t")[1:]); got != http.StatusForbidden {
		t.Errorf("with another mark the link is %d, want 403", got)
	}
	v.Visit(link)
	v.SeeText("h1", "Connect sentry for hermes")
	v.SeeText("main", "Goes only to sentry.example/api/0, us.sentry.example")
	v.look("ask-connection")
	v.Fill("#secret_token", token+"–")
	v.refused(".decide .primary", http.StatusUnprocessableEntity, "typographic quote")
	v.Forgive()
	v.Fill("#secret_token", "Bearer "+token)
	v.Click(".decide .primary")
	v.SeeText("h1", "hermes may use sentry")
	v.look("ask-connection-allowed")
	if word, _ := b.asks("request_connection", sentry); word != "connected" {
		t.Errorf("once it is connected request_connection = %s", word)
	}

	v.Visit(v.url + "/connections")
	v.SeeText("#connections", "Sentry, Northfield")
	v.look("connections")
	v.Visit(v.url + v.attribute("#connections a.go", "href"))
	v.SeeText("h1", "Sentry, Northfield")
	v.SeeText("main", "hermes")
	if strings.Contains(v.eval(`document.documentElement.outerHTML`), token) {
		t.Error("the page holds the token")
	}
	v.look("connection")
	page := v.Path()
	id := strings.TrimPrefix(page, "/connections/")

	// An app's agent uses what is ticked, and its page says so; the other agent uses all.
	client := startApp(t)
	v.Visit(v.url + v.isAsked(kit, client.url))
	v.look("consent-connections")
	v.Click(`input[name="connection"][value="` + id + `"]`)
	v.Click(".decide .primary")
	v.SeeText("h1", "Back in the app")
	client.answer(t)
	for agent, says := range map[string]string{"Claude": "1 connection", "hermes": "All that there are"} {
		v.Visit(v.url + "/agents?q=" + agent)
		v.Visit(v.url + v.attribute("#agent-rows a.go", "href"))
		v.SeeText("main", says)
		v.Visit(v.url + v.Path() + "/connections")
		v.SeeText("h1", "Connections of "+agent)
		v.look("agent-connections")
	}
	v.Visit(v.url + page + "/revoke")
	v.SeeText("h1", "Revoke Sentry, Northfield?")
	v.look("connection-revoke")
	v.Click("main .btn.solid")
	v.SeeText("main", "revoked")
	v.look("connection-revoked")
	if word, _ := b.asks("request_connection", sentry); word != "connection_exists" {
		t.Errorf("once it is revoked request_connection = %s", word)
	}

	// By hand, and what is wrong is said beside its field.
	v.Visit(v.url + "/connections/new")
	v.look("connection-choose")
	v.Visit(v.url + "/connections/new?scheme=api_key_header")
	v.look("connection-new")
	v.Fill("#vendor", "acme")
	v.Fill("#primary", "https://acme.example")
	v.Fill(`[id="schemeConfig.headerName"]`, "Cookie")
	v.Fill("#secret_apiKey", token)
	v.send("main .btn.primary")
	v.SeeText("main", "A credential cannot be sent in a header of that name")
	v.Forgive()
	v.look("connection-refused")
	if strings.Contains(v.eval(`document.documentElement.outerHTML`), token) {
		t.Error("a form that was not taken holds the key")
	}
	v.Forgive()
	v.Fill(`[id="schemeConfig.headerName"]`, "X-Key")
	v.Fill("#secret_apiKey", token)
	v.Click("main .btn.primary")
	v.SeeText("h1", "acme")
	if m := regexp.MustCompile(`^/connections/con_[0-9a-z]{26}$`); !m.MatchString(v.Path()) {
		t.Errorf("after it is made: %s", v.Path())
	}
}
