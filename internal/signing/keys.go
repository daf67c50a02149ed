package signing

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// A Purpose is what a key signs.
type Purpose string

// Audit is of checkpoints of the audit log.
const Audit Purpose = "audit"

// SealPurpose is the purpose of the data key that private halves are sealed under.
const SealPurpose = "signing-key"

// forever is how long that data key lives: what is sealed under it is needed as long.
const forever = 200 * 365 * 24 * time.Hour

// Keys are the keys of one deployment. Safe for concurrent use.
type Keys struct {
	db     *store.DB
	master *vault.MasterKeys

	mu     sync.Mutex
	box    *vault.Box       // nil until it is needed
	active map[Purpose]pair // those that were needed
	public map[proven]ed25519.PublicKey
}

// proven is a key that was proven, and for what.
type proven struct {
	purpose Purpose
	kid     store.KeyID
}

type pair struct {
	kid     store.KeyID
	private ed25519.PrivateKey
}

// New makes Keys; nothing is read or made until a key is needed. To look only, where nothing was ever sealed, master may
// be nil.
func New(db *store.DB, master *vault.MasterKeys) *Keys {
	return &Keys{db: db, master: master, active: map[Purpose]pair{}, public: map[proven]ed25519.PublicKey{}}
}

// Sign signs message with the active key of a purpose, which it makes where there is none.
func (k *Keys) Sign(ctx context.Context, p Purpose, message []byte) (store.KeyID, []byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.active[p]
	if !ok {
		var err error
		if key, err = k.load(ctx, p); err != nil {
			return store.KeyID{}, nil, fmt.Errorf("load signing key for %s: %w", p, err)
		}
		k.active[p] = key
	}
	return key.kid, ed25519.Sign(key.private, message), nil
}

func (k *Keys) load(ctx context.Context, p Purpose) (pair, error) {
	if err := k.open(ctx); err != nil {
		return pair{}, err
	}
	row, err := k.db.System().ActiveSigningKey(ctx, string(p), func(kid store.KeyID) (public, sealed []byte, err error) {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails; see crypto/rand
		defer clear(seed)
		public = ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		return public, k.box.Seal(bound(p, kid), seed), nil
	})
	if err != nil {
		return pair{}, err
	}
	private, err := k.private(row)
	return pair{row.Kid, private}, err
}

// ready opens the box, for who goes on without the lock: once it is there it stays as it is.
func (k *Keys) ready(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open(ctx)
}

// open makes the box, and the one data key it needs where there is none.
func (k *Keys) open(ctx context.Context) error {
	if k.box != nil {
		return nil
	}
	rows, err := k.db.System().FreshSealKeys(ctx, SealPurpose, forever, forever, func(id store.KeyID) ([]byte, error) {
		_, wrapped, err := k.master.NewDataKey(owner(id))
		return wrapped, err
	})
	if err != nil {
		return err
	}
	return k.unwrap(rows)
}

// reopen makes the box of data keys that are there, for who only looks.
func (k *Keys) reopen(ctx context.Context) error {
	if k.box != nil {
		return nil
	}
	rows, err := k.db.System().SealKeys(ctx, SealPurpose)
	if err != nil {
		return err
	}
	if len(rows) == 0 || k.master == nil {
		return errors.New("the key that signing keys are sealed under is gone")
	}
	return k.unwrap(rows)
}

func (k *Keys) unwrap(rows []store.SealKey) (err error) {
	keys := make([]*vault.DataKey, len(rows))
	for i, r := range rows {
		if keys[i], err = k.master.Unwrap(owner(r.ID), r.Wrapped); err != nil {
			return fmt.Errorf("open %s key %s with the master key: %w", SealPurpose, r.ID, err)
		}
	}
	k.box, err = vault.NewBox(SealPurpose, keys...)
	return err
}

// private opens the private half of a key and holds the public one to it.
func (k *Keys) private(row store.SigningKey) (ed25519.PrivateKey, error) {
	seed, err := k.box.Open(bound(Purpose(row.Purpose), row.Kid), row.Private)
	if err != nil {
		return nil, fmt.Errorf("open signing key %s: %w", row.Kid, err)
	}
	defer clear(seed)
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("open signing key %s: %d bytes, want %d", row.Kid, len(seed), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !bytes.Equal(private.Public().(ed25519.PublicKey), row.Public) {
		return nil, fmt.Errorf("signing key %s: its public half is another key's", row.Kid)
	}
	return private, nil
}

// ErrUnknown says that there is no key of that id.
var ErrUnknown = errors.New("no such signing key")

// Public is the public half of a key that signs, or has signed, for a purpose. The row's own word is not enough: it is
// held to the private half, which only the master key can have sealed.
func (k *Keys) Public(ctx context.Context, p Purpose, kid store.KeyID) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if public, ok := k.public[proven{p, kid}]; ok {
		return public, nil
	}
	rows, err := k.db.System().SigningKeys(ctx, string(p))
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	for _, row := range rows {
		if row.Kid != kid {
			continue
		}
		if row.Private == nil { // anybody who can insert a row could have made it
			return nil, fmt.Errorf("signing key %s has no private half, which alone proves whose it is", kid)
		}
		if err := k.reopen(ctx); err != nil {
			return nil, err
		}
		if _, err := k.private(row); err != nil {
			return nil, err
		}
		k.public[proven{p, kid}] = row.Public
		return row.Public, nil
	}
	return nil, fmt.Errorf("%s: %w", kid, ErrUnknown)
}

func owner(id store.KeyID) vault.Owner { return vault.Owner{Purpose: SealPurpose, ID: id.String()} }

// bound is what a private half is sealed to: its purpose and its id.
func bound(p Purpose, kid store.KeyID) []byte { return []byte(string(p) + " " + kid.String()) }
