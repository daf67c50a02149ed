package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// webApp is what v's pages say of a grant. change is whether v may end it.
func webApp(v viewer, g store.Grant, n names, change bool) web.App {
	a := web.App{
		Name: consent.AppName(g.ClientName), Document: document(g.ClientID), Answer: place(g.RedirectURI), By: n.user[g.UserID],
		At: g.CreatedAt, RefreshedAt: moment(g.LastRefreshedAt), EndedAt: moment(g.EndedAt), Dot: "ok", AgentURL: "/agents/" + g.AgentID.String(),
	}
	switch {
	case g.UserID == v.caller.User:
		a.By = "you"
	case a.By == "":
		a.By = g.UserEmail
	}
	if g.EndedAt == nil {
		if change {
			a.EndURL = a.AgentURL + "/apps/" + g.ID.String() + "/end"
		}
		return a
	}
	a.Dot, a.Ended = "off", ended(g, n)
	if g.Cause == store.GrantCodeReuse || g.Cause == store.GrantTokenReuse {
		a.Dot = "bad"
	}
	return a
}

// ended is why a grant ended, in a sentence.
func ended(g store.Grant, n names) string {
	switch g.Cause {
	case store.GrantByPerson:
		return "Disconnected here by " + n.person(store.AuditLink{AuditEntry: store.AuditEntry{User: g.EndedBy}}) + "."
	case store.GrantByClient:
		return "The app signed itself out."
	case store.GrantCodeReuse:
		return "Its sign-in code was used twice, so it was ended: somebody may have copied it."
	case store.GrantTokenReuse:
		return "An old refresh token came back after its time; another copy of it may be in use. Connect the app again."
	case store.GrantByAgent:
		return "The agent was revoked."
	case store.GrantByMember:
		return "Who connected it, or made the agent, is no longer a member."
	}
	return ""
}

func webApps(v viewer, a store.Agent, list []store.Grant, n names) []web.App {
	change := v.caller.MayChange(a.UserID)
	out := make([]web.App, len(list))
	for i, g := range list {
		out[i] = webApp(v, g, n, change)
	}
	return out
}

// Apps is GET /apps.
func (h *Handler) Apps(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := viewerOf(ctx)
	var grants []store.Grant
	var n names
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		if grants, err = tx.LiveGrants(ctx); err != nil {
			return err
		}
		n, err = readNames(ctx, tx, v)
		return err
	})
	if err != nil {
		return fmt.Errorf("load apps: %w", err)
	}
	byID := map[store.AgentID]store.Agent{}
	for _, a := range n.agents {
		byID[a.ID] = a
	}
	page := web.Apps{Now: h.c.Now(), All: v.caller.Role != store.RoleMember}
	for _, g := range grants {
		a := byID[g.AgentID]
		row := webApp(v, g, n, v.caller.MayChange(a.UserID))
		row.Agent = a.Name
		page.Rows = append(page.Rows, row)
	}
	if page.Shell, err = h.shell(ctx, atAgents); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// AppEndPage is GET /agents/{id}/apps/{grant}/end: the question before an app is disconnected.
func (h *Handler) AppEndPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := viewerOf(ctx)
	a, g, err := h.appOf(ctx, r)
	switch {
	case err != nil:
		return err
	case !v.caller.MayChange(a.UserID):
		return readsOnly()
	case g.EndedAt != nil: // its row on the agent's page says why
		http.Redirect(w, r, "/agents/"+a.ID.String(), http.StatusSeeOther)
		return nil
	}
	shell, err := h.shell(ctx, atAgents)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.AppEnd{Shell: shell, Agent: h.webAgent(v, a), App: webApp(v, g, names{}, true)}.Page())
}

// AppEnd is POST /agents/{id}/apps/{grant}/end. Sent twice, the second says the same.
func (h *Handler) AppEnd(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := viewerOf(ctx)
	a, g, err := h.appOf(ctx, r)
	switch {
	case err != nil:
		return err
	case !v.caller.MayChange(a.UserID):
		return readsOnly()
	}
	var done bool
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) error {
		_, err := tx.EndGrant(ctx, g.ID)
		if store.IsAbsent(err) { // seen just now, so it is not missing but ended
			return nil
		}
		done = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("end grant %s: %w", g.ID, err)
	}
	if done {
		h.record(ctx, v.caller, audit.Entry{
			Kind: audit.Change, Agent: a.ID, Outcome: audit.OK, Line: fmt.Sprintf("Disconnected %s from agent %s", appLine(g.ClientName, g.ClientID, g.RedirectURI), a.Name),
		})
	}
	return h.done(w, r, consent.AppName(g.ClientName)+" is disconnected.", "/agents/"+a.ID.String())
}

// appOf is the agent and the grant of it that the path names.
func (h *Handler) appOf(ctx context.Context, r *http.Request) (a store.Agent, g store.Grant, err error) {
	agent, err := agentID(r)
	if err != nil {
		return a, g, err
	}
	grant, err := store.ParseID[store.GrantKind](r.PathValue("grant"))
	if err != nil {
		return a, g, err
	}
	var list []store.Grant
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, agent); err != nil {
			return err
		}
		list, err = tx.Grants(ctx, agent)
		return err
	})
	if err != nil {
		return a, g, fmt.Errorf("load apps of agent %s: %w", agent, err)
	}
	at := slices.IndexFunc(list, func(g store.Grant) bool { return g.ID == grant })
	if at < 0 {
		return a, g, reason.NotFound
	}
	return a, list[at], nil
}
