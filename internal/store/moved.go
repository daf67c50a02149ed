package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
)

// tell sends an event with the transaction: every replica hears it when, and only if, this commits. It is for what
// people and agents change now and then; nothing on the way of a call may use it, because a NOTIFY serialises commits.
func (tx *Tx) tell(ctx context.Context, topic bus.Topic, id string) error {
	return tell(ctx, tx.tx, topic, id)
}

func tell(ctx context.Context, tx pgx.Tx, topic bus.Topic, id string) error {
	_, err := exec(ctx, tx, `SELECT pg_notify(@channel, @payload)`,
		pgx.StrictNamedArgs{"channel": bus.Channel, "payload": bus.Event{Topic: topic, ID: id}.Payload()})
	return err
}
