package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// invite makes one, and returns its token.
func invite(t *testing.T, db *store.DB, c store.Caller, email string, role store.Role) (store.Invite, string) {
	t.Helper()
	var i store.Invite
	var token string
	do(t, db, c, func(tx *store.Tx) (err error) {
		i, token, err = tx.CreateInvite(t.Context(), email, role)
		return err
	})
	return i, token
}

func invites(t *testing.T, db *store.DB, c store.Caller) []store.Invite {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) ([]store.Invite, error) { return tx.Invites(t.Context()) })
}

func member(t *testing.T, db *store.DB, c store.Caller, user store.UserID) store.Member {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) (store.Member, error) { return tx.Member(t.Context(), user) })
}

func newcomer(name string) store.Joining {
	return store.Joining{Name: name, Password: "$argon2id$" + name}
}

func TestAnInviteMakesOneMember(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	c := storetest.Organisation(t, db)
	i, token := invite(t, db, c, " Ana@Example.com ", store.RoleAdmin)
	if !store.WellFormed(store.InviteTokenPrefix, token) || i.Email != "ana@example.com" || i.Role != store.RoleAdmin || !i.ExpiresAt.Equal(i.CreatedAt.Add(store.InviteLife)) {
		t.Errorf("CreateInvite() = %+v, %q", i, token)
	}
	clock.pass(store.InviteLife - time.Second)
	look, err := sys.Invitation(t.Context(), token)
	if err != nil || look.Org != c.Org || look.Email != "ana@example.com" || look.Role != store.RoleAdmin || look.MadeBy != i.MadeBy {
		t.Errorf("Invitation() = %+v, %v", look, err)
	}
	if _, _, err := sys.Join(t.Context(), token, store.Joining{Name: "A\nna", Password: "x"}); outcome(err) != "input_invalid" {
		t.Errorf("Join() with a name of two lines = %v, want input_invalid", err)
	}
	user, _, err := sys.Join(t.Context(), token, newcomer("Ana"))
	if err != nil {
		t.Fatalf("Join() after one that was refused = %v", err)
	}
	if got := member(t, db, c, user); got.Email != "ana@example.com" || got.Name != "Ana" || got.Role != store.RoleAdmin {
		t.Errorf("Member() = %+v", got)
	}
	for name, token := range map[string]string{"used": token, "none": "", "of nobody's making": "grfti_x"} {
		_, look := sys.Invitation(t.Context(), token)
		_, _, use := sys.Join(t.Context(), token, newcomer("Eve"))
		if outcome(look) != "link_not_valid" || outcome(use) != "link_not_valid" {
			t.Errorf("%s: Invitation() = %v, Join() = %v, want link_not_valid", name, look, use)
		}
	}
	if list := invites(t, db, c); len(list) != 0 {
		t.Errorf("Invites() = %+v, want none", list)
	}
}

func TestAnInviteRunsOutAndIsSwept(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	c := storetest.Organisation(t, db)
	_, token := invite(t, db, c, "ana@example.com", store.RoleMember)
	clock.pass(store.InviteLife)
	if _, _, err := db.System().Join(t.Context(), token, newcomer("Ana")); outcome(err) != "link_not_valid" {
		t.Errorf("Join() after its time = %v, want link_not_valid", err)
	}
	if list := invites(t, db, c); len(list) != 0 {
		t.Errorf("Invites() = %+v, want none", list)
	}
	invite(t, db, c, "bo@example.com", store.RoleMember)
	if err := db.System().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, connect(t, storetest.Superuser(t, dsnOf(db))), `SELECT count(*) FROM invite`); n != 1 {
		t.Errorf("%d invites after Sweep(), want the one that works", n)
	}
}

