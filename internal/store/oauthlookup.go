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
	// Of a client that registered, and is still there: how it proves itself. "" and nil of any other.
	AuthMethod   string
	Secret       []byte // SHA-256
	ClientUsedAt *time.Time
}

const selectGrantOf = `
	SELECT g.org_id AS org, a.user_id AS user, a.id AS agent, m.role, g.id AS "grant", g.client_id, g.scope,
	       coalesce(k.auth_method, '') AS auth_method, k.secret, k.last_used_at AS client_used_at `

// The people of a grant are who made its agent and who consented: both must still be members.
const livingGrant = `
	JOIN agent a ON a.org_id = g.org_id AND a.id = g.agent_id AND a.revoked_at IS NULL
	JOIN member m ON m.org_id = g.org_id AND m.user_id = a.user_id AND m.removed_at IS NULL
	JOIN member c ON c.org_id = g.org_id AND c.user_id = g.user_id AND c.removed_at IS NULL
	LEFT JOIN oauth_client k ON k.id = g.registration
	WHERE g.ended_at IS NULL AND `

// look answers one question in one round trip, which is a transaction as act's is: on the way of a refresh there are few.
func look[T any](ctx context.Context, s *System, sql string, args pgx.StrictNamedArgs) (found T, err error) {
	var b pgx.Batch
	b.Queue(`SELECT set_config('transaction_read_only', 'on', true), set_config('role', 'graft_system', true)`)
	b.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
		return err
	})
	// The pool drops a connection on which the batch failed half way, and Postgres its transaction.
	return found, unavailable(absent(s.db.pool.SendBatch(ctx, &b).Close()))
}

// OAuthCode finds whose a code is, used or not. One of a grant that has ended, or of an agent or member that has, is
// reason.NotFound.
func (s *System) OAuthCode(ctx context.Context, hash TokenHash) (GrantOf, error) {
	return look[GrantOf](ctx, s, selectGrantOf+`
		FROM oauth_code t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id`+livingGrant+`t.hash = @hash`,
		pgx.StrictNamedArgs{"hash": hash[:]})
}

// OAuthToken finds whose a refresh token is, retired or not, likewise.
func (s *System) OAuthToken(ctx context.Context, hash TokenHash) (GrantOf, error) {
	return look[GrantOf](ctx, s, lookOAuthToken, pgx.StrictNamedArgs{"hash": hash[:]})
}

// The token first, by itself: a grant has hundreds, and a planner that has not counted them yet may go through them all.
const lookOAuthToken = `WITH t AS MATERIALIZED (SELECT org_id, grant_id FROM oauth_token WHERE hash = @hash)` + selectGrantOf + `
	FROM t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id` + livingGrant + `true`

// LiveGrant finds who acts by an access token of a grant. One of a grant that has ended, or that was denied, is
// reason.NotFound.
func (s *System) LiveGrant(ctx context.Context, id GrantID, jti TokenID) (GrantOf, error) {
	return look[GrantOf](ctx, s, selectGrantOf+`FROM oauth_grant g`+livingGrant+`
		g.id = @id AND NOT EXISTS (SELECT FROM oauth_denied d WHERE (d.org_id, d.jti) = (g.org_id, @jti))`,
		pgx.StrictNamedArgs{"id": id, "jti": jti})
}

// RefreshWindow is how long a retired refresh token is answered with what retired it.
const RefreshWindow = 30 * time.Second

// tokenKept is how long a retired refresh token is remembered, so that its reuse ends the grant. One that comes later is
// nobody's, which is refused as well.
const tokenKept = 30 * 24 * time.Hour

// endedKept is how long the tokens of a grant outlive it, and endedSwept how long they are looked for then: grants stay for
// good, and each sweep would go through all that ever ended.
const (
	endedKept  = 24 * time.Hour
	endedSwept = 7 * 24 * time.Hour
)

// SweepOAuth deletes what has run out: requests, codes and tokens of ended grants a day after their end, denials, and answers
// that are not given again.
func (s *System) SweepOAuth(ctx context.Context) error {
	now := s.db.Now()
	args := func(age time.Duration) pgx.StrictNamedArgs { return pgx.StrictNamedArgs{"before": now.Add(-age)} }
	for _, sweep := range []func(pgx.Tx) (int64, error){
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_request WHERE expires_at < @before`, args(time.Minute))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_code WHERE expires_at < @before`, args(24*time.Hour))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_denied WHERE expires_at < @before`, args(time.Hour))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `DELETE FROM oauth_answer WHERE made_at < @before`, args(RefreshWindow))
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM oauth_token WHERE (org_id, hash) IN (
					SELECT t.org_id, t.hash FROM oauth_token t JOIN oauth_grant g ON g.org_id = t.org_id AND g.id = t.grant_id
					WHERE g.ended_at < @before AND g.ended_at > @since LIMIT 5000)`,
				pgx.StrictNamedArgs{"before": now.Add(-endedKept), "since": now.Add(-endedKept - endedSwept)})
		},
		func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM oauth_token WHERE (org_id, hash) IN (
					SELECT org_id, hash FROM oauth_token WHERE created_at < @before AND retired_at < @before LIMIT 5000)`, args(tokenKept))
		},
	} {
		if err := s.run(ctx, func(tx pgx.Tx) error { _, err := sweep(tx); return err }); err != nil {
			return err
		}
	}
	return nil
}
