package signing_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// TestTokenKeysTakeTurns follows two keys through their lives, as one replica makes them and another one verifies.
func TestTokenKeysTakeTurns(t *testing.T) {
	t.Parallel()
	var nanos atomic.Int64
	nanos.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	now := func() time.Time { return time.Unix(0, nanos.Load()) }
	pass := func(d time.Duration) { nanos.Add(int64(d)) }
	dsn, m := storetest.PrivateURL(t), master(t)
	here := signing.New(storetest.Open(t, dsn, now), m).Tokens(now)
	db := storetest.Open(t, dsn, now)
	there := signing.New(db, m).Tokens(now)

	sign := func() (store.KeyID, []byte) {
		t.Helper()
		kid, key, err := here.Signer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		signature, err := key.Sign(nil, []byte("words"), crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		return kid, signature
	}
	published := func() (kids []store.KeyID) {
		t.Helper()
		list, err := there.Published(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			kids = append(kids, p.Kid)
		}
		return kids
	}
	believed := func(kid store.KeyID, signature []byte, want bool) {
		t.Helper()
		public, err := there.Public(t.Context(), kid)
		if want && (err != nil || !ed25519.Verify(public, []byte("words"), signature)) || !want && !errors.Is(err, signing.ErrUnknown) {
			t.Errorf("Public(%s) = %v, %v; believed: want %t", kid, public, err, want)
		}
	}
	advance := func(want bool) {
		t.Helper()
		if turned, err := here.Advance(t.Context()); err != nil || turned != want {
			t.Errorf("Advance() = %t, %v, want %t", turned, err, want)
		}
	}

	first, one := sign()
	believed(first, one, true)
	advance(false)
	pass(signing.Old)
	advance(false) // it makes the next one, which nobody has heard of yet
	pass(time.Minute)
	if got := published(); len(got) != 2 || got[1] != first {
		t.Fatalf("Published() = %v, want two, the last of them %s", got, first)
	}
	next := published()[0]
	if kid, _ := sign(); kid != first {
		t.Errorf("%s signs before it was known for long, want %s", kid, first)
	}
	pass(signing.Known)
	advance(true)
	pass(time.Minute)
	second, two := sign()
	if second != next {
		t.Errorf("%s signs, want %s", second, next)
	}
	believed(first, one, true)
	believed(second, two, true)
	advance(false)
	pass(signing.Ended)
	advance(false)
	pass(time.Minute)
	believed(first, one, false)
	believed(second, two, true)
	if got := published(); !slices.Equal(got, []store.KeyID{second}) {
		t.Errorf("Published() = %v, want %s alone", got, second)
	}

	kid, made, err := here.Rotate(t.Context())
	again, madeAgain, errAgain := here.Rotate(t.Context())
	if err != nil || errAgain != nil || !made || madeAgain || kid != again {
		t.Errorf("Rotate() = %v %t %v, then %v %t %v; want one key, made once", kid, made, err, again, madeAgain, errAgain)
	}
	pass(signing.Known)
	if turned, err := db.System().TurnSigningKeys(t.Context(), string(signing.Audit), now(), now()); err != nil || turned {
		t.Errorf("TurnSigningKeys() of another purpose = %t, %v, want false", turned, err)
	}
	advance(true)
}

// A key that somebody put there is believed by nobody, and hides no other.
func TestAForgedTokenKeyIsNotPublished(t *testing.T) {
	t.Parallel()
	dsn, m := storetest.PrivateURL(t), master(t)
	db := storetest.Open(t, dsn, nil)
	tokens := signing.New(db, m).Tokens(db.Now)
	kid, _, err := tokens.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forged := store.NewID[store.KeyKind](db.Now())
	public, _, _ := ed25519.GenerateKey(nil)
	storetest.Tamper(t, dsn, `INSERT INTO signing_key (kid, purpose, alg, public, private, state, created_at) SELECT $1, purpose, alg, $2, private, 'next', now() FROM signing_key`,
		forged, []byte(public))
	other := signing.New(db, m).Tokens(db.Now)
	if _, err := other.Public(t.Context(), forged); !errors.Is(err, signing.ErrUnknown) {
		t.Errorf("Public() of a forged key = %v, want %v", err, signing.ErrUnknown)
	}
	if _, err := other.Public(t.Context(), kid); err != nil {
		t.Errorf("Public() of the true one = %v", err)
	}
}

// While a look hangs, who does not want to wait any longer need not, and one that failed is not tried by each in turn.
func TestNobodyWaitsForAnothersLook(t *testing.T) {
	t.Parallel()
	var nanos atomic.Int64
	nanos.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, nanos.Load()) }
	dsn, m := storetest.PrivateURL(t), master(t)
	tokens := signing.New(storetest.Open(t, dsn, now), m).Tokens(now)
	restore := storetest.Outage(t, dsn)
	if _, _, err := tokens.Signer(t.Context()); !store.IsUnavailable(err) {
		t.Errorf("Signer() while the database is away = %v, want unavailable", err)
	}
	restore()
	if _, _, err := tokens.Signer(t.Context()); !store.IsUnavailable(err) {
		t.Errorf("Signer() at once after a look failed = %v, want the same answer", err)
	}
	nanos.Add(int64(time.Second))
	first, _, err := tokens.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	unlock := storetest.Lock(t, dsn, "signing_key")
	nanos.Add(int64(time.Hour))
	waits := make(chan error, 1)
	go func() {
		_, _, err := tokens.Signer(context.WithoutCancel(t.Context()))
		waits <- err
	}()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if kid, _, err := tokens.Signer(gone); kid != first || err != nil {
		t.Errorf("Signer() of who does not wait = %s, %v, want the key that is known", kid, err)
	}
	unlock()
	if err := <-waits; err != nil {
		t.Errorf("Signer() of who waits = %v", err)
	}
}
