package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// What an agent's page shows at most: sessions, the last seen first, changes of its working set, and tools to choose from.
const (
	sessionsShown = 20
	changesShown  = 20
	othersShown   = 500
)

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
	var changes []store.ToolChange
	var answers []store.Approval
	var scope store.Scope
	var grants []store.Grant
	var called names
	err := h.c.DB.As(ctx, who.caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		if set, err = tx.WorkingSet(ctx, id); err != nil {
			return err
		}
		if answers, err = tx.Approvals(ctx, id); err != nil {
			return err
		}
		if scope, err = tx.Scope(ctx, id); err != nil {
			return err
		}
		if called, err = readNames(ctx, tx, who); err != nil {
			return err
		}
		if grants, err = tx.Grants(ctx, id); err != nil {
			return err
		}
		if changes, err = tx.WorkingSetChanges(ctx, id, changesShown); err != nil || a.RevokedAt != nil {
			return err
		}
		sessions, err = tx.Sessions(ctx, id, sessionsShown)
		return err
	})
	if err != nil {
		return web.AgentDetail{}, fmt.Errorf("load agent %s: %w", id, err)
	}
	tools, others, err := h.workingTools(ctx, who.caller, set)
	if err != nil {
		return web.AgentDetail{}, err
	}
	return web.AgentDetail{
		Now: h.c.Now(), Live: liveAgent(id, time.Time{}), Agent: h.webAgent(who, a),
		TokenMade: moment(a.TokenMadeAt), FirstCall: firstCall(a, moment(a.TokenMadeAt)),
		Gateway: h.gateway(), Connect: web.ConnectBlocks(h.gateway(), "graft"),
		Sessions: webSessions(sessions), Apps: webApps(who, a, grants, called), Tools: tools, Answers: webAnswers(answers, called), ScopeAll: scope.All, Connections: len(scope.Listed), IdleDays: a.IdleDays, ToolCap: a.ToolCap, Others: others, History: webChanges(changes),
		Change: who.caller.MayChange(a.UserID),
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

// workingTools is the working set as pages show it, and the names of other tools there are. A promoted tool that is gone
// is left out, as the agent's own list leaves it out.
func (h *Handler) workingTools(ctx context.Context, c store.Caller, set []store.Promotion) (tools []web.WorkingTool, others []string, err error) {
	known, err := h.c.Catalog.Of(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("load working set: %w", err)
	}
	promoted := map[string]store.Promotion{}
	for _, p := range set {
		promoted[p.Tool] = p
	}
	effects := map[string]web.Effects{}
	for _, e := range known.All() {
		name := e.Wire()
		if _, in := promoted[name]; !in && len(others) < othersShown {
			others = append(others, name)
		}
		effects[name] = effectsOf(e.Tool)
	}
	for _, p := range set {
		if does, ok := effects[p.Tool]; ok {
			tools = append(tools, web.WorkingTool{
				Name: p.Tool, Effects: does, PromotedAt: p.PromotedAt, LastUsed: moment(p.LastUsedAt), Cause: "promoted " + by(p.Cause, ""),
			})
		}
	}
	return tools, others, nil
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

// by is whose doing a change of a working set was; name is a person's, where one is known.
func by(c store.Cause, name string) string {
	switch {
	case c == store.CauseAgent:
		return "by the agent"
	case c == store.CauseUpstream:
		return "with all tools of its upstream"
	case name != "":
		return "by " + name
	}
	return "by a person"
}

func webChanges(list []store.ToolChange) []web.ToolChange {
	out := make([]web.ToolChange, len(list))
	for i, c := range list {
		what := "demoted " + by(c.Cause, c.By)
		switch {
		case c.Promoted:
			what = "promoted " + by(c.Cause, c.By)
		case c.Cause == store.CauseIdle:
			what = "left: not used for too long"
		case c.Cause == store.CauseCap:
			what = "left: never used, and above the cap"
		}
		out[i] = web.ToolChange{Tool: c.Tool, What: what, At: c.At}
	}
	return out
}

// AgentPromote is POST /agents/{id}/promote. Sent twice, the second finds the tool there, and says the same.
func (h *Handler) AgentPromote(w http.ResponseWriter, r *http.Request) error {
	id, tool, err := agentTool(r)
	if err != nil {
		return err
	}
	ctx, v := r.Context(), viewerOf(r.Context())
	known, err := h.c.Catalog.Of(ctx, v.caller)
	if err != nil {
		return fmt.Errorf("promote for agent %s: %w", id, err)
	}
	if _, err := known.Resolve(tool); err != nil {
		return h.drawNotPromoted(w, r, id, tool, err)
	}
	var changed bool
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		changed, err = tx.Promote(ctx, id, tool)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote for agent %s: %w", id, err)
	}
	if changed {
		h.record(ctx, viewerOf(ctx).caller, audit.Entry{Kind: audit.Change, Agent: id, Tool: tool, Outcome: audit.OK, Line: "Promoted " + tool})
	}
	return h.done(w, r, tool+" is in the working set.", "/agents/"+id.String())
}

// drawNotPromoted draws an agent's page again with what was wrong about the name of a tool.
func (h *Handler) drawNotPromoted(w http.ResponseWriter, r *http.Request, id store.AgentID, tool string, failed error) error {
	ref := reason.Of(failed)
	if ref.Word != reason.ToolNotFound {
		return failed
	}
	v, err := h.agentDetail(r.Context(), id)
	switch {
	case err != nil:
		return err
	case !v.Change:
		return readsOnly()
	}
	h.c.Refused(r.Context(), ref.Word)
	if v.Shell, err = h.frame(r.Context(), atAgents); err != nil {
		return err
	}
	v.Promote = web.Field{Value: tool, Error: "There is no tool of this name. Choose one from the list."}
	return h.draw(w, r, ref.Status(), v.Page())
}

// AgentDemote is POST /agents/{id}/demote. Sent twice, the second says the same.
func (h *Handler) AgentDemote(w http.ResponseWriter, r *http.Request) error {
	id, tool, err := agentTool(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	var changed bool
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		changed, err = tx.Demote(ctx, id, tool)
		return err
	})
	if err != nil {
		return fmt.Errorf("demote for agent %s: %w", id, err)
	}
	if changed {
		h.record(ctx, viewerOf(ctx).caller, audit.Entry{Kind: audit.Change, Agent: id, Tool: tool, Outcome: audit.OK, Line: "Demoted " + tool})
	}
	return h.done(w, r, tool+" has left the working set.", "/agents/"+id.String())
}

