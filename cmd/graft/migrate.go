package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/server"
)

type migrateCmd struct {
	JSON bool `help:"Print JSON."`

	server.Database `group:"Settings of the deployment:"`
}

// Run migrates, also a private database that another process holds, and says where the schema stands then.
func (c *migrateCmd) Run(ctx context.Context, p *program) (err error) {
	if err := check(c.Database, c.Check()); err != nil {
		return err
	}
	db, err := joinDatabase(ctx, c.Database, p.quiet(), opening{founds: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	// Locks of a session do not survive a pooler.
	if err := migrations.Up(ctx, cmp.Or(c.DirectURL, db.url), p.logger(c.Log)); err != nil {
		return err
	}
	at, err := db.System().SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"schema": at})
	}
	_, err = fmt.Fprintf(p.stdout, "schema %d\n", at)
	return err
}
