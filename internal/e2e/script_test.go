package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// What the console's one script does for a page, each as its reader meets it.
func TestScript(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	before := startFront(t, kit)
	chromium := e2e.StartBrowser(t)
	for name, test := range map[string]func(*testing.T, *desk){
		"a live list leaves alone who types in it or stands on it": liveListLeavesPeopleAlone,
		"a filter finds as one types, and what comes later":        filterFindsAsOneTypes,
		"a form that is refused keeps what was typed":              refusedFormKeepsWhatWasTyped,
		"copying is said, and works without a clipboard":           copyIsSaid,
		"a password is shown on demand, and never sent so":         passwordIsShownOnDemand,
		"times are the reader's":                                   timesAreTheReaders,
		"going back does not bring a token back":                   backBringsNoTokenBack,
		"a toast leaves by itself":                                 toastLeaves,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := e2e.Desk
			view.Zone = "Asia/Tokyo"
			owner := storetest.Organisation(t, kit.DB)
			d := &desk{visitor: &visitor{Page: chromium.Page(t, view), t: t, url: kit.URL}, db: kit.DB, owner: owner}
			d.enter(kit, owner)
			test(t, d)
		})
	}
	for name, test := range map[string]func(*testing.T, *desk, *front){
		"a button under way says so, and works once":     busyButtonWorksOnce,
		"a page holds one stream, and none out of sight": streamEndsOutOfSight,
	} {
		t.Run(name, func(t *testing.T) { // one after the other: they count what comes through the front
			owner := storetest.Organisation(t, kit.DB)
			d := &desk{visitor: &visitor{Page: chromium.Page(t, e2e.Desk), t: t, url: before.url}, db: kit.DB, owner: owner}
			d.enter(kit, owner)
			test(t, d, before)
		})
	}
	for name, test := range map[string]func(*testing.T, *desk, *servertest.Kit){
		"a stream comes back after its replica was restarted": streamComesBack,
		"a stream beyond the limit is asked for again":        refusedStreamIsAskedForAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := servertest.Start(t, servertest.Options{Replicas: 1})
			d := &desk{visitor: &visitor{Page: chromium.Page(t, e2e.Desk), t: t, url: kit.URL}, db: kit.DB, owner: kit.Owner}
			d.enter(kit, kit.Owner)
			test(t, d, kit)
		})
	}
}

// A desk is a visitor who owns an organisation, and what happens there meanwhile.
type desk struct {
	*visitor
	db    *store.DB
	owner store.Caller
}

// agent makes one elsewhere.
func (d *desk) agent(name string) store.Agent {
	d.t.Helper()
	a, _ := storetest.Agent(d.t, d.db, d.owner, name)
	return a
}

func liveListLeavesPeopleAlone(t *testing.T, d *desk) {
	for n := range 40 {
		d.agent(fmt.Sprintf("agent-%02d", n))
	}
	d.Visit(d.url + "/agents")
	d.Fill("[name=q]", "agent")
	d.SeeText("#agent-count", "40 of 40 agents found.")
	d.eval(`scrollTo(0, 200), ""`)
	d.agent("agent-seen")
	d.SeeText("#agent-rows", "agent-seen")
	if !d.is(`document.activeElement.name === "q" && document.activeElement.value === "agent" && scrollY === 200`) {
		t.Errorf("after a row came: focus on %q with %q, scrolled by %s; want the filter, what was typed, 200",
			d.eval("document.activeElement.name"), d.eval("document.activeElement.value ?? ''"), d.eval("String(scrollY)"))
	}

	d.eval(`document.querySelector("#agent-rows a").focus(), ""`)
	d.agent("agent-held")
	d.SeeText("#agent-count", "42 of 42") // nobody is there
	if d.shows("#agent-rows", "agent-held") || !d.is(`document.querySelector("#agent-rows").contains(document.activeElement)`) {
		t.Error("the rows changed under who stands on one")
	}
	d.Press(kb.Tab, chromedp.ModifierShift)
	d.SeeText("#agent-rows", "agent-held")
}

func filterFindsAsOneTypes(t *testing.T, d *desk) {
	d.agent("hermes-prod")
	d.agent("codex")
	d.Visit(d.url + "/agents")
	d.eval(`document.body.dataset.loaded = "once"`)
	d.Fill("[name=q]", "herm")
	d.SeeText("#agent-count", "1 of 2 agents found.")
	if d.shows("#agent-rows", "codex") || d.Path() != "/agents?q=herm" {
		t.Errorf("at %s, want ?q=herm and codex not found", d.Path())
	}
	d.agent("Hermes-test")
	d.agent("codex-test")
	d.SeeText("#agent-count", "2 of 4 agents found.")
	if d.shows("#agent-rows", "codex") || !d.shows("#agent-rows", "Hermes-test") {
		t.Errorf("rows = %q, want what matches alone", d.Text("#agent-rows"))
	}
	d.Press("es-none")
	d.SeeText("#agents", "No agent matches “hermes-none”")
	d.Axe()
	d.Press(strings.Repeat(kb.Backspace, len("hermes-none")))
	d.SeeText("#agent-count", "4 agents.")
	if d.attribute("body", "data-loaded") != "once" || !d.is(`document.activeElement.name === "q"`) {
		t.Error("finding loaded the page anew, or moved the focus")
	}
	if d.visible(".filters button") {
		t.Error("the button Find is shown where the script sends what is typed")
	}
}

