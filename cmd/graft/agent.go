package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

// tenant is what every command on one organisation is told.
type tenant struct {
	Org  string `help:"Organisation; needed where there are several."`
	JSON bool   `help:"Print JSON."`

	server.Database `group:"Settings of the deployment:"`
}

// as runs fn for the organisation, as the operator.
func (t *tenant) as(ctx context.Context, p *program, fn func(*store.Tx) error) error {
	return t.of(ctx, p, func(db *database, c store.Caller) error { return db.As(ctx, c, fn) })
}

// of opens the database for the organisation.
func (t *tenant) of(ctx context.Context, p *program, act func(*database, store.Caller) error) error {
	return p.with(ctx, t.Database, opening{migrates: true}, func(db *database) error {
		o, err := db.System().OrganisationByName(ctx, t.Org)
		if err != nil {
			return err
		}
		return act(db, store.Caller{Org: o.ID, Role: store.RoleOwner, Via: store.ViaCLI})
	})
}

type agentAddCmd struct {
	Name string `required:"" help:"Name of the agent."`
	User string `help:"Email of the member it is made for. When absent, the organisation's first owner."`

	Passthrough string `placeholder:"UPSTREAM" help:"Bind it to one upstream: its list of tools is that upstream's, under its own names."`
	tenant
}

// Run makes the agent.
func (c *agentAddCmd) Run(ctx context.Context, p *program) error {
	var agent store.Agent
	var token string
	err := c.act(ctx, p, func(tx *store.Tx) (did string, err error) {
		agent, token, err = c.make(ctx, tx)
		return "Made agent " + agent.Name, err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"id": agent.ID, "name": agent.Name, "token": token, "passthrough": c.Passthrough})
	}
	p.say("%s is made. Its token is shown this once:", agent.Name)
	_, err = fmt.Fprintln(p.stdout, token)
	return err
}

func (c *agentAddCmd) make(ctx context.Context, tx *store.Tx) (agent store.Agent, token string, err error) {
	var user store.UserID
	if c.User == "" {
		user, err = tx.FirstOwner(ctx)
	} else if user, err = tx.MemberByEmail(ctx, c.User); store.IsAbsent(err) {
		return agent, "", fmt.Errorf("%s is not a member of the organisation", store.FoldEmail(c.User))
	}
	if err != nil {
		return agent, "", err
	}
	if agent, token, err = tx.CreateAgent(ctx, c.Name, user); err != nil || c.Passthrough == "" {
		return agent, token, err
	}
	u, err := upstreamByName(ctx, tx, c.Passthrough)
	if err != nil {
		return agent, "", err
	}
	return agent, token, tx.SetPassthrough(ctx, agent.ID, u.ID)
}

type agentListCmd struct{ tenant }

// Run lists live and revoked agents.
func (c *agentListCmd) Run(ctx context.Context, p *program) error {
	var agents []store.Agent
	err := c.as(ctx, p, func(tx *store.Tx) (err error) {
		agents, err = tx.Agents(ctx, store.AgentFilter{})
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		list := make([]map[string]any, len(agents))
		for i, a := range agents {
			list[i] = map[string]any{
				"id": a.ID, "name": a.Name, "user": a.UserName, "passthrough": a.Passthrough, "createdAt": a.CreatedAt, "lastUsedAt": a.LastUsedAt, "revokedAt": a.RevokedAt,
			}
		}
		return p.print(list)
	}
	if len(agents) == 0 {
		p.say("No agents yet.")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tID\tMADE BY\tLAST USED\tSTATE")
	for _, a := range agents {
		state := "live"
		if a.RevokedAt != nil {
			state = "revoked " + a.RevokedAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.Name, a.ID, a.UserName, when(a.LastUsedAt), state)
	}
	return w.Flush()
}

func when(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

type agentRevokeCmd struct {
	Name string `required:"" help:"Name of the agent."`
	tenant
}

// Run revokes the live agent of that name.
func (c *agentRevokeCmd) Run(ctx context.Context, p *program) error {
	var agent store.Agent
	err := c.act(ctx, p, func(tx *store.Tx) (did string, err error) {
		if agent, err = tx.AgentByName(ctx, c.Name); store.IsAbsent(err) {
			return "", fmt.Errorf("there is no live agent called %q", c.Name)
		}
		if err != nil {
			return "", err
		}
		return "Revoked agent " + agent.Name, tx.RevokeAgent(ctx, agent.ID)
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"id": agent.ID, "name": agent.Name, "revoked": true})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is revoked.\n", agent.Name)
	return err
}
