package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMembersOfTheOrganisation(t *testing.T) {
	t.Parallel()
	clock := newClock()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, clock.now)
	enrol := func(email string, role store.Role) store.UserID {
		clock.pass(time.Minute)
		_, user, err := db.System().Enrol(t.Context(), "Acme", email, role)
		if err != nil {
			t.Fatal(err)
		}
		return user
	}
	first, second, gone := enrol("ana@example.com", store.RoleOwner), enrol("bo@example.com", store.RoleOwner), enrol("cy@example.com", store.RoleMember)
	stranger, strangers, err := db.System().Enrol(t.Context(), "Other", "dee@example.com", store.RoleOwner)
	if err != nil {
		t.Fatal(err)
	}
	o, err := db.System().OrganisationByName(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	c := store.Caller{Org: o.ID, Role: store.RoleOwner, Via: store.ViaCLI}
	super := connect(t, storetest.Superuser(t, dsn))
	remove := func(user store.UserID) {
		if _, err := super.Exec(t.Context(), `UPDATE member SET removed_at = now() WHERE user_id = $1`, user); err != nil {
			t.Fatal(err)
		}
	}
	remove(gone)

	if got := must(t, db, c, func(tx *store.Tx) (store.Organisation, error) { return tx.Organisation(t.Context()) }); got != o {
		t.Errorf("Organisation() = %v, want %v", got, o)
	}
	members := func() []store.Member {
		return must(t, db, c, func(tx *store.Tx) ([]store.Member, error) { return tx.Members(t.Context()) })
	}
	start := newClock().now().UTC()
	want := []store.Member{
		{UserID: first, Email: "ana@example.com", Role: store.RoleOwner, CreatedAt: start.Add(time.Minute)},
		{UserID: second, Email: "bo@example.com", Role: store.RoleOwner, CreatedAt: start.Add(2 * time.Minute)},
	}
	if diff := cmp.Diff(want, members(), sameIDs, cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("Members() (-want +got):\n%s", diff)
	}

	byEmail := func(email string) (store.UserID, error) {
		return in(t, db, c, func(tx *store.Tx) (store.UserID, error) { return tx.MemberByEmail(t.Context(), email) })
	}
	if got, err := byEmail(" BO@Example.com "); err != nil || got != second {
		t.Errorf("MemberByEmail() = %v, %v, want %v", got, err, second)
	}
	for _, email := range []string{"cy@example.com", "dee@example.com", "nobody@example.com", "", "a\x00@example.com", "\xff@example.com"} {
		if got, err := byEmail(email); !store.IsAbsent(err) {
			t.Errorf("MemberByEmail(%q) = %v, %v, want %v", email, got, err, reason.NotFound)
		}
	}

	firstOwner := func(c store.Caller) (store.UserID, error) {
		return in(t, db, c, func(tx *store.Tx) (store.UserID, error) { return tx.FirstOwner(t.Context()) })
	}
	if got, err := firstOwner(c); err != nil || got != first {
		t.Errorf("FirstOwner() = %v, %v, want %v", got, err, first)
	}
	remove(first)
	if got, err := firstOwner(c); err != nil || got != second {
		t.Errorf("FirstOwner() after the first left = %v, %v, want %v", got, err, second)
	}
	remove(second)
	if got, err := firstOwner(c); !store.IsAbsent(err) {
		t.Errorf("FirstOwner() after all left = %v, %v, want %v", got, err, reason.NotFound)
	}
	if got, err := firstOwner(store.Caller{Org: stranger.ID, Via: store.ViaJob}); err != nil || got != strangers {
		t.Errorf("FirstOwner() of another organisation = %v, %v, want %v", got, err, strangers)
	}
	missing := store.Caller{Org: store.NewID[store.OrgKind](db.Now()), Via: store.ViaCLI}
	if _, err := in(t, db, missing, func(tx *store.Tx) (store.Organisation, error) { return tx.Organisation(t.Context()) }); !store.IsAbsent(err) {
		t.Errorf("Organisation() of one that is missing = %v, want %v", err, reason.NotFound)
	}
}

func TestCheckEmail(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a@b", "ana@example.com", "o'hara+tag@sub.example.co", "grün@bücher.example", strings.Repeat("a", 252) + "@b"} {
		if err := store.CheckEmail(s); err != nil {
			t.Errorf("CheckEmail(%q) = %v, want nil", s, err)
		}
	}
	for _, s := range []string{
		"", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\n", "a@b\r\nBcc: c@d", "a\x00@b", "a\xff@b", "<a@b>", `"a"@b`, "a,b@c", "a;b@c",
		"a\u00a0@b", strings.Repeat("a", 253) + "@b",
	} {
		if err := store.CheckEmail(s); outcome(err) != "input_invalid" || reason.Of(err).Details["field"] != "email" {
			t.Errorf("CheckEmail(%q) = %v, want input_invalid of email", s, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"A", "Acme & Söhne", "株式会社", "7", strings.Repeat("é", 80)} {
		if err := store.CheckName("org", s, 80); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", s, err)
		}
	}
	for _, s := range []string{"", " ", "\t", strings.Repeat("e", 81), "a\nb", "a\x00", "a\xff", "a\u202e", "a\u200b", "a\u2028", "a\ufffd", "a\ue000"} {
		if err := store.CheckName("org", s, 80); outcome(err) != "input_invalid" || reason.Of(err).Details["field"] != "org" {
			t.Errorf("CheckName(%q) = %v, want input_invalid of org", s, err)
		}
	}
}

// TestCheckedTextIsStoredAsItIs: what the checks let through, the database takes, and what it keeps is the same.
func TestCheckedTextIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PrivateURL(t), nil)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.String().Draw(rt, "name")
		email := rapid.OneOf(rapid.StringMatching(`[a-zA-Z.+]{1,9}@[a-z.]{1,9}`), rapid.String()).Draw(rt, "email")
		o, user, err := db.System().Enrol(t.Context(), name, email, "")
		if store.CheckName("org", name, 80) != nil || store.CheckEmail(store.FoldEmail(email)) != nil {
			if outcome(err) != "input_invalid" {
				rt.Fatalf("Enrol(%q, %q) = %v, want input_invalid", name, email, err)
			}
			return
		}
		if err != nil {
			rt.Fatalf("Enrol(%q, %q) = %v, want nil", name, email, err)
		}
		found, err := db.System().OrganisationByName(t.Context(), name)
		if err != nil || found != o.Organisation {
			rt.Fatalf("OrganisationByName(%q) = %v, %v, want %v", name, found, err, o)
		}
		list, err := db.System().Memberships(t.Context(), user)
		belongs := slices.ContainsFunc(list, func(m store.Membership) bool { return m.Org == o.ID && m.Email == store.FoldEmail(email) })
		if err != nil || !belongs {
			rt.Fatalf("Memberships() = %v, %v, want one of %v as %q", list, err, o, store.FoldEmail(email))
		}
	})
}

func TestFoldEmailIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "email")
		once := store.FoldEmail(s)
		if twice := store.FoldEmail(once); twice != once {
			t.Fatalf("FoldEmail(FoldEmail(%q)) = %q, want %q", s, twice, once)
		}
	})
}
