package vault_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/vault"
)

// keyRows keeps wrapped keys as the database does, and counts.
type keyRows struct {
	mu    sync.Mutex
	rows  map[string][]byte
	reads int
}

func (k *keyRows) row(_ context.Context, org string, wrap func() ([]byte, error)) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	if wrapped, ok := k.rows[org]; ok {
		return wrapped, nil
	}
	wrapped, err := wrap()
	if err == nil {
		k.rows[org] = wrapped
	}
	return wrapped, err
}

func keyring(t *testing.T) (*vault.Keyring, *keyRows) {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	rows := &keyRows{rows: map[string][]byte{}}
	ring, err := vault.NewKeyring(master, rows.row)
	if err != nil {
		t.Fatal(err)
	}
	return ring, rows
}

func TestAKeyringHasOneKeyAnOrganisation(t *testing.T) {
	t.Parallel()
	ring, rows := keyring(t)
	place := vault.Place{Org: "org_a", Table: "secret", Row: "sec_1", Column: "value"}
	key, err := ring.Key(t.Context(), "org_a")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Seal(place, vault.NewSecret([]byte("canary")))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ring.Key(t.Context(), "org_a"); err != nil || again != key || rows.reads != 1 {
		t.Errorf("Key() again = %v, %v after %d reads, want the same after one", again, err, rows.reads)
	}
	other, err := ring.Key(t.Context(), "org_b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(place, sealed); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("Open() with another organisation's key = %v, want %v", err, vault.ErrSealed)
	}
	ring.Forget("org_a")
	if key, err = ring.Key(t.Context(), "org_a"); err != nil || rows.reads != 3 {
		t.Fatalf("Key() after Forget() = %v after %d reads, want nil after three", err, rows.reads)
	}
	if s, err := key.Open(place, sealed); err != nil || !s.Equal(vault.NewSecret([]byte("canary"))) {
		t.Errorf("Open() with the key read again = %v, want what was sealed", err)
	}
	ring.Reset()
	if _, err = ring.Key(t.Context(), "org_b"); err != nil || rows.reads != 4 {
		t.Errorf("Key() after Reset() = %v after %d reads, want nil after four", err, rows.reads)
	}
}

func TestABoxOfTheKeyringOpensForItsOrganisationAndPurpose(t *testing.T) {
	t.Parallel()
	ring, _ := keyring(t)
	box := func(org, purpose string) *vault.Box {
		t.Helper()
		b, err := ring.Box(t.Context(), org, purpose)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sealed := box("org_a", "run").Seal([]byte("run_1"), []byte("body"))
	if plain, err := box("org_a", "run").Open([]byte("run_1"), sealed); err != nil || !bytes.Equal(plain, []byte("body")) {
		t.Errorf("Open() = %q, %v, want body", plain, err)
	}
	for _, b := range []*vault.Box{box("org_a", "ask"), box("org_b", "run")} {
		if _, err := b.Open([]byte("run_1"), sealed); !errors.Is(err, vault.ErrSealed) {
			t.Errorf("Open() in another box = %v, want %v", err, vault.ErrSealed)
		}
	}
}

func TestAKeyThatCannotBeReadIsNotKept(t *testing.T) {
	t.Parallel()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	gone, noise := errors.New("gone"), []byte("noise")
	answers := []func() ([]byte, error){
		func() ([]byte, error) { return nil, gone },
		func() ([]byte, error) { return noise, nil },
	}
	ring, err := vault.NewKeyring(master, func(context.Context, string, func() ([]byte, error)) ([]byte, error) {
		next := answers[0]
		answers = answers[1:]
		return next()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Key(t.Context(), "org_a"); !errors.Is(err, gone) {
		t.Errorf("Key() = %v, want %v", err, gone)
	}
	if _, err := ring.Box(t.Context(), "org_a", "run"); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("Box() = %v, want %v", err, vault.ErrSealed)
	}
}
