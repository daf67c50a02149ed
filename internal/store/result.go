package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// ResultLife is how long a stored result can be read.
	ResultLife = 24 * time.Hour
	// maxResults bounds the stored results of one agent; the oldest go.
	maxResults = 200
)

// KeepResult stores a value that was too long to answer with, sealed.
func (tx *Tx) KeepResult(ctx context.Context, agent AgentID, id ResultID, body []byte) error {
	if err := tx.use(ctx, agent); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO result (id, agent_id, body, created_at, expires_at) VALUES (@id, @agent, @body, @now, @expires)`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "body": body, "now": tx.now, "expires": tx.now.Add(ResultLife)}); err != nil {
		return err
	}
	_, err := exec(ctx, tx.tx, `
		DELETE FROM result WHERE agent_id = @agent AND id IN (
			SELECT id FROM result WHERE agent_id = @agent ORDER BY created_at DESC, id DESC OFFSET @most)`,
		pgx.StrictNamedArgs{"agent": agent, "most": maxResults})
	return err
}

// Result is the sealed body of a stored result of the calling agent.
func (tx *Tx) Result(ctx context.Context, agent AgentID, id ResultID) ([]byte, error) {
	if err := tx.use(ctx, agent); err != nil {
		return nil, err
	}
	return value[[]byte](ctx, tx.tx, `SELECT body FROM result WHERE id = @id AND agent_id = @agent AND expires_at > @now`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "now": tx.now})
}
