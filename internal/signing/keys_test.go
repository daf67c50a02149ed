package signing_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func master(t *testing.T) *vault.MasterKeys {
	t.Helper()
	m, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManyReplicasSignWithOneKey(t *testing.T) {
	t.Parallel()
	dsn, m := storetest.PrivateURL(t), master(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	kids := map[store.KeyID]bool{}
	verifier := signing.New(storetest.Open(t, dsn, nil), m)
	for range 4 {
		all.Go(func() {
			keys := signing.New(storetest.Open(t, dsn, nil), m)
			kid, signature, err := keys.Sign(t.Context(), signing.Audit, []byte("words"))
			if err != nil {
				t.Errorf("Sign() = %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			kids[kid] = true
			public, err := verifier.Public(t.Context(), signing.Audit, kid)
			if err != nil || !ed25519.Verify(public, []byte("words"), signature) {
				t.Errorf("Public(%s) = %v, want one that verifies", kid, err)
			}
		})
	}
	all.Wait()
	if len(kids) != 1 {
		t.Errorf("%d keys signed, want 1", len(kids))
	}
}

func TestAKeyOfAnotherMasterKeyOrOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db, m := storetest.Open(t, dsn, nil), master(t)
	kid, _, err := signing.New(db, m).Sign(t.Context(), signing.Audit, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := signing.New(db, master(t)).Sign(t.Context(), signing.Audit, nil); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("Sign() under another master key = %v, want %v", err, vault.ErrSealed)
	}
	if _, err := signing.New(db, m).Public(t.Context(), signing.Audit, store.NewID[store.KeyKind](db.Now())); !errors.Is(err, signing.ErrUnknown) {
		t.Errorf("Public() of an unknown key = %v, want %v", err, signing.ErrUnknown)
	}

	forged, _, _ := ed25519.GenerateKey(nil)
	storetest.Tamper(t, dsn, `UPDATE signing_key SET public = $1`, []byte(forged))
	if _, err := signing.New(db, m).Public(t.Context(), signing.Audit, kid); err == nil || !strings.Contains(err.Error(), "another key's") {
		t.Errorf("Public() of a key that was exchanged = %v, want an error", err)
	}
	// Once the private half is gone the public one is all there is, and it stays.
	storetest.Tamper(t, dsn, `UPDATE signing_key SET state = 'retired', private = NULL`)
	if got, err := signing.New(db, m).Public(t.Context(), signing.Audit, kid); err != nil || !got.Equal(forged) {
		t.Errorf("Public() of a retired key = %v, want it", err)
	}
}
