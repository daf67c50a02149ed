package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// AgentScope is GET /agents/{id}/connections.
func (h *Handler) AgentScope(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	v := viewerOf(ctx)
	var a store.Agent
	var s store.Scope
	var all []store.Connection
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		if s, err = tx.Scope(ctx, id); err != nil {
			return err
		}
		all, err = tx.Connections(ctx)
		return err
	})
	if err == nil && a.RevokedAt != nil {
		err = reason.NotFound
	}
	if err != nil {
		return fmt.Errorf("load scope of agent %s: %w", id, err)
	}
	page := web.AgentScope{Agent: h.webAgent(v, a), All: s.All, Change: v.caller.MayChange(a.UserID)}
	for _, c := range all {
		if c.UpstreamID.IsZero() && (c.Shared() || c.UserID == a.UserID) && c.RevokedAt == nil {
			page.Choices = append(page.Choices, web.ScopeChoice{ID: c.ID.String(), Connection: webConnection(v, c), On: slices.Contains(s.Listed, c.ID)})
		}
	}
	if page.Shell, err = h.shell(ctx, atAgents); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// connectionChoices are the connections that a new agent of v's may be given, with those on that were ticked.
func (h *Handler) connectionChoices(ctx context.Context, v viewer, ticked []string) (list []web.ScopeChoice, err error) {
	var all []store.Connection
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		all, err = tx.Connections(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load connections: %w", err)
	}
	for _, c := range all {
		if c.UpstreamID.IsZero() && (c.Shared() || c.UserID == v.caller.User) && c.RevokedAt == nil {
			list = append(list, web.ScopeChoice{ID: c.ID.String(), Connection: webConnection(v, c), On: slices.Contains(ticked, c.ID.String())})
		}
	}
	return list, nil
}

// AgentSetScope is POST /agents/{id}/connections. What was listed and is not on the page, because it is revoked, stays.
func (h *Handler) AgentSetScope(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, form := r.Context(), r.PostForm
	var ticked []store.ConnectionID
	for _, text := range form["connection"] {
		c, err := store.ParseID[store.ConnectionKind](text)
		if err != nil {
			return err
		}
		ticked = append(ticked, c)
	}
	s := store.Scope{All: form.Get("scope") == "all", Listed: ticked}
	var a store.Agent
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		before, err := tx.Scope(ctx, id)
		if err != nil {
			return err
		}
		s.Listed = slices.Clone(ticked) // this may run again
		for _, c := range before.Listed {
			row, err := tx.Connection(ctx, c)
			if err != nil && !store.IsAbsent(err) {
				return err
			}
			if err == nil && row.RevokedAt != nil && !slices.Contains(s.Listed, c) {
				s.Listed = append(s.Listed, c)
			}
		}
		return tx.SetScope(ctx, id, s)
	})
	if err != nil {
		return fmt.Errorf("set scope of agent %s: %w", id, err)
	}
	said := "all connections"
	if !s.All {
		said = fmt.Sprintf("%d connections", len(ticked))
	}
	h.changed(ctx, "Let agent %s use %s", a.Name, said)
	return h.done(w, r, "Saved what "+a.Name+" may use.", "/agents/"+id.String())
}
