package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// The road of a call that can change things, in every look and without scripts: an upstream is added with its secret, an
// agent promotes a tool of it and calls, a person allows it, and the call stands in Activity, step by step.
func TestFromAnUpstreamToItsFirstCallInActivity(t *testing.T) {
	t.Parallel()
	chromium := e2e.StartBrowser(t)
	without := e2e.Phone
	without.NoScript = true
	for _, view := range append(e2e.Views(), without) {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			v, kit := firstVisitor(t, chromium.Page(t, view))
			v.welcome(kit)
			upstreamRoad(t, v)
		})
	}
}

const upstreamKey = "key-of-the-echo-upstream"

func upstreamRoad(t *testing.T, v *visitor) {
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: upstreamKey})
	v.goTo("/upstreams", "Upstreams")
	v.SeeText("#upstreams", "No upstreams yet")
	v.look("upstreams-empty")
	v.Fill("#name", "echo key")
	v.Fill("#secret", upstreamKey)
	v.send("#secrets form .btn:not([data-reveal])")
	v.SeeText("#name-error", "capital letters")
	v.Forgive()
	v.look("secret-refused")
	v.Fill("#name", "ECHO_KEY")
	v.Fill("#secret", "Bearer "+upstreamKey)
	v.send("#secrets form .btn:not([data-reveal])")
	v.SeeText("#toasts", "ECHO_KEY is saved.")

	v.arrive("main .btn.primary", "Add an upstream")
	v.look("upstream-new")
	v.Fill("#name", "Echo Server")
	v.Fill("#url", srv.URL)
	v.Fill("#header_1", "Authorization")
	v.Fill("#secret_header_1", "Bearer ${ECHO_KEY}")
	v.send("main .btn.primary")
	v.SeeText("#name-error", "kebab case")
	v.Forgive()
	v.look("upstream-refused")
	v.Fill("#name", "echo")
	v.send("button[name=more]")
	v.See("#header_3")
	v.send("main .btn.primary")
	v.SeeText("h1", "echo")
	v.SeeText("#tools", "echo__count")
	v.look("upstream")
	v.arrive(`#tools a[href$="show=reads"]`, "echo")
	v.SeeText("#tools", "hints are not trusted")
	v.arrive(`main a[href$="/change"]`, "Change echo")
	v.look("upstream-change")
	v.arrive(`.crumbs a`, "echo")
	v.arrive(`form[action$="/test"] .btn`, "echo")
	v.SeeText("#toasts", "echo answers. It offers 2 tools.")

	v.goTo("/agents", "Agents")
	v.arrive("main .btn.primary", "New agent")
	client := connect(t, v.url, v.makeAgent("hermes-prod"))
	if status, answer := client.send("tools/call", map[string]any{"name": "promote", "arguments": map[string]any{"vendor": "echo", "name": "count"}}); status != http.StatusOK || !strings.Contains(answer, `promoted`) {
		t.Fatalf("promote = %d, %s", status, answer)
	}
	link := client.waits(`{"for":"the minutes"}`)
	v.goTo("/", "Hello, Ana")
	v.SeeText("main", "hermes-prod wants to use")
	v.look("home-waiting")
	v.goTo("/asks", "Asks")
	v.SeeText("#asks", "hermes-prod wants to use")
	v.look("asks")

	if got := v.Visit(link + "x"); got != http.StatusForbidden {
		t.Errorf("a link with a wrong mark = %d, want 403", got)
	}
	v.look("ask-wrong-mark")
	if got := v.Visit(link); got != http.StatusOK {
		t.Fatalf("the link = %d, want 200", got)
	}
	v.SeeText("h1", "Let hermes-prod use echo__count?")
	v.SeeText(".wire", "the minutes")
	v.look("ask")
	client.waits(`{"for":"the minutes"}`) // looking decides nothing
	v.arrive("[value=allow]", "hermes-prod may use echo__count")
	v.look("ask-allowed")
	if got := srv.Runs("count"); got != 0 {
		t.Errorf("the tool ran %d times before it was called again", got)
	}
	if _, answer := client.send("tools/call", map[string]any{"name": "echo__count", "arguments": map[string]any{"for": "the minutes"}}); srv.Runs("count") != 1 {
		t.Errorf("after Allow, the call is answered %s and the tool ran %d times, want once", answer, srv.Runs("count"))
	}

	eventually(t, "the call is in Activity", func() bool {
		v.Visit(v.url + "/activity?kind=call&tool=echo__count&outcome=ok")
		return v.shows("#activity", "echo__count")
	})
	v.look("activity-filtered")
	v.arrive("#activity a.go", "echo__count")
	v.SeeText(".stem", "Allowed by you")
	v.SeeText(".stem", "Answered: ok")
	v.look("run")
	v.goTo("/activity", "Activity")
	v.SeeText("#activity", "Added upstream echo")
	v.look("activity")
	v.arrive(`main a[href="/activity/verify"]`, "Verify and export")
	v.look("verify")

	v.goTo("/upstreams", "Upstreams")
	v.look("upstreams")
	v.arrive(`#upstreams a.go`, "echo")
	v.arrive(`main a[href$="/remove"]`, "Remove echo?")
	v.look("upstream-remove")
	v.arrive("main .btn.solid", "Upstreams")
	v.SeeText("#toasts", "echo is removed.")
	if v.shows("main", upstreamKey) {
		t.Error("the secret is on the page")
	}
}

