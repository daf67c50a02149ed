package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
)

// changed writes down in the audit log what the operator changed, in one sentence that holds no secret, and returns once
// that is durable.
func (d *database) changed(ctx context.Context, p *program, c store.Caller, format string, args ...any) error {
	w := audit.New(audit.Config{DB: d.DB, Log: p.quiet()})
	running, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { w.Run(running) })
	defer writing.Wait()
	defer stop()
	now := d.Now()
	err := w.Commit(ctx, audit.Entry{
		Org: c.Org, Run: store.NewID[store.RunKind](now), Kind: audit.Change, At: now, Via: c.Via, Outcome: audit.OK, Line: fmt.Sprintf(format, args...),
	})
	if err != nil {
		return fmt.Errorf("it is done, and not in the audit log: %w", err)
	}
	return nil
}

// act is as for what changes something: fn says what it did.
func (t *tenant) act(ctx context.Context, p *program, fn func(*store.Tx) (did string, err error)) error {
	return t.of(ctx, p, func(db *database, c store.Caller) error {
		var did string
		err := db.As(ctx, c, func(tx *store.Tx) (err error) {
			did, err = fn(tx)
			return err
		})
		if err != nil {
			return err
		}
		return db.changed(ctx, p, c, "%s", did)
	})
}
