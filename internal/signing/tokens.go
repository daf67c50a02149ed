package signing

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

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
	// lookTime bounds a look.
	lookTime = 5 * time.Second
)

// Tokens are the keys of access tokens, which take turns: the next one is published before it signs, and the last one is
// believed until what it signed has run out. Safe for concurrent use.
type Tokens struct {
	keys *Keys
	now  func() time.Time

	flight singleflight.Group

	mu      sync.Mutex // never held while the database is asked
	turn    turn
	looked  time.Time
	failed  time.Time // when a look last failed
	failure error     // of it
}

// A turn is what a look finds. It is not changed.
type turn struct {
	active pair
	known  map[store.KeyID]ed25519.PublicKey // next, active and retiring; nil before the first look
	order  []store.KeyID                     // of known, newest first
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
	now, err := t.look(ctx, lookEvery)
	if now.active.private == nil {
		return store.KeyID{}, nil, err
	}
	return now.active.kid, now.active.private, nil
}

// Public is the public half of a key that is published. Any other is ErrUnknown.
func (t *Tokens) Public(ctx context.Context, kid store.KeyID) (ed25519.PublicKey, error) {
	now, err := t.look(ctx, lookEvery)
	if public, ok := now.known[kid]; ok {
		return public, nil
	}
	if err == nil {
		now, err = t.look(ctx, askEvery)
	}
	if public, ok := now.known[kid]; ok {
		return public, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", kid, ErrUnknown)
}

// Published lists the keys to verify with, newest first.
func (t *Tokens) Published(ctx context.Context) ([]Published, error) {
	now, err := t.look(ctx, lookEvery)
	if now.known == nil {
		return nil, err
	}
	list := make([]Published, len(now.order))
	for i, kid := range now.order {
		list[i] = Published{kid, now.known[kid]}
	}
	return list, nil
}

// look is what is known, read anew where that was not done for so long: once for all who want it, each of whom waits no
// longer than their ctx. Where it fails, that is everybody's answer for a while, beside what was known before: a database
// that hangs is not waited for by each in turn.
func (t *Tokens) look(ctx context.Context, every time.Duration) (turn, error) {
	if now, fresh, err := t.last(every); fresh {
		return now, err
	}
	done := t.flight.DoChan("", func() (any, error) {
		if now, fresh, err := t.last(every); fresh { // of a look that has just ended
			return now, err
		}
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
		defer stop()
		now, err := t.read(ctx)
		return t.note(now, err), err
	})
	select {
	case r := <-done:
		now, _ := r.Val.(turn)
		return now, r.Err
	case <-ctx.Done():
		now, _, _ := t.last(every)
		return now, ctx.Err()
	}
}

// last is what the last look found; fresh where that will do.
func (t *Tokens) last(every time.Duration) (known turn, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	switch {
	case t.turn.known != nil && now.Sub(t.looked) < every:
		return t.turn, true, nil
	case t.failure != nil && now.Sub(t.failed) < askEvery:
		return t.turn, true, t.failure
	}
	return t.turn, false, nil
}

// note keeps what a look found, and returns what is known now.
func (t *Tokens) note(found turn, err error) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure = err; err != nil {
		t.failed = t.now()
		return t.turn
	}
	t.turn, t.looked = found, t.now()
	return found
}

// read reads the keys. One that cannot be proven is believed by nobody, and hides none of the others.
func (t *Tokens) read(ctx context.Context) (turn, error) {
	if err := t.keys.ready(ctx); err != nil {
		return turn{}, fmt.Errorf("load signing key for %s: %w", Token, err)
	}
	active, err := t.keys.load(ctx, Token)
	if err != nil {
		return turn{}, fmt.Errorf("load signing key for %s: %w", Token, err)
	}
	rows, err := t.keys.db.System().SigningKeys(ctx, string(Token))
	if err != nil {
		return turn{}, fmt.Errorf("read signing keys: %w", err)
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
	return turn{active, known, order}, nil
}

// Rotate makes the next key, where there is none. It signs once everybody has heard of it.
func (t *Tokens) Rotate(ctx context.Context) (kid store.KeyID, made bool, err error) {
	if err := t.keys.ready(ctx); err != nil {
		return store.KeyID{}, false, err
	}
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
