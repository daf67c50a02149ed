package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// An OAuthRequest is what a client asked for at the authorization endpoint, until a person has answered it.
type OAuthRequest struct {
	Hash       TokenHash // of the id it is known by
	Browser    TokenHash // of what only the browser has that it came from
	Form       string    // what its form must repeat
	Query      string    // as it came
	Proven     []byte    // JSON, once client and redirect URI are proven; nil before
	CreatedAt  time.Time
	ExpiresAt  time.Time
	AnsweredAt *time.Time
}

// AddOAuthRequest stores a request.
func (s *System) AddOAuthRequest(ctx context.Context, r OAuthRequest) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `
			INSERT INTO oauth_request (hash, browser, form, query, proven, created_at, expires_at)
			VALUES (@hash, @browser, @form, @query, @proven, @created, @expires)`,
			pgx.StrictNamedArgs{
				"hash": r.Hash[:], "browser": r.Browser[:], "form": r.Form, "query": r.Query, "proven": r.Proven, "created": r.CreatedAt, "expires": r.ExpiresAt,
			})
		return err
	})
}

// OAuthRequest reads a request, also one that was answered or has expired, until the sweep takes it.
func (s *System) OAuthRequest(ctx context.Context, hash TokenHash) (r OAuthRequest, err error) {
	type row struct {
		Browser    []byte
		Form       string
		Query      string
		Proven     []byte
		CreatedAt  time.Time
		ExpiresAt  time.Time
		AnsweredAt *time.Time
	}
	err = s.run(ctx, func(tx pgx.Tx) error {
		w, err := one[row](ctx, tx, `
			SELECT browser, form, query, proven, created_at, expires_at, answered_at FROM oauth_request WHERE hash = @hash`,
			pgx.StrictNamedArgs{"hash": hash[:]})
		r = OAuthRequest{Hash: hash, Form: w.Form, Query: w.Query, Proven: w.Proven, CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt, AnsweredAt: w.AnsweredAt}
		copy(r.Browser[:], w.Browser)
		return err
	})
	return r, err
}

// ProveOAuthRequest writes down what is proven of a request. What was proven before stays.
func (s *System) ProveOAuthRequest(ctx context.Context, hash TokenHash, proven []byte) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `UPDATE oauth_request SET proven = @proven WHERE hash = @hash AND proven IS NULL`,
			pgx.StrictNamedArgs{"hash": hash[:], "proven": proven})
		return err
	})
}

// AnswerOAuthRequest spends a request. One that was answered or has expired is reason.ConsentNotValid.
func (s *System) AnswerOAuthRequest(ctx context.Context, hash TokenHash) error {
	return s.run(ctx, func(tx pgx.Tx) error { return answerRequest(ctx, tx, hash, s.db.Now()) })
}

func answerRequest(ctx context.Context, tx pgx.Tx, hash TokenHash, now time.Time) error {
	n, err := exec(ctx, tx, `UPDATE oauth_request SET answered_at = @now WHERE hash = @hash AND answered_at IS NULL AND expires_at > @now`,
		pgx.StrictNamedArgs{"hash": hash[:], "now": now})
	if err == nil && n == 0 {
		return reason.Refuse(reason.ConsentNotValid, "This request was answered already, or has expired. Connect again from the app.")
	}
	return err
}
