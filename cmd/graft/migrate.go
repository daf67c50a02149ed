package main

import (
	"context"
	"fmt"

	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/server"
)

type migrateCmd struct{ server.Database }

// Run migrates. A private database is migrated whenever it is opened, so there it only says where it stands.
func (c *migrateCmd) Run(ctx context.Context, p *program) error {
	if c.DatabaseURL != "" {
		if err := migrations.Up(ctx, c.DatabaseURL, p.logger(c.Log)); err != nil {
			return err
		}
	} else if err := p.with(ctx, c.Database, func(*database) error { return nil }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "schema %d\n", migrations.Latest())
	return err
}