func refusedFormKeepsWhatWasTyped(t *testing.T, d *desk) {
	d.agent("hermes-prod")
	d.Visit(d.url + "/agents/new")
	d.eval(`document.body.dataset.loaded = "once"`)
	d.Fill("#name", "Hermes-Prod")
	d.Press(kb.Enter)
	d.SeeText("#name-error", "Choose another name")
	if !d.is(`document.activeElement.id === "name" && document.activeElement.value === "Hermes-Prod"`) || d.attribute("body", "data-loaded") != "once" {
		t.Error("a refused form loaded the page anew, lost what was typed, or lost the focus")
	}
	d.Axe()
	d.Press("-2")
	d.Press(kb.Enter)
	d.SeeText("h1", "Hermes-Prod-2")
}

func copyIsSaid(t *testing.T, d *desk) {
	d.Visit(d.url + "/agents/new")
	token := d.makeAgent("hermes-prod")
	button := "[aria-labelledby=token] [data-copy]"
	d.Click(button)
	d.SeeText("#toasts", "Copied")
	if !d.is(`document.querySelector("#toasts").role === "status"`) || d.attribute(button, "aria-label") != "Copied: New token" {
		t.Errorf("toasts or the button %q do not say it to who hears the page", d.attribute(button, "aria-label"))
	}
	eventually(t, "the button says Copy again", func() bool { return d.Text(button) == "Copy" })
	d.setPermission("clipboard-write", browser.PermissionSettingDenied)
	d.Click(button)
	d.SeeText("#toasts", "Marked. Copy it with your keyboard.")
	if got := d.eval("getSelection().toString()"); got != token {
		t.Errorf("marked = %q, want the token", got)
	}
	d.Visit(d.url + "/agents")
	d.Click("[name=q]")
	d.paste()
	if got := d.eval(`document.querySelector("[name=q]").value`); got != token {
		t.Errorf("pasted = %q, want the token %q", got, token)
	}
}

func passwordIsShownOnDemand(t *testing.T, d *desk) {
	d.signOut()
	kind := func() string { return d.eval(`document.querySelector("#password").type`) }
	d.Fill("#email", visitorEmail)
	d.Fill("#password", "not that one")
	d.Click("[data-reveal]")
	if got := kind(); got != "text" || d.Text("[data-reveal]") != "Hide" {
		t.Errorf("after Show: %s and %q, want text and Hide", got, d.Text("[data-reveal]"))
	}
	d.eval(`addEventListener("submit", () => { sessionStorage.kind = document.querySelector("#password").type }), ""`)
	d.Submit(withPassword)
	if got := d.eval("sessionStorage.kind"); got != "password" {
		t.Errorf("the field was sent as %s, want password: a browser keeps what was text", got)
	}
}

func timesAreTheReaders(t *testing.T, d *desk) {
	a := d.agent("hermes-prod")
	at := d.db.Now().Add(-58 * time.Second)
	if err := d.db.As(t.Context(), d.owner, func(tx *store.Tx) error { return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: at}) }); err != nil {
		t.Fatal(err)
	}
	d.Visit(d.url + "/agents")
	const when = "#agent-rows time"
	if got, want := d.attribute(when, "title"), at.In(time.FixedZone("", 9*60*60)).Format("3:04:05 PM")+" GMT+9"; !strings.HasSuffix(strings.ReplaceAll(got, "\u202f", " "), want) {
		t.Errorf("title = %q, want %q at its end", got, want)
	}
	d.SeeText(when, "1 min ago") // without anything from the gateway
}

func backBringsNoTokenBack(t *testing.T, d *desk) {
	d.Visit(d.url + "/agents/new")
	token := d.makeAgent("hermes-prod")
	for _, step := range []struct{ way, heading string }{{"back", "New agent"}, {"forward", "Agents"}} {
		d.eval("history." + step.way + `(), ""`)
		d.SeeText("h1", step.heading)
		if d.shows("body", token) {
			t.Errorf("going %s shows the token again", step.way)
		}
	}
}

func toastLeaves(t *testing.T, d *desk) {
	d.SeeText("#toasts", "You are signed in.")
	d.hurry()
	d.Visit(d.url + "/agents/new")
	d.makeAgent("codex") // with a toast of its own
	eventually(t, "the toast has left", func() bool { return !d.visible(".toast") })
}

func streamComesBack(_ *testing.T, d *desk, kit *servertest.Kit) {
	d.Visit(d.url + "/agents")
	d.agent("before")
	d.SeeText("#agent-rows", "before")
	kit.Restart()
	d.agent("after")
	d.SeeText("#agent-rows", "after")
}

