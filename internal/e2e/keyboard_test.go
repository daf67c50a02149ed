package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/getgraft/graft/internal/e2e"
)

// With the keyboard alone one signs in, makes an agent and revokes it, and always sees where one is.
func TestConsoleByKeyboardAlone(t *testing.T) {
	t.Parallel()
	chromium := e2e.StartBrowser(t)
	t.Run("from sign-in to an agent's end", func(t *testing.T) {
		t.Parallel()
		v, kit := firstVisitor(t, chromium.Page(t, e2e.Desk))
		v.welcome(kit)
		v.signOut()
		roadByKeyboard(t, v)
	})
	t.Run("through the drawer of a phone", func(t *testing.T) {
		t.Parallel()
		v, kit := firstVisitor(t, chromium.Page(t, e2e.Phone))
		v.welcome(kit)
		drawerByKeyboard(t, v)
	})
}

func roadByKeyboard(t *testing.T, v *visitor) {
	v.standsAt("Email")
	v.Press(visitorEmail)
	v.tabTo("Password")
	v.Press(visitorPassword)
	v.Press(kb.Enter)
	v.SeeText("h1", "Hello, Ana")

	v.Press(kb.Tab)
	if got := v.focus(); got.Name != "Skip to content" {
		t.Errorf("the first stop is %q, want the way past the side list", got.Name)
	}
	v.Press(kb.Enter)
	v.Press(kb.Tab)
	if !v.is("document.querySelector('main').contains(document.activeElement)") {
		t.Errorf("the stop after Skip to content is %q, want one in main", v.focus().Name)
	}

	v.tabTo("Connect an agent")
	v.Press(kb.Enter)
	v.SeeText("h1", "New agent")
	v.standsAt("Name")
	v.Press("hermes-prod")
	v.Press(kb.Enter)
	v.SeeText("h1", "hermes-prod")
	token := v.token()
	v.tabBackTo("Skip to content")
	v.Press(kb.Enter)
	if got := v.token(); got != token {
		t.Errorf("token after Skip to content = %q, want the one that is shown once", got)
	}
	v.tabTo("Copy: New token")
	v.Press(kb.Enter)
	v.SeeText("#toasts", "Copied")
	v.tabTo("Codex")
	v.Press(kb.Enter)
	v.See(`[aria-label="Codex configuration"]`)

	v.tabBackTo("Revoke")
	v.Press(kb.Enter)
	v.See("#revoke")
	if got := v.focus().Name; got != "Keep it" {
		t.Errorf("the question begins at %q, want the answer that ends nothing", got)
	}
	v.Press(kb.Escape)
	if v.visible("#revoke") || v.focus().Name != "Revoke" {
		t.Errorf("after Escape: the question is open, or the focus at %q and not where it was", v.focus().Name)
	}
	v.Press(kb.Enter)
	v.See("#revoke")
	v.tabTo("Revoke hermes-prod")
	v.Press(kb.Enter)
	v.SeeText("#toasts", "hermes-prod is revoked.")
	v.tabBackTo("Dismiss") // before the first stop is the last
	v.Press(kb.Enter)
	if v.visible(".toast") {
		t.Error("the toast is there after Dismiss")
	}
}

func drawerByKeyboard(t *testing.T, v *visitor) {
	v.tabTo("Menu")
	v.Press(kb.Enter)
	v.See("#side")
	v.tabTo("Agents")
	v.Press(kb.Escape)
	if v.visible("#side") || v.focus().Name != "Menu" {
		t.Errorf("after Escape: the drawer is open, or the focus at %q and not where it was", v.focus().Name)
	}
	v.Press(kb.Enter)
	v.tabTo("Agents")
	v.Press(kb.Enter)
	v.SeeText("h1", "Agents")
	if v.visible("#side") {
		t.Error("the drawer is open on the page it led to")
	}
	v.tabTo("Menu")
	v.Press(kb.Enter)
	v.tabTo("Sign out")
	v.Press(kb.Enter)
	v.SeeText("h1", "Sign in")
}

// A stop is what has the focus.
type stop struct {
	Name    string // what it is called
	Ring    bool   // whether it shows that it has the focus
	InSight bool
}

func (v *visitor) focus() stop {
	v.t.Helper()
	return e2e.Read(v.Page, chromedp.Evaluate[stop](`(() => {
		const e = document.activeElement ?? document.documentElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
		return {
			Name: (e.ariaLabel || document.getElementById(e.getAttribute("aria-labelledby"))?.innerText || e.labels?.[0]?.innerText || (e.tabIndex < 0 ? "" : e.innerText)).trim(),
			Ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
			InSight: box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
		};
	})()`))
}

// standsAt waits until a page that comes begins where it should.
func (v *visitor) standsAt(name string) {
	v.t.Helper()
	eventually(v.t, "the focus is at "+name, func() bool { return v.focus().Name == name })
}

// tabTo presses Tab until the stop of that name; on the way every stop must be seen.
func (v *visitor) tabTo(name string) {
	v.t.Helper()
	v.walk(name)
}

// tabBackTo presses Shift and Tab.
func (v *visitor) tabBackTo(name string) {
	v.t.Helper()
	v.walk(name, chromedp.ModifierShift)
}

func (v *visitor) walk(name string, modifiers ...chromedp.Modifier) {
	v.t.Helper()
	var way []string
	for range 40 {
		v.Press(kb.Tab, modifiers...)
		at := v.focus()
		if at.Name != "" && (!at.Ring || !at.InSight) {
			v.t.Errorf("%s: %q has the focus: ring %t, in sight %t", v.Path(), at.Name, at.Ring, at.InSight)
		}
		if at.Name == name {
			return
		}
		way = append(way, at.Name)
	}
	v.t.Fatalf("%s: Tab does not lead to %q but to %q", v.Path(), name, way)
}
