package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

var (
	inviteIn   = regexp.MustCompile(`/invite/grfti_[A-Za-z0-9_-]{49}`)
	withdrawIn = regexp.MustCompile(`/invites/inv_[0-9a-z]{26}/withdraw`)
)

// invited makes an invite in a browser and returns the path of its link.
func (b *browser) invited(email string, role store.Role) string {
	b.t.Helper()
	p := b.post("/members", "email", email, "role", string(role))
	wantStatus(b.t, p, http.StatusOK)
	link := inviteIn.FindString(p.body)
	if link == "" {
		b.t.Fatalf("no link on the page:\n%s", p.main())
	}
	return link
}

// lines are what the audit log says of c's organisation, once it says all that it was told.
func (s *house) lines(t *testing.T, c store.Caller) (list []string) {
	t.Helper()
	if err := s.audit.Commit(t.Context(), audit.Entry{Org: c.Org, Run: store.NewID[store.RunKind](s.db.Now()), Kind: audit.Change, At: s.db.Now(), Via: store.ViaCLI, Outcome: audit.OK, Line: "end"}); err != nil {
		t.Fatal(err)
	}
	super := storetest.Superuser(t, s.dsn)
	return query(t, super, fmt.Sprintf("SELECT line FROM audit_entry WHERE org_id = '%x' ORDER BY at", c.Org.Bytes()))
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	all := "\n" + strings.Join(got, "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(all, "\n"+line+"\n") {
			t.Errorf("the audit log lacks %q: %q", line, got)
		}
	}
}

func memberPath(c store.Caller) string { return "/members/" + c.User.String() }

func TestAnInviteFromFormToMember(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	p := b.get("/members")
	wantText(t, p, s.email(t, owner), "Invite somebody", "None. Enter an address", `<option value="owner">`)
	link := b.invited(" Ana@Join.example ", store.RoleAdmin)
	p = b.get("/members")
	wantText(t, p, "ana@join.example", "as admin, invited by you", "Withdraw")
	wantNoText(t, p, "grfti_")

	ana := s.browser(t)
	for range 2 { // looking uses nothing up
		p = ana.get(link)
		wantStatus(t, p, http.StatusOK)
		wantText(t, p, "Somebody invited ana@join.example as admin", `name="name"`, "New password", `href="/signin?next=`+link+`"`)
	}
	p = ana.post(link, "name", " ", "password", "short")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Nothing was made yet. Two answers need another look.", "This is 5 characters long.")
	p = ana.post(link, "name", "Ana F", "password", "short")
	wantText(t, p, `value="Ana F"`, "One answer needs another look.")
	wantNoText(t, p, "short")
	wantRedirect(t, ana.post(link, "name", "Ana F", "password", goodPassword, "email", "eve@join.example", "role", "owner"), "/")
	wantText(t, ana.get("/"), "Hello, Ana F", "now, as admin.", "ana@join.example")
	wantRedirect(t, s.browser(t).post("/signin", "email", "ana@join.example", "password", goodPassword), "/")

	wantText(t, b.get("/members"), "Ana F", "2 members.", "None. Enter an address")
	for _, p := range []page{b.get(link), s.browser(t).get(link), s.browser(t).post(link, "name", "Eve", "password", goodPassword), b.get("/invite/anything")} {
		wantStatus(t, p, http.StatusGone)
		wantText(t, p, "This invite has ended")
	}
	wantLines(t, s.lines(t, owner), "Invited ana@join.example as admin", "Joined by an invite of Somebody, as admin", "Signed in")
}

