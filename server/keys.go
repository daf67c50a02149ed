package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/mcp"
)

// SessionKeys is the purpose of the keys that MCP session ids are sealed under.
const SessionKeys = "mcp-session"

// A sealBox is a Box of the gateway's own whose keys are rows: made by whichever replica comes first, rotated by
// age, and the same on all of them.
type sealBox struct {
	*vault.Box
	db      *store.DB
	master  *vault.MasterKeys
	purpose string
}

const (
	// keyAge is when a new key is made.
	keyAge = 30 * 24 * time.Hour
	// keyRefresh is how often a replica looks for keys that others made.
	keyRefresh = time.Hour
	// keySettle is how old a key is before it seals: every replica has seen it by then, and opens what it sealed.
	keySettle = 3 * keyRefresh
	// keyKeep is how long a key is kept: as long as it seals, and as long as what it sealed last lives.
	keyKeep = keyAge + keySettle + mcp.SessionLife + 24*time.Hour
)

func openBox(ctx context.Context, db *store.DB, master *vault.MasterKeys, purpose string) (*sealBox, error) {
	b := &sealBox{db: db, master: master, purpose: purpose}
	keys, err := b.load(ctx)
	if err != nil {
		return nil, err
	}
	b.Box, err = vault.NewBox(purpose, keys...)
	return b, err
}

// load reads the keys, the one to seal with first.
func (b *sealBox) load(ctx context.Context) ([]*vault.DataKey, error) {
	rows, err := b.db.System().FreshSealKeys(ctx, b.purpose, keyAge, keyKeep, func(id store.KeyID) ([]byte, error) {
		_, wrapped, err := b.master.NewDataKey(b.owner(id))
		return wrapped, err
	})
	if err != nil {
		return nil, fmt.Errorf("load %s keys: %w", b.purpose, err)
	}
	keys := make([]*vault.DataKey, len(rows))
	settled := b.db.Now().Add(-keySettle)
	first := len(rows) - 1 // the oldest, where none has settled
	for i := len(rows) - 1; i >= 0; i-- {
		if keys[i], err = b.master.Unwrap(b.owner(rows[i].ID), rows[i].Wrapped); err != nil {
			return nil, fmt.Errorf("open %s key %s with the master key: %w", b.purpose, rows[i].ID, err)
		}
		if !rows[i].CreatedAt.After(settled) {
			first = i
		}
	}
	keys[0], keys[first] = keys[first], keys[0]
	return keys, nil
}

func (b *sealBox) owner(id store.KeyID) vault.Owner {
	return vault.Owner{Purpose: b.purpose, ID: id.String()}
}

// OpenKeyring is the keys of organisations, kept in their rows.
func OpenKeyring(db *store.DB, master *vault.MasterKeys) (*vault.Keyring, error) {
	return vault.NewKeyring(master, func(ctx context.Context, org string, wrap func() ([]byte, error)) ([]byte, error) {
		id, err := store.ParseID[store.OrgKind](org)
		if err != nil {
			return nil, err
		}
		return db.System().OrganisationKey(ctx, id, wrap)
	})
}

// A keyringListener hears when an organisation may be gone, and its key with it.
type keyringListener struct{ *vault.Keyring }

// Hear implements bus.Listener.
func (k keyringListener) Hear(e bus.Event) {
	if e.Topic == bus.Member {
		k.Forget(e.ID)
	}
}

// run keeps the keys fresh until ctx ends.
func (b *sealBox) run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(keyRefresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		keys, err := b.load(ctx)
		if err == nil {
			err = b.SetKeys(keys...)
		}
		if err != nil {
			log.WarnContext(ctx, "seal keys not refreshed", slog.String("purpose", b.purpose), slog.Any("err", err))
		}
	}
}