func TestWhoMayInviteWhom(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	admin, plain, auditor := storetest.Member(t, db, owner, store.RoleAdmin), storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleAuditor)
	theirs := member(t, db, owner, plain.User).Email
	create := func(c store.Caller, email string, role store.Role) string {
		return outcome(db.As(t.Context(), c, func(tx *store.Tx) error { _, _, err := tx.CreateInvite(t.Context(), email, role); return err }))
	}
	for _, x := range []struct {
		name  string
		by    store.Caller
		email string
		role  store.Role
		want  string
	}{
		{"an owner, an owner", owner, "boss@invited.example", store.RoleOwner, "yes"},
		{"an admin, an owner", admin, "o@invited.example", store.RoleOwner, "forbidden"},
		{"an admin, an admin", admin, "a@invited.example", store.RoleAdmin, "yes"},
		{"an admin, whom an owner invited as one", admin, "boss@invited.example", store.RoleMember, "forbidden"},
		{"a member", plain, "m@invited.example", store.RoleMember, "forbidden"},
		{"an auditor", auditor, "m@invited.example", store.RoleMember, "forbidden"},
		{"the operator, who has user add", store.Caller{Org: owner.Org, Role: store.RoleOwner, Via: store.ViaCLI}, "m@invited.example", store.RoleMember, "forbidden"},
		{"a member of it", owner, theirs, store.RoleMember, "name_taken"},
		{"no address", owner, "nobody", store.RoleMember, "input_invalid"},
		{"no role", owner, "m@invited.example", "king", "input_invalid"},
	} {
		if got := create(x.by, x.email, x.role); got != x.want {
			t.Errorf("%s = %s, want %s", x.name, got, x.want)
		}
	}
	list := invites(t, db, owner)
	if len(list) != 2 {
		t.Fatalf("Invites() = %+v, want two", list)
	}
	for who, c := range map[string]store.Caller{"an admin": admin, "an auditor": auditor} {
		if got := invites(t, db, c); len(got) != 2 {
			t.Errorf("Invites() of %s = %d, want 2", who, len(got))
		}
	}
	if got := invites(t, db, plain); len(got) != 0 {
		t.Errorf("Invites() of a member = %d, want none", len(got))
	}
	boss := list[slices.IndexFunc(list, func(i store.Invite) bool { return i.Role == store.RoleOwner })]
	withdraw := func(c store.Caller, id store.InviteID) string {
		return outcome(db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.WithdrawInvite(t.Context(), id); return err }))
	}
	stranger := storetest.Organisation(t, db)
	for _, x := range []struct {
		name string
		by   store.Caller
		want string
	}{
		{"a member", plain, "not_found"},
		{"an auditor", auditor, "forbidden"},
		{"an admin, an owner's", admin, "forbidden"},
		{"another organisation", stranger, "not_found"},
		{"an owner", owner, "yes"},
		{"again", owner, "not_found"},
	} {
		if got := withdraw(x.by, boss.ID); got != x.want {
			t.Errorf("withdrawn by %s = %s, want %s", x.name, got, x.want)
		}
	}
}

// A later invite of an address replaces the earlier: its link may be in other hands.
func TestInvitingAgainEndsTheEarlierLink(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	_, first := invite(t, db, c, "ana@again.example", store.RoleAdmin)
	_, second := invite(t, db, c, "ana@again.example", store.RoleMember)
	if _, err := db.System().Invitation(t.Context(), first); outcome(err) != "link_not_valid" {
		t.Errorf("Invitation() of the first = %v, want link_not_valid", err)
	}
	if i, err := db.System().Invitation(t.Context(), second); err != nil || i.Role != store.RoleMember {
		t.Errorf("Invitation() of the second = %+v, %v", i, err)
	}
}

func TestAnOrganisationHasSoManyOpenInvites(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	c := storetest.Organisation(t, db)
	do(t, db, c, func(tx *store.Tx) error {
		for n := range store.MaxInvites {
			if _, _, err := tx.CreateInvite(t.Context(), fmt.Sprintf("%d@many.example", n), store.RoleMember); err != nil {
				return err
			}
		}
		return nil
	})
	again := func(email string) error {
		return db.As(t.Context(), c, func(tx *store.Tx) error {
			_, _, err := tx.CreateInvite(t.Context(), email, store.RoleMember)
			return err
		})
	}
	if err := again("more@many.example"); outcome(err) != "input_invalid" || reason.Of(err).Details["field"] != "email" {
		t.Errorf("one more = %v, want input_invalid of email", err)
	}
	if err := again("7@many.example"); err != nil {
		t.Errorf("one of them again = %v, want nil", err)
	}
	clock.pass(store.InviteLife)
	if err := again("more@many.example"); err != nil {
		t.Errorf("after the others' time = %v, want nil", err)
	}
}

