package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Cause is why a tool came into a working set, or left it.
type Cause string

// The causes.
const (
	CauseAgent    Cause = "agent"    // the agent did it
	CausePerson   Cause = "person"   // a person did
	CauseUpstream Cause = "upstream" // a person had all tools of an upstream listed
	CauseIdle     Cause = "idle"     // the sweep: not used for longer than the agent's window
	CauseCap      Cause = "cap"      // the sweep: never used, and above the agent's cap
)

// A Promotion is one tool of an agent's working set.
type Promotion struct {
	Tool       string // wire name
	Cause      Cause
	PromotedAt time.Time
	LastUsedAt *time.Time // since it was promoted
}

// WorkingSet lists the tools promoted for an agent, in the order of their names.
func (tx *Tx) WorkingSet(ctx context.Context, agent AgentID) ([]Promotion, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[Promotion](ctx, tx.tx, `
		SELECT tool, cause, promoted_at, last_used_at FROM working_set
		WHERE agent_id = @agent
		ORDER BY tool COLLATE "C"`, pgx.StrictNamedArgs{"agent": agent})
}

// Promote adds a tool to an agent's working set and reports whether it was not in it.
func (tx *Tx) Promote(ctx context.Context, agent AgentID, tool string) (changed bool, err error) {
	n, err := tx.promote(ctx, agent, []string{tool}, tx.cause())
	return n > 0, err
}

// PromoteAll adds every tool that a person had listed of an upstream, and returns how many were not in the set.
func (tx *Tx) PromoteAll(ctx context.Context, agent AgentID, tools []string) (added int, err error) {
	return tx.promote(ctx, agent, tools, CauseUpstream)
}

func (tx *Tx) promote(ctx context.Context, agent AgentID, tools []string, cause Cause) (added int, err error) {
	if err := tx.use(ctx, agent); err != nil {
		return 0, err
	}
	n, err := exec(ctx, tx.tx, `
		WITH added AS (
			INSERT INTO working_set (agent_id, tool, cause, promoted_at)
			SELECT @agent, t, @cause, @now FROM unnest(@tools::text[]) AS t
			ON CONFLICT DO NOTHING
			RETURNING tool)
		INSERT INTO working_set_change (agent_id, tool, change, cause, user_id, at)
		SELECT @agent, tool, 'promoted', @cause, @by, @now FROM added ORDER BY tool COLLATE "C"`,
		pgx.StrictNamedArgs{"agent": agent, "tools": inOrder(tools), "cause": cause, "by": tx.person(), "now": tx.now})
	if err != nil || n == 0 {
		return 0, err
	}
	return int(n), tx.moved(ctx, agent)
}

// Demote takes a tool out of an agent's working set and reports whether it was in it.
func (tx *Tx) Demote(ctx context.Context, agent AgentID, tool string) (changed bool, err error) {
	if err := tx.use(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `
		WITH gone AS (DELETE FROM working_set WHERE agent_id = @agent AND tool = @tool RETURNING tool)
		INSERT INTO working_set_change (agent_id, tool, change, cause, user_id, at)
		SELECT @agent, tool, 'demoted', @cause, @by, @now FROM gone`,
		pgx.StrictNamedArgs{"agent": agent, "tool": tool, "cause": tx.cause(), "by": tx.person(), "now": tx.now})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.moved(ctx, agent)
}

// maxChanges is how many changes of a working set are kept for people, the last ones: an agent may make any number.
const maxChanges = 500

// moved drops the oldest changes and tells every replica that the agent's list is another.
func (tx *Tx) moved(ctx context.Context, agent AgentID) error {
	_, err := exec(ctx, tx.tx, `
		DELETE FROM working_set_change
		WHERE agent_id = @agent AND id <= (
			SELECT id FROM working_set_change WHERE agent_id = @agent ORDER BY id DESC OFFSET @keep LIMIT 1)`,
		pgx.StrictNamedArgs{"agent": agent, "keep": maxChanges})
	if err != nil {
		return err
	}
	return tx.tell(ctx, bus.List, agent.String())
}

func (tx *Tx) cause() Cause {
	if tx.caller.Via == ViaBearer {
		return CauseAgent
	}
	return CausePerson
}

// person is who acts, where that is somebody who signed in.
func (tx *Tx) person() *UserID {
	if tx.caller.Via != ViaSession {
		return nil
	}
	return &tx.caller.User
}

// A ToolChange is one change of a working set.
type ToolChange struct {
	Tool     string
	Promoted bool // else demoted
	Cause    Cause
	By       string // the person's name or e-mail; "" for anything else than somebody who signed in
	At       time.Time
}

// WorkingSetChanges lists what changed an agent's working set, the last first, at most limit.
func (tx *Tx) WorkingSetChanges(ctx context.Context, agent AgentID, limit int) ([]ToolChange, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[ToolChange](ctx, tx.tx, `
		SELECT c.tool, c.change = 'promoted' AS promoted, c.cause, coalesce(nullif(u.name, ''), u.email, '') AS by, c.at
		FROM working_set_change c LEFT JOIN user_account u ON u.id = c.user_id
		WHERE c.agent_id = @agent
		ORDER BY c.id DESC LIMIT @limit`, pgx.StrictNamedArgs{"agent": agent, "limit": limit})
}

// SetWorkingSetLimits sets after how many days without use a tool leaves the agent's working set, and above how many
// tools those never used do.
func (tx *Tx) SetWorkingSetLimits(ctx context.Context, agent AgentID, idleDays, toolCap int) error {
	switch {
	case idleDays < 1 || idleDays > 3650:
		return reason.Refuse(reason.InputInvalid, "A tool may be idle for 1 to 3650 days.").Field("idle_days")
	case toolCap < 0 || toolCap > 1000:
		return reason.Refuse(reason.InputInvalid, "The cap is a number of tools from 0 to 1000.").Field("tool_cap")
	}
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	_, err := exec(ctx, tx.tx, `UPDATE agent SET idle_days = @days, tool_cap = @cap WHERE id = @id`,
		pgx.StrictNamedArgs{"id": agent, "days": idleDays, "cap": toolCap})
	return err
}

