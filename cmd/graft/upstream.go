package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/server"
)

// reach is what every command is told that speaks to an organisation's upstreams, or seals for it.
type reach struct {
	tenant
	server.Egress `group:"Settings of the deployment:"`
}

// A house is an organisation as the operator acts on it.
type house struct {
	db        *database
	caller    store.Caller
	upstreams *upstream.Source
}

func (r *reach) with(ctx context.Context, p *program, act func(house) error) error {
	if err := check(r.Database, r.Egress.Check()); err != nil {
		return err
	}
	return p.with(ctx, r.Database, opening{migrates: true}, func(db *database) error {
		o, err := db.System().OrganisationByName(ctx, r.Org)
		if err != nil {
			return err
		}
		master, err := masterKeys(ctx, r.Database, db)
		if err != nil {
			return err
		}
		keys, err := server.OpenKeyring(db.DB, master)
		if err != nil {
			return err
		}
		client, err := r.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		upstreams, err := upstream.NewSource(upstream.Config{DB: db.DB, Keys: keys, Client: client, Version: p.version, Log: p.quiet()})
		if err != nil {
			return err
		}
		return act(house{db, store.Caller{Org: o.ID, Role: store.RoleOwner, Via: store.ViaCLI}, upstreams})
	})
}

// upstreams lists the live ones, or the one of that name.
func (h house) list(ctx context.Context, name string) (list []store.Upstream, err error) {
	err = h.db.As(ctx, h.caller, func(tx *store.Tx) error {
		if name != "" {
			u, err := upstreamByName(ctx, tx, name)
			list = []store.Upstream{u}
			return err
		}
		all, err := tx.Upstreams(ctx)
		for _, u := range all {
			if u.RevokedAt == nil {
				list = append(list, u)
			}
		}
		return err
	})
	return list, err
}

func upstreamByName(ctx context.Context, tx *store.Tx, name string) (store.Upstream, error) {
	u, err := tx.UpstreamByName(ctx, name)
	if store.IsAbsent(err) {
		err = fmt.Errorf("there is no upstream called %q", name)
	}
	return u, err
}

type upstreamAddCmd struct {
	Name           string        `required:"" help:"Name: what its tools' names begin with. Small letters, digits and hyphens, at most 24."`
	URL            string        `name:"url" required:"" help:"Address of its streamable HTTP endpoint."`
	Header         []string      `sep:"none" placeholder:"NAME=VALUE" help:"Header to send with every request, any number of times. $${NAME} in the value is a secret: graft secret set --name NAME"`
	TrustHints     bool          `help:"Believe what it says of its tools' effects. Else each of its tools counts as a destructive write."`
	ListAll        *bool         `negatable:"" help:"Show agents all of its tools. When absent, yes where it has at most 20."`
	Include        []string      `placeholder:"TOOL" help:"Take these of its tools alone, by its own names for them."`
	Exclude        []string      `placeholder:"TOOL" help:"Leave these of its tools out; wins over --include."`
	ConnectTimeout time.Duration `default:"10s" help:"How long connecting may take."`
	CallTimeout    time.Duration `default:"60s" help:"How long a call may take."`
	reach
}

// Run adds the upstream and lists it once. One that cannot be listed is kept, and said to be wrong.
func (c *upstreamAddCmd) Run(ctx context.Context, p *program) error {
	in := upstream.Addition{Name: c.Name, URL: c.URL, Settings: store.UpstreamSettings{
		TrustHints: c.TrustHints, IncludeTools: c.Include, ExcludeTools: c.Exclude, ListAll: c.ListAll,
		ConnectSeconds: seconds(c.ConnectTimeout), CallSeconds: seconds(c.CallTimeout),
	}}
	for _, header := range c.Header {
		name, value, ok := strings.Cut(header, "=")
		if !ok {
			return reason.Refuse(reason.InputInvalid, "A --header is NAME=VALUE, such as Authorization='Bearer ${GITHUB_TOKEN}'.")
		}
		if credential.MatchString(name) && !strings.Contains(value, "${") {
			return reason.Refuse(reason.InputInvalid, `%s looks like a credential. What stands in a command can be read by every user of this machine, and stays in the shell's history.
Save it as a secret, and name that:  printf %%s "$TOKEN" | graft secret set --name TOKEN
                                     graft upstream add … --header '%s=${TOKEN}', or '%s=Bearer ${TOKEN}'`, name, name, name)
		}
		in.Headers = append(in.Headers, upstream.Header{Name: name, Value: value})
	}
	return c.with(ctx, p, func(h house) error {
		u, err := h.upstreams.Add(ctx, h.caller, in)
		if err != nil {
			return err
		}
		if err := h.db.changed(ctx, p, h.caller, "Added upstream %s", u.Name); err != nil {
			return err
		}
		if u, err = h.upstreams.Try(ctx, h.caller, u.ID); err != nil {
			return err
		}
		if c.JSON {
			return p.print(describe(u))
		}
		_, _ = fmt.Fprintf(p.stdout, "%s is added, with %s.\n", u.Name, count(u.Tools, "tool", "tools"))
		p.remark(u)
		return nil
	})
}

