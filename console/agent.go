package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// sessionsShown is how many sessions an agent's page shows, the last seen first.
const sessionsShown = 20

// agentID is the agent that the path names.
func agentID(r *http.Request) (store.AgentID, error) {
	return store.ParseID[store.AgentKind](r.PathValue("id"))
}

// Agent is GET /agents/{id}.
func (h *Handler) Agent(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	v, err := h.agentDetail(ctx, id)
	if err != nil {
		return err
	}
	if v.Shell, err = h.shell(ctx, atAgents); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, v.Page())
}

// agentDetail reads an agent's page, all but its shell.
func (h *Handler) agentDetail(ctx context.Context, id store.AgentID) (web.AgentDetail, error) {
	who := viewerOf(ctx)
	var a store.Agent
	var sessions []store.MCPSession
	var set []store.Promotion
	err := h.c.DB.As(ctx, who.caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		if set, err = tx.WorkingSet(ctx, id); err != nil || a.RevokedAt != nil {
			return err
		}
		sessions, err = tx.Sessions(ctx, id, sessionsShown)
		return err
	})
	if err != nil {
		return web.AgentDetail{}, fmt.Errorf("load agent %s: %w", id, err)
	}
	tools, err := h.workingTools(ctx, who.caller, set)
	if err != nil {
		return web.AgentDetail{}, err
	}
	return web.AgentDetail{
		Now: h.c.Now(), Live: liveAgent(id, time.Time{}), Agent: h.webAgent(who, a),
		TokenMade: moment(a.TokenMadeAt), FirstCall: firstCall(a, moment(a.TokenMadeAt)),
		Gateway: h.gateway(), Connect: web.ConnectBlocks(h.gateway(), "graft"),
		Sessions: webSessions(sessions), Tools: tools, Change: who.caller.MayChange(a.UserID),
	}, nil
}

// firstCall is the agent's last call, where it came after since: seen soon enough, that is the first one.
func firstCall(a store.Agent, since time.Time) time.Time {
	if at := moment(a.LastUsedAt); at.After(since) {
		return at
	}
	return time.Time{}
}

func webSessions(list []store.MCPSession) []web.Session {
	out := make([]web.Session, len(list))
	for i, s := range list {
		client := strings.TrimSpace(s.ClientName + " " + s.ClientVersion)
		if client == "" {
			client = "A client that gave no name"
		}
		out[i] = web.Session{Client: client, OpenedAt: s.OpenedAt, SeenAt: s.LastSeenAt}
	}
	return out
}

// workingTools is the working set as pages show it. A promoted tool that is gone is left out, as the agent's own list
// leaves it out.
func (h *Handler) workingTools(ctx context.Context, c store.Caller, set []store.Promotion) ([]web.WorkingTool, error) {
	if len(set) == 0 {
		return nil, nil
	}
	known, err := h.c.Catalog.Of(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("load working set: %w", err)
	}
	effects := map[string]web.Effects{}
	for _, e := range known.All() {
		effects[e.Wire()] = effectsOf(e.Tool)
	}
	var out []web.WorkingTool
	for _, p := range set {
		if does, ok := effects[p.Tool]; ok {
			out = append(out, web.WorkingTool{Name: p.Tool, Effects: does, PromotedAt: p.PromotedAt, Cause: "promoted by " + cause(p)})
		}
	}
	return out, nil
}

// effectsOf is what a tool may do.
func effectsOf(t catalog.Tool) web.Effects {
	switch {
	case t.ReadOnly:
		return web.Reads
	case t.Destructive:
		return web.Destroys
	}
	return web.Writes
}

func cause(p store.Promotion) string {
	if p.Cause == "agent" {
		return "the agent"
	}
	return "a person"
}

// drawFreshToken draws an agent's page as the answer to the POST that made its token: the one page the token is on.
func (h *Handler) drawFreshToken(w http.ResponseWriter, r *http.Request, a store.Agent, token, flash string) error {
	ctx := r.Context()
	v, err := h.agentDetail(ctx, a.ID)
	if err != nil {
		return err
	}
	v.Shell = viewerOf(ctx).frame(atAgents)
	v.Shell.Flash = flash
	v.Token, v.TokenMade, v.FirstCall = token, v.Now, time.Time{}
	v.Live = liveAgent(a.ID, v.Now)
	return h.draw(w, r, http.StatusOK, v.Page())
}

// readsOnly refuses an auditor what changes something.
func readsOnly() error {
	return reason.Refuse(reason.Forbidden, "Your role reads only. Ask an admin of the organisation.")
}

// ask draws a question about an agent that the viewer may change. About a revoked one there is nothing to ask: its
// page says what became of it.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request, question func(web.AgentDetail) templ.Component) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	v, err := h.agentDetail(r.Context(), id)
	switch {
	case err != nil:
		return err
	case !v.Change:
		return readsOnly()
	case v.Agent.Revoked():
		http.Redirect(w, r, v.Agent.URL, http.StatusSeeOther)
		return nil
	}
	if v.Shell, err = h.shell(r.Context(), atAgents); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, question(v))
}

// AgentToken is GET /agents/{id}/token: the question before a new token.
func (h *Handler) AgentToken(w http.ResponseWriter, r *http.Request) error {
	return h.ask(w, r, func(v web.AgentDetail) templ.Component {
		return web.AgentToken{Shell: v.Shell, Agent: v.Agent}.Page()
	})
}

// AgentRenew is POST /agents/{id}/token. Its answer is the agent's page with the new token, as AgentCreate's is.
func (h *Handler) AgentRenew(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	var a store.Agent
	var token string
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		token, err = tx.RenewAgentToken(ctx, id)
		return err
	})
	if store.IsAbsent(err) && !a.ID.IsZero() { // seen just now, so it is not missing but revoked
		http.Redirect(w, r, "/agents/"+id.String(), http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return fmt.Errorf("renew token of agent %s: %w", id, err)
	}
	h.changed(ctx, "Made a new token for agent %s", a.Name)
	return h.drawFreshToken(w, r, a, token, a.Name+" has a new token. The old one has ended.")
}

// AgentRevokePage is GET /agents/{id}/revoke: the question before the end.
func (h *Handler) AgentRevokePage(w http.ResponseWriter, r *http.Request) error {
	return h.ask(w, r, func(v web.AgentDetail) templ.Component {
		return web.AgentRevoke{Shell: v.Shell, Agent: v.Agent, HasToken: !v.TokenMade.IsZero(), Sessions: len(v.Sessions)}.Page()
	})
}

// AgentRevoke is POST /agents/{id}/revoke. Sent twice, the second says the same.
func (h *Handler) AgentRevoke(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	ctx, c := r.Context(), viewerOf(r.Context()).caller
	var a store.Agent
	var ended bool
	err = h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		if !c.MayChange(a.UserID) {
			return readsOnly()
		}
		if err := tx.RevokeAgent(ctx, id); !store.IsAbsent(err) {
			ended = err == nil
			return err
		}
		return nil // seen just now, so it is not missing but revoked
	})
	if err != nil {
		return fmt.Errorf("revoke agent %s: %w", id, err)
	}
	if ended {
		h.changed(ctx, "Revoked agent %s", a.Name)
	}
	return h.done(w, r, a.Name+" is revoked.", "/agents")
}

// liveAgent is the address of the stream that keeps an agent's page fresh. Since is when the token on the page was
// made, zero where none is.
func liveAgent(id store.AgentID, since time.Time) string {
	url := "/live/agents/" + id.String()
	if !since.IsZero() {
		url += "?since=" + strconv.FormatInt(since.UnixMicro(), 10)
	}
	return url
}
