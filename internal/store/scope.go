package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Scope says which connections an agent may use.
type Scope struct {
	All    bool           // the organisation's shared ones and its user's own; else those listed
	Listed []ConnectionID // what they are where all are not
}

// inScope is whether agent a may use connection c. A private connection serves its owner's agents alone, whatever is listed.
const inScope = `(c.user_id IS NULL OR c.user_id = a.user_id)
	AND (a.scope = 'all' OR EXISTS (SELECT FROM agent_connection l WHERE l.agent_id = a.id AND l.connection_id = c.id)) `

// Scope is an agent's scope.
func (tx *Tx) Scope(ctx context.Context, agent AgentID) (Scope, error) {
	if err := tx.see(ctx, agent); err != nil {
		return Scope{}, err
	}
	return one[Scope](ctx, tx.tx, `
		SELECT a.scope = 'all' AS all, ARRAY(SELECT l.connection_id FROM agent_connection l WHERE l.agent_id = a.id ORDER BY l.connection_id) AS listed
		FROM agent a WHERE a.id = @id`, pgx.StrictNamedArgs{"id": agent})
}

// SetScope sets which connections an agent may use. A private connection of anybody but the agent's user cannot be listed.
func (tx *Tx) SetScope(ctx context.Context, agent AgentID, s Scope) error {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	scope := "listed"
	if s.All {
		scope = "all"
	}
	if _, err := exec(ctx, tx.tx, `UPDATE agent SET scope = @scope WHERE id = @id`, pgx.StrictNamedArgs{"id": agent, "scope": scope}); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `DELETE FROM agent_connection WHERE agent_id = @id AND NOT connection_id = ANY (@listed)`,
		pgx.StrictNamedArgs{"id": agent, "listed": some(s.Listed)}); err != nil {
		return err
	}
	for _, id := range s.Listed {
		if err := tx.list(ctx, agent, id); err != nil {
			return err
		}
	}
	return tx.scopeMoved(ctx, agent)
}

// AddToScope adds one connection to an agent's scope; where all are, it changes nothing but what is listed.
func (tx *Tx) AddToScope(ctx context.Context, agent AgentID, id ConnectionID) error {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	return tx.addToScope(ctx, agent, id)
}

func (tx *Tx) addToScope(ctx context.Context, agent AgentID, id ConnectionID) error {
	if err := tx.list(ctx, agent, id); err != nil {
		return err
	}
	return tx.scopeMoved(ctx, agent)
}

func (tx *Tx) list(ctx context.Context, agent AgentID, id ConnectionID) error {
	n, err := exec(ctx, tx.tx, `
		INSERT INTO agent_connection (agent_id, connection_id, added_at)
		SELECT a.id, c.id, @now FROM agent a, connection c
		WHERE a.id = @agent AND c.id = @connection AND (c.user_id IS NULL OR c.user_id = a.user_id)
		ON CONFLICT (org_id, agent_id, connection_id) DO UPDATE SET added_at = agent_connection.added_at`,
		pgx.StrictNamedArgs{"agent": agent, "connection": id, "now": tx.now})
	if err == nil && n == 0 {
		err = reason.NotFound
	}
	return err
}

// scopeMoved says that what an agent may use has changed, and so its tools.
func (tx *Tx) scopeMoved(ctx context.Context, agent AgentID) error {
	if err := tx.tell(ctx, bus.Agent, agent.String()); err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

// AgentConnections lists the connections that an agent may use, revoked ones among them: they come back with their credential.
func (tx *Tx) AgentConnections(ctx context.Context, agent AgentID) ([]Connection, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[Connection](ctx, tx.tx, `SELECT `+connectionColumns+`
		JOIN agent a ON a.id = @agent
		WHERE `+inScope+`
		ORDER BY c.revoked_at IS NOT NULL, c.vendor, c.display_name, c.id`, pgx.StrictNamedArgs{"agent": agent})
}
