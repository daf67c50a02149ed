package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// wrapping wraps a key as the text of its id, and counts.
type wrapping struct {
	mu    sync.Mutex
	calls int
}

func (w *wrapping) wrap(id store.KeyID) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return []byte("wrapped " + id.String()), nil
}

func TestSealKeysAreMadeAndDroppedByAge(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	const age, keep = 24 * time.Hour, 72 * time.Hour
	var w wrapping
	fresh := func() []store.SealKey {
		t.Helper()
		keys, err := sys.FreshSealKeys(t.Context(), "session", age, keep, w.wrap)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := sys.SealKeys(t.Context(), "session")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(keys, listed, sameIDs); diff != "" {
			t.Errorf("SealKeys() differs from FreshSealKeys() (-fresh +listed):\n%s", diff)
		}
		return keys
	}
	if keys, err := sys.SealKeys(t.Context(), "session"); err != nil || len(keys) != 0 {
		t.Errorf("SealKeys() of none = %v, %v, want none", keys, err)
	}
	first := fresh()
	if len(first) != 1 || !first[0].CreatedAt.Equal(clock.now()) || string(first[0].Wrapped) != "wrapped "+first[0].ID.String() {
		t.Errorf("FreshSealKeys() = %v, want one of now", first)
	}
	clock.pass(age - time.Microsecond)
	if keys := fresh(); len(keys) != 1 || w.calls != 1 {
		t.Errorf("FreshSealKeys() before the age = %d keys after %d wraps, want 1 after 1", len(keys), w.calls)
	}
	clock.pass(time.Microsecond)
	if keys := fresh(); len(keys) != 2 || keys[1].ID != first[0].ID || !keys[0].CreatedAt.Equal(clock.now()) {
		t.Errorf("FreshSealKeys() at the age = %v, want a new one before the first", keys)
	}
	clock.pass(keep - age) // the first is as old as keep, and stays
	if keys := fresh(); len(keys) != 3 || keys[2].ID != first[0].ID {
		t.Errorf("FreshSealKeys() = %v, want three with the first", keys)
	}
	clock.pass(time.Microsecond)
	if keys := fresh(); len(keys) != 2 {
		t.Errorf("FreshSealKeys() past keep = %d keys, want 2", len(keys))
	}
	if keys, err := sys.FreshSealKeys(t.Context(), "page", age, keep, w.wrap); err != nil || len(keys) != 1 {
		t.Errorf("FreshSealKeys() of another purpose = %v, %v, want one", keys, err)
	}

	// An organisation's own key is nobody else's business.
	o, _ := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	if _, err := super.Exec(t.Context(), `INSERT INTO seal_key (id, purpose, org_id, wrapped, created_at) VALUES (gen_random_uuid(), 'session', $1, 'x', '2020-01-01')`, o.ID); err != nil {
		t.Fatal(err)
	}
	if keys := fresh(); len(keys) != 2 {
		t.Errorf("FreshSealKeys() beside an organisation's = %d keys, want 2", len(keys))
	}
	if n := number(t, super, `SELECT count(*) FROM seal_key WHERE org_id IS NOT NULL`); n != 1 {
		t.Errorf("keys of organisations = %d, want 1: rotation is not theirs", n)
	}
}

func TestOfManyReplicasOneMakesTheSealKey(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	other := storetest.Open(t, dsnOf(db), newClock().now)
	var w wrapping
	var all sync.WaitGroup
	var got [8][]store.SealKey
	for n := range got {
		all.Go(func() {
			var err error
			if got[n], err = []*store.DB{db, other}[n%2].System().FreshSealKeys(t.Context(), "session", time.Hour, 2*time.Hour, w.wrap); err != nil {
				t.Errorf("FreshSealKeys() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	for n, keys := range got {
		if diff := cmp.Diff(got[0], keys, sameIDs); diff != "" || len(keys) != 1 {
			t.Errorf("keys of replica %d differ from the first's (-first +this):\n%s", n, diff)
		}
	}
	if w.calls != 1 {
		t.Errorf("keys made = %d, want 1", w.calls)
	}
}

func TestASealKeyThatCannotBeWrappedIsNotMade(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	boom := errors.New("no master key")
	_, err := db.System().FreshSealKeys(t.Context(), "session", time.Hour, time.Hour, func(store.KeyID) ([]byte, error) { return nil, boom })
	if !errors.Is(err, boom) {
		t.Errorf("FreshSealKeys() = %v, want %v", err, boom)
	}
	if keys, err := db.System().SealKeys(t.Context(), "session"); err != nil || len(keys) != 0 {
		t.Errorf("SealKeys() = %v, %v, want none", keys, err)
	}
}

func TestOfManyReplicasOneMakesAnOrganisationsKey(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	other := storetest.Open(t, dsnOf(db), newClock().now)
	acme, _ := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	bolt, _ := enrol(t, db, "Bolt", "bob@example.com", store.RoleOwner)
	var w wrapping
	var all sync.WaitGroup
	var got [8][]byte
	for n := range got {
		all.Go(func() {
			var err error
			if got[n], err = []*store.DB{db, other}[n%2].System().OrganisationKey(t.Context(), acme.ID, func() ([]byte, error) { return w.wrap(store.NewID[store.KeyKind](db.Now())) }); err != nil {
				t.Errorf("OrganisationKey() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	for n, key := range got {
		if string(key) != string(got[0]) || len(key) == 0 {
			t.Errorf("key of caller %d = %q, want the first's, %q", n, key, got[0])
		}
	}
	if w.calls != 1 {
		t.Errorf("keys made = %d, want 1", w.calls)
	}
	sys := db.System()
	boom := errors.New("no master key")
	if _, err := sys.OrganisationKey(t.Context(), bolt.ID, func() ([]byte, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("OrganisationKey() that cannot be wrapped = %v, want %v", err, boom)
	}
	if key, err := sys.OrganisationKey(t.Context(), bolt.ID, func() ([]byte, error) { return []byte("bolt's"), nil }); err != nil || string(key) != "bolt's" {
		t.Errorf("OrganisationKey() = %q, %v, want the organisation's own", key, err)
	}
	if err := sys.DeleteOrganisation(t.Context(), bolt.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.OrganisationKey(t.Context(), bolt.ID, func() ([]byte, error) { return []byte("new"), nil }); !store.IsAbsent(err) {
		t.Errorf("OrganisationKey() of one that is gone = %v, want not_found", err)
	}
}
