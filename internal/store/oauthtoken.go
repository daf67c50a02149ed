package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// Outcome is what came of a code or a refresh token that was presented.
type Outcome int

// The outcomes.
const (
	Dead        Outcome = iota // unknown, expired or ended: nothing changed
	Foreign                    // another client's: nothing changed
	NotSent                    // to that redirect URI: nothing changed
	NotVerified                // the verifier does not fit; after five of these it is dead
	Reused                     // it was used before: its grant has ended now
	Given                      // tokens were given for it
	Repeated                   // the answer that retired it is given once more
)

// maxTries is how many verifiers that do not fit a code survives.
const maxTries = 5

// A Redemption is a code that a client presents, which has proven itself.
type Redemption struct {
	Hash        TokenHash
	ClientID    string
	RedirectURI string                      // "" where it was left out, as OAuth 2.1 lets it be
	Verify      func(challenge string) bool // that the verifier fits
	Refresh     TokenHash                   // of the refresh token that is given for it
}

// RedeemCode gives a refresh token for a code, once. Its caller is that of System.OAuthCode.
func (tx *Tx) RedeemCode(ctx context.Context, r Redemption) (Outcome, error) {
	live, err := tx.holdGrant(ctx, tx.caller.Grant)
	if err != nil || !live.ok {
		return Dead, err
	}
	if live.client != r.ClientID {
		return Foreign, nil
	}
	code, err := one[struct {
		RedirectURI string
		Challenge   string
		Tries       int
		ExpiresAt   time.Time
		UsedAt      *time.Time
	}](ctx, tx.tx, `SELECT redirect_uri, challenge, tries, expires_at, used_at FROM oauth_code WHERE hash = @hash AND grant_id = @grant FOR UPDATE`,
		pgx.StrictNamedArgs{"hash": r.Hash[:], "grant": tx.caller.Grant})
	switch {
	case IsAbsent(err):
		return Dead, nil
	case err != nil:
		return Dead, err
	case code.UsedAt != nil:
		return Reused, tx.endGrant(ctx, tx.caller.Grant, tx.caller.Agent, GrantCodeReuse)
	case !code.ExpiresAt.After(tx.now) || code.Tries >= maxTries:
		return Dead, nil
	case r.RedirectURI != "" && r.RedirectURI != code.RedirectURI:
		return NotSent, nil
	case !r.Verify(code.Challenge):
		_, err := exec(ctx, tx.tx, `UPDATE oauth_code SET tries = tries + 1 WHERE hash = @hash`, pgx.StrictNamedArgs{"hash": r.Hash[:]})
		return NotVerified, err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE oauth_code SET used_at = @now WHERE hash = @hash`, pgx.StrictNamedArgs{"hash": r.Hash[:], "now": tx.now}); err != nil {
		return Dead, err
	}
	return Given, tx.addRefresh(ctx, r.Refresh)
}

// A Rotation is a refresh token that a client presents, which has proven itself.
type Rotation struct {
	Hash     TokenHash
	ClientID string
	Within   time.Duration // in which the answer that retired it is given again
	Next     TokenHash     // of the token that takes its place
	Answer   []byte        // the answer with that, sealed under what only the token gives
}

// RotateToken gives the next refresh token for one. Its caller is that of System.OAuthToken. Where it was retired lately
// the outcome is Repeated, and what is returned is the sealed answer that retired it.
//
// Nearly every one is good, and takes one round trip; what is the matter with another is looked at in a transaction.
func (db *DB) RotateToken(ctx context.Context, c Caller, r Rotation) (outcome Outcome, answer []byte, err error) {
	// Of many at once the row lets one through, and the others see that it is retired once they have it.
	n, err := db.act(ctx, c, rotateToken, pgx.StrictNamedArgs{
		"hash": r.Hash[:], "answer": r.Answer, "now": db.Now(), "grant": c.Grant, "client": r.ClientID, "next": r.Next[:],
	})
	if err != nil || n == 1 {
		return Given, r.Answer, err
	}
	err = db.As(ctx, c, func(tx *Tx) (err error) {
		outcome, answer, err = tx.retired(ctx, r)
		return err
	})
	return outcome, answer, err
}

// retired says what is the matter with a token that does not rotate.
func (tx *Tx) retired(ctx context.Context, r Rotation) (Outcome, []byte, error) {
	live, err := tx.holdGrant(ctx, tx.caller.Grant)
	if err != nil || !live.ok {
		return Dead, nil, err
	}
	if live.client != r.ClientID {
		return Foreign, nil, nil
	}
	t, err := one[struct {
		RetiredAt *time.Time
		Answer    []byte
	}](ctx, tx.tx, `
		SELECT t.retired_at, a.answer FROM oauth_token t LEFT JOIN oauth_answer a ON a.hash = t.hash
		WHERE t.hash = @hash AND t.grant_id IS NOT DISTINCT FROM @grant::uuid`,
		pgx.StrictNamedArgs{"hash": r.Hash[:], "grant": tx.caller.Grant})
	switch {
	case IsAbsent(err), err == nil && t.RetiredAt == nil:
		return Dead, nil, nil
	case err != nil:
		return Dead, nil, err
	case tx.now.Sub(*t.RetiredAt) < r.Within && t.Answer != nil:
		return Repeated, t.Answer, nil
	case tx.now.Sub(*t.RetiredAt) < r.Within: // another replica's clock is ahead and has wiped it: not the client's fault
		return Dead, nil, nil
	}
	return Reused, nil, tx.endGrant(ctx, tx.caller.Grant, tx.caller.Agent, GrantTokenReuse)
}

// By the hash, and never by the grant: see lookOAuthToken. No index answers IS NOT DISTINCT FROM. The grant by its id, and
// never by its client, which may have thousands.
const rotateToken = `
	WITH retired AS (
		UPDATE oauth_token SET retired_at = @now
		WHERE hash = @hash AND retired_at IS NULL AND grant_id IS NOT DISTINCT FROM @grant::uuid
		  AND (SELECT client_id FROM oauth_grant WHERE id = @grant AND ended_at IS NULL) = @client
		RETURNING grant_id),
	kept AS (INSERT INTO oauth_answer (hash, grant_id, answer, made_at) SELECT @hash, grant_id, @answer, @now FROM retired)
	INSERT INTO oauth_token (hash, grant_id, created_at, rotated) SELECT @next, grant_id, @now, true FROM retired`

func (tx *Tx) addRefresh(ctx context.Context, hash TokenHash) error {
	_, err := exec(ctx, tx.tx, `INSERT INTO oauth_token (hash, grant_id, created_at, rotated) VALUES (@hash, @grant, @now, false)`,
		pgx.StrictNamedArgs{"hash": hash[:], "grant": tx.caller.Grant, "now": tx.now})
	return err
}

type held struct {
	client string
	ok     bool
}

// holdGrant holds the grant's row for this transaction, so that what is presented of one grant goes one after the other.
func (tx *Tx) holdGrant(ctx context.Context, id GrantID) (held, error) {
	client, err := value[string](ctx, tx.tx, `SELECT client_id FROM oauth_grant WHERE id = @id AND ended_at IS NULL FOR NO KEY UPDATE`,
		pgx.StrictNamedArgs{"id": id})
	if IsAbsent(err) {
		return held{}, nil
	}
	return held{client, err == nil}, err
}

// RevokeByClient ends the caller's grant, where it is that client's.
func (tx *Tx) RevokeByClient(ctx context.Context, clientID string) error {
	live, err := tx.holdGrant(ctx, tx.caller.Grant)
	if err != nil || !live.ok || live.client != clientID {
		return err
	}
	return tx.endGrant(ctx, tx.caller.Grant, tx.caller.Agent, GrantByClient)
}

// DenyToken denies one access token of the caller's grant until it has run out.
func (tx *Tx) DenyToken(ctx context.Context, jti TokenID, expires time.Time) error {
	n, err := exec(ctx, tx.tx, `
		INSERT INTO oauth_denied (jti, grant_id, expires_at) VALUES (@jti, @grant, @expires) ON CONFLICT (org_id, jti) DO NOTHING`,
		pgx.StrictNamedArgs{"jti": jti, "grant": tx.caller.Grant, "expires": expires})
	if err != nil || n == 0 {
		return err
	}
	return tx.tell(ctx, bus.Credential, tx.caller.Agent.String())
}