// goTo follows an entry of the side list.
func (v *visitor) goTo(path, heading string) {
	v.t.Helper()
	entry := `#side a[href="` + path + `"]:not(.org)`
	v.side(entry)
	v.arrive(entry, heading)
}

// send presses the button of a form that the script, where there is one, sends by itself.
func (v *visitor) send(selector string) {
	v.t.Helper()
	if v.View().NoScript {
		v.Submit(selector)
		return
	}
	v.Click(selector)
}

// waits calls echo__count, which a person has to allow first, and returns the link that the agent is given for them.
func (b *bearer) waits(args string) string {
	b.t.Helper()
	_, answer := b.send("tools/call", map[string]any{"name": "echo__count", "arguments": json.RawMessage(args)})
	var got struct {
		Result struct {
			StructuredContent struct{ Reason, URL string }
		}
	}
	_, data, isStream := strings.Cut(answer, "data: ")
	if !isStream {
		data = answer
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(data)), &got); err != nil || got.Result.StructuredContent.Reason != "awaiting_approval" {
		b.t.Fatalf("the call is answered %s, want it to wait for a person", answer)
	}
	return got.Result.StructuredContent.URL
}

// An ask is answered with the keyboard alone, and closes itself in another tab.
func TestAnAskByKeyboardAloneAndInTwoTabs(t *testing.T) {
	t.Parallel()
	chromium := e2e.StartBrowser(t)
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	v, kit := firstVisitor(t, chromium.Page(t, e2e.Phone))
	v.welcome(kit)
	v.Visit(v.url + "/upstreams")
	v.tabTo("Add an upstream")
	v.Press(kb.Enter)
	v.SeeText("h1", "Add an upstream")
	v.standsAt("Name")
	v.Press("echo")
	v.tabTo("URL")
	v.Press(srv.URL)
	v.tabTo("Trust this upstream’s hints")
	v.Press(" ")
	v.tabTo("Add and connect")
	v.Press(kb.Enter)
	v.SeeText("#tools", "echo__count")

	v.Visit(v.url + "/agents/new")
	client := connect(t, v.url, v.makeAgent("hermes-prod"))
	client.send("tools/call", map[string]any{"name": "promote", "arguments": map[string]any{"vendor": "echo", "name": "count"}})
	link := client.waits(`{"n":1}`)
	v.Visit(link)
	v.tabTo("Ask every time for this tool")
	v.Press(" ")
	v.tabTo("Deny")
	v.tabTo("Allow")
	v.Press(kb.Enter)
	v.SeeText("h1", "hermes-prod may use echo__count")
	v.SeeText("#ask-decide", "for this one call")
	client.send("tools/call", map[string]any{"name": "echo__count", "arguments": map[string]any{"n": 1}})
	if got := srv.Runs("count"); got != 1 {
		t.Errorf("the call that was allowed ran %d times, want once", got)
	}

	again := client.waits(`{"n":1}`)
	v.Visit(again)
	v.SeeText("#ask-decide", "for this call alone")
	v.eval(`fetch(location.pathname, {method: "POST", body: new URLSearchParams({answer: "deny"})}), ""`) // as another tab does
	v.SeeText("h1", "hermes-prod may not use echo__count")
	if v.visible("[name=answer]") {
		t.Error("the buttons are there after the ask was answered elsewhere")
	}
	v.look("ask-answered-elsewhere")
}
