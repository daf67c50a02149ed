package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A GrantOf is whose a code or a refresh token is.
type GrantOf struct {
	Bearer
	Grant    GrantID
	ClientID string
	Scope    string
}

const selectGrantOf = `SELECT g.org_id AS org, a.user_id AS user, a.id AS agent, m.role, g.id AS "grant", g.client_id, g.scope `

// The people of a grant are who made its agent and who consented: both must still be members.
const livingGrant = `
	JOIN agent a ON a.org_id = g.org_id AND a.id = g.agent_id AND a.revoked_at IS NULL
	JOIN member m ON m.org_id = g.org_id AND m.user_id = a.user_id AND m.removed_at IS NULL
	JOIN member c ON c.org_id = g.org_id AND c.user_id = g.user_id AND c.removed_at IS NULL
	WHERE g.ended_at IS NULL AND `

// OAuthCode finds whose a code is, used or not. One of a grant that has ended, or of an agent or member that has, is
// reason.NotFound.
func (s *System) OAuthCode(ctx context.Context, hash TokenHash) (g GrantOf, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		g, err = one[GrantOf](ctx, tx, selectGrantOf+`
			FROM oauth_code t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id`+livingGrant+`t.hash = @hash`,
			pgx.StrictNamedArgs{"hash": hash[:]})
		return err
	})
	return g, err
}

// OAuthToken finds whose a refresh token is, retired or not, likewise.
func (s *System) OAuthToken(ctx context.Context, hash TokenHash) (g GrantOf, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		g, err = one[GrantOf](ctx, tx, selectGrantOf+`
			FROM oauth_token t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id`+livingGrant+`t.hash = @hash`,
			pgx.StrictNamedArgs{"hash": hash[:]})
		return err
	})
	return g, err
}

// LiveGrant finds who acts by an access token of a grant. One of a grant that has ended, or that was denied, is
// reason.NotFound.
func (s *System) LiveGrant(ctx context.Context, id GrantID, jti TokenID) (g GrantOf, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		g, err = one[GrantOf](ctx, tx, selectGrantOf+`FROM oauth_grant g`+livingGrant+`
			g.id = @id AND NOT EXISTS (SELECT FROM oauth_denied d WHERE (d.org_id, d.jti) = (g.org_id, @jti))`,
			pgx.StrictNamedArgs{"id": id, "jti": jti})
		return err
	})
	return g, err
}

// RefreshWindow is how long a retired refresh token is answered with what retired it.
const RefreshWindow = 30 * time.Second

// SweepOAuth deletes what has run out: requests, codes a day after their end, denials, and answers that are not given again.
func (s *System) SweepOAuth(ctx context.Context) error {
	now := s.db.Now()
	args := func(age time.Duration) pgx.StrictNamedArgs { return pgx.StrictNamedArgs{"before": now.Add(-age)} }
	for _, sweep := range []func(pgx.Tx) (int64, error){
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_request WHERE expires_at < @before`, args(time.Hour))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_code WHERE expires_at < @before`, args(24*time.Hour))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_denied WHERE expires_at < @before`, args(0))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `UPDATE oauth_token SET answer = NULL WHERE answer IS NOT NULL AND retired_at < @before`, args(RefreshWindow))
		},
	} {
		if err := s.run(ctx, func(tx pgx.Tx) error { _, err := sweep(tx); return err }); err != nil {
			return err
		}
	}
	return nil
}