// agentTool is the agent that the path names, and the tool that the form does.
func agentTool(r *http.Request) (store.AgentID, string, error) {
	id, err := agentID(r)
	if err != nil {
		return id, "", err
	}
	if err := readForm(r); err != nil {
		return id, "", err
	}
	tool := r.PostForm.Get("tool")
	if tool == "" {
		tool = r.PostForm.Get("promote")
	}
	return id, strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(tool, ""), "\x00", "")), nil
}

// drawFreshToken draws an agent's page as the answer to the POST that made its token: the one page the token is on.
func (h *Handler) drawFreshToken(w http.ResponseWriter, r *http.Request, a store.Agent, token, flash string) error {
	ctx := r.Context()
	v, err := h.agentDetail(ctx, a.ID)
	if err != nil {
		return err
	}
	if v.Shell, err = h.frame(ctx, atAgents); err != nil {
		return err
	}
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
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	return h.ask(w, r, func(v web.AgentDetail) templ.Component {
		return web.AgentRevoke{Shell: v.Shell, Agent: v.Agent, HasToken: !v.TokenMade.IsZero(), Apps: v.Connected(), Sessions: len(v.Sessions)}.Page()
	})
}

// AgentRevoke is POST /agents/{id}/revoke. Sent twice, the second says the same.
func (h *Handler) AgentRevoke(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
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
