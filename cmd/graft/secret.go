package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// maxSecret bounds what is read of a secret.
const maxSecret = 64 << 10

type secretSetCmd struct {
	Name string `required:"" help:"Name that stands for it in an upstream's headers, as in $${GITHUB_TOKEN}: capital letters, digits and underscores."`
	reach
}

// Run reads the secret from stdin. An editor's marks around it, a byte order mark and line ends, are not part of it.
func (c *secretSetCmd) Run(ctx context.Context, p *program) error {
	value, err := io.ReadAll(io.LimitReader(p.stdin, maxSecret+1))
	if err != nil {
		return fmt.Errorf("read the secret from stdin: %w", err)
	}
	defer clear(value)
	if len(value) > maxSecret {
		return fmt.Errorf("the secret is longer than %d bytes", maxSecret)
	}
	trimmed := bytes.TrimRight(bytes.TrimPrefix(value, []byte("\ufeff")), "\r\n")
	return c.with(ctx, p, func(h house) error {
		made, err := h.upstreams.SetSecret(ctx, h.caller, c.Name, vault.NewSecret(trimmed))
		if err != nil {
			return err
		}
		if err := h.db.changed(ctx, p, h.caller, "Set secret %s", c.Name); err != nil {
			return err
		}
		if c.JSON {
			return p.print(map[string]any{"name": c.Name, "new": made})
		}
		_, err = fmt.Fprintf(p.stdout, "%s is set.\n", c.Name)
		return err
	})
}

type secretListCmd struct{ tenant }

// Run lists secrets, without their values.
func (c *secretListCmd) Run(ctx context.Context, p *program) error {
	var secrets []store.Secret
	err := c.as(ctx, p, func(tx *store.Tx) (err error) {
		secrets, err = tx.Secrets(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		list := make([]map[string]any, len(secrets))
		for i, s := range secrets {
			list[i] = map[string]any{"name": s.Name, "setAt": s.SetAt, "setBy": s.SetBy, "usedBy": s.UsedBy}
		}
		return p.print(list)
	}
	if len(secrets) == 0 {
		p.say("No secrets yet.")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tSET\tBY\tUSED BY")
	for _, s := range secrets {
		by := s.SetBy
		if by == "" {
			by = "operator"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.SetAt.UTC().Format(time.RFC3339), by, strings.Join(s.UsedBy, ", "))
	}
	return w.Flush()
}

type secretRmCmd struct {
	Name string `required:"" help:"Name of the secret."`
	tenant
}

// Run destroys a secret.
func (c *secretRmCmd) Run(ctx context.Context, p *program) error {
	err := c.act(ctx, p, func(tx *store.Tx) (string, error) { return "Removed secret " + c.Name, tx.RemoveSecret(ctx, c.Name) })
	if store.IsAbsent(err) {
		return fmt.Errorf("there is no secret called %q", c.Name)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"name": c.Name, "removed": true})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is destroyed.\n", c.Name)
	return err
}
