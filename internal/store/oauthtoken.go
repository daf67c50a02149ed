package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// A GrantOf is whose a code or a refresh token is.
type GrantOf struct {
	Bearer
	Grant    GrantID
	ClientID string
	Scope    string
}

// Caller is who acts by it.
func (g GrantOf) Caller() Caller {
	return Caller{Org: g.Org, User: g.User, Agent: g.Agent, Grant: g.Grant, Role: g.Role, Via: ViaBearer}
}

// The people of a grant are who made its agent and who consented: both must still be members.
const grantJoins = `
	JOIN agent a ON a.org_id = g.org_id AND a.id = g.agent_id AND a.revoked_at IS NULL
	JOIN member m ON m.org_id = g.org_id AND m.user_id = a.user_id AND m.removed_at IS NULL
	JOIN member c ON c.org_id = g.org_id AND c.user_id = g.user_id AND c.removed_at IS NULL `

const selectGrantOf = `SELECT g.org_id AS org, a.user_id AS user, a.id AS agent, m.role, g.id AS "grant", g.client_id, g.scope `

// OAuthCode finds whose a code is, used or not. One of a grant that has ended, or of an agent or member that has, is
// reason.NotFound.
func (s *System) OAuthCode(ctx context.Context, hash TokenHash) (g GrantOf, err error) {
	return s.grantOf(ctx, `FROM oauth_code t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id `+grantJoins+`
		WHERE t.hash = @hash AND g.ended_at IS NULL`, pgx.StrictNamedArgs{"hash": hash[:]})
}

// OAuthToken finds whose a refresh token is, retired or not, likewise.
func (s *System) OAuthToken(ctx context.Context, hash TokenHash) (g GrantOf, err error) {
	return s.grantOf(ctx, `FROM oauth_token t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id `+grantJoins+`
		WHERE t.hash = @hash AND g.ended_at IS NULL`, pgx.StrictNamedArgs{"hash": hash[:]})
}

// LiveGrant finds who acts by an access token of a grant. One that has ended, or was denied, is reason.NotFound.
func (s *System) LiveGrant(ctx context.Context, id GrantID, jti TokenID) (g GrantOf, err error) {
	return s.grantOf(ctx, `FROM oauth_grant g `+grantJoins+`
		WHERE g.id = @id AND g.ended_at IS NULL AND NOT EXISTS (SELECT FROM oauth_denied d WHERE d.org_id = g.org_id AND d.jti = @jti)`,
		pgx.StrictNamedArgs{"id": id, "jti": jti})
}

func (s *System) grantOf(ctx context.Context, from string, args pgx.StrictNamedArgs) (g GrantOf, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		g, err = one[GrantOf](ctx, tx, selectGrantOf+from, args)
		return err
	})
	return g, err
}

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
func (tx *Tx) RotateToken(ctx context.Context, r Rotation) (Outcome, []byte, error) {
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
	}](ctx, tx.tx, `SELECT retired_at, answer FROM oauth_token WHERE hash = @hash AND grant_id = @grant`,
		pgx.StrictNamedArgs{"hash": r.Hash[:], "grant": tx.caller.Grant})
	switch {
	case IsAbsent(err):
		return Dead, nil, nil
	case err != nil:
		return Dead, nil, err
	case t.RetiredAt != nil && tx.now.Sub(*t.RetiredAt) < r.Within && t.Answer != nil:
		return Repeated, t.Answer, nil
	case t.RetiredAt != nil:
		return Reused, nil, tx.endGrant(ctx, tx.caller.Grant, tx.caller.Agent, GrantTokenReuse)
	}
	_, err = exec(ctx, tx.tx, `
		WITH retired AS (UPDATE oauth_token SET retired_at = @now, answer = @answer WHERE hash = @hash),
		     used AS (UPDATE oauth_grant SET last_refreshed_at = @now WHERE id = @grant)
		INSERT INTO oauth_token (hash, grant_id, created_at) VALUES (@next, @grant, @now)`,
		pgx.StrictNamedArgs{"hash": r.Hash[:], "answer": r.Answer, "now": tx.now, "grant": tx.caller.Grant, "next": r.Next[:]})
	return Given, r.Answer, err
}

func (tx *Tx) addRefresh(ctx context.Context, hash TokenHash) error {
	_, err := exec(ctx, tx.tx, `INSERT INTO oauth_token (hash, grant_id, created_at) VALUES (@hash, @grant, @now)`,
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

// RefreshWindow is how long a retired refresh token is answered with what retired it.
const RefreshWindow = 30 * time.Second

// SweepOAuth deletes what has run out: requests, codes a day after their end, denials, and answers that are not given again.
func (s *System) SweepOAuth(ctx context.Context) error {
	now := s.db.Now()
	for _, q := range []struct {
		sql    string
		before time.Time
	}{
		{`DELETE FROM oauth_request WHERE expires_at < @before`, now.Add(-time.Hour)},
		{`DELETE FROM oauth_code WHERE expires_at < @before`, now.Add(-24 * time.Hour)},
		{`DELETE FROM oauth_denied WHERE expires_at < @before`, now},
		{`UPDATE oauth_token SET answer = NULL WHERE answer IS NOT NULL AND retired_at < @before`, now.Add(-RefreshWindow)},
	} {
		if err := s.run(ctx, func(tx pgx.Tx) error {
			_, err := exec(ctx, tx, q.sql, pgx.StrictNamedArgs{"before": q.before})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