// Whoever makes an invite has its link. It must be no way into an account that is somebody's.
func TestAnInviteNeverTakesAnAccountOver(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys := db.System()
	other := storetest.Organisation(t, db)
	victim := storetest.Member(t, db, other, store.RoleOwner) // without a password so far
	email := member(t, db, other, victim.User).Email
	_, token := invite(t, db, c, email, store.RoleMember)
	for _, password := range []string{"", "theirs"} {
		if err := sys.SetPassword(t.Context(), victim.User, "", password); err != nil {
			t.Fatal(err)
		}
		if _, _, err := sys.Join(t.Context(), token, newcomer("Eve")); outcome(err) != "name_taken" {
			t.Errorf("Join() anew with a password of %q there = %v, want name_taken", password, err)
		}
		if u, err := sys.UserByEmail(t.Context(), email); err != nil || u.Password != password || u.Name == "Eve" {
			t.Errorf("the account = %+v, %v, want it as it was", u, err)
		}
	}
	// Nor is it for anybody else's account.
	if _, _, err := sys.Join(t.Context(), token, store.Joining{User: storetest.Member(t, db, other, store.RoleMember).User}); outcome(err) != "forbidden" {
		t.Errorf("Join() of another account = %v, want forbidden", err)
	}
	if user, _, err := sys.Join(t.Context(), token, store.Joining{User: victim.User}); err != nil || user != victim.User {
		t.Errorf("Join() of the account itself = %v, %v", user, err)
	}
	if list := memberships(t, db, victim.User); len(list) != 2 {
		t.Errorf("Memberships() = %+v, want both", list)
	}
}

func TestSomebodyWhoWasRemovedComesBackByAnInviteAlone(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys := db.System()
	gone := storetest.Member(t, db, c, store.RoleAdmin)
	email := member(t, db, c, gone.User).Email
	storetest.Agent(t, db, gone, "theirs")
	do(t, db, c, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), gone.User) })
	// A browser that signed in between the look and the end.
	stale := store.HashToken("stale " + email)
	if err := sys.BeginWebSession(t.Context(), stale, gone.User, "", []byte{}, db.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, token := invite(t, db, c, email, store.RoleMember)
	user, _, err := sys.Join(t.Context(), token, newcomer("Ana")) // nobody could sign in to it, of nobody's organisation
	if err != nil || user != gone.User {
		t.Fatalf("Join() = %v, %v, want %v", user, err, gone.User)
	}
	if got := member(t, db, c, user); got.Role != store.RoleMember || got.Agents != 0 || got.Name != "Ana" {
		t.Errorf("Member() = %+v, want a member whose agents stay revoked", got)
	}
	if _, err := sys.WebSession(t.Context(), stale); !store.IsAbsent(err) {
		t.Errorf("the session from before = %v, want not found", err)
	}
}

