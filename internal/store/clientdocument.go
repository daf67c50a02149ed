package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A ClientDocument is a client ID metadata document as it was last read and found good.
type ClientDocument struct {
	URL        string
	Document   []byte // JSON, as Postgres writes it
	FetchedAt  time.Time
	FreshUntil time.Time // from then on it is read anew before it is used
}

// ClientDocument returns the document that was read at a URL. One that never was is reason.NotFound.
func (s *System) ClientDocument(ctx context.Context, url string) (d ClientDocument, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		d, err = one[ClientDocument](ctx, tx, `SELECT url, document, fetched_at, fresh_until FROM client_document WHERE url = @url`,
			pgx.StrictNamedArgs{"url": url})
		return err
	})
	return d, err
}

// SaveClientDocument keeps a document in place of the one that was read at its URL before. Of two replicas that read it
// at once, what was read later stays.
func (s *System) SaveClientDocument(ctx context.Context, d ClientDocument) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `
			INSERT INTO client_document (url, document, fetched_at, fresh_until) VALUES (@url, @document, @fetched, @fresh)
			ON CONFLICT (url) DO UPDATE
			SET document = excluded.document, fetched_at = excluded.fetched_at, fresh_until = excluded.fresh_until
			WHERE client_document.fetched_at <= excluded.fetched_at`,
			pgx.StrictNamedArgs{"url": d.URL, "document": d.Document, "fetched": d.FetchedAt, "fresh": d.FreshUntil})
		return err
	})
}

// ReapClientDocuments deletes what was last read before a time, and says how many it was. The document of a client that
// has a live grant stays: it is what is left of a client whose host no longer answers.
func (s *System) ReapClientDocuments(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		n, err = exec(ctx, tx, `
			DELETE FROM client_document d
			WHERE d.fetched_at < @before
			  AND NOT EXISTS (SELECT FROM oauth_grant g WHERE g.client_id = d.url AND g.ended_at IS NULL)`,
			pgx.StrictNamedArgs{"before": before})
		return err
	})
	return n, err
}