// A ToolUse is when an agent last used a tool.
type ToolUse struct {
	Agent AgentID
	Tool  string
	At    time.Time
}

// UseTools moves the last use of promoted tools forward. Those that are not promoted are passed over.
func (tx *Tx) UseTools(ctx context.Context, uses []ToolUse) error {
	if len(uses) == 0 {
		return nil
	}
	agents, tools, times := make([]AgentID, len(uses)), make([]string, len(uses)), make([]time.Time, len(uses))
	for i, u := range uses {
		agents[i], tools[i], times[i] = u.Agent, u.Tool, u.At
	}
	// Locked in one order, whatever order they came in: another replica writes the same rows at the same time.
	_, err := exec(ctx, tx.tx, `
		WITH used AS (
			SELECT agent_id, tool, max(at) AS at FROM unnest(@agents::uuid[], @tools::text[], @times::timestamptz[]) AS u (agent_id, tool, at)
			GROUP BY agent_id, tool
		), held AS (
			SELECT w.agent_id, w.tool, used.at FROM working_set w JOIN used USING (agent_id, tool)
			ORDER BY w.agent_id, w.tool FOR UPDATE OF w
		)
		UPDATE working_set w SET last_used_at = held.at FROM held
		WHERE w.agent_id = held.agent_id AND w.tool = held.tool AND (w.last_used_at IS NULL OR w.last_used_at < held.at)`,
		pgx.StrictNamedArgs{"agents": agents, "tools": tools, "times": times})
	return err
}

// What one sweep does at most, and how long a tool is left alone after it came or was used: its call may still go on,
// and what an agent promotes it is about to call.
const (
	sweepStep  = 500
	sweepGrace = 10 * time.Minute
)

// SweepWorkingSets demotes tools of the organisation that were idle for longer than their agent's window, and then those
// that were never used and stand above its cap, the oldest first. It returns how many; 0 means that there are no more.
// Two replicas that sweep at once share the work.
func (tx *Tx) SweepWorkingSets(ctx context.Context) (demoted int, err error) {
	args := pgx.StrictNamedArgs{"now": tx.now, "settled": tx.now.Add(-sweepGrace), "step": sweepStep}
	gone, err := all[struct{ Agent AgentID }](ctx, tx.tx, `
		WITH due AS (
			SELECT w.agent_id, w.tool FROM working_set w JOIN agent a ON a.id = w.agent_id
			WHERE a.revoked_at IS NULL AND greatest(w.promoted_at, w.last_used_at) < least(@settled::timestamptz, @now::timestamptz - make_interval(days => a.idle_days))
			ORDER BY w.agent_id, w.tool LIMIT @step FOR UPDATE OF w SKIP LOCKED
		), gone AS (
			DELETE FROM working_set w USING due WHERE w.agent_id = due.agent_id AND w.tool = due.tool
			RETURNING w.agent_id, w.tool
		), kept AS (
			INSERT INTO working_set_change (agent_id, tool, change, cause, at)
			SELECT agent_id, tool, 'demoted', 'idle', @now::timestamptz FROM gone ORDER BY agent_id, tool COLLATE "C"
		)
		SELECT agent_id AS agent FROM gone`, args)
	if err != nil {
		return 0, err
	}
	above, err := all[struct{ Agent AgentID }](ctx, tx.tx, `
		WITH size AS (
			SELECT a.id, count(*) - a.tool_cap AS above FROM working_set w JOIN agent a ON a.id = w.agent_id
			WHERE a.revoked_at IS NULL
			GROUP BY a.id, a.tool_cap HAVING count(*) > a.tool_cap
		), unused AS (
			SELECT w.agent_id, w.tool, size.above,
			       row_number() OVER (PARTITION BY w.agent_id ORDER BY w.promoted_at, w.tool COLLATE "C") AS age
			FROM working_set w JOIN size ON size.id = w.agent_id
			WHERE w.last_used_at IS NULL AND w.promoted_at < @settled::timestamptz
		), due AS (
			SELECT w.agent_id, w.tool FROM working_set w JOIN unused u ON u.agent_id = w.agent_id AND u.tool = w.tool
			WHERE u.age <= u.above AND w.last_used_at IS NULL
			ORDER BY w.agent_id, w.tool LIMIT @step FOR UPDATE OF w SKIP LOCKED
		), gone AS (
			DELETE FROM working_set w USING due WHERE w.agent_id = due.agent_id AND w.tool = due.tool
			RETURNING w.agent_id, w.tool
		), kept AS (
			INSERT INTO working_set_change (agent_id, tool, change, cause, at)
			SELECT agent_id, tool, 'demoted', 'cap', @now::timestamptz FROM gone ORDER BY agent_id, tool COLLATE "C"
		)
		SELECT agent_id AS agent FROM gone`, args)
	if err != nil {
		return 0, err
	}
	told := map[AgentID]bool{}
	for _, g := range slices.Concat(gone, above) {
		if told[g.Agent] {
			continue
		}
		told[g.Agent] = true
		if err := tx.moved(ctx, g.Agent); err != nil {
			return 0, err
		}
	}
	return len(gone) + len(above), nil
}

// inOrder is a sorted copy: rows that two transactions insert in one order do not block one another.
func inOrder(tools []string) []string {
	c := slices.Clone(tools)
	slices.SortFunc(c, strings.Compare)
	return slices.Compact(c)
}
