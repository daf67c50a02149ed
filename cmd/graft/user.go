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

// linking is what every command that prints a sign-in link is told.
type linking struct {
	JSON bool `help:"Print JSON."`

	server.Database `group:"Settings of the deployment:"`
	server.Address  `group:"Settings of the deployment:"`
}

func (c *linking) check() error { return check(c.Database, c.Address.Check(), c.Database.Check()) }

type userAddCmd struct {
	Email string `required:"" help:"Email address; the account's name."`
	Org   string `help:"Organisation. Made if it is missing; when absent, the only one there is, or one called after the email's domain."`
	Role  string `help:"Role in the organisation: owner, admin, member or auditor; member when absent. An organisation's first user is its owner, and nobody's role is changed."`
	linking
}

// Run makes the account and its membership where they are missing, and a fresh link.
func (c *userAddCmd) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
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
		link, err := c.newLink(ctx, db, user)
		if err != nil {
			return err
		}
		email := store.FoldEmail(c.Email)
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

// newLink makes a one-time sign-in link, as it is to be opened.
func (c *linking) newLink(ctx context.Context, db *database, user store.UserID) (string, error) {
	token, err := db.System().NewSignInLink(ctx, user, linkLife)
	return c.Public() + "/setup/" + token, err
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

type userLinkCmd struct {
	Email string `required:"" help:"Email address of the account."`
	linking
}

// Run makes a fresh link for an account that is there, and nothing else.
func (c *userLinkCmd) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	email := store.FoldEmail(c.Email)
	return p.with(ctx, c.Database, opening{migrates: true}, func(db *database) error {
		user, err := db.System().UserByEmail(ctx, email)
		if store.IsAbsent(err) {
			return fmt.Errorf("%s: nobody has this account. To make it, run graft user add", email)
		}
		if err != nil {
			return err
		}
		orgs, err := db.System().Memberships(ctx, user.ID)
		if err != nil {
			return err
		}
		if len(orgs) == 0 {
			return fmt.Errorf("%s is in no organisation, so a link would lead nowhere. An invite brings them back", email)
		}
		// It is a way into each of them.
		for _, o := range orgs {
			caller := store.Caller{Org: o.Org, Role: store.RoleOwner, Via: store.ViaCLI}
			if err := db.changed(ctx, p, caller, "Made a sign-in link for %s, who is %s", user.ID, o.Role); err != nil {
				return err
			}
		}
		link, err := c.newLink(ctx, db, user.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.print(map[string]any{"email": email, "user": user.ID, "link": link, "expiresAt": db.Now().Add(linkLife).Format(time.RFC3339)})
		}
		p.say("The link of %s works once, for three days. Using it sets a new password and ends their sessions:", email)
		_, err = fmt.Fprintln(p.stdout, link)
		return err
	})
}

// memberNamed is a member of the organisation by their address.
func memberNamed(ctx context.Context, tx *store.Tx, email string) (store.Member, error) {
	user, err := tx.MemberByEmail(ctx, email)
	if store.IsAbsent(err) {
		return store.Member{}, fmt.Errorf("%s is not a member of the organisation", store.FoldEmail(email))
	}
	if err != nil {
		return store.Member{}, err
	}
	return tx.Member(ctx, user)
}

type userRoleCmd struct {
	Email string `required:"" help:"Email address of the member."`
	Role  string `required:"" help:"Their new role: owner, admin, member or auditor."`
	tenant
}

// Run gives a member another role.
func (c *userRoleCmd) Run(ctx context.Context, p *program) error {
	if _, err := store.ParseRole(c.Role); err != nil {
		return err
	}
	var m store.Member
	err := c.of(ctx, p, func(db *database, caller store.Caller) error {
		err := db.As(ctx, caller, func(tx *store.Tx) (err error) {
			if m, err = memberNamed(ctx, tx, c.Email); err != nil {
				return err
			}
			m.Role, err = tx.SetRole(ctx, m.UserID, store.Role(c.Role))
			return err
		})
		if err != nil || string(m.Role) == c.Role {
			return err
		}
		return db.changed(ctx, p, caller, "Made %s %s, who was %s", m.Email, c.Role, m.Role)
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"email": m.Email, "user": m.UserID, "role": c.Role, "was": m.Role})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is %s now, and was %s.\n", m.Email, c.Role, m.Role)
	return err
}

type userRemoveCmd struct {
	Email string `required:"" help:"Email address of the member."`
	tenant
}

// Run removes a member, and says what ended with them.
func (c *userRemoveCmd) Run(ctx context.Context, p *program) error {
	var m store.Member
	var held store.Holdings
	err := c.act(ctx, p, func(tx *store.Tx) (did string, err error) {
		if m, err = memberNamed(ctx, tx, c.Email); err != nil {
			return "", err
		}
		if held, err = tx.Holdings(ctx, m.UserID); err != nil {
			return "", err
		}
		return fmt.Sprintf("Removed %s, who was %s", m.Email, m.Role), tx.RemoveMember(ctx, m.UserID)
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print(map[string]any{"email": m.Email, "user": m.UserID, "removed": true, "agents": held.Agents, "grants": held.Grants, "invites": held.Invites})
	}
	_, err = fmt.Fprintf(p.stdout, "%s is removed. Ended: %s, %s, %s.\n", m.Email,
		count(held.Agents, "agent", "agents"), count(held.Grants, "connected app", "connected apps"), count(held.Invites, "open invite", "open invites"))
	return err
}
