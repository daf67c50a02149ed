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

// RecordSessions writes sessions that open, and of those that are there only moves their last sight forward. It locks
// them in one order, whatever order they came in, as all that writes down what was seen does: another replica writes the
// same rows at the same time.
func (tx *Tx) RecordSessions(ctx context.Context, list ...MCPSession) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	ids, agents := make([]SessionID, n), make([]AgentID, n)
	names, versions, protocols, addresses := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	opened, seen := make([]time.Time, n), make([]time.Time, n)
	for i, s := range list {
		ids[i], agents[i], names[i], versions[i], protocols[i] = s.ID, s.AgentID, s.ClientName, s.ClientVersion, s.Protocol
		addresses[i], opened[i], seen[i] = s.Address, s.OpenedAt, s.LastSeenAt
	}
	_, err := exec(ctx, tx.tx, `
		INSERT INTO mcp_session (id, agent_id, client_name, client_version, protocol, address, opened_at, last_seen_at)
		SELECT DISTINCT ON (id) * FROM unnest(@ids::uuid[], @agents::uuid[], @names::text[], @versions::text[], @protocols::text[], @addresses::text[],
		                                      @opened::timestamptz[], @seen::timestamptz[]) AS s (id, agent, name, version, protocol, address, opened, seen)
		ORDER BY id, seen DESC
		ON CONFLICT (org_id, id) DO UPDATE SET last_seen_at = greatest(mcp_session.last_seen_at, excluded.last_seen_at)`,
		pgx.StrictNamedArgs{
			"ids": ids, "agents": agents, "names": names, "versions": versions, "protocols": protocols, "addresses": addresses, "opened": opened, "seen": seen,
		})
	if err != nil {
		return err
	}
	_, err = exec(ctx, tx.tx, `
		DELETE FROM mcp_session s
		USING (SELECT DISTINCT unnest(@agents::uuid[]) AS id) AS a
		CROSS JOIN LATERAL (
			SELECT last_seen_at, id FROM mcp_session WHERE agent_id = a.id ORDER BY last_seen_at DESC, id DESC OFFSET @keep LIMIT 1) AS first
		WHERE s.agent_id = a.id AND (s.last_seen_at, s.id) <= (first.last_seen_at, first.id)`, pgx.StrictNamedArgs{"agents": agents, "keep": maxSessions})
	return err
}

// SeeSessions moves the last sight of recorded sessions forward.
func (tx *Tx) SeeSessions(ctx context.Context, seen map[SessionID]time.Time) error {
	if len(seen) == 0 {
		return nil
	}
	ids, times := columns(seen)
	_, err := exec(ctx, tx.tx, `
		WITH held AS (
			SELECT s.id, seen.at FROM mcp_session s JOIN unnest(@ids::uuid[], @times::timestamptz[]) AS seen (id, at) USING (id)
			WHERE s.last_seen_at < seen.at ORDER BY s.id FOR NO KEY UPDATE OF s
		)
		UPDATE mcp_session s SET last_seen_at = held.at FROM held WHERE s.id = held.id AND s.last_seen_at < held.at`,
		pgx.StrictNamedArgs{"ids": ids, "times": times})
	return err
}

// columns are the keys and values of a map, in one order.
func columns[K comparable, V any](m map[K]V) (keys []K, values []V) {
	for k, v := range m {
		keys, values = append(keys, k), append(values, v)
	}
	return keys, values
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
