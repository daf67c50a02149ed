package main

import (
	"context"
	"fmt"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

// auditScope is whose log a command is on.
type auditScope struct {
	Org string `help:"Organisation; all of them when absent."`

	server.Database `group:"Settings of the deployment:"`
}

// on runs fn for the organisation that was named, or with the zero id for all.
func (c *auditScope) on(ctx context.Context, p *program, fn func(*database, store.OrgID) error) error {
	return p.with(ctx, c.Database, opening{migrates: true}, func(db *database) error {
		if c.Org == "" {
			return fn(db, store.OrgID{})
		}
		o, err := db.System().OrganisationByName(ctx, c.Org)
		if err != nil {
			return err
		}
		return fn(db, o.ID)
	})
}

type auditVerifyCmd struct {
	auditScope
	JSON bool `help:"Print JSON."`
}

// Run verifies the log; where something is wrong it says each place and fails.
func (c *auditVerifyCmd) Run(ctx context.Context, p *program) error {
	return c.on(ctx, p, func(db *database, org store.OrgID) error {
		k, err := readKeyring(ctx, c.Database, db)
		if err != nil {
			return err
		}
		report, err := audit.Verify(ctx, db.DB, signing.New(db.DB, k.keys), org)
		if err != nil {
			return err
		}
		if c.JSON {
			err = p.print(report)
		} else {
			_, err = fmt.Fprintln(p.stdout, report)
		}
		if err == nil && len(report.Faults) > 0 {
			err = errSilent
		}
		return err
	})
}

type auditExportCmd struct {
	auditScope
	JSON bool `help:"Print JSON, which it does in any case: a line for each entry."`
}

// Run writes the log to stdout.
func (c *auditExportCmd) Run(ctx context.Context, p *program) error {
	return c.on(ctx, p, func(db *database, org store.OrgID) error {
		return audit.Export(ctx, db.DB, org, p.stdout)
	})
}