// One invite, two browsers that both read it, and one who withdraws it: they meet at the organisation's row.
func TestAnInviteIsUsedOnceOrWithdrawn(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	c := storetest.Organisation(t, db)
	holder, watcher := connect(t, storetest.Superuser(t, dsnOf(db))), connect(t, storetest.Superuser(t, dsnOf(db)))
	for name, withdrawn := range map[string]bool{"used twice": false, "withdrawn as well": true} {
		i, token := invite(t, db, c, "ana@race.example", store.RoleMember)
		acts := []func() error{
			func() error { _, _, err := db.System().Join(t.Context(), token, newcomer("Ana")); return err },
			func() error { _, _, err := db.System().Join(t.Context(), token, newcomer("Eve")); return err },
		}
		if withdrawn {
			acts = append(acts, func() error {
				return db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.WithdrawInvite(t.Context(), i.ID); return err })
			})
		}
		run(t, holder, `BEGIN`, `SELECT FROM organisation FOR UPDATE`)
		outcomes := make([]string, len(acts))
		var all sync.WaitGroup
		for n, act := range acts {
			all.Go(func() { outcomes[n] = outcome(act()) })
		}
		eventually(t, "all of them to wait", func() bool {
			return number(t, watcher, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == int64(len(acts))
		})
		run(t, holder, `COMMIT`)
		all.Wait()
		slices.Sort(outcomes)
		want := [][]string{{"link_not_valid", "yes"}}
		if withdrawn {
			want = [][]string{{"link_not_valid", "link_not_valid", "yes"}, {"link_not_valid", "not_found", "yes"}}
		}
		if !slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(w, outcomes) }) {
			t.Errorf("%s: outcomes = %q, want one of %q", name, outcomes, want)
		}
		for _, m := range must(t, db, c, func(tx *store.Tx) ([]store.Member, error) { return tx.Members(t.Context()) }) {
			if m.UserID != c.User {
				do(t, db, c, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), m.UserID) })
			}
		}
		run(t, holder, `DELETE FROM member WHERE removed_at IS NOT NULL`, `DELETE FROM user_account u WHERE NOT EXISTS (SELECT FROM member m WHERE m.user_id = u.id)`)
	}
}

func TestInvitesEndWithTheRightToMakeThem(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	second, admin := storetest.Member(t, db, owner, store.RoleOwner), storetest.Member(t, db, owner, store.RoleAdmin)
	_, asOwner := invite(t, db, second, "a@ends.example", store.RoleOwner)
	_, asAdmin := invite(t, db, second, "b@ends.example", store.RoleAdmin)
	_, byAdmin := invite(t, db, admin, "c@ends.example", store.RoleMember)
	_, kept := invite(t, db, owner, "d@ends.example", store.RoleMember)
	works := func() (found []string) {
		for name, token := range map[string]string{"as owner": asOwner, "as admin": asAdmin, "by admin": byAdmin, "kept": kept} {
			if _, err := db.System().Invitation(t.Context(), token); err == nil {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		return found
	}
	do(t, db, owner, func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), second.User, store.RoleAdmin); return err })
	if got, want := works(), []string{"as admin", "by admin", "kept"}; !slices.Equal(got, want) {
		t.Errorf("after an owner became an admin: %q, want %q", got, want)
	}
	do(t, db, owner, func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), second.User, store.RoleMember); return err })
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), admin.User) })
	if got, want := works(), []string{"kept"}; !slices.Equal(got, want) {
		t.Errorf("at the end: %q, want %q", got, want)
	}
}

func TestSetRole(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	admin, plain, auditor := storetest.Member(t, db, owner, store.RoleAdmin), storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleAuditor)
	second := storetest.Member(t, db, owner, store.RoleOwner)
	busy := storetest.Member(t, db, owner, store.RoleMember)
	a, _ := storetest.Agent(t, db, busy, "busy")
	stranger := storetest.Organisation(t, db)
	for _, x := range []struct {
		name string
		by   store.Caller
		user store.UserID
		role store.Role
		want string
	}{
		{"a member", plain, auditor.User, store.RoleMember, "forbidden"},
		{"an auditor", auditor, auditor.User, store.RoleOwner, "forbidden"},
		{"an agent", bearer(busy, a), plain.User, store.RoleAdmin, "forbidden"},
		{"an admin makes an owner", admin, admin.User, store.RoleOwner, "forbidden"},
		{"an admin ends an owner", admin, second.User, store.RoleMember, "forbidden"},
		{"an admin makes an admin", admin, plain.User, store.RoleAdmin, "yes"},
		{"the same", admin, plain.User, store.RoleAdmin, "yes"},
		{"no role", owner, plain.User, "king", "input_invalid"},
		{"a stranger", owner, stranger.User, store.RoleMember, "not_found"},
		{"an auditor with agents", owner, busy.User, store.RoleAuditor, "input_invalid"},
		{"an owner ends an owner", owner, second.User, store.RoleAuditor, "yes"},
		{"an owner that was", second, plain.User, store.RoleMember, "forbidden"}, // the request began as an owner's
		{"the last owner", owner, owner.User, store.RoleAdmin, "forbidden"},
	} {
		if got := outcome(db.As(t.Context(), x.by, func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), x.user, x.role); return err })); got != x.want {
			t.Errorf("%s = %s, want %s", x.name, got, x.want)
		}
	}
	if got := member(t, db, owner, plain.User).Role; got != store.RoleAdmin {
		t.Errorf("role = %s, want admin", got)
	}
}