// The page is meanwhile as it is without a script.
func refusedStreamIsAskedForAgain(t *testing.T, d *desk, _ *servertest.Kit) {
	d.Visit(d.url + "/agents/new") // which holds no stream
	session := d.session()
	client := http.Client{Transport: &http.Transport{}}
	var open []context.CancelFunc
	for status := http.StatusOK; status == http.StatusOK; {
		ctx, cancel := context.WithCancel(t.Context())
		open = append(open, cancel)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/live/agents", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(session)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if status = resp.StatusCode; len(open) > 100 {
			t.Fatal("no stream is refused")
		}
	}
	d.agent("hermes-prod")
	d.hurry()
	d.Visit(d.url + "/agents?q=codex")
	d.SeeText("#agents", "No agent matches")
	d.agent("codex")
	d.arrive("#agents .btn", "Agents")
	d.SeeText("#agent-rows", "codex")
	eventually(t, "the page's stream is refused", func() bool {
		return slices.ContainsFunc(d.FailedLoads(), func(load string) bool { return strings.HasSuffix(load, "/live/agents: 429") })
	})
	for _, end := range open {
		end()
	}
	d.agent("cursor")
	d.SeeText("#agent-rows", "cursor")
}

func busyButtonWorksOnce(t *testing.T, d *desk, f *front) {
	d.Visit(d.url + "/agents/new")
	d.Fill("#name", "hermes-prod")
	before, release := f.posts.Load(), f.hold(t)
	d.Click("main .btn.primary")
	d.See("main .btn.primary[aria-busy=true]")
	d.Axe()
	d.Click("main .btn.primary")
	d.Press(kb.Enter)
	release()
	d.SeeText("h1", "hermes-prod")
	if got := f.posts.Load() - before; got != 1 {
		t.Errorf("pressed three times, sent %d times", got)
	}

	d.arrive(`main a[href$="/revoke"]`, "Revoke hermes-prod?") // a form that the browser sends by itself
	before, release = f.posts.Load(), f.hold(t)
	// The tab answers no question while it waits for the next page, so the page says by itself when it is busy.
	d.eval(`new MutationObserver(() => fetch("/busy")).observe(document.querySelector("main .btn.solid"), {attributeFilter: ["aria-busy"]}), ""`)
	d.Click("main .btn.solid")
	eventually(t, "the button is busy", f.busy.Load)
	d.Do(chromedp.KeyEvent(kb.Enter)) // the button has the focus; Press would ask whether the page takes it
	release()
	d.SeeText("h1", "Agents")
	if got := f.posts.Load() - before; got != 1 {
		t.Errorf("pressed twice, sent %d times", got)
	}

	d.Visit(d.url + "/agents/new")
	d.Fill("#name", "codex")
	f.cut.Store(true)
	d.Click("main .btn.primary")
	d.SeeText("#toasts [role=alert]", "No answer. Check your connection and try again.")
	f.cut.Store(false)
	d.Click("main .btn.primary")
	d.SeeText("h1", "codex")
}

func streamEndsOutOfSight(t *testing.T, d *desk, f *front) {
	holds := func(want int64) {
		t.Helper()
		eventually(t, fmt.Sprintf("the page holds %d streams", want), func() bool { return f.live.Load() == want })
	}
	d.Visit(d.url + "/")
	holds(1)
	d.agent("hermes-prod") // puts the card, which names the stream, in place anew
	d.SeeText("#agent-rows", "hermes-prod")
	holds(1)
	d.Show(false)
	holds(0)
	d.agent("codex")
	d.Show(true)
	holds(1)
	d.SeeText("#agent-rows", "codex")
	d.Visit(d.url + "/agents")
	holds(1)
	d.Fill("[name=q]", "cod") // another stream for another list
	d.SeeText("#agent-count", "1 of 2")
	holds(1)
	d.Visit(d.url + "/agents/new")
	holds(0)
}

// hurry makes the timers of the pages that follow run ten times as fast.
func (d *desk) hurry() {
	d.t.Helper()
	d.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `for (const timer of ["setTimeout", "setInterval"]) {
				const real = window[timer].bind(window);
				window[timer] = (f, ms, ...rest) => real(f, ms / 10, ...rest);
			}`,
		})
		return err
	}))
}

// session is the page's cookie.
func (d *desk) session() *http.Cookie {
	d.t.Helper()
	all := e2e.Read(d.Page, func(ctx context.Context, t *chromedp.Target) (network.GetCookiesResult, error) {
		return cdp.Call(ctx, t, network.GetCookies, network.GetCookiesParams{URLs: []string{d.url}})
	})
	for _, c := range all.Cookies {
		if c.Name == "graft" {
			return &http.Cookie{Name: c.Name, Value: c.Value}
		}
	}
	d.t.Fatal("the page has no session")
	return nil
}

// paste is Ctrl and V.
func (d *desk) paste() {
	d.t.Helper()
	d.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Commands: []string{"paste"}})
		return err
	}))
}

// setPermission is what the reader answered when the browser asked.
func (d *desk) setPermission(name string, setting browser.PermissionSetting) {
	d.t.Helper()
	d.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		info, err := cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: setting, Origin: d.url, BrowserContextID: info.TargetInfo.BrowserContextID,
		})
		return err
	}))
}
