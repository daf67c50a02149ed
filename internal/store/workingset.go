package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// A Promotion is one tool of an agent's working set.
type Promotion struct {
	Tool       string // wire name
	Cause      string // "agent" or "person"
	PromotedAt time.Time
}

// WorkingSet lists the tools promoted for an agent, in the order of their names.
func (tx *Tx) WorkingSet(ctx context.Context, agent AgentID) ([]Promotion, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[Promotion](ctx, tx.tx, `
		SELECT tool, cause, promoted_at FROM working_set
		WHERE agent_id = @agent
		ORDER BY tool COLLATE "C"`, pgx.StrictNamedArgs{"agent": agent})
}

// Promote adds a tool to an agent's working set and reports whether it was not in it.
func (tx *Tx) Promote(ctx context.Context, agent AgentID, tool string) (changed bool, err error) {
	if err := tx.use(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `
		INSERT INTO working_set (agent_id, tool, cause, promoted_at)
		VALUES (@agent, @tool, @cause, @now)
		ON CONFLICT DO NOTHING`,
		pgx.StrictNamedArgs{"agent": agent, "tool": tool, "cause": tx.cause(), "now": tx.now})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.tell(ctx, bus.List, agent.String())
}

// Demote takes a tool out of an agent's working set and reports whether it was in it.
func (tx *Tx) Demote(ctx context.Context, agent AgentID, tool string) (changed bool, err error) {
	if err := tx.use(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `DELETE FROM working_set WHERE agent_id = @agent AND tool = @tool`,
		pgx.StrictNamedArgs{"agent": agent, "tool": tool})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.tell(ctx, bus.List, agent.String())
}

func (tx *Tx) cause() string {
	if tx.caller.Via == ViaBearer {
		return "agent"
	}
	return "person"
}