// Replicas remember callers with their role, so they are told of another as of a removal.
func TestAnotherRoleIsTold(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	c := storetest.Organisation(t, db)
	m := storetest.Member(t, db, c, store.RoleMember)
	ear := connect(t, dsnOf(db))
	run(t, ear, `LISTEN `+bus.Channel)
	set := func(role store.Role) {
		do(t, db, c, func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), m.User, role); return err })
	}
	set(store.RoleMember) // the same, which is nothing to tell
	set(store.RoleAdmin)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := ear.WaitForNotification(ctx)
	if want := (bus.Event{Topic: bus.Member, ID: c.Org.String()}).Payload(); err != nil || n.Payload != want {
		t.Errorf("notification = %+v, %v, want %q", n, err, want)
	}
}

// Whatever two owners do to one another or to themselves at once, an owner is left.
func TestAnOwnerIsLeftWhateverHappensAtOnce(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	other := storetest.Open(t, dsnOf(db), nil)
	demote := func(c store.Caller, user store.UserID) func(*store.Tx) error {
		return func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), user, store.RoleMember); return err }
	}
	remove := func(_ store.Caller, user store.UserID) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), user) }
	}
	for name, acts := range map[string][2]func(store.Caller, store.UserID) func(*store.Tx) error{
		"both removed": {remove, remove}, "both demoted": {demote, demote}, "one of each": {demote, remove},
	} {
		for _, selves := range []bool{false, true} {
			for range 4 {
				a := storetest.Organisation(t, db)
				b := storetest.Member(t, db, a, store.RoleOwner)
				on := [2]store.UserID{b.User, a.User}
				if selves {
					on = [2]store.UserID{a.User, b.User}
				}
				var all sync.WaitGroup
				errs := make([]error, 2)
				all.Go(func() { errs[0] = db.As(t.Context(), a, acts[0](a, on[0])) })
				all.Go(func() { errs[1] = other.As(t.Context(), b, acts[1](b, on[1])) })
				all.Wait()
				if (errs[0] == nil) == (errs[1] == nil) || outcome(errors.Join(errs...)) != "forbidden" {
					t.Errorf("%s, selves %v: %v and %v, want one yes and one forbidden", name, selves, errs[0], errs[1])
				}
				if _, err := in(t, db, store.Caller{Org: a.Org, Via: store.ViaCLI}, func(tx *store.Tx) (store.UserID, error) { return tx.FirstOwner(t.Context()) }); err != nil {
					t.Errorf("%s, selves %v: the owner left: %v", name, selves, err)
				}
			}
		}
	}
}

// A role that is given while its member is removed brings nobody back, whichever is first.
func TestARoleAndARemovalAtOnce(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	other := storetest.Open(t, storetest.URL(t), nil)
	for range 6 {
		m := storetest.Member(t, db, c, store.RoleMember)
		var all sync.WaitGroup
		var role, removal error
		all.Go(func() {
			role = db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.SetRole(t.Context(), m.User, store.RoleAdmin); return err })
		})
		all.Go(func() {
			removal = other.As(t.Context(), c, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), m.User) })
		})
		all.Wait()
		if removal != nil || role != nil && !store.IsAbsent(role) {
			t.Errorf("SetRole() = %v, RemoveMember() = %v", role, removal)
		}
		if list := memberships(t, db, m.User); len(list) != 0 {
			t.Errorf("Memberships() = %+v, want none", list)
		}
	}
}

