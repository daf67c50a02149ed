package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Keyring has the keys of db's organisations, under a master key that the test binary's databases share.
func Keyring(t testing.TB, db *store.DB) *vault.Keyring {
	t.Helper()
	keys, err := vault.NewKeyring(masterKey(), func(ctx context.Context, org string, wrap func() ([]byte, error)) ([]byte, error) {
		id, err := store.ParseID[store.OrgKind](org)
		if err != nil {
			return nil, err
		}
		return db.System().OrganisationKey(ctx, id, wrap)
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

var masterKey = sync.OnceValue(func() *vault.MasterKeys {
	m, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		panic(err) // a key we just generated
	}
	return m
})
