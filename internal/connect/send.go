package connect

import (
	"context"
	"fmt"
	"net/http"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Send sends one request through a connection that the agent may use. Hosts and credential of req are the connection's. What the vendor
// says of the credential, by a 401 or a 403, is noted as the connection's health.
func (d *Desk) Send(ctx context.Context, c store.Caller, id store.ConnectionID, req egress.Request) (*egress.Response, error) {
	var row store.Credential
	err := d.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		row, err = tx.AgentCredential(ctx, c.Agent, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.send(ctx, c, row, req)
}

func (d *Desk) send(ctx context.Context, c store.Caller, row store.Credential, req egress.Request) (*egress.Response, error) {
	var err error
	if req.Hosts, err = egress.ParseHosts(row.Hosts...); err != nil {
		return nil, fmt.Errorf("hosts of %s: %w", row.ConnectionID, err)
	}
	scheme, err := egress.SchemeNamed(row.Scheme)
	if err != nil {
		return nil, err
	}
	var secret vault.Secret
	if row.Sealed != nil {
		key, err := d.c.Keys.Key(ctx, c.Org.String())
		if err != nil {
			return nil, err
		}
		if secret, err = key.Open(place(c.Org, row.ConnectionID), row.Sealed); err != nil {
			return nil, fmt.Errorf("open credential of %s: %w", row.ConnectionID, err)
		}
	}
	in, err := scheme.Inject(egress.Credential{Key: fmt.Sprintf("%s %d", row.ConnectionID, row.Version), Config: row.Config, Secret: secret})
	if err != nil {
		return nil, err
	}
	req.Inject = []egress.Injection{in}
	answer, err := d.c.Egress.Do(ctx, req)
	if noted := d.note(ctx, c, row, answer, err); noted != nil && err == nil {
		return answer, noted
	}
	return answer, err
}

// note keeps what an answer says of a credential. One that needs none has no health.
func (d *Desk) note(ctx context.Context, c store.Caller, row store.Credential, answer *egress.Response, failed error) error {
	word := ""
	switch {
	case row.Sealed == nil:
		return nil
	case failed != nil:
		if word = string(reason.Of(failed).Word); word != string(reason.UpstreamUnauthorized) {
			return nil // says nothing of the credential
		}
	case answer.Status == http.StatusUnauthorized:
		word = string(reason.UpstreamUnauthorized)
	case answer.Status == http.StatusForbidden:
		return nil // may be about this one request
	}
	if word == row.HealthWord && row.Health != store.HealthUnknown {
		return nil
	}
	return d.c.DB.As(context.WithoutCancel(ctx), c, func(tx *store.Tx) error {
		_, err := tx.NoteHealth(ctx, row.ConnectionID, row.Version, word)
		return err
	})
}