// credential is the name of a header whose value is none to type.
var credential = regexp.MustCompile(`(?i)auth|token|secret|cookie|passw|credential|session|\bkey\b|api-?key`)

// seconds rounds up; what is out of bounds is refused by who keeps it.
func seconds(d time.Duration) int32 {
	return int32(min(max((d+time.Second-1)/time.Second, -1), 1<<20)) //nolint:gosec // bounded on this line
}

// remark says what of an upstream wants a person.
func (p *program) remark(u store.Upstream) {
	if u.LastError != "" {
		p.say("%s", u.LastError)
	}
	if u.LeftOut > 0 {
		p.say("%s left out; graft mcp tools %s says why.", count(u.LeftOut, "tool is", "tools are"), u.Name)
	}
}

func describe(u store.Upstream) map[string]any {
	return map[string]any{
		"id": u.ID, "name": u.Name, "url": u.URL, "transport": "http", "target": u.URL, "connection": u.Connection, "trustHints": u.TrustHints, "listAll": u.ListAll,
		"includeTools": u.IncludeTools, "excludeTools": u.ExcludeTools, "headers": u.Headers, "unsetSecrets": u.Unset, "state": u.State, "tools": u.Tools,
		"leftOut": u.LeftOut, "lastListedAt": u.LastListedAt, "reason": u.LastErrorWord, "error": u.LastError, "createdAt": u.CreatedAt, "revokedAt": u.RevokedAt,
	}
}

type upstreamListCmd struct{ tenant }

// Run lists live and revoked upstreams.
func (c *upstreamListCmd) Run(ctx context.Context, p *program) error {
	var list []store.Upstream
	err := c.as(ctx, p, func(tx *store.Tx) (err error) {
		list, err = tx.Upstreams(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		described := make([]map[string]any, len(list))
		for i, u := range list {
			described[i] = describe(u)
		}
		return p.print(described)
	}
	return p.table(list)
}

func (p *program) table(list []store.Upstream) error {
	if len(list) == 0 {
		p.say("No upstreams yet.")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tURL\tTOOLS\tLISTED\tSTATE")
	for _, u := range list {
		state := u.State
		if u.LastError != "" {
			state += ": " + u.LastError
		}
		if u.RevokedAt != nil {
			state = "revoked " + u.RevokedAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", u.Name, u.URL, u.Tools, when(u.LastListedAt), state)
	}
	return w.Flush()
}

type upstreamRmCmd struct {
	Name string `required:"" help:"Name of the upstream."`
	tenant
}

// Run revokes the live upstream of that name.
func (c *upstreamRmCmd) Run(ctx context.Context, p *program) error {
	var u store.Upstream
	err := c.act(ctx, p, func(tx *store.Tx) (did string, err error) {
		if u, err = upstreamByName(ctx, tx, c.Name); err != nil {
			return "", err
		}
		return "Removed upstream " + u.Name, tx.RevokeUpstream(ctx, u.ID)
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"id": u.ID, "name": u.Name, "revoked": true})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is revoked, and its headers are destroyed.\n", u.Name)
	return err
}

type upstreamOverrideCmd struct {
	Name        string `required:"" help:"Name of the upstream."`
	Tool        string `required:"" help:"The upstream's own name for the tool."`
	Description string `help:"What agents read of the tool from now on. When absent, the tool's own again."`
	tenant
}

// Run sets, or takes away, a description.
func (c *upstreamOverrideCmd) Run(ctx context.Context, p *program) error {
	err := c.act(ctx, p, func(tx *store.Tx) (did string, err error) {
		u, err := upstreamByName(ctx, tx, c.Name)
		if err != nil {
			return "", err
		}
		err = tx.DescribeUpstreamTool(ctx, u.ID, c.Tool, c.Description)
		if store.IsAbsent(err) {
			return "", fmt.Errorf("%s has no tool that it calls %q; graft mcp tools %s lists them", c.Name, c.Tool, c.Name)
		}
		return fmt.Sprintf("Described tool %s of upstream %s", c.Tool, c.Name), err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"name": c.Name, "tool": c.Tool, "description": c.Description})
	}
	said := "is described as you say"
	if c.Description == "" {
		said = "has its own description again"
	}
	_, err = fmt.Fprintf(p.stdout, "%s of %s %s.\n", c.Tool, c.Name, said)
	return err
}
