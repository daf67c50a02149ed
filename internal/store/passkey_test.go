package store_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// passkey is a new one of user's.
func passkey(t *testing.T, db *store.DB, user store.UserID, name string) store.Passkey {
	t.Helper()
	p, err := db.System().AddPasskey(t.Context(), newPasskey(user, name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newPasskey(user store.UserID, name string) store.Passkey {
	return store.Passkey{UserID: user, Credential: []byte("credential of " + name), Name: name, PublicKey: []byte("key"), Transports: []string{"internal"}}
}

// withPassword gives user a password.
func withPassword(t *testing.T, db *store.DB, user store.UserID) {
	t.Helper()
	if _, err := db.System().ChangePassword(t.Context(), user, "hash", store.TokenHash{}); err != nil {
		t.Fatal(err)
	}
}

func TestPasskeysAreListedRenamedAndRemovedByTheirUserAlone(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys, ana, bo := db.System(), storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	withPassword(t, db, ana)
	laptop := passkey(t, db, ana, "Laptop")
	clock.pass(time.Minute)
	phone := passkey(t, db, ana, "Phone")
	if _, err := sys.AddPasskey(t.Context(), newPasskey(bo, "Phone")); outcome(err) != "name_taken" {
		t.Errorf("AddPasskey() of a credential that is there = %v, want name_taken", err)
	}
	if _, err := sys.AddPasskey(t.Context(), newPasskey(bo, " ")); outcome(err) != "input_invalid" {
		t.Errorf("AddPasskey() without a name = %v, want input_invalid", err)
	}
	for what, err := range map[string]error{
		"rename": sys.RenamePasskey(t.Context(), bo, phone.ID, "Mine"), "remove": sys.RemovePasskey(t.Context(), bo, phone.ID, ""),
	} {
		if !store.IsAbsent(err) {
			t.Errorf("%s somebody else's = %v, want not found", what, err)
		}
	}
	if err := sys.RenamePasskey(t.Context(), ana, phone.ID, "Old phone"); err != nil {
		t.Error(err)
	}
	if user, err := sys.PasskeyUser(t.Context(), phone.Credential); err != nil || user != ana {
		t.Errorf("PasskeyUser() = %v, %v, want %v", user, err, ana)
	}
	list, err := sys.Passkeys(t.Context(), ana)
	if err != nil || len(list) != 2 || list[0].ID != laptop.ID || list[1].Name != "Old phone" || !bytes.Equal(list[1].Credential, phone.Credential) || list[1].LastUsedAt != nil {
		t.Errorf("Passkeys() = %+v, %v, want Laptop and Old phone", list, err)
	}
	if err := sys.RemovePasskey(t.Context(), ana, laptop.ID, ""); err != nil {
		t.Error(err)
	}
	if list, err := sys.Passkeys(t.Context(), ana); err != nil || len(list) != 1 {
		t.Errorf("Passkeys() after one was removed = %+v, %v", list, err)
	}
}

func TestWhoeverHasNoPasswordKeepsTheirLastPasskey(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys, user := db.System(), storetest.Organisation(t, db).User
	keys := []store.Passkey{passkey(t, db, user, "Laptop"), passkey(t, db, user, "Phone")}
	results := make([]error, len(keys))
	var both sync.WaitGroup
	for i, k := range keys { // at once: neither may think that the other stays
		both.Go(func() { results[i] = sys.RemovePasskey(t.Context(), user, k.ID, "") })
	}
	both.Wait()
	if (results[0] == nil) == (results[1] == nil) {
		t.Errorf("RemovePasskey() of both = %v, %v, want one refused", results[0], results[1])
	}
	list, err := sys.Passkeys(t.Context(), user)
	if err != nil || len(list) != 1 {
		t.Fatalf("Passkeys() = %+v, %v, want one", list, err)
	}
	withPassword(t, db, user)
	if err := sys.RemovePasskey(t.Context(), user, list[0].ID, ""); err != nil {
		t.Errorf("RemovePasskey() beside a password = %v", err)
	}
}

func TestAPersonHasSoManyPasskeysAtMost(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	user := storetest.Organisation(t, db).User
	for n := range 20 {
		passkey(t, db, user, fmt.Sprintf("Key %d", n))
	}
	if _, err := db.System().AddPasskey(t.Context(), newPasskey(user, "One too many")); outcome(err) != "input_invalid" {
		t.Errorf("AddPasskey() = %v, want input_invalid", err)
	}
}

func TestAPasskeyWhoseCountDoesNotGrowIsTold(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys, user := db.System(), storetest.Organisation(t, db).User
	counts := passkey(t, db, user, "Counts")
	clock.pass(time.Second)
	silent := passkey(t, db, user, "Does not count")
	for _, step := range []struct {
		key   store.Passkey
		count uint32
		want  bool
	}{{silent, 0, true}, {silent, 0, true}, {counts, 4, true}, {counts, 4, false}, {counts, 3, false}, {counts, 0, false}, {counts, 5, true}, {counts, 1<<32 - 1, true}} {
		clock.pass(time.Second)
		if grew, err := sys.UsePasskey(t.Context(), step.key.ID, step.count); err != nil || grew != step.want {
			t.Errorf("UsePasskey(%s, %d) = %v, %v, want %v", step.key.Name, step.count, grew, err, step.want)
		}
	}
	list, err := sys.Passkeys(t.Context(), user)
	if err != nil || list[0].SignCount != 1<<32-1 || !list[0].LastUsedAt.Equal(clock.now()) {
		t.Errorf("Passkeys() = %+v, %v, want the last count and time", list, err)
	}
	if _, err := sys.UsePasskey(t.Context(), store.NewID[store.PasskeyKind](clock.now()), 1); !store.IsAbsent(err) {
		t.Errorf("UsePasskey() of none = %v, want not found", err)
	}
}

func TestAChallengeIsTakenOnceAndInTimeAndIsNoSession(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	early, late := store.HashToken("early"), store.HashToken("late")
	for _, hash := range []store.TokenHash{early, late} {
		if err := sys.HoldChallenge(t.Context(), hash, []byte("sign this"), clock.now().Add(5*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := sys.WebSession(t.Context(), hash); !store.IsAbsent(err) {
			t.Errorf("WebSession() of a challenge = %v, want not found", err)
		}
	}
	clock.pass(5*time.Minute - time.Second)
	if data, err := sys.TakeChallenge(t.Context(), early); err != nil || string(data) != "sign this" {
		t.Errorf("TakeChallenge() = %q, %v", data, err)
	}
	clock.pass(time.Second)
	for what, hash := range map[string]store.TokenHash{"again": early, "too late": late, "never held": store.HashToken("other")} {
		if data, err := sys.TakeChallenge(t.Context(), hash); !store.IsAbsent(err) {
			t.Errorf("TakeChallenge() %s = %q, %v, want not found", what, data, err)
		}
	}
	user := storetest.Organisation(t, db).User
	if err := sys.BeginWebSession(t.Context(), early, user, "", []byte("a session"), clock.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if data, err := sys.TakeChallenge(t.Context(), early); !store.IsAbsent(err) {
		t.Errorf("TakeChallenge() of a session = %q, %v, want not found", data, err)
	}
}

func TestASessionBeginsWithAPasskeyThatIsThere(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys, ana, bo := db.System(), storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	withPassword(t, db, ana)
	key := passkey(t, db, ana, "Laptop")
	begin := func(cookie string, user store.UserID) error {
		return sys.BeginPasskeySession(t.Context(), store.HashToken(cookie), user, key.ID, []byte("data"), clock.now().Add(time.Hour))
	}
	if err := begin("a", ana); err != nil {
		t.Errorf("BeginPasskeySession() = %v", err)
	}
	if err := begin("b", bo); !store.IsAbsent(err) {
		t.Errorf("BeginPasskeySession() of somebody else = %v, want not found", err)
	}
	if err := sys.RemovePasskey(t.Context(), ana, key.ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := begin("c", ana); !store.IsAbsent(err) {
		t.Errorf("BeginPasskeySession() with one that was removed = %v, want not found", err)
	}
}

func TestALinkSetsAPasskeyInPlaceOfAPassword(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	token, err := sys.NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sys.UseLink(t.Context(), token, store.Setup{Name: "Ana", Email: "ana@example.com", Org: "Acme"}); err == nil {
		t.Errorf("UseLink() with neither = %v, want an error", err)
	}
	id := store.NewID[store.UserKind](clock.now())
	key := newPasskey(store.UserID{}, "Laptop")
	user, err := sys.UseLink(t.Context(), token, store.Setup{Name: "Ana", Email: "ana@example.com", Org: "Acme", User: id, Passkey: &key})
	if err != nil || user != id || key.UserID != id || key.ID.IsZero() {
		t.Fatalf("UseLink() = %v, %v with passkey %+v, want user %v", user, err, key, id)
	}
	u, err := sys.UserByEmail(t.Context(), "ana@example.com")
	if err != nil || u.Password != "" {
		t.Errorf("the user = %+v, %v, want no password", u, err)
	}

	withPassword(t, db, user)
	link, err := sys.NewSignInLink(t.Context(), user, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other := newPasskey(store.UserID{}, "Phone")
	if _, err := sys.UseLink(t.Context(), link, store.Setup{Passkey: &other}); err != nil {
		t.Fatal(err)
	}
	if u, err := sys.UserByEmail(t.Context(), "ana@example.com"); err != nil || u.Password != "" {
		t.Errorf("the user = %+v, %v, want the password before to have ended", u, err)
	}
	if list, err := sys.Passkeys(t.Context(), user); err != nil || len(list) != 2 {
		t.Errorf("Passkeys() = %+v, %v, want two", list, err)
	}
}

func TestAPasswordThatChangesEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys, ana, bo := db.System(), storetest.Organisation(t, db).User, storetest.Organisation(t, db).User
	begin := func(cookie string, user store.UserID) store.TokenHash {
		hash := store.HashToken(cookie)
		if err := sys.BeginWebSession(t.Context(), hash, user, "", []byte(cookie), clock.now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	this, other, third, foreign := begin("this", ana), begin("other", ana), begin("third", ana), begin("foreign", bo)
	if err := sys.EndWebSession(t.Context(), bo, third); !store.IsAbsent(err) {
		t.Errorf("EndWebSession() of somebody else's = %v, want not found", err)
	}
	if err := sys.EndWebSession(t.Context(), ana, third); err != nil {
		t.Error(err)
	}
	list, err := sys.WebSessions(t.Context(), ana)
	if err != nil || len(list) != 2 {
		t.Errorf("WebSessions() = %v, %v, want two", list, err)
	}
	if ended, err := sys.ChangePassword(t.Context(), ana, "new", this); err != nil || ended != 1 {
		t.Errorf("ChangePassword() = %d, %v, want one other session", ended, err)
	}
	for hash, want := range map[store.TokenHash]error{this: nil, other: reason.NotFound, foreign: nil} {
		if _, err := sys.WebSession(t.Context(), hash); (err == nil) != (want == nil) {
			t.Errorf("WebSession() = %v, want %v", err, want)
		}
	}
	if _, err := sys.WebSessions(t.Context(), bo); err != nil {
		t.Error(err)
	}
	if ended, err := sys.EndOtherWebSessions(t.Context(), bo, foreign); err != nil || ended != 0 {
		t.Errorf("EndOtherWebSessions() = %d, %v, want none", ended, err)
	}
	if err := sys.RenameUser(t.Context(), ana, "Ana Ferreira"); err != nil {
		t.Error(err)
	}
	if m := memberships(t, db, ana); m[0].Name != "Ana Ferreira" {
		t.Errorf("name = %q", m[0].Name)
	}
}
