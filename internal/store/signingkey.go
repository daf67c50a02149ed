package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A SigningKey is a pair of keys that the gateway signs with.
type SigningKey struct {
	Kid        KeyID
	Purpose    string
	Alg        string
	Public     []byte
	Private    []byte // sealed; nil in a row that the gateway did not make
	State      string // next, active, retiring or retired
	CreatedAt  time.Time
	ActiveAt   *time.Time
	RetiringAt *time.Time
	RetiredAt  *time.Time
}

// The columns of a SigningKey.
const selectSigningKeys = `
	SELECT kid, purpose, alg, public, private, state, created_at, active_at, retiring_at, retired_at FROM signing_key `

const (
	selectActiveKey = selectSigningKeys + `WHERE purpose = @purpose AND state = 'active'`
	selectNextKey   = selectSigningKeys + `WHERE purpose = @purpose AND state = 'next'`
)

// ActiveSigningKey returns the key that signs for a purpose, after making it where there is none. make returns its
// public key, and its private one sealed. Of many replicas one makes it.
func (s *System) ActiveSigningKey(ctx context.Context, purpose string, make func(KeyID) (public, private []byte, err error)) (k SigningKey, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if k, err = one[SigningKey](ctx, tx, selectActiveKey, pgx.StrictNamedArgs{"purpose": purpose}); !IsAbsent(err) {
			return err
		}
		if err := lockSigningKeys(ctx, tx, purpose); err != nil {
			return err
		}
		if k, err = one[SigningKey](ctx, tx, selectActiveKey, pgx.StrictNamedArgs{"purpose": purpose}); !IsAbsent(err) {
			return err
		}
		now := s.db.Now()
		kid := NewID[KeyKind](now)
		public, private, err := make(kid)
		if err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO signing_key (kid, purpose, alg, public, private, state, created_at, active_at)
			VALUES (@kid, @purpose, 'EdDSA', @public, @private, 'active', @now, @now)`,
			pgx.StrictNamedArgs{"kid": kid, "purpose": purpose, "public": public, "private": private, "now": now}); err != nil {
			return err
		}
		k, err = one[SigningKey](ctx, tx, selectActiveKey, pgx.StrictNamedArgs{"purpose": purpose})
		return err
	})
	return k, err
}

// SigningKeys lists the keys of a purpose, newest first, retired ones among them.
func (s *System) SigningKeys(ctx context.Context, purpose string) (keys []SigningKey, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		keys, err = all[SigningKey](ctx, tx, selectSigningKeys+`WHERE purpose = @purpose ORDER BY created_at DESC, kid DESC`,
			pgx.StrictNamedArgs{"purpose": purpose})
		return err
	})
	return keys, err
}

// NextSigningKey returns the key that takes the active one's place when its turn comes, after making it where there is
// none, and reports whether it did. make is as in ActiveSigningKey.
func (s *System) NextSigningKey(ctx context.Context, purpose string, make func(KeyID) (public, private []byte, err error)) (k SigningKey, made bool, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if err := lockSigningKeys(ctx, tx, purpose); err != nil {
			return err
		}
		made = false
		if k, err = one[SigningKey](ctx, tx, selectNextKey, pgx.StrictNamedArgs{"purpose": purpose}); !IsAbsent(err) {
			return err
		}
		now := s.db.Now()
		kid := NewID[KeyKind](now)
		public, private, err := make(kid)
		if err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO signing_key (kid, purpose, alg, public, private, state, created_at)
			VALUES (@kid, @purpose, 'EdDSA', @public, @private, 'next', @now)`,
			pgx.StrictNamedArgs{"kid": kid, "purpose": purpose, "public": public, "private": private, "now": now}); err != nil {
			return err
		}
		made = true
		k, err = one[SigningKey](ctx, tx, selectNextKey, pgx.StrictNamedArgs{"purpose": purpose})
		return err
	})
	return k, made, err
}

// TurnSigningKeys makes the next key the active one, where it was made at or before known, so that everybody has heard of
// it. What is retiring since ended or longer is retired. It reports whether the active key changed.
func (s *System) TurnSigningKeys(ctx context.Context, purpose string, known, ended time.Time) (turned bool, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if err := lockSigningKeys(ctx, tx, purpose); err != nil {
			return err
		}
		args := pgx.StrictNamedArgs{"purpose": purpose, "now": s.db.Now()}
		if _, err := exec(ctx, tx, `UPDATE signing_key SET state = 'retired', retired_at = @now WHERE purpose = @purpose AND state = 'retiring' AND retiring_at <= @ended`,
			pgx.StrictNamedArgs{"purpose": purpose, "now": s.db.Now(), "ended": ended}); err != nil {
			return err
		}
		ready, err := value[bool](ctx, tx, `SELECT EXISTS (SELECT FROM signing_key WHERE purpose = @purpose AND state = 'next' AND created_at <= @known)`,
			pgx.StrictNamedArgs{"purpose": purpose, "known": known})
		if turned = ready && err == nil; !turned {
			return err
		}
		if _, err := exec(ctx, tx, `UPDATE signing_key SET state = 'retiring', retiring_at = @now WHERE purpose = @purpose AND state = 'active'`, args); err != nil {
			return err
		}
		_, err = exec(ctx, tx, `UPDATE signing_key SET state = 'active', active_at = @now WHERE purpose = @purpose AND state = 'next'`, args)
		return err
	})
	return turned, err
}

// lockSigningKeys lets one replica at a time make or turn the keys of a purpose.
func lockSigningKeys(ctx context.Context, tx pgx.Tx, purpose string) error {
	_, err := exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtext('graft signing_key ' || @purpose))`, pgx.StrictNamedArgs{"purpose": purpose})
	return err
}
