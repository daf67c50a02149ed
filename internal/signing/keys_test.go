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
	// A row may say that its private half was shredded; whoever wrote it has that half.
	storetest.Tamper(t, dsn, `ALTER TABLE signing_key DROP CONSTRAINT signing_key_proof`)
	storetest.Tamper(t, dsn, `UPDATE signing_key SET state = 'retired', private = NULL`)
	if got, err := signing.New(db, m).Public(t.Context(), signing.Audit, kid); err == nil || !strings.Contains(err.Error(), "no private half") {
		t.Errorf("Public() of a key that nothing proves = %v, %v, want an error", got, err)
	}
}

// TestAKeyIsProvenForOnePurpose: what signs tokens does not sign checkpoints, also where it was asked for before.
func TestAKeyIsProvenForOnePurpose(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	keys := signing.New(storetest.Open(t, dsn, nil), master(t))
	const token signing.Purpose = "token"
	kid, _, err := keys.Sign(t.Context(), token, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Public(t.Context(), token, kid); err != nil {
		t.Errorf("Public() of a key of its purpose = %v", err)
	}
	if _, err := keys.Public(t.Context(), signing.Audit, kid); !errors.Is(err, signing.ErrUnknown) {
		t.Errorf("Public() of a key of another purpose = %v, want %v", err, signing.ErrUnknown)
	}
	storetest.Tamper(t, dsn, `UPDATE signing_key SET purpose = 'audit'`)
	if _, err := keys.Public(t.Context(), signing.Audit, kid); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("Public() of a key that was given another purpose = %v, want %v", err, vault.ErrSealed)
	}
}
