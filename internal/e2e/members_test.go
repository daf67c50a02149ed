package e2e_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// An owner invites somebody, who joins, is given another role, and is removed while they look.
func TestInviteToRemoval(t *testing.T) {
	t.Parallel()
	browser := e2e.StartBrowser(t)
	browser.Each(t, func(t *testing.T, p *e2e.Page) {
		owner, kit := firstVisitor(t, p)
		owner.welcome(kit)
		bo := &visitor{Page: browser.Page(t, p.View()), t: t, url: owner.url}

		owner.side(`#side a[href="/members"]`)
		owner.arrive(`#side a[href="/members"]`, "Members")
		owner.SeeText("#invites", "None. Enter an address")
		owner.look("members-alone")
		owner.Fill("#email", visitorEmail)
		owner.Click("#invite .btn.primary")
		owner.SeeText("#email-error", "is a member already, as owner.")
		owner.Forgive()
		owner.look("members-error")
		first := owner.invite("bo.with.a.long.address@subsidiary.northfield.example")
		owner.look("members-made")
		owner.Click("[aria-labelledby=invite-link] [data-copy]")
		owner.SeeText("#toasts", "Copied")
		owner.arrive("[aria-labelledby=invite-link] a.btn", "Members")
		owner.look("members-invited")
		owner.arrive("#invites .btn", "Members")
		owner.SeeText("#toasts", "is withdrawn. Its link has ended.")
		if got := bo.Visit(first); got != http.StatusGone {
			t.Errorf("a withdrawn invite = %d, want 410", got)
		}
		bo.look("invite-dead")

		link := owner.invite("bo@northfield.example")
		owner.Visit(link)
		owner.SeeText("main", "You are signed in as "+visitorEmail)
		owner.look("join-as-another")
		bo.Visit(link)
		bo.SeeText("h1", "Join Northfield")
		bo.look("join")
		bo.Fill("#name", "Bo")
		bo.Fill("#password", visitorPassword)
		bo.arrive("main .btn.primary", "Hello, Bo")
		bo.SeeText("#toasts", "You are in Northfield now, as member.")
		bo.Visit(bo.url + "/members")
		if bo.visible("#invite, #invites") {
			t.Error("a member is offered to invite")
		}
		bo.look("members-reading")

		owner.Visit(owner.url + "/members")
		owner.arrive(`#members tbody tr:last-child a.go`, "Bo")
		owner.look("member")
		owner.Click("#role-admin")
		owner.Click("#role-form .btn.primary")
		owner.SeeText("#toasts", "Bo is admin now.")
		bo.Visit(bo.url + "/agents/new")
		bo.makeAgent("bos-agent")
		bo.side(`#side a[href="/agents"]`)
		bo.arrive(`#side a[href="/agents"]`, "Agents")
		owner.Click("#role-auditor")
		owner.Click("#role-form .btn.primary")
		owner.SeeText("#role-error", "Revoke theirs first: 1 live.")
		owner.Forgive()
		owner.look("member-error")

		owner.arrive(`main a[href$="/remove"]`, "Remove Bo from Northfield?")
		owner.SeeText("main", "1 agent, with tokens")
		owner.look("member-remove")
		owner.arrive("main .btn.solid", "Members")
		owner.SeeText("#toasts", "Bo is removed.")
		owner.look("members-removed")
		bo.side(`#side a[href="/members"]`)
		bo.arrive(`#side a[href="/members"]`, "Sign in")

		// Back again: the account is there, and so is its password.
		bo.Visit(owner.invite("bo@northfield.example"))
		bo.Fill("#name", "Somebody else")
		bo.Fill("#password", "another password altogether")
		if got := bo.Submit("main .btn.primary"); got != http.StatusUnauthorized {
			t.Errorf("a password that is not the account's = %d, want 401", got)
		}
		bo.SeeText("main", "has an account already. Enter its password.")
		bo.Forgive()
		bo.look("join-known")
		bo.Fill("#password", visitorPassword)
		bo.arrive("main .btn.primary", "Hello, Bo")
	})
}

var inviteForm = regexp.MustCompile(`^http://[^/]+/invite/grfti_[0-9A-Za-z_-]{49}$`)

// invite invites an address and returns the link that the page shows.
func (v *visitor) invite(email string) string {
	v.t.Helper()
	v.Visit(v.url + "/members")
	v.Fill("#email", email)
	if v.View().NoScript {
		v.Submit("#invite .btn.primary")
	} else {
		v.Click("#invite .btn.primary") // the script puts the answer in place
	}
	v.SeeText("#toasts", email+" is invited.")
	link := v.Text("[aria-labelledby=invite-link] pre")
	if !inviteForm.MatchString(link) {
		v.t.Fatalf("link on the page = %q, want one of an invite", link)
	}
	return link
}

// Without scripts the same is done by forms and links; somebody who has an account joins by one button.
func TestInvitesWithoutScripts(t *testing.T) {
	t.Parallel()
	browser := e2e.StartBrowser(t)
	view := e2e.Phone
	view.NoScript = true
	kit := servertest.Start(t, servertest.Options{})
	other := storetest.Organisation(t, kit.DB)
	owner := &visitor{Page: browser.Page(t, view), t: t, url: kit.URL}
	owner.enter(kit, kit.Owner)
	bo := &visitor{Page: browser.Page(t, view), t: t, url: kit.URL}
	bo.enter(kit, other)
	email := member(t, kit, other)

	link := owner.invite(email)
	owner.look("members-made")
	bo.Visit(link)
	bo.SeeText("main", "You are signed in as "+email)
	bo.look("join-signed-in")
	bo.arrive("main .btn.primary", "Hello, Ana")
	bo.SeeText("#toasts", "now, as member.")
	owner.Visit(owner.url + "/members")
	owner.arrive(`#members tbody tr:last-child a.go`, "Ana")
	owner.Click("#role-auditor")
	owner.arrive("#role-form .btn.primary", "Ana")
	owner.SeeText("#toasts", "Ana is auditor now.")
	owner.arrive(`main a[href$="/remove"]`, "Remove Ana from")
	owner.arrive("main footer a.btn", "Ana") // Keep everything as it is
	owner.arrive(`main a[href$="/remove"]`, "Remove Ana from")
	owner.arrive("main .btn.solid", "Members")
	owner.SeeText("#toasts", "Ana is removed.")
	bo.Visit(bo.url + "/members") // is in their own organisation again
	bo.SeeText("#members", "1 member.")
}

// member is the address of c, in their organisation.
func member(t *testing.T, kit *servertest.Kit, c store.Caller) (email string) {
	t.Helper()
	err := kit.DB.As(t.Context(), c, func(tx *store.Tx) error {
		m, err := tx.Member(t.Context(), c.User)
		email = m.Email
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return email
}
