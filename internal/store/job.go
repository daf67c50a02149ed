package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
)

// A JobInserter puts a job of an organisation into the queue, in the transaction it is given.
type JobInserter func(ctx context.Context, tx pgx.Tx, org OrgID, name string, body json.RawMessage) error

// InsertJobsWith says how jobs are put into the queue. It is called before the first transaction that does.
func (db *DB) InsertJobsWith(insert JobInserter) { db.insertJob = insert }

// InsertJob puts a job into the queue, which is worked if and only if the transaction commits. The name is that of a
// job.Handler; body is encoded as JSON.
func (tx *Tx) InsertJob(ctx context.Context, name string, body any) error {
	if tx.insertJob == nil {
		return errors.New("store: nobody said how jobs are inserted")
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return tx.insertJob(ctx, tx.tx, tx.caller.Org, name, b)
}
