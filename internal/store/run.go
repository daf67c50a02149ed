package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

const (
	// RunLife is how long a run can be looked up.
	RunLife = 30 * 24 * time.Hour
	// RunSilence is how long the replica of a run may say nothing before the run counts as lost.
	RunSilence = 30 * time.Second
	// maxRunning bounds the runs of one agent that are under way.
	maxRunning = 20
	// maxRuns bounds the ended runs that are kept of one agent; the oldest go. Whoever calls and hangs up leaves one each
	// time, and so does whoever detaches what ends at once.
	maxRuns = 1000
	// maxProgress bounds the lines of progress that are kept of a run; the oldest go.
	maxProgress = 200
)

// RunStatus is where a run stands.
type RunStatus string

// The statuses. Lost is not stored: it is a run whose replica ended in the middle, so that nobody knows how far it got.
const (
	RunRunning   RunStatus = "running"
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed"
	RunCancelled RunStatus = "cancelled"
	RunLost      RunStatus = "lost"
)

// A Run is one execution of a tool whose result waits for somebody.
type Run struct {
	ID           RunID
	AgentID      AgentID
	Tool         string // wire name
	Version      int
	ConnectionID ConnectionID
	Status       RunStatus
	Reason       reason.Word // why it failed, where the gateway knows
	Result       []byte      // sealed: what the caller would have been answered
	Progress     []string
	Questions    []byte   // sealed: what its client's person has to answer; nil for nothing
	Answers      [][]byte // sealed: what was answered until now
	Cancel       bool     // somebody wants it to end
	StartedAt    time.Time
	SeenAt       time.Time // when the replica it runs on last said so
	EndedAt      *time.Time
}

const runColumns = `id, agent_id, tool, version, connection_id,
	CASE WHEN status = 'running' AND seen_at < @silent THEN 'lost' ELSE status END AS status,
	reason, result, progress, questions, answers, cancel, started_at, seen_at, ended_at`

// StartRun keeps a run of the calling agent that begins. More under way at once than an agent may have are
// reason.RateLimited; an agent that was revoked meanwhile is reason.NotFound.
func (tx *Tx) StartRun(ctx context.Context, r Run) error {
	if err := tx.use(ctx, r.AgentID); err != nil {
		return err
	}
	// Runs of one agent start one after the other, so that none is counted too late.
	if _, err := value[AgentID](ctx, tx.tx, `SELECT id FROM agent WHERE id = @agent AND revoked_at IS NULL FOR NO KEY UPDATE`,
		pgx.StrictNamedArgs{"agent": r.AgentID}); err != nil {
		return err
	}
	n, err := value[int](ctx, tx.tx, `SELECT count(*)::int FROM run WHERE agent_id = @agent AND status = 'running' AND seen_at >= @silent`,
		pgx.StrictNamedArgs{"agent": r.AgentID, "silent": tx.now.Add(-RunSilence)})
	if err != nil {
		return err
	}
	if n >= maxRunning {
		return reason.Refuse(reason.RateLimited, "This agent has %d detached runs under way. Wait until some have ended.", n)
	}
	r.Status = RunRunning
	return tx.keepRun(ctx, r)
}

// KeepRun keeps a run of the calling agent that has ended already: its client left before it could be answered.
func (tx *Tx) KeepRun(ctx context.Context, r Run) error {
	if err := tx.use(ctx, r.AgentID); err != nil {
		return err
	}
	if err := tx.keepRun(ctx, r); err != nil {
		return err
	}
	return tx.dropOldRuns(ctx, r.AgentID)
}

// dropOldRuns deletes what an agent has of ended runs above the bound.
func (tx *Tx) dropOldRuns(ctx context.Context, agent AgentID) error {
	_, err := exec(ctx, tx.tx, `
		DELETE FROM run WHERE agent_id = @agent AND id IN (
			SELECT id FROM run WHERE agent_id = @agent AND status <> 'running' ORDER BY started_at DESC, id DESC OFFSET @most)`,
		pgx.StrictNamedArgs{"agent": agent, "most": maxRuns})
	return err
}

func (tx *Tx) keepRun(ctx context.Context, r Run) error {
	_, err := exec(ctx, tx.tx, `
		INSERT INTO run (id, agent_id, tool, version, connection_id, status, reason, result, started_at, seen_at, ended_at, expires_at)
		VALUES (@id, @agent, @tool, @version, @connection, @status, @reason, @result, @started, @now, @ended, @expires)`,
		pgx.StrictNamedArgs{
			"id": r.ID, "agent": r.AgentID, "tool": r.Tool, "version": r.Version, "connection": r.ConnectionID, "status": r.Status, "reason": r.Reason,
			"result": r.Result, "started": r.StartedAt, "now": tx.now, "ended": r.EndedAt, "expires": tx.now.Add(RunLife),
		})
	return err
}

