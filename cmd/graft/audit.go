package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
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
	server.Retention `group:"Settings of the deployment:"`

	Known []string `placeholder:"NUMBER:HASH" help:"A checkpoint that was noted elsewhere, as the gateway logs one each day. It has to be there and the same."`
	JSON  bool     `help:"Print JSON."`
}

// Help says what an answer is worth.
func (c *auditVerifyCmd) Help() string {
	return "Whatever a signed checkpoint covers and is missing, altered, exchanged or put in later is named with its place, and checkpoints likewise. " +
		"It needs the master key, which opens the key that signs a checkpoint a minute. Three things it cannot see: a change to what no checkpoint " +
		"covers yet, an entry that somebody adds now with a time of the last days, and a log that was put back to an older checkpoint, or to " +
		"nothing, and gone on from there. The last it finds where checkpoints were noted elsewhere and are given with --known."
}

// Run verifies the log; where something is wrong it says each place and fails.
func (c *auditVerifyCmd) Run(ctx context.Context, p *program) error {
	known, err := knownCheckpoints(c.Known)
	if err != nil {
		return err
	}
	if err := check(c.Database, c.Retention.Check()); err != nil {
		return err
	}
	return c.on(ctx, p, func(db *database, org store.OrgID) error {
		k, err := readKeyring(ctx, c.Database, db)
		if err != nil {
			return err
		}
		report, err := audit.Verify(ctx, db.DB, signing.New(db.DB, k.keys), audit.Scope{Org: org, Keep: c.Keep(), Known: known})
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

// knownCheckpoints reads what was noted of checkpoints.
func knownCheckpoints(noted []string) (map[int64]string, error) {
	known := map[int64]string{}
	for _, text := range noted {
		number, hash, _ := strings.Cut(text, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if b, wrong := hex.DecodeString(hash); err != nil || wrong != nil || n < 1 || len(b) != sha256.Size {
			return nil, reason.Refuse(reason.InputInvalid, "--known must be the number of a checkpoint, a colon and its hash, not %q.", text)
		}
		known[n] = hash
	}
	return known, nil
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
