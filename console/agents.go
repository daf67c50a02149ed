package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// How many agents a list shows. One who has more looks for a name.
const (
	agentsShown = 500
	agentsFew   = 6 // on Home
)

// An agentQuery is which agents a list shows. A list's live stream has the same one in its address.
type agentQuery struct {
	name string // part of it, without case
	few  bool   // the first few alone
}

func readAgentQuery(r *http.Request) agentQuery {
	q := r.URL.Query()
	name := []rune(strings.ToValidUTF8(strings.TrimSpace(q.Get("q")), ""))
	return agentQuery{name: string(name[:min(len(name), 64)]), few: q.Get("show") == "few"}
}

// live is the address of the stream that keeps the list fresh.
func (q agentQuery) live() string {
	v := url.Values{}
	if q.name != "" {
		v.Set("q", q.name)
	}
	if q.few {
		v.Set("show", "few")
	}
	if len(v) == 0 {
		return "/live/agents"
	}
	return "/live/agents?" + v.Encode()
}

// Agents is GET /agents.
func (h *Handler) Agents(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	list, err := h.agentList(ctx, readAgentQuery(r))
	if err != nil {
		return err
	}
	shell, err := h.shell(ctx, atAgents)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.Agents{Shell: shell, List: list}.Page())
}

// agentList reads the agents that the viewer may see and that q is about.
func (h *Handler) agentList(ctx context.Context, q agentQuery) (web.AgentList, error) {
	v := viewerOf(ctx)
	filter := store.AgentFilter{Name: q.name, Most: agentsShown}
	if q.few {
		filter.Most = agentsFew
	}
	var agents []store.Agent
	var total int
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		if agents, err = tx.Agents(ctx, filter); err != nil {
			return err
		}
		total, err = tx.CountAgents(ctx)
		return err
	})
	if err != nil {
		return web.AgentList{}, fmt.Errorf("load agents: %w", err)
	}
	list := web.AgentList{Now: h.c.Now(), Live: q.live(), Query: q.name, Total: total, Make: v.caller.MayMakeAgents()}
	for _, a := range agents {
		list.Rows = append(list.Rows, h.webAgent(v, a))
	}
	return list, nil
}

// webAgent is what v's pages say of an agent.
func (h *Handler) webAgent(v viewer, a store.Agent) web.Agent {
	w := web.Agent{
		Name: a.Name, URL: "/agents/" + a.ID.String(), SignIn: signsInWith(a), MadeBy: a.UserName, MadeAt: a.CreatedAt,
		LastUsed: moment(a.LastUsedAt), RevokedAt: moment(a.RevokedAt), RevokedBy: a.RevokedBy,
	}
	if a.UserID == v.caller.User {
		w.MadeBy = "you"
	}
	if !w.Revoked() {
		w.Streams = h.c.Streams(a.ID)
	}
	return w
}

// signsInWith is how an agent's clients prove that they are its. One without a token was made by letting an app in.
func signsInWith(a store.Agent) string {
	switch {
	case a.RevokedAt != nil:
		return "Nothing any more"
	case a.TokenMadeAt == nil:
		return "Connected apps"
	}
	return "Static token"
}

// moment is the time that p points at; none is the zero time.
func moment(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return *p
}

// AgentNew is GET /agents/new.
func (h *Handler) AgentNew(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if !viewerOf(ctx).caller.MayMakeAgents() {
		return readsOnly()
	}
	shell, err := h.shell(ctx, atAgents)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.AgentNew{Shell: shell}.Page())
}

// AgentCreate is POST /agents. Its answer is the new agent's page itself, since its token is kept nowhere that a page
// after a redirect could take it from. Sent twice, the second finds the name taken.
func (h *Handler) AgentCreate(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, v := r.Context(), viewerOf(r.Context())
	name := strings.TrimSpace(r.PostForm.Get("name"))
	var a store.Agent
	var token string
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		a, token, err = tx.CreateAgent(ctx, name, v.caller.User)
		return err
	})
	if ref := reason.Of(err); err != nil && ref.Details["field"] == "name" {
		h.c.Refused(ctx, ref.Word)
		shell, err := h.frame(ctx, atAgents)
		if err != nil {
			return err
		}
		if ref.Word == reason.NameTaken {
			ref = reason.Refuse(ref.Word, "%s If you just made it, open it and make a new token.", ref.Message).Field("name")
		}
		return h.draw(w, r, ref.Status(), web.AgentNew{Shell: shell, Name: web.Field{Value: name, Error: ref.Message}}.Page())
	}
	if err != nil {
		return fmt.Errorf("create agent: %w", err)
	}
	h.changed(ctx, "Made agent %s", a.Name)
	return h.drawFreshToken(w, r, a, token, a.Name+" is made.")
}
