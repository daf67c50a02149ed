package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// An MCPSession is what people are shown of a session. It never decides whether a request is accepted.
type MCPSession struct {
	ID            SessionID
	AgentID       AgentID
	ClientName    string
	ClientVersion string
	Protocol      string
	Address       string
	OpenedAt      time.Time
	LastSeenAt    time.Time
}

// maxSessions is how many sessions are kept for an agent, those last seen: a client may open as many as it likes.
const maxSessions = 1000

// RecordSession writes a session when it opens, and later only moves its last sight forward.
func (tx *Tx) RecordSession(ctx context.Context, s MCPSession) error {
	_, err := exec(ctx, tx.tx, `
		INSERT INTO mcp_session (id, agent_id, client_name, client_version, protocol, address, opened_at, last_seen_at)
		VALUES (@id, @agent, @name, @version, @protocol, @address, @opened, @seen)
		ON CONFLICT (org_id, id) DO UPDATE SET last_seen_at = greatest(mcp_session.last_seen_at, excluded.last_seen_at)`,
		pgx.StrictNamedArgs{
			"id": s.ID, "agent": s.AgentID, "name": s.ClientName, "version": s.ClientVersion, "protocol": s.Protocol,
			"address": s.Address, "opened": s.OpenedAt, "seen": s.LastSeenAt,
		})
	if err != nil {
		return err
	}
	_, err = exec(ctx, tx.tx, `
		DELETE FROM mcp_session
		WHERE agent_id = @agent AND id IN (
			SELECT id FROM mcp_session WHERE agent_id = @agent
			ORDER BY last_seen_at DESC, id DESC OFFSET @keep)`, pgx.StrictNamedArgs{"agent": s.AgentID, "keep": maxSessions})
	return err
}

// SeeSession moves the last sight of a recorded session forward to at.
func (tx *Tx) SeeSession(ctx context.Context, id SessionID, at time.Time) error {
	_, err := exec(ctx, tx.tx, `UPDATE mcp_session SET last_seen_at = @at WHERE id = @id AND last_seen_at < @at`,
		pgx.StrictNamedArgs{"id": id, "at": at})
	return err
}

// Sessions lists an agent's sessions that have not been ended, the last seen first, at most limit.
func (tx *Tx) Sessions(ctx context.Context, agent AgentID, limit int) ([]MCPSession, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[MCPSession](ctx, tx.tx, `
		SELECT s.id, s.agent_id, s.client_name, s.client_version, s.protocol, s.address, s.opened_at, s.last_seen_at
		FROM mcp_session s JOIN agent a ON a.id = s.agent_id
		WHERE s.agent_id = @agent
		  AND NOT EXISTS (SELECT FROM mcp_session_end e WHERE e.agent_id = s.agent_id AND e.id = s.id)
		  AND (a.sessions_ended_before IS NULL OR s.opened_at >= a.sessions_ended_before)
		ORDER BY s.last_seen_at DESC, s.id
		LIMIT @limit`, pgx.StrictNamedArgs{"agent": agent, "limit": limit})
}

// SessionEnded reports whether one of the caller's own sessions was ended before its time.
func (tx *Tx) SessionEnded(ctx context.Context, id SessionID) (bool, error) {
	return value[bool](ctx, tx.tx, `
		SELECT coalesce((SELECT coalesce(sessions_ended_before > @opened, false) FROM agent WHERE id = @agent), true)
		    OR EXISTS (SELECT FROM mcp_session_end WHERE agent_id = @agent AND id = @id)`,
		pgx.StrictNamedArgs{"agent": tx.caller.Agent, "id": id, "opened": id.Time()})
}

// maxEnded is how many single ended sessions are kept for an agent. Past it, everything the agent opened before
// the newest of those dropped has ended too: a client that ends a thousand sessions has long forgotten them.
const maxEnded = 1000

// EndSession ends an agent's session on every replica. A session that has ended already is reason.NotFound.
func (tx *Tx) EndSession(ctx context.Context, agent AgentID, id SessionID) error {
	if err := tx.use(ctx, agent); err != nil {
		return err
	}
	n, err := exec(ctx, tx.tx, `
		INSERT INTO mcp_session_end (id, agent_id, opened_at, ended_at)
		SELECT @id, id, @opened, @now FROM agent
		WHERE id = @agent AND (sessions_ended_before IS NULL OR sessions_ended_before <= @opened)
		ON CONFLICT DO NOTHING`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "opened": id.Time(), "now": tx.now})
	if err != nil {
		return err
	}
	if n == 0 {
		return reason.NotFound
	}
	if err := tx.tell(ctx, bus.Agent, agent.String()); err != nil {
		return err
	}
	if err := tx.tell(ctx, bus.Session, id.String()); err != nil {
		return err
	}
	return tx.foldEnded(ctx, agent)
}

// foldEnded turns all but the newest maxEnded ended sessions into "all opened before".
func (tx *Tx) foldEnded(ctx context.Context, agent AgentID) error {
	cut, err := value[time.Time](ctx, tx.tx, `
		SELECT opened_at FROM mcp_session_end
		WHERE agent_id = @agent
		ORDER BY opened_at DESC OFFSET @keep LIMIT 1`, pgx.StrictNamedArgs{"agent": agent, "keep": maxEnded})
	if IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// Opened in the same millisecond as the cut counts as before it.
	before := cut.Add(time.Millisecond)
	if _, err := exec(ctx, tx.tx, `
		UPDATE agent SET sessions_ended_before = greatest(sessions_ended_before, @before) WHERE id = @agent`,
		pgx.StrictNamedArgs{"agent": agent, "before": before}); err != nil {
		return err
	}
	_, err = exec(ctx, tx.tx, `DELETE FROM mcp_session_end WHERE agent_id = @agent AND opened_at < @before`,
		pgx.StrictNamedArgs{"agent": agent, "before": before})
	return err
}
