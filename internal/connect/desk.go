package connect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Config is what a Desk needs. All of it is required.
type Config struct {
	DB     *store.DB
	Keys   *vault.Keyring
	Egress *egress.Client
	// Link is where an ask is answered.
	Link func(store.Ask) string
	// Healthy is a Bus's.
	Healthy func() bool
}

// A Desk makes, mends and uses connections. It is a bus listener. Safe for concurrent use.
type Desk struct {
	c     Config
	known *bus.Cache[store.AgentID, []store.Connection]
}

// NewDesk makes a Desk.
func NewDesk(c Config) (*Desk, error) {
	known, err := bus.NewCache[store.AgentID, []store.Connection](maxKnown, c.Healthy)
	return &Desk{c, known}, err
}

// Shown is what a person sees of an ask for a connection, a credential or a scope.
type Shown struct {
	Proposal
	Why string `json:"why,omitzero"` // in the agent's words
}

// Request answers an agent that wants a connection: with one that there is and that it may use, or with a *reason.Refusal:
// awaiting_connection, awaiting_scope, connection_exists, connection_declined, scope_declined, or what is wrong with the proposal.
func (d *Desk) Request(ctx context.Context, c store.Caller, p Proposal) (store.Connection, error) {
	p, err := p.Check()
	if err != nil {
		return store.Connection{}, err
	}
	key, err := p.key(c.Agent)
	if err != nil {
		return store.Connection{}, err
	}
	box, err := d.box(ctx, c)
	if err != nil {
		return store.Connection{}, err
	}
	var found store.Connection
	var open store.Ask
	var refusal error
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) error {
		found, open, refusal = store.Connection{}, store.Ask{}, nil // this may run again
		readable, err := tx.Connections(ctx)
		if err != nil {
			return err
		}
		usable, err := tx.AgentConnections(ctx, c.Agent)
		if err != nil {
			return err
		}
		inScope := func(id store.ConnectionID) bool {
			return slices.ContainsFunc(usable, func(u store.Connection) bool { return u.ID == id })
		}
		ask := store.Ask{Kind: store.AskConnection, AgentID: c.Agent, Tool: p.Vendor, Key: key}
		no := reason.ConnectionDeclined
		if there := judge(p, readable, inScope); there != nil {
			switch {
			case there.usable() && inScope(there.ID):
				found = there.Connection
				return nil
			case !there.usable():
				refusal = exists(there.Connection)
				return nil
			}
			id := there.ID.Bytes()
			ask.Kind, ask.ConnectionID, ask.Key, no = store.AskScope, there.ID, keyOf(store.AskScope, c.Agent, id[:]), reason.ScopeDeclined
		}
		declined, err := tx.TakeNo(ctx, c.Agent, ask.Key)
		if err != nil {
			return err
		}
		if declined {
			refusal = reason.Refuse(no, "A person answered no to this agent's use of %s.", p.Vendor)
			return nil
		}
		open, err = d.open(ctx, tx, box, ask, Shown{Proposal: p})
		return err
	})
	switch {
	case err != nil:
		return store.Connection{}, err
	case refusal != nil:
		return store.Connection{}, refusal
	case !found.ID.IsZero():
		return found, nil
	}
	return store.Connection{}, d.awaiting(open, p.Vendor)
}

// there is a connection that covers a proposal.
type there struct{ store.Connection }

func (t there) usable() bool {
	return t.RevokedAt == nil && t.Entered && t.Health != store.HealthFailing
}

// judge finds the connection that a proposal is about: of the same vendor and scheme, going at least where the proposal does. One that
// the agent can use at once comes before one that needs a person, and that before one that is no more.
func judge(p Proposal, list []store.Connection, inScope func(store.ConnectionID) bool) *there {
	var best *there
	rank := 0
	for _, c := range list {
		if c.Vendor != p.Vendor || c.Scheme != p.Scheme || !c.UpstreamID.IsZero() || !covers(c.Hosts, p.all()) || !sameConfig(c.Config, p.Config) {
			continue
		}
		t := there{c}
		r := 1
		switch {
		case t.usable() && inScope(c.ID):
			r = 4
		case t.usable():
			r = 3
		case c.RevokedAt == nil && inScope(c.ID):
			r = 2
		}
		if r > rank {
			best, rank = &t, r
		}
	}
	return best
}

func covers(hosts, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(hosts, w) })
}

