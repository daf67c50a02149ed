package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

// linkLife is how long a one-time sign-in link works.
const linkLife = 72 * time.Hour

type userAddCmd struct {
	server.Database
	server.Address
	Email string `required:"" help:"Email address; the account's name."`
	Org   string `help:"Organisation. Made if it is missing; when absent, the only one there is, or one called after the email's domain."`
	Role  string `default:"member" enum:"owner,admin,member,auditor" help:"Role in the organisation: ${enum}. Its first user is owner."`
	JSON  bool   `help:"Print JSON."`
}

// Run makes the account and its membership where they are missing, and always a fresh link.
func (c *userAddCmd) Run(ctx context.Context, p *program) error {
	role, err := store.ParseRole(c.Role)
	if err != nil {
		return err
	}
	return p.with(ctx, c.Database, opening{founds: true, migrates: true}, func(db *database) error {
		org, err := orgToJoin(ctx, db, c.Org, c.Email)
		if err != nil {
			return err
		}
		o, user, err := db.System().Enrol(ctx, org, c.Email, role)
		if err != nil {
			return err
		}
		token, err := db.System().NewSignInLink(ctx, user, linkLife)
		if err != nil {
			return err
		}
		link := c.Public() + "/setup/" + token
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(map[string]any{
				"email": store.FoldEmail(c.Email), "user": user, "organisation": o.Name, "link": link,
				"expiresAt": db.Now().Add(linkLife).Format(time.RFC3339),
			})
		}
		_, _ = fmt.Fprintf(p.stderr, "%s in %s. The link works once, for three days:\n", store.FoldEmail(c.Email), o.Name)
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
