package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// The kinds of message.
const (
	MessageAnswer = "answer"
	MessageCancel = "cancel"
)

// An MCPMessage is for the replica on which a request of a session waits.
type MCPMessage struct {
	Kind    string
	Request string // the id of the request it is for, as JSON
	Body    []byte // sealed; empty for a cancellation
}

// messageLife is how long a message waits to be taken.
const messageLife = 10 * time.Minute

// SendMessage leaves a message for a session of the caller's and tells the bus. What nobody took in time is deleted
// on the way.
func (tx *Tx) SendMessage(ctx context.Context, session SessionID, m MCPMessage) error {
	if _, err := exec(ctx, tx.tx, `DELETE FROM mcp_message WHERE created_at < @old`,
		pgx.StrictNamedArgs{"old": tx.now.Add(-messageLife)}); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO mcp_message (id, agent_id, session_id, kind, request, body, created_at)
		VALUES (@id, @agent, @session, @kind, @request, @body, @now)`,
		pgx.StrictNamedArgs{
			"id": NewID[SessionKind](tx.now), "agent": tx.caller.Agent, "session": session, "kind": m.Kind,
			"request": m.Request, "body": m.Body, "now": tx.now,
		}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Message, session.String())
}

// TakeMessages takes the messages for those requests of a session of the caller's; each is taken once.
func (tx *Tx) TakeMessages(ctx context.Context, session SessionID, requests []string) ([]MCPMessage, error) {
	return all[MCPMessage](ctx, tx.tx, `
		DELETE FROM mcp_message
		WHERE session_id = @session AND agent_id = @agent AND request = ANY(@requests) AND created_at >= @old
		RETURNING kind, request, body`,
		pgx.StrictNamedArgs{"session": session, "agent": tx.caller.Agent, "requests": requests, "old": tx.now.Add(-messageLife)})
}

// SetLevel keeps the level that a client wants its session's log messages at.
func (tx *Tx) SetLevel(ctx context.Context, session SessionID, level string) error {
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO mcp_session_level (id, agent_id, level, set_at) VALUES (@id, @agent, @level, @now)
		ON CONFLICT (org_id, id) DO UPDATE SET level = excluded.level, set_at = excluded.set_at`,
		pgx.StrictNamedArgs{"id": session, "agent": tx.caller.Agent, "level": level, "now": tx.now}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Agent, tx.caller.Agent.String())
}
