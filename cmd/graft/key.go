package main

import (
	"context"
	"fmt"
	"time"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

type keyNewCmd struct{}

// Run prints a master key, alone on stdout.
func (*keyNewCmd) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, vault.GenerateMasterKey())
	return err
}

type keyRotateTokensCmd struct {
	JSON bool `help:"Print JSON."`

	server.Database `group:"Settings of the deployment:"`
}

// Run makes the key that access tokens are signed with next. A gateway lets it take its turn once everybody has heard of
// it; tokens that the last one signed are good until they run out.
func (c *keyRotateTokensCmd) Run(ctx context.Context, p *program) error {
	return p.with(ctx, c.Database, opening{migrates: true}, func(db *database) error {
		master, err := masterKeys(ctx, c.Database, db)
		if err != nil {
			return err
		}
		kid, made, err := signing.New(db.DB, master).Tokens(db.Now).Rotate(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.print(map[string]any{"kid": kid, "made": made})
		}
		text := "%s was made. It signs access tokens in %d minutes, and the last one is believed for two hours more.\n"
		if !made {
			text = "%s was made before, and signs access tokens %d minutes after that.\n"
		}
		_, err = fmt.Fprintf(p.stdout, text, kid, signing.Known/time.Minute)
		return err
	})
}
