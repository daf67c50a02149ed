package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// An OAuthClient is a program that registered at the authorization server (RFC 7591). It belongs to no organisation.
type OAuthClient struct {
	ID              ClientID
	Name            string // as it calls itself
	RedirectURIs    []string
	AuthMethod      string // none, client_secret_basic or client_secret_post
	Secret          []byte // SHA-256; nil for none
	ApplicationType string // web, native or ""
	CreatedAt       time.Time
	LastUsedAt      time.Time // to the hour
}

// AddOAuthClient keeps a new client and returns it with its id and times, which are the store's to give.
func (s *System) AddOAuthClient(ctx context.Context, c OAuthClient) (OAuthClient, error) {
	now := s.db.Now()
	c.ID, c.CreatedAt, c.LastUsedAt = NewID[ClientKind](now), now, now
	err := s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `
			INSERT INTO oauth_client (id, name, redirect_uris, auth_method, secret, application_type, created_at, last_used_at)
			VALUES (@id, @name, @redirects, @method, @secret, @type, @now, @now)`,
			pgx.StrictNamedArgs{
				"id": c.ID, "name": c.Name, "redirects": c.RedirectURIs, "method": c.AuthMethod, "secret": c.Secret, "type": c.ApplicationType, "now": now,
			})
		return err
	})
	return c, err
}

// OAuthClient finds a client. One that was never there, or was reaped, is reason.NotFound.
func (s *System) OAuthClient(ctx context.Context, id ClientID) (c OAuthClient, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		c, err = one[OAuthClient](ctx, tx, `
			SELECT id, name, redirect_uris, auth_method, secret, application_type, created_at, last_used_at FROM oauth_client WHERE id = @id`,
			pgx.StrictNamedArgs{"id": id})
		return err
	})
	return c, err
}

// oauthClientUse is how exactly it is known when a client was last used. Its use costs a write once in that time.
const oauthClientUse = time.Hour

// TouchOAuthClient notes that a client is used, and writes that down where it has not been for an hour. A client that is
// gone is no error.
func (s *System) TouchOAuthClient(ctx context.Context, id ClientID) error {
	now := s.db.Now()
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `UPDATE oauth_client SET last_used_at = @now WHERE id = @id AND last_used_at <= @before`,
			pgx.StrictNamedArgs{"id": id, "now": now, "before": now.Add(-oauthClientUse)})
		return err
	})
}

// idle is a client that was last used some time ago.
type idle struct {
	ID         ClientID
	LastUsedAt time.Time
}

// reapAtOnce is how many clients one transaction of ReapOAuthClients looks at.
const reapAtOnce = 500

// ReapOAuthClients deletes the clients that were last used before a time, and says how many. A live grant keeps its client
// alive, however long nobody uses it.
func (s *System) ReapOAuthClients(ctx context.Context, before time.Time) (reaped int64, err error) {
	for last := (idle{}); ; {
		var list []idle
		var n int64
		err := s.run(ctx, func(tx pgx.Tx) (err error) {
			list, err = all[idle](ctx, tx, `
				SELECT id, last_used_at FROM oauth_client
				WHERE last_used_at < @before AND (last_used_at, id) > (@last, coalesce(@id, '00000000-0000-0000-0000-000000000000'::uuid))
				ORDER BY last_used_at, id LIMIT @most`,
				pgx.StrictNamedArgs{"before": before, "last": last.LastUsedAt, "id": last.ID, "most": reapAtOnce})
			if err != nil || len(list) == 0 {
				return err
			}
			// Grants know their client by its id on the wire, because for some that is a URL.
			var ids []ClientID
			var wires []string
			for _, c := range list {
				ids, wires = append(ids, c.ID), append(wires, c.ID.String())
			}
			// One that is used, or gets a grant, meanwhile was touched before: the time is looked at again.
			n, err = exec(ctx, tx, `
				DELETE FROM oauth_client c USING unnest(@ids::uuid[], @wires::text[]) AS w (id, wire)
				WHERE c.id = w.id AND c.last_used_at < @before
				  AND NOT EXISTS (SELECT FROM oauth_grant g WHERE g.client_id = w.wire AND g.ended_at IS NULL)`,
				pgx.StrictNamedArgs{"ids": ids, "wires": wires, "before": before})
			return err
		})
		if err != nil || len(list) == 0 {
			return reaped, err
		}
		reaped, last = reaped+n, list[len(list)-1]
	}
}