func TestRemovalEndsBrowserAndLinksOfAStranger(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys := db.System()
	elsewhere := storetest.Organisation(t, db)
	begin := func(user store.UserID) (store.TokenHash, string) {
		hash := store.HashToken("cookie of " + user.String())
		if err := sys.BeginWebSession(t.Context(), hash, user, "", []byte{}, db.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		link, err := sys.NewSignInLink(t.Context(), user, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return hash, link
	}
	gone, both := storetest.Member(t, db, c, store.RoleMember), storetest.Member(t, db, c, store.RoleMember)
	o := must(t, db, elsewhere, func(tx *store.Tx) (store.Organisation, error) { return tx.Organisation(t.Context()) })
	if _, _, err := sys.Enrol(t.Context(), o.Name, member(t, db, c, both.User).Email, store.RoleMember); err != nil {
		t.Fatal(err)
	}
	cookie, link := begin(gone.User)
	cookieBoth, linkBoth := begin(both.User)
	for n, m := range []store.Caller{gone, both} {
		left := must(t, db, c, func(tx *store.Tx) ([]store.Member, error) {
			if err := tx.RemoveMember(t.Context(), m.User); err != nil {
				return nil, err
			}
			return tx.Members(t.Context()) // the transaction sees the organisation's own again
		})
		if len(left) != 2-n {
			t.Errorf("Members() in the transaction of a removal = %d, want %d", len(left), 2-n)
		}
	}
	if _, err := sys.WebSession(t.Context(), cookie); !store.IsAbsent(err) {
		t.Errorf("the browser of somebody who is a member nowhere = %v, want not found", err)
	}
	if _, err := sys.Link(t.Context(), link); outcome(err) != "link_not_valid" {
		t.Errorf("their link = %v, want link_not_valid", err)
	}
	if _, err := sys.WebSession(t.Context(), cookieBoth); err != nil {
		t.Errorf("the browser of somebody who is a member elsewhere = %v, want nil", err)
	}
	if _, err := sys.Link(t.Context(), linkBoth); err != nil {
		t.Errorf("their link = %v, want nil", err)
	}
}

func TestAMemberAndWhatTheyHold(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	owner := storetest.Organisation(t, db)
	m := storetest.Member(t, db, owner, store.RoleAdmin)
	stranger := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, m, "one")
	storetest.Agent(t, db, m, "two")
	mine, _ := storetest.Agent(t, db, owner, "mine")
	grantTo(t, db, m, mine.ID)
	grantTo(t, db, owner, a.ID)
	invite(t, db, m, "guest@example.com", store.RoleMember)
	if got := member(t, db, owner, m.User); got.SignedInAt != nil || got.Agents != 2 {
		t.Errorf("Member() = %+v, want one who never signed in, with two agents", got)
	}
	clock.pass(time.Hour)
	do(t, db, m, func(tx *store.Tx) error { return tx.NoteSignIn(t.Context()) })
	do(t, db, m, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.ID) })
	if got := member(t, db, owner, m.User); got.SignedInAt == nil || !got.SignedInAt.Equal(db.Now()) || got.Agents != 1 {
		t.Errorf("Member() = %+v, want one who signed in now, with one agent", got)
	}
	held := must(t, db, owner, func(tx *store.Tx) (store.Holdings, error) { return tx.Holdings(t.Context(), m.User) })
	if want := (store.Holdings{Agents: 1, Grants: 1, Invites: 1}); held != want {
		t.Errorf("Holdings() = %+v, want %+v", held, want)
	}
	if _, err := in(t, db, stranger, func(tx *store.Tx) (store.Member, error) { return tx.Member(t.Context(), m.User) }); !store.IsAbsent(err) {
		t.Errorf("Member() of another organisation = %v, want not found", err)
	}
}
