package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

// linkLife is how long a one-time sign-in link works.
const linkLife = 72 * time.Hour

type userAddCmd struct {
	Email string `required:"" help:"Email address; the account's name."`
	Org   string `help:"Organisation. Made if it is missing; when absent, the only one there is, or one called after the email's domain."`
	Role  string `help:"Role in the organisation: owner, admin, member or auditor; member when absent. An organisation's first user is its owner, and nobody's role is changed."`
	JSON  bool   `help:"Print JSON."`

	server.Database `group:"Settings of the deployment:"`
	server.Address  `group:"Settings of the deployment:"`
}

// Run makes the account and its membership where they are missing, and a fresh link.
func (c *userAddCmd) Run(ctx context.Context, p *program) error {
	if err := check(c.Database, c.Address.Check(), c.Database.Check()); err != nil {
		return err
	}
	if err := store.CheckEmail(store.FoldEmail(c.Email)); err != nil {
		return err
	}
	if c.Role != "" {
		if _, err := store.ParseRole(c.Role); err != nil {
			return err
		}
	}
	return p.with(ctx, c.Database, opening{founds: true, migrates: true}, func(db *database) error {
		org, err := orgToJoin(ctx, db, c.Org, c.Email)
		if err != nil {
			return err
		}
		e, user, err := db.System().Enrol(ctx, org, c.Email, store.Role(c.Role))
		if err != nil {
			return err
		}
		caller := store.Caller{Org: e.ID, Role: store.RoleOwner, Via: store.ViaCLI}
		if err := db.changed(ctx, p, caller, "Made a sign-in link for %s, who is %s", user, e.Role); err != nil {
			return err
		}
		token, err := db.System().NewSignInLink(ctx, user, linkLife)
		if err != nil {
			return err
		}
		email, link := store.FoldEmail(c.Email), c.Public()+"/setup/"+token
		if c.JSON {
			return p.print(map[string]any{
				"email": email, "user": user, "organisation": e.Name, "organisationMade": e.Founded, "role": e.Role,
				"link": link, "expiresAt": db.Now().Add(linkLife).Format(time.RFC3339),
			})
		}
		if e.Founded {
			p.say("Made the organisation %s; %s is its %s. The link works once, for three days:", e.Name, email, e.Role)
		} else {
			p.say("%s is in %s, as %s. The link works once, for three days:", email, e.Name, e.Role)
		}
		_, err = fmt.Fprintln(p.stdout, link)
		return err
	})
}

// orgToJoin is the organisation named, else the only one, else, on an empty database, one to be made.
func orgToJoin(ctx context.Context, db *database, name, email string) (string, error) {
	if name != "" {
		return name, nil
	}
	o, err := db.System().OrganisationByName(ctx, "")
	if store.IsAbsent(err) {
		return orgOf(email), nil
	}
	return o.Name, err
}

// orgOf names the first organisation after the email's domain.
func orgOf(email string) string {
	_, domain, ok := strings.Cut(store.FoldEmail(email), "@")
	if !ok || domain == "" {
		return "Graft"
	}
	return domain
}
