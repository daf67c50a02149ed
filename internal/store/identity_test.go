package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

const issuer = "https://login.example.com"

// subject is one that no other test has.
func subject() string { return store.NewID[store.RunKind](time.Now()).String() }

// identity is a new one of user's, at issuer.
func identity(t *testing.T, db *store.DB, user store.UserID, name string) store.Identity {
	t.Helper()
	i, err := db.System().AddIdentity(t.Context(), store.Identity{UserID: user, Issuer: issuer, Subject: subject(), Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIdentitiesAreListedRenamedAndRemovedByTheirUserAlone(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys := db.System()
	ana, bo := storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	work, home := identity(t, db, ana, "Work"), identity(t, db, ana, "Home")
	for name, err := range map[string]error{
		"rename": sys.RenameIdentity(t.Context(), bo, work.ID, "Mine"), "remove": sys.RemoveIdentity(t.Context(), bo, work.ID, issuer),
	} {
		if !store.IsAbsent(err) {
			t.Errorf("%s somebody else's identity = %v, want not found", name, err)
		}
	}
	if err := sys.RenameIdentity(t.Context(), ana, work.ID, "Old work"); err != nil {
		t.Error(err)
	}
	if err := sys.RenameIdentity(t.Context(), ana, work.ID, " "); outcome(err) != "input_invalid" {
		t.Errorf("RenameIdentity() without a name = %v, want input_invalid", err)
	}
	if i, err := sys.Identity(t.Context(), issuer, work.Subject); err != nil || i.UserID != ana || i.Name != "Old work" {
		t.Errorf("Identity() = %+v, %v, want ana's", i, err)
	}
	if _, err := sys.Identity(t.Context(), "https://other.example.com", work.Subject); !store.IsAbsent(err) {
		t.Errorf("Identity() of the subject at another issuer = %v, want not found", err)
	}
	if err := sys.RemoveIdentity(t.Context(), ana, home.ID, issuer); err != nil {
		t.Error(err)
	}
	if list, err := sys.Identities(t.Context(), ana); err != nil || len(list) != 1 || list[0].ID != work.ID {
		t.Errorf("Identities() = %+v, %v, want one", list, err)
	}
}

func TestAnIdentityIsOfOneAccount(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys := db.System()
	ana, bo := storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	i := identity(t, db, ana, "Work")
	for _, user := range []store.UserID{ana, bo} {
		if _, err := sys.AddIdentity(t.Context(), store.Identity{UserID: user, Issuer: issuer, Subject: i.Subject, Name: "Again"}); outcome(err) != "name_taken" {
			t.Errorf("AddIdentity() of one that is bound = %v, want name_taken", err)
		}
	}
	if _, err := sys.AddIdentity(t.Context(), store.Identity{UserID: bo, Issuer: "https://other.example.com", Subject: i.Subject, Name: "Other"}); err != nil {
		t.Errorf("AddIdentity() of the subject at another issuer = %v", err)
	}
}

func TestAPersonHasSoManyIdentitiesAtMost(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	user := storetest.Organisation(t, db).User
	for n := range 20 {
		identity(t, db, user, fmt.Sprintf("Identity %d", n))
	}
	if _, err := db.System().AddIdentity(t.Context(), store.Identity{UserID: user, Issuer: issuer, Subject: subject(), Name: "One too many"}); outcome(err) != "input_invalid" {
		t.Errorf("AddIdentity() = %v, want input_invalid", err)
	}
}

// Passkeys and identities count together, and an identity at an issuer that is not asked any more is no way in.
func TestTheLastWayToSignInStays(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys := db.System()
	user := storetest.Organisation(t, db).User
	key, here := passkey(t, db, user, "Laptop"), identity(t, db, user, "Work")
	old, err := sys.AddIdentity(t.Context(), store.Identity{UserID: user, Issuer: "https://old.example.com", Subject: subject(), Name: "Old"})
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	var results [2]error
	both.Go(func() { results[0] = sys.RemovePasskey(t.Context(), user, key.ID, issuer) })
	both.Go(func() { results[1] = sys.RemoveIdentity(t.Context(), user, here.ID, issuer) })
	both.Wait()
	if (results[0] == nil) == (results[1] == nil) || outcome(results[0]) != "input_invalid" && outcome(results[1]) != "input_invalid" {
		t.Errorf("removing both = %v, %v, want one refused", results[0], results[1])
	}
	if err := sys.RemoveIdentity(t.Context(), user, old.ID, issuer); err != nil {
		t.Errorf("RemoveIdentity() at an issuer that is not asked = %v", err)
	}
	withPassword(t, db, user)
	if results[0] != nil {
		err = sys.RemovePasskey(t.Context(), user, key.ID, issuer)
	} else {
		err = sys.RemoveIdentity(t.Context(), user, here.ID, issuer)
	}
	if err != nil {
		t.Errorf("removing the last beside a password = %v", err)
	}
}

func TestAPasskeyIsTheLastWayInWhereTheProviderIsGone(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	user := storetest.Organisation(t, db).User
	key := passkey(t, db, user, "Laptop")
	identity(t, db, user, "Work")
	for _, asked := range []string{"", "https://other.example.com"} {
		if err := db.System().RemovePasskey(t.Context(), user, key.ID, asked); outcome(err) != "input_invalid" {
			t.Errorf("RemovePasskey() with the provider %q = %v, want input_invalid", asked, err)
		}
	}
}

func TestASessionBeginsWithAnIdentityThatIsThere(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	ana, bo := storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	i := identity(t, db, ana, "Work")
	begin := func(user store.UserID) error {
		_, hash := store.NewToken("test_")
		return sys.BeginIdentitySession(t.Context(), hash, user, i.ID, []byte("data"), clock.now().Add(time.Hour))
	}
	if err := begin(ana); err != nil {
		t.Errorf("BeginIdentitySession() = %v", err)
	}
	if list, err := sys.Identities(t.Context(), ana); err != nil || list[0].LastUsedAt == nil {
		t.Errorf("Identities() = %+v, %v, want when it was used", list, err)
	}
	if err := begin(bo); !store.IsAbsent(err) {
		t.Errorf("BeginIdentitySession() of somebody else = %v, want not found", err)
	}
	identity(t, db, ana, "Home")
	if err := sys.RemoveIdentity(t.Context(), ana, i.ID, issuer); err != nil {
		t.Fatal(err)
	}
	if err := begin(ana); !store.IsAbsent(err) {
		t.Errorf("BeginIdentitySession() with one that was removed = %v, want not found", err)
	}
}

// A new account has an identity in place of a password. What is refused leaves the invite as it was.
func TestAnInviteMakesAnAccountWithAnIdentity(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys := db.System()
	owner := storetest.Organisation(t, db)
	email := "ana@" + subject() + ".example"
	_, token := invite(t, db, owner, email, store.RoleMember)
	taken := identity(t, db, storetest.Organisation(t, db).User, "Work")
	join := func(subject string) (store.UserID, error) {
		user, _, err := sys.Join(t.Context(), token, store.Joining{Name: "Ana", Identity: &store.Identity{Issuer: issuer, Subject: subject, Name: "Work"}})
		return user, err
	}
	if _, err := join(taken.Subject); outcome(err) != "name_taken" {
		t.Errorf("Join() with another's identity = %v, want name_taken", err)
	}
	if _, _, err := sys.Join(t.Context(), token, store.Joining{Name: "Ana"}); err == nil {
		t.Error("Join() made an account that nobody can sign in to")
	}
	mine := subject()
	user, err := join(mine)
	if err != nil {
		t.Fatal(err)
	}
	list, err := sys.Identities(t.Context(), user)
	if err != nil || len(list) != 1 || list[0].Subject != mine {
		t.Errorf("Identities() = %+v, %v, want the one that joined", list, err)
	}
	if err := sys.RemoveIdentity(t.Context(), user, list[0].ID, issuer); outcome(err) != "input_invalid" {
		t.Errorf("RemoveIdentity() of the only way in = %v, want input_invalid", err)
	}
	// Removed from everywhere, the account is still somebody's: an invite does not take it over.
	do(t, db, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), user) })
	_, token = invite(t, db, owner, email, store.RoleMember)
	if _, _, err := sys.Join(t.Context(), token, newcomer("Eve")); outcome(err) != "name_taken" {
		t.Errorf("Join() as somebody new = %v, want name_taken", err)
	}
	if got, _, err := sys.Join(t.Context(), token, store.Joining{User: user}); err != nil || got != user {
		t.Errorf("Join() as themselves = %v, %v", got, err)
	}
}
