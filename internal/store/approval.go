package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// A Decision is a person's standing answer about one tool and one agent.
type Decision string

// The decisions.
const (
	Allow    Decision = "allow" // every call of this version on this connection
	Deny     Decision = "deny"  // no call, whatever the version
	AskEvery Decision = "every" // each call asks
)

// An Approval is a standing answer.
type Approval struct {
	Tool         string       // wire name
	ConnectionID ConnectionID // zero for a tool that needs none
	Version      int
	Decision     Decision
	SetBy        UserID // zero for the operator
	SetAt        time.Time
}

// Approvals lists an agent's standing answers by the name of the tool.
func (tx *Tx) Approvals(ctx context.Context, agent AgentID) ([]Approval, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[Approval](ctx, tx.tx, `
		SELECT tool, connection_id, version, decision, set_by, set_at FROM approval
		WHERE agent_id = @agent AND (expires_at IS NULL OR expires_at > @now) AND (uses_left IS NULL OR uses_left > 0)
		ORDER BY tool COLLATE "C", connection_id`, pgx.StrictNamedArgs{"agent": agent, "now": tx.now})
}

// Approve sets a standing answer of an agent, in place of the one before.
func (tx *Tx) Approve(ctx context.Context, agent AgentID, a Approval) error {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	return tx.approve(ctx, agent, a)
}

func (tx *Tx) approve(ctx context.Context, agent AgentID, a Approval) error {
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO approval (agent_id, tool, connection_id, version, decision, set_by, set_at)
		VALUES (@agent, @tool, @connection, @version, @decision, @by, @now)
		ON CONFLICT (org_id, agent_id, tool, connection_id) DO UPDATE
		SET version = @version, decision = @decision, set_by = @by, set_at = @now, expires_at = NULL, uses_left = NULL`,
		pgx.StrictNamedArgs{
			"agent": agent, "tool": a.Tool, "connection": a.ConnectionID, "version": a.Version, "decision": a.Decision,
			"by": tx.caller.User, "now": tx.now,
		}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Agent, agent.String())
}

// Unapprove takes the standing answers about a tool away, so that its next call asks, and reports whether there were any.
func (tx *Tx) Unapprove(ctx context.Context, agent AgentID, tool string) (changed bool, err error) {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `DELETE FROM approval WHERE agent_id = @agent AND tool = @tool`, pgx.StrictNamedArgs{"agent": agent, "tool": tool})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.tell(ctx, bus.Agent, agent.String())
}
