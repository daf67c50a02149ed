package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// An AgentView is what answering an agent's requests takes, read at once and kept by each replica until the bus says
// that it moved.
type AgentView struct {
	Promoted    []string // wire names, in order
	EndedBefore *time.Time
	Ended       []SessionID // ended since then
	Levels      map[SessionID]string
}

// AgentView reads an agent's view. An agent that does not live is reason.NotFound.
func (tx *Tx) AgentView(ctx context.Context, id AgentID) (AgentView, error) {
	row, err := one[struct {
		Promoted      []string
		EndedBefore   *time.Time
		Ended         []SessionID
		LevelSessions []SessionID
		Levels        []string
	}](ctx, tx.tx, `
		SELECT ARRAY(SELECT w.tool FROM working_set w WHERE w.agent_id = a.id ORDER BY w.tool COLLATE "C") AS promoted,
		       a.sessions_ended_before AS ended_before,
		       ARRAY(SELECT e.id FROM mcp_session_end e WHERE e.agent_id = a.id) AS ended,
		       ARRAY(SELECT l.id FROM mcp_session_level l WHERE l.agent_id = a.id ORDER BY l.id) AS level_sessions,
		       ARRAY(SELECT l.level FROM mcp_session_level l WHERE l.agent_id = a.id ORDER BY l.id) AS levels
		FROM agent a JOIN member m ON m.user_id = a.user_id
		WHERE a.id = @id AND a.revoked_at IS NULL AND m.removed_at IS NULL`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return AgentView{}, err
	}
	v := AgentView{Promoted: row.Promoted, EndedBefore: row.EndedBefore, Ended: row.Ended, Levels: make(map[SessionID]string, len(row.Levels))}
	for i, s := range row.LevelSessions {
		v.Levels[s] = row.Levels[i]
	}
	return v, nil
}