func TestAnInviteThatIsWithdrawnOrTooOldEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	link := b.invited("ana@withdrawn.example", store.RoleMember)
	at := withdrawIn.FindString(b.get("/members").body)
	open := s.browser(t)
	wantStatus(t, open.get(link), http.StatusOK)
	wantRedirect(t, b.post(at), "/members")
	wantText(t, b.get("/members"), "The invite of ana@withdrawn.example is withdrawn.", "None. Enter")
	wantStatus(t, open.post(link, "name", "Ana", "password", goodPassword), http.StatusGone)
	wantStatus(t, b.post(at), http.StatusNotFound)
	wantLines(t, s.lines(t, owner), "Withdrew the invite of ana@withdrawn.example")

	link = b.invited("bo@withdrawn.example", store.RoleMember)
	s.clock.advance(store.InviteLife - time.Second)
	b = s.signedIn(t, owner)
	wantStatus(t, open.get(link), http.StatusOK)
	s.clock.advance(time.Second)
	wantStatus(t, open.get(link), http.StatusGone)
	wantNoText(t, b.get("/members"), "bo@withdrawn.example")
}

// What the one who invites sees says nothing of accounts elsewhere: neither the answer, nor the link's page.
func TestAnAccountElsewhereChangesNothingForWhoInvites(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner, elsewhere := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	s.signedIn(t, elsewhere) // sets a password
	there, b := s.email(t, elsewhere), s.signedIn(t, owner)
	nobodys := "x" + there
	b.get("/") // takes the sentence that signing in left
	id := regexp.MustCompile(`inv_[0-9a-z]{26}`)
	var seen [2]map[string]string
	s.clock.stop(s.clock.now()) // the pages say what time it is
	for n, email := range []string{there, nobodys} {
		made := b.post("/members", "email", email, "role", "member")
		link := inviteIn.FindString(made.body)
		out := s.browser(t)
		pages := map[string]page{
			"the answer": made, "the list": b.get("/members"), "the link": out.get(link),
			"a form that makes nothing": out.post(link, "name", "Eve", "password", "short"),
			"a password that is none":   out.post(link, "known", "yes", "password", "wrong wrong wrong"),
		}
		wantText(t, pages["the list"], email)
		seen[n] = map[string]string{}
		for what, p := range pages {
			body := strings.ReplaceAll(strings.ReplaceAll(p.body, email, "EMAIL"), link, "LINK")
			seen[n][what] = fmt.Sprint(p.status) + id.ReplaceAllString(body, "ID")
		}
		wantRedirect(t, b.post(withdrawIn.FindString(b.get("/members").body)), "/members")
		b.get("/members")
	}
	for what, page := range seen[0] {
		if page != seen[1][what] {
			t.Errorf("%s of an address with an account:\n%.3000s\nwithout:\n%.3000s", what, page, seen[1][what])
		}
	}
}

func TestAnInviteOfSomebodyWithAnAccount(t *testing.T) {
	t.Parallel()
	s := start(t)
	elsewhere := storetest.Organisation(t, s.db)
	for _, way := range []string{"signed in", "signs in first", "gives the password", "types the password into the form"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			owner := storetest.Organisation(t, s.db)
			ana := storetest.Member(t, s.db, elsewhere, store.RoleMember)
			email := s.email(t, ana)
			hers := s.signedIn(t, ana)
			link := s.signedIn(t, owner).invited(email, store.RoleAuditor)
			out := s.browser(t)
			// Whoever holds the link cannot make the account theirs.
			p := out.post(link, "name", "Eve", "password", "another password altogether")
			wantStatus(t, p, http.StatusUnauthorized)
			wantText(t, p, "has an account already. Enter its password.", `name="known"`)
			wantNoText(t, p, `name="name"`)
			wantStatus(t, out.post(link, "known", "yes", "password", "another password altogether"), http.StatusUnauthorized)
			wantStatus(t, hers.get("/"), http.StatusOK)

			b := out
			switch way {
			case "signed in":
				b = hers
			case "signs in first":
				wantRedirect(t, out.post("/signin", "email", email, "password", goodPassword, "next", link), link)
			}
			if way == "signed in" || way == "signs in first" {
				p = b.get(link)
				wantText(t, p, "You are signed in as "+email)
				wantNoText(t, p, `name="password"`)
			}
			switch way {
			case "gives the password":
				p = b.post(link, "known", "yes", "password", goodPassword)
			case "types the password into the form":
				p = b.post(link, "name", "Ana", "password", goodPassword)
			default:
				p = b.post(link)
			}
			wantRedirect(t, p, "/")
			wantText(t, b.get("/"), "now, as auditor.")
			wantText(t, b.get("/members"), s.email(t, owner)) // and acts there
			list, err := s.db.System().Memberships(t.Context(), ana.User)
			if err != nil || len(list) != 2 || list[0].Name != "Somebody" {
				t.Errorf("memberships = %+v, %v, want both, under the old name", list, err)
			}
		})
	}
}

