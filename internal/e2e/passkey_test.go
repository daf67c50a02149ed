package e2e_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store/storetest"
)

// device gives the tab a device that makes passkeys, whose holder is there and has shown their finger.
func (v *visitor) device() {
	v.t.Helper()
	v.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
				HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		return err
	}))
}

// An account from its first passkey to its end, in every look.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		v := &visitor{Page: p, t: t, url: kit.URL}
		v.enter(kit, storetest.Organisation(t, kit.DB))
		v.device()
		v.side(`#side a[href="/settings"]`)
		v.arrive(`#side a[href="/settings"]`, "Settings")
		v.SeeText("[aria-labelledby=passkeys]", "None yet.")
		v.look("settings-empty")
		v.arrive(`a[href="/settings/passkeys/new"]`, "New passkey")
		v.look("passkey-new")
		v.Fill("#name", "Laptop")
		v.arrive("main .btn.primary", "Settings")
		v.SeeText("#toasts", "Laptop is added.")
		v.SeeText("[aria-labelledby=passkeys]", "Laptop")

		v.arrive(`a[href="/settings/passkeys/new"]`, "New passkey")
		v.Click("main .btn.primary")
		v.SeeText("#toasts", "This device has a passkey for you already.")
		v.Axe()

		v.signOut()
		v.look("signin-passkey")
		v.arrive("main .btn.primary", "Hello, Ana")
		v.Visit(v.url + "/settings")
		v.SeeText("[aria-labelledby=passkeys]", "last used")
		v.look("settings")

		v.arrive(`[aria-labelledby=passkeys] a[href$="/remove"]`, "Remove Laptop?")
		v.look("passkey-remove")
		v.arrive("main footer a.btn", "Settings")
		v.arrive(`[aria-labelledby=passkeys] .end a`, "Rename Laptop")
		v.look("passkey-rename")
		v.Fill("#name", "Old laptop")
		v.arrive("main .btn.primary", "Settings")
		v.arrive(`a[href="/settings/password"]`, "New password")
		v.look("settings-password")
		v.Visit(v.url + "/settings")
		v.arrive(`[aria-labelledby=passkeys] a[href$="/remove"]`, "Remove Old laptop?")
		v.arrive("main .btn.solid", "Settings")
		v.signOut()
		v.Click("main .btn.primary")
		v.SeeText("main", "That passkey does not belong to an account here.")
		v.look("signin-refused")
	})
}

// A one-time link is answered with a passkey, and no password at all.
func TestAPasskeyByAOneTimeLink(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	v := &visitor{Page: e2e.StartBrowser(t).Page(t, e2e.Phone), t: t, url: kit.URL}
	v.device()
	token, err := kit.DB.System().NewSignInLink(t.Context(), storetest.Organisation(t, kit.DB).User, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	v.Visit(v.url + "/setup/" + token)
	v.look("setup-passkey")
	v.Click("[data-passkey]") // which asks for the name first
	if got := v.eval(`document.activeElement.id`); got != "name" {
		t.Errorf("the cursor is in %q, want the name that is missing", got)
	}
	v.Fill("#name", "Ana")
	v.arrive("[data-passkey]", "Hello, Ana")
	v.Visit(v.url + "/settings")
	v.SeeText("[aria-labelledby=password]", "You have none")
	v.look("settings-passwordless")
	v.arrive(`[aria-labelledby=passkeys] a[href$="/remove"]`, "Chrome on Linux stays")
	v.look("passkey-stays")
	v.signOut()
	v.arrive("main .btn.primary", "Hello, Ana")
}

// Somebody who signed in a while ago confirms who they are before they destroy something.
func TestConfirmingWhoOneIs(t *testing.T) {
	t.Parallel()
	e2e.StartBrowser(t).Each(t, func(t *testing.T, p *e2e.Page) {
		var later atomic.Int64
		kit := servertest.Start(t, servertest.Options{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
		owner := storetest.Organisation(t, kit.DB)
		v := &visitor{Page: p, t: t, url: kit.URL}
		v.enter(kit, owner)
		v.device()
		v.Visit(v.url + "/settings/passkeys/new")
		v.arrive("main .btn.primary", "Settings")
		first, _ := storetest.Agent(t, kit.DB, owner, "hermes-prod")
		second, _ := storetest.Agent(t, kit.DB, owner, "codex-laptop")

		later.Add(int64(15*time.Minute + 5*time.Second))
		v.Visit(v.url + "/agents/" + first.ID.String())
		v.Click("[commandfor=revoke][command=show-modal]")
		v.arrive("#revoke .btn.solid", "Confirm that it is you")
		v.look("confirm")
		v.Fill("#password", "not that one at all")
		v.refused(withPassword, http.StatusUnauthorized, "That is not your password.")
		v.look("confirm-refused")
		v.Fill("#password", visitorPassword)
		v.arrive(withPassword, "Revoke hermes-prod?")
		v.arrive("main .btn.solid", "Agents")
		v.SeeText("#toasts", "hermes-prod is revoked.")

		later.Add(int64(15*time.Minute + 5*time.Second))
		v.Visit(v.url + "/agents/" + second.ID.String() + "/revoke")
		v.SeeText("h1", "Confirm that it is you")
		v.arrive("main .btn.primary", "Revoke codex-laptop?")
		v.arrive("main .btn.solid", "Agents")
		v.SeeText("#toasts", "codex-laptop is revoked.")
	})
}

// Without scripts nothing of a passkey is shown, and a password signs in.
func TestAPasswordSignsInWithoutScripts(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	view := e2e.Phone
	view.NoScript = true
	v := &visitor{Page: e2e.StartBrowser(t).Page(t, view), t: t, url: kit.URL}
	owner := storetest.Organisation(t, kit.DB)
	v.enter(kit, owner)
	list, err := kit.DB.System().Memberships(t.Context(), owner.User)
	if err != nil {
		t.Fatal(err)
	}
	v.Visit(v.url + "/settings/passkeys/new")
	v.SeeText("main", "needs scripts")
	v.look("passkey-new-noscript")
	v.signOut()
	if v.visible("[data-passkey]") {
		t.Error("a passkey is offered without scripts")
	}
	v.look("signin-noscript")
	v.Fill("#email", list[0].Email)
	v.Fill("#password", visitorPassword)
	if got := v.Submit(withPassword); got != http.StatusOK {
		t.Errorf("signing in = %d", got)
	}
	v.SeeText("h1", "Hello, Ana")
}