// Seen is what the replica of a run finds when it says that the run goes on.
type Seen struct {
	Wanted  bool     // nobody cancelled it, and its agent was not revoked
	Answers [][]byte // sealed: to its questions, oldest first
}

// SeeRun notes that a run goes on and adds lines to its progress. A run that is not under way is reason.NotFound.
func (tx *Tx) SeeRun(ctx context.Context, agent AgentID, id RunID, progress []string) (Seen, error) {
	if err := tx.use(ctx, agent); err != nil {
		return Seen{}, err
	}
	return one[Seen](ctx, tx.tx, `
		UPDATE run SET seen_at = @now, progress = (progress || @lines::text[])[greatest(1, cardinality(progress) + @more - @most + 1):]
		WHERE id = @id AND agent_id = @agent AND status = 'running'
		RETURNING NOT cancel AND EXISTS (SELECT FROM agent WHERE id = @agent AND revoked_at IS NULL) AS wanted, answers`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "now": tx.now, "lines": append([]string{}, progress...), "more": len(progress), "most": maxProgress})
}

// AskInRun keeps what a run's client has to answer, sealed, in place of what it had to before; nil is nothing.
func (tx *Tx) AskInRun(ctx context.Context, agent AgentID, id RunID, questions []byte) error {
	if err := tx.use(ctx, agent); err != nil {
		return err
	}
	n, err := exec(ctx, tx.tx, `UPDATE run SET questions = @questions, seen_at = @now WHERE id = @id AND agent_id = @agent AND status = 'running'`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "questions": questions, "now": tx.now})
	if err == nil && n == 0 {
		return reason.NotFound
	}
	return err
}

// maxAnswers bounds the answers that one run is given.
const maxAnswers = 100

// AnswerRun leaves answers, sealed, for a run that waits for some, wherever it runs. One that waits for none takes none.
func (tx *Tx) AnswerRun(ctx context.Context, agent AgentID, id RunID, answers []byte) error {
	if err := tx.use(ctx, agent); err != nil {
		return err
	}
	n, err := exec(ctx, tx.tx, `
		UPDATE run SET answers = answers || @answers::bytea
		WHERE id = @id AND agent_id = @agent AND status = 'running' AND questions IS NOT NULL AND cardinality(answers) < @most`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "answers": answers, "most": maxAnswers})
	if err != nil || n == 0 {
		return err
	}
	return tx.tell(ctx, bus.Run, id.String())
}

// EndRun keeps how a run ended. Of more ended ones than are kept the oldest go.
func (tx *Tx) EndRun(ctx context.Context, r Run) error {
	if err := tx.use(ctx, r.AgentID); err != nil {
		return err
	}
	_, err := exec(ctx, tx.tx, `
		UPDATE run SET status = @status, reason = @reason, result = @result, questions = NULL, answers = '{}', ended_at = @now, seen_at = @now, expires_at = @expires
		WHERE id = @id AND agent_id = @agent AND status = 'running'`,
		pgx.StrictNamedArgs{"id": r.ID, "agent": r.AgentID, "status": r.Status, "reason": r.Reason, "result": r.Result, "now": tx.now, "expires": tx.now.Add(RunLife)})
	if err != nil {
		return err
	}
	if err := tx.dropOldRuns(ctx, r.AgentID); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Run, r.ID.String())
}

// CancelRun asks for a run to end, wherever it runs, and reports whether it was under way.
func (tx *Tx) CancelRun(ctx context.Context, agent AgentID, id RunID) (running bool, err error) {
	if err := tx.use(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `UPDATE run SET cancel = true WHERE id = @id AND agent_id = @agent AND status = 'running'`,
		pgx.StrictNamedArgs{"id": id, "agent": agent})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.tell(ctx, bus.Run, id.String())
}

// Run is one run of an agent's.
func (tx *Tx) Run(ctx context.Context, agent AgentID, id RunID) (Run, error) {
	if err := tx.see(ctx, agent); err != nil {
		return Run{}, err
	}
	return one[Run](ctx, tx.tx, `SELECT `+runColumns+` FROM run WHERE id = @id AND agent_id = @agent`,
		pgx.StrictNamedArgs{"id": id, "agent": agent, "silent": tx.now.Add(-RunSilence)})
}

// Runs lists the last runs of an agent, newest first, without their results.
func (tx *Tx) Runs(ctx context.Context, agent AgentID, most int) ([]Run, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	list, err := all[Run](ctx, tx.tx, `SELECT `+runColumns+` FROM run WHERE agent_id = @agent ORDER BY started_at DESC, id DESC LIMIT @most`,
		pgx.StrictNamedArgs{"agent": agent, "most": most, "silent": tx.now.Add(-RunSilence)})
	for i := range list {
		list[i].Result, list[i].Questions, list[i].Answers = nil, nil, nil
	}
	return list, err
}
