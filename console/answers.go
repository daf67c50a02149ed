package console

import (
	"fmt"
	"net/http"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// webAnswers is an agent's standing answers as its page shows them.
func webAnswers(list []store.Approval, n names) []web.Answer {
	out := make([]web.Answer, len(list))
	for i, a := range list {
		out[i] = web.Answer{Tool: a.Tool, SetBy: n.person(store.AuditLink{AuditEntry: store.AuditEntry{User: a.SetBy}}), SetAt: a.SetAt}
		switch a.Decision {
		case store.Allow:
			out[i].Says, out[i].Dot = fmt.Sprintf("allowed, version %d", a.Version), "ok"
		case store.Deny:
			out[i].Says, out[i].Dot = "denied", "bad"
		case store.AskEvery:
			out[i].Says, out[i].Dot = "asks every time", "wait"
		}
	}
	return out
}

// AgentAskAgain is POST /agents/{id}/answers: what was answered about a tool is forgotten, so that its next call asks.
func (h *Handler) AgentAskAgain(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, tool := r.Context(), plainTool(r.PostForm.Get("tool"))
	var a store.Agent
	var changed bool
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if a, err = tx.Agent(ctx, id); err != nil {
			return err
		}
		changed, err = tx.Unapprove(ctx, id, tool)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget answers of agent %s: %w", id, err)
	}
	at := "/agents/" + id.String()
	if !changed { // somebody was quicker
		http.Redirect(w, r, at, http.StatusSeeOther)
		return nil
	}
	h.changed(ctx, "Took back what was answered about %s for agent %s", tool, a.Name)
	return h.done(w, r, tool+" asks again.", at)
}
