package signing

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// Token is of access tokens.
const Token Purpose = "token"

const (
	// Known is how long a key is published before it signs: longer than anybody may keep the published ones.
	Known = 15 * time.Minute
	// Old is when a key has signed long enough.
	Old = 90 * 24 * time.Hour
	// Ended is how long a key that no longer signs is still believed: longer than what it signed may live.
	Ended = 2 * time.Hour
	// lookEvery is how often a replica looks whether the keys have taken turns.
	lookEvery = time.Minute
	// askEvery bounds how often it looks because of a key that it does not know.
	askEvery = time.Second
)

// Tokens are the keys of access tokens, which take turns: the next one is published before it signs, and the last one is
// believed until what it signed has run out. Safe for concurrent use.
type Tokens struct {
	keys *Keys
	now  func() time.Time

	mu     sync.Mutex
	active pair
	known  map[store.KeyID]ed25519.PublicKey // next, active and retiring
	order  []store.KeyID                     // of known, newest first
	looked time.Time
}

// Tokens are those among k.
func (k *Keys) Tokens(now func() time.Time) *Tokens { return &Tokens{keys: k, now: now} }

// A Published key is one that access tokens are, or may soon be, signed with.
type Published struct {
	Kid store.KeyID
	Key ed25519.PublicKey
}

// Signer is the active key, which is made where there is none. Its private half stays here.
func (t *Tokens) Signer(ctx context.Context) (store.KeyID, crypto.Signer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.look(ctx, lookEvery); err != nil && t.active.private == nil {
		return store.KeyID{}, nil, err
	}
	return t.active.kid, t.active.private, nil
}

// Public is the public half of a key that is published. Any other is ErrUnknown.
func (t *Tokens) Public(ctx context.Context, kid store.KeyID) (ed25519.PublicKey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.look(ctx, lookEvery)
	if public, ok := t.known[kid]; ok {
		return public, nil
	}
	if err == nil {
		err = t.look(ctx, askEvery)
	}
	if public, ok := t.known[kid]; ok {
		return public, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", kid, ErrUnknown)
}

// Published lists the keys to verify with, newest first.
func (t *Tokens) Published(ctx context.Context) ([]Published, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.look(ctx, lookEvery); err != nil && t.known == nil {
		return nil, err
	}
	list := make([]Published, len(t.order))
	for i, kid := range t.order {
		list[i] = Published{kid, t.known[kid]}
	}
	return list, nil
}

// look reads the keys anew where that was not done for so long. A key that cannot be proven is believed by nobody, and
// hides none of the others.
func (t *Tokens) look(ctx context.Context, every time.Duration) error {
	if now := t.now(); t.known != nil && now.Sub(t.looked) < every {
		return nil
	}
	t.keys.mu.Lock()
	defer t.keys.mu.Unlock()
	active, err := t.keys.load(ctx, Token)
	if err != nil {
		return fmt.Errorf("load signing key for %s: %w", Token, err)
	}
	rows, err := t.keys.db.System().SigningKeys(ctx, string(Token))
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	known, order := map[store.KeyID]ed25519.PublicKey{}, []store.KeyID(nil)
	for _, row := range rows {
		if row.State == "retired" || row.Private == nil {
			continue
		}
		if _, err := t.keys.private(row); err != nil {
			continue
		}
		known[row.Kid] = row.Public
		order = append(order, row.Kid)
	}
	t.active, t.known, t.order, t.looked = active, known, order, t.now()
	return nil
}

// Rotate makes the next key, where there is none. It signs once everybody has heard of it.
func (t *Tokens) Rotate(ctx context.Context) (kid store.KeyID, made bool, err error) {
	t.keys.mu.Lock()
	defer t.keys.mu.Unlock()
	if _, err := t.keys.load(ctx, Token); err != nil { // the first one, where there is none
		return store.KeyID{}, false, err
	}
	row, made, err := t.keys.db.System().NextSigningKey(ctx, string(Token), func(kid store.KeyID) (public, sealed []byte, err error) {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails; see crypto/rand
		defer clear(seed)
		public = ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		return public, t.keys.box.Seal(bound(Token, kid), seed), nil
	})
	return row.Kid, made, err
}

// Advance does what is due: it makes the next key where the active one is old, and lets keys take turns. It reports
// whether another key signs now.
func (t *Tokens) Advance(ctx context.Context) (bool, error) {
	now := t.now()
	rows, err := t.keys.db.System().SigningKeys(ctx, string(Token))
	if err != nil {
		return false, fmt.Errorf("read signing keys: %w", err)
	}
	for _, row := range rows {
		if row.State == "active" && row.ActiveAt != nil && now.Sub(*row.ActiveAt) >= Old {
			if _, _, err := t.Rotate(ctx); err != nil {
				return false, fmt.Errorf("make the next signing key: %w", err)
			}
		}
	}
	turned, err := t.keys.db.System().TurnSigningKeys(ctx, string(Token), now.Add(-Known), now.Add(-Ended))
	if err != nil {
		return false, fmt.Errorf("turn signing keys: %w", err)
	}
	return turned, nil
}
