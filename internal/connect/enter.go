package connect

import (
	"context"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// place is what a connection's credential is sealed to.
func place(org store.OrgID, id store.ConnectionID) vault.Place {
	return vault.Place{Org: org.String(), Table: "connection", Row: id.String(), Column: "credential"}
}

// An Entry is what a person makes of a proposal.
type Entry struct {
	Proposal
	Shared bool
	Fields map[string]string // what they typed, by the name of the scheme's field
	Ask    store.AskID       // that it answers; zero: none
}

// Make makes a connection, with its credential where its scheme needs one, and answers the ask for it, all or nothing. An error about
// a field is a *reason.Refusal that names it, and repeats nothing of what was typed.
func (d *Desk) Make(ctx context.Context, c store.Caller, e Entry) (made store.Connection, err error) {
	p, err := e.Check()
	if err != nil {
		return store.Connection{}, err
	}
	seal, err := d.seal(ctx, c, p.Scheme, e.Fields)
	if err != nil {
		return store.Connection{}, err
	}
	in := store.NewConnection{
		Vendor: p.Vendor, DisplayName: p.DisplayName, Shared: e.Shared, Scheme: p.Scheme, Config: p.Config, Hosts: p.all(), DocsURL: p.DocsURL, Seal: seal,
	}
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) error {
		if !e.Ask.IsZero() {
			a, err := tx.Ask(ctx, e.Ask)
			if err != nil {
				return err
			}
			agent, err := tx.Agent(ctx, a.AgentID)
			if err != nil {
				return err
			}
			in.Shared = in.Shared || agent.UserID != c.User // a private one would not serve who asked
		}
		if made, err = tx.CreateConnection(ctx, in); err != nil || e.Ask.IsZero() {
			return err
		}
		_, err = tx.FulfilAsk(ctx, e.Ask, made.ID)
		return err
	})
	return made, err
}

// Enter replaces the credential of a connection by what a person typed, and answers the ask for it, where there is one.
func (d *Desk) Enter(ctx context.Context, c store.Caller, id store.ConnectionID, fields map[string]string, ask store.AskID) (entered store.Connection, err error) {
	var before store.Connection
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		before, err = tx.Connection(ctx, id)
		return err
	})
	if err != nil {
		return store.Connection{}, err
	}
	seal, err := d.seal(ctx, c, before.Scheme, fields)
	if err != nil {
		return store.Connection{}, err
	}
	if seal == nil {
		seal = func(store.ConnectionID) ([]byte, error) { return nil, nil }
	}
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) error {
		if entered, err = tx.SetCredential(ctx, id, seal, nil); err != nil || ask.IsZero() {
			return err
		}
		_, err = tx.FulfilAsk(ctx, ask, id)
		return err
	})
	return entered, err
}

// seal makes what was typed ready to be kept; nil where the scheme needs nothing.
func (d *Desk) seal(ctx context.Context, c store.Caller, name string, fields map[string]string) (func(store.ConnectionID) ([]byte, error), error) {
	scheme, err := egress.SchemeNamed(name)
	if err != nil {
		return nil, err
	}
	if len(scheme.Secrets) == 0 {
		return nil, nil
	}
	secret, err := scheme.NewCredential(fields)
	if err != nil {
		return nil, err
	}
	key, err := d.c.Keys.Key(ctx, c.Org.String())
	if err != nil {
		return nil, err
	}
	return func(id store.ConnectionID) ([]byte, error) { return key.Seal(place(c.Org, id), secret) }, nil
}

// Allow lets the agent of a scope ask use its connection.
func (d *Desk) Allow(ctx context.Context, c store.Caller, id store.AskID) (store.Ask, error) {
	var a store.Ask
	err := d.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		if a, err = tx.Ask(ctx, id); err != nil {
			return err
		}
		if a.Kind != store.AskScope {
			return reason.Refuse(reason.InputInvalid, "This ask is answered with a credential.")
		}
		a, err = tx.FulfilAsk(ctx, id, a.ConnectionID)
		return err
	})
	return a, err
}

// Decline says no to an ask.
func (d *Desk) Decline(ctx context.Context, c store.Caller, id store.AskID) (a store.Ask, err error) {
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		a, err = tx.DeclineAsk(ctx, id)
		return err
	})
	return a, err
}