func sameConfig(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func exists(c store.Connection) error {
	why := "waits for its credential"
	switch {
	case c.RevokedAt != nil:
		why = "was revoked"
	case c.Health == store.HealthFailing:
		why = "has a credential that the vendor refuses"
	}
	return reason.Refuse(reason.ConnectionExists, "There is a connection to %s that %s. Ask a person for its credential with request_credential.", c.Vendor, why).
		With("connectionId", c.ID.String())
}

// RequestCredential asks a person to enter the credential of a connection that the agent may use, whatever state it is in. The refusal is
// awaiting_credential, connection_not_in_scope, connection_not_found, connection_declined, or input_invalid where it needs none.
func (d *Desk) RequestCredential(ctx context.Context, c store.Caller, id store.ConnectionID, why string) error {
	box, err := d.box(ctx, c)
	if err != nil {
		return err
	}
	var open store.Ask
	var refusal error
	var vendor string
	err = d.c.DB.As(ctx, c, func(tx *store.Tx) error {
		refusal = nil
		con, err := tx.Connection(ctx, id)
		if store.IsAbsent(err) || err == nil && !con.UpstreamID.IsZero() {
			refusal = reason.Refuse(reason.ConnectionAbsent, "There is no connection %s.", id)
			return nil
		}
		if err != nil {
			return err
		}
		usable, err := tx.AgentConnections(ctx, c.Agent)
		if err != nil {
			return err
		}
		vendor = con.Vendor
		if !slices.ContainsFunc(usable, func(u store.Connection) bool { return u.ID == id }) {
			refusal = reason.Refuse(reason.ConnectionNotInScope, "The connection %s to %s is not among those that this agent may use.", id, vendor)
			return nil
		}
		if con.Scheme == store.NoScheme && con.RevokedAt == nil {
			refusal = reason.Refuse(reason.InputInvalid, "The connection %s to %s needs no credential.", id, vendor).Field("connectionId")
			return nil
		}
		of := id.Bytes()
		ask := store.Ask{Kind: store.AskCredential, AgentID: c.Agent, Tool: vendor, ConnectionID: id, Key: keyOf(store.AskCredential, c.Agent, of[:])}
		declined, err := tx.TakeNo(ctx, c.Agent, ask.Key)
		if err != nil {
			return err
		}
		if declined {
			refusal = reason.Refuse(reason.ConnectionDeclined, "A person answered no to entering the credential of %s.", vendor)
			return nil
		}
		open, err = d.open(ctx, tx, box, ask, Shown{Proposal: proposalOf(con), Why: why})
		return err
	})
	switch {
	case err != nil:
		return err
	case refusal != nil:
		return refusal
	}
	return d.awaiting(open, vendor)
}

func proposalOf(c store.Connection) Proposal {
	p := Proposal{Vendor: c.Vendor, DisplayName: c.DisplayName, Scheme: c.Scheme, Config: c.Config, DocsURL: c.DocsURL, Hosts: []string{}}
	if len(c.Hosts) > 0 {
		p.PrimaryHost, p.Hosts = c.Hosts[0], c.Hosts[1:]
	}
	return p
}

func (d *Desk) open(ctx context.Context, tx *store.Tx, box *vault.Box, ask store.Ask, shown Shown) (store.Ask, error) {
	body, err := json.Marshal(shown)
	if err != nil {
		return store.Ask{}, fmt.Errorf("write ask: %w", err)
	}
	return tx.OpenAsk(ctx, ask, func(id store.AskID) []byte { return box.Seal([]byte(id.String()), body) })
}

// awaiting says that a person has to answer first.
func (d *Desk) awaiting(a store.Ask, vendor string) *reason.Refusal {
	word, what := reason.AwaitingConnection, "has to connect "+vendor
	switch a.Kind {
	case store.AskCredential:
		word, what = reason.AwaitingCredential, "has to enter the credential of "+vendor
	case store.AskScope:
		word, what = reason.AwaitingScope, "has to let this agent use the connection to "+vendor
	}
	return reason.Refuse(word, "A person %s first. Give them the link, say what it is for, and call again once they have answered.", what).
		With("askId", a.ID.String()).With("url", d.c.Link(a)).With("expiresAt", a.ExpiresAt.Format(time.RFC3339))
}

// Show opens what a person is shown of an ask that is no approval.
func (d *Desk) Show(ctx context.Context, c store.Caller, a store.Ask) (s Shown, err error) {
	box, err := d.box(ctx, c)
	if err != nil {
		return Shown{}, err
	}
	body, err := box.Open([]byte(a.ID.String()), a.Body)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil {
		return Shown{}, fmt.Errorf("open %s: %w", a.ID, err)
	}
	return s, nil
}

func (d *Desk) box(ctx context.Context, c store.Caller) (*vault.Box, error) {
	box, err := d.c.Keys.Box(ctx, c.Org.String(), "ask")
	if err != nil {
		return nil, fmt.Errorf("open asks: %w", err)
	}
	return box, nil
}