func TestAnInviteIsNotForWhoeverIsSignedIn(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	link := s.signedIn(t, owner).invited("ana@other.example", store.RoleAdmin)
	bo := storetest.Member(t, s.db, owner, store.RoleMember)
	b := s.signedIn(t, bo)
	p := b.get(link)
	wantText(t, p, "You are signed in as "+s.email(t, bo), "this invite is for ana@other.example", "Sign out and go on")
	p = b.post(link)
	wantStatus(t, p, http.StatusForbidden)
	wantText(t, p, "Sign out and go on")
	wantText(t, b.get(memberPath(bo)), `<span class="tag line">member</span>`)
	wantRedirect(t, b.post("/signout", "next", link), link)
	wantText(t, b.get(link), `name="name"`)
	b = s.signedIn(t, bo)
	wantRedirect(t, b.post("/signout", "next", "https://evil.example/"), "/signin")
}

func TestWhoMayChangeMembers(t *testing.T) {
	t.Parallel()
	s := start(t)
	stranger := storetest.Organisation(t, s.db)
	theirs := s.signedIn(t, stranger)
	theirs.invited("x@theirs.example", store.RoleMember)
	theirInvite := withdrawIn.FindString(theirs.get("/members").body)
	const ok, back, no, missing = http.StatusOK, http.StatusSeeOther, http.StatusForbidden, http.StatusNotFound
	for _, want := range []struct {
		role                            store.Role
		invite, inviteOwner             int
		withdraw, role1, ask, removal   int
		ownerRole, ownerAsk, ownerFired int
	}{
		{store.RoleOwner, ok, ok, back, back, ok, back, back, ok, no /* a last one */},
		{store.RoleAdmin, ok, no, back, back, ok, back, no, no, no},
		{store.RoleMember, no, no, missing, no, no, no, no, no, no},
		{store.RoleAuditor, no, no, no, no, no, no, no, no, no},
	} {
		t.Run(string(want.role), func(t *testing.T) {
			t.Parallel()
			owner := storetest.Organisation(t, s.db)
			who, ownersPage := owner, memberPath(owner)
			if want.role != store.RoleOwner {
				who = storetest.Member(t, s.db, owner, want.role)
			}
			other := storetest.Member(t, s.db, owner, store.RoleMember)
			b := s.signedIn(t, who)
			var invite store.Invite
			s.as(t, owner, func(tx *store.Tx) (err error) {
				invite, _, err = tx.CreateInvite(t.Context(), string(want.role)+"@open.example", store.RoleMember)
				return err
			})
			at, list := memberPath(other), b.get("/members")
			for _, got := range []struct {
				what string
				page page
				want int
			}{
				{"GET /members", list, ok},
				{"GET a member", b.get(at), ok},
				{"GET the owner", b.get(ownersPage), ok},
				{"POST an invite", b.post("/members", "email", string(want.role)+"-new@open.example", "role", "member"), want.invite},
				{"POST an owner's invite", b.post("/members", "email", string(want.role)+"-boss@open.example", "role", "owner"), want.inviteOwner},
				{"POST its end", b.post("/invites/" + invite.ID.String() + "/withdraw"), want.withdraw},
				{"POST a role", b.post(at+"/role", "role", "auditor"), want.role1},
				{"GET a removal", b.get(at + "/remove"), want.ask},
				{"POST a removal", b.post(at + "/remove"), want.removal},
				{"POST the owner's role, as it is", b.post(ownersPage+"/role", "role", "owner"), want.ownerRole},
				{"GET the owner's removal", b.get(ownersPage + "/remove"), want.ownerAsk},
				{"POST the owner's removal", b.post(ownersPage + "/remove"), want.ownerFired},
				{"GET a stranger", b.get(memberPath(stranger)), missing},
				{"GET a stranger's removal", b.get(memberPath(stranger) + "/remove"), missing},
				{"POST a stranger's role", b.post(memberPath(stranger)+"/role", "role", "member"), missing},
				{"POST a stranger's removal", b.post(memberPath(stranger) + "/remove"), missing},
				{"GET no id", b.get("/members/usr_x"), missing},
			} {
				if got.page.status != got.want {
					t.Errorf("%s = %d, want %d: %s", got.what, got.page.status, got.want, got.page.main())
				}
			}
			foreign := b.post(theirInvite)
			if foreign.status != missing {
				t.Errorf("POST the end of another organisation's invite = %d, want 404", foreign.status)
			}
			changes := want.invite == ok
			for text, there := range map[string]bool{
				"Invite somebody": changes, `/withdraw"`: changes, string(want.role) + "@open.example": changes || want.role == store.RoleAuditor,
				`<option value="owner">`: want.role == store.RoleOwner,
			} {
				if got := strings.Contains(list.body, text); got != there {
					t.Errorf("the list has %q: %v, want %v", text, got, there)
				}
			}
		})
	}
	wantText(t, theirs.get("/members"), "x@theirs.example", "1 member.")
}

func TestMembersFormsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	admin := storetest.Member(t, s.db, owner, store.RoleAdmin)
	b := s.signedIn(t, owner)
	p := b.post("/members", "email", "no address", "role", "auditor")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, `value="no address"`, "Enter an email address", `<option value="auditor" selected>`)
	p = b.post("/members", "email", s.email(t, admin), "role", "member")
	wantStatus(t, p, http.StatusConflict)
	wantText(t, p, "is a member already, as admin.")
	wantText(t, b.post("/members", "email", "a@b.example", "role", "king"), "is not a role", `value="a@b.example"`)
	wantText(t, s.signedIn(t, admin).post("/members", "email", "a@b.example", "role", "owner"), "Only an owner invites an owner.", `value="a@b.example"`)

	storetest.Agent(t, s.db, admin, "of the admin")
	p = b.post(memberPath(admin)+"/role", "role", "auditor")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Revoke theirs first: 1 live.", `value="auditor" checked`)
	p = b.post(memberPath(owner)+"/role", "role", "admin")
	wantStatus(t, p, http.StatusForbidden)
	wantText(t, p, "An organisation keeps its last owner.")
}

func TestARoleHoldsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	ana := storetest.Member(t, s.db, owner, store.RoleMember)
	b, hers := s.signedIn(t, owner), s.signedIn(t, ana)
	live := hers.mustLive("/live/agents")
	live.next()
	for range 2 { // sent twice it says the same
		wantRedirect(t, b.post(memberPath(ana)+"/role", "role", "admin"), memberPath(ana))
		wantText(t, b.get(memberPath(ana)), "Somebody is admin now.", "Live agents")
	}
	wantText(t, hers.get("/members"), "Invite somebody")
	live.ends() // the page begins anew, as an admin's
	lines := s.lines(t, owner)
	wantLines(t, lines, "Made "+s.email(t, ana)+" admin, who was member")
	if n := strings.Count(strings.Join(lines, "\n"), "who was member"); n != 1 {
		t.Errorf("the change is in the log %d times, want once", n)
	}
}

func TestRemovalSaysWhatEndsAndEndsIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	ana := storetest.Member(t, s.db, owner, store.RoleAdmin)
	email := s.email(t, ana)
	a, token := storetest.Agent(t, s.db, ana, "hers")
	b, hers := s.signedIn(t, owner), s.signedIn(t, ana)
	link := hers.invited("friend@hers.example", store.RoleMember)
	hash := store.HashToken(hers.cookie())
	lives := []*liveStream{hers.mustLive("/live/agents"), hers.mustLive("/live/agents/" + a.ID.String()), hers.mustLive("/live/asks")}
	for _, l := range lives[:2] {
		l.next()
	}
	p := b.get(memberPath(ana) + "/remove")
	wantText(t, p, "Remove Somebody from", "1 agent, with tokens", "1 open invite made by Somebody", "every page of it that they have open", "Stays: their past calls")
	wantStatus(t, hers.get("/agents"), http.StatusOK) // asking ends nothing
	wantRedirect(t, b.post(memberPath(ana)+"/remove"), "/members")
	wantText(t, b.get("/members"), "Somebody is removed.", "1 member.")
	for _, l := range lives {
		l.ends()
	}
	if _, err := s.db.System().WebSession(t.Context(), hash); !store.IsAbsent(err) {
		t.Errorf("the removed member's browser session = %v, want not found", err)
	}
	if _, err := s.db.System().Bearer(t.Context(), store.HashToken(token)); !store.IsAbsent(err) {
		t.Errorf("the removed member's token = %v, want not found", err)
	}
	wantRedirect(t, hers.get("/agents"), "/signin?next=%2Fagents")
	wantStatus(t, s.browser(t).get(link), http.StatusGone)
	wantStatus(t, b.post(memberPath(ana)+"/remove"), http.StatusNotFound)
	wantLines(t, s.lines(t, owner), "Removed "+email+", who was admin")

	// They come back by an invite, with the password they had.
	link = b.invited(email, store.RoleMember)
	wantRedirect(t, s.browser(t).post(link, "known", "yes", "password", goodPassword), "/")
	wantText(t, b.get("/members"), "2 members.")
}

func TestOneLeavesByOneself(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	admin := storetest.Member(t, s.db, owner, store.RoleAdmin)
	b := s.signedIn(t, admin)
	wantText(t, b.get(memberPath(admin)+"/remove"), "Remove yourself from")
	wantRedirect(t, b.post(memberPath(admin)+"/remove"), "/")
	wantRedirect(t, b.get("/"), "/signin")
	last := s.signedIn(t, owner)
	p := last.post(memberPath(owner) + "/remove")
	wantStatus(t, p, http.StatusForbidden)
	wantText(t, p, "An organisation keeps its last owner.")
}

func TestMembersPageSaysWhoIsThereAndWhen(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	ana := storetest.Member(t, s.db, owner, store.RoleMember)
	storetest.Agent(t, s.db, ana, "one")
	b := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleMember))
	p := b.get("/members")
	wantText(t, p, "3 members.", "not known", "1 agent", ">now<", s.email(t, ana))
	s.clock.advance(2 * time.Hour)
	s.signedIn(t, ana)
	s.clock.advance(3 * time.Hour)
	p = b.get(memberPath(ana))
	wantText(t, p, "Somebody", "3 h ago", s.email(t, ana), "Live agents")
	wantNoText(t, p, "Save role", "/remove")
}

func TestWhatIsTypedForAnInviteStaysText(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	link := b.invited(`a'%22b&lt@evil.example`, store.RoleMember)
	out := s.browser(t)
	for _, p := range []page{b.get("/members"), out.get(link), out.post(link, "name", "<script>", "password", "x"), b.post("/members", "email", "<script>", "role", "<script>")} {
		wantNoText(t, p, "<script>")
	}
	wantRedirect(t, out.post(link, "name", "<script>", "password", goodPassword), "/")
	for _, p := range []page{b.get("/members"), out.get("/members")} {
		wantText(t, p, "&lt;script&gt;")
		wantNoText(t, p, "<script>")
	}
}
