package console

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// Asks is GET /asks: what waits for the viewer.
func (h *Handler) Asks(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	list, err := h.askList(ctx)
	if err != nil {
		return err
	}
	shell, err := h.shell(ctx, atAsks)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.Asks{Shell: shell, List: list}.Page())
}

func (h *Handler) askList(ctx context.Context) (web.AskList, error) {
	var asks []store.Ask
	err := h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		asks, err = tx.OpenAsks(ctx)
		return err
	})
	if err != nil {
		return web.AskList{}, fmt.Errorf("load asks: %w", err)
	}
	list := web.AskList{Now: h.c.Now(), Live: "/live/asks"}
	for _, a := range asks {
		list.Rows = append(list.Rows, webAskSummary(a))
	}
	return list, nil
}

func webAskSummary(a store.Ask) web.AskSummary {
	wants := map[store.AskTopic]string{
		store.AskApproval: "wants to use", store.AskConnection: "asks for a connection to", store.AskCredential: "asks for the credential of",
		store.AskScope: "asks for the connection to",
	}[a.Kind]
	return web.AskSummary{Page: "/asks/" + a.ID.String(), Agent: a.AgentName, Wants: wants, Tool: a.Tool, AskedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt}
}

// An askView is an ask with what its page says beside it.
type askView struct {
	ask      store.Ask
	agent    store.Agent
	upstream *store.Upstream // where the call goes; nil for a tool of the gateway itself

	connection *store.Connection // that a credential or a scope is asked of
}

// loadAsk reads an ask that the viewer may answer.
func (h *Handler) loadAsk(ctx context.Context, id store.AskID) (v askView, err error) {
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if v.ask, err = tx.Ask(ctx, id); err != nil {
			return err
		}
		if v.agent, err = tx.Agent(ctx, v.ask.AgentID); err != nil || v.ask.ConnectionID.IsZero() {
			return err
		}
		if v.ask.Kind != store.AskApproval {
			c, err := tx.Connection(ctx, v.ask.ConnectionID)
			v.connection = &c
			return err
		}
		list, err := tx.Upstreams(ctx)
		for _, u := range list {
			if u.Connection == v.ask.ConnectionID {
				v.upstream = &u
			}
		}
		return err
	})
	if err != nil {
		return askView{}, fmt.Errorf("load ask %s: %w", id, err)
	}
	return v, nil
}

// Ask is GET /asks/{id}: the question, or what became of it. Looking at it decides nothing.
func (h *Handler) Ask(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v, err := h.askOf(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if q.Has("t") && !v.ask.Marked(q.Get("t")) {
		return h.drawWrongMark(w, r)
	}
	if v.ask.Kind != store.AskApproval {
		page, err := h.webConnectionAsk(ctx, v)
		if err != nil {
			return err
		}
		page.Mark = q.Get("t")
		return h.draw(w, r, http.StatusOK, page.Page())
	}
	page, err := h.webAsk(ctx, v)
	if err != nil {
		return err
	}
	page.Mark = q.Get("t")
	page.Tick = q.Has("every") && page.State == web.AskWaits // as it was before they confirmed who they are
	return h.draw(w, r, http.StatusOK, page.Page())
}

// AskAnswer is POST /asks/{id}. Of two answers the first holds; the second sees what it was.
func (h *Handler) AskAnswer(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, form := r.Context(), r.PostForm
	v, err := h.askOf(r)
	if err != nil {
		return err
	}
	if form.Has("t") && !v.ask.Marked(form.Get("t")) {
		return h.drawWrongMark(w, r)
	}
	if v.ask.Kind != store.AskApproval {
		return h.answerConnectionAsk(w, r, v)
	}
	answer, every := form.Get("answer"), form.Get("every") != ""
	if answer != "allow" && answer != "deny" {
		return h.drawAsk(w, r, v, reason.Refuse(reason.InputInvalid, "Nothing was answered. Press Allow or Deny."), form)
	}
	if answer == "allow" && v.state() == web.AskWaits && !h.fresh(ctx) {
		shown, err := h.c.Desk.Show(ctx, viewerOf(ctx).caller, v.ask)
		if err != nil {
			return err
		}
		if shown.Destructive {
			h.confirmFirst(w, r, askAgain(v.ask.ID, form))
			return nil
		}
	}
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		_, err = tx.AnswerAsk(ctx, v.ask.ID, answer == "allow", every)
		return err
	})
	if ref := reason.Of(err); err != nil && ref.Word == reason.ApprovalExpired {
		if v, err = h.loadAsk(ctx, v.ask.ID); err != nil {
			return err
		}
		return h.drawAsk(w, r, v, ref, form)
	}
	if err != nil {
		return fmt.Errorf("answer ask %s: %w", v.ask.ID, err)
	}
	h.decided(ctx, v.ask, answer == "allow", every)
	http.Redirect(w, r, "/asks/"+v.ask.ID.String(), http.StatusSeeOther)
	return nil
}

// askAgain is the page of an ask with what its form held.
func askAgain(id store.AskID, form url.Values) string {
	q := url.Values{}
	if form.Has("t") {
		q.Set("t", form.Get("t"))
	}
	if form.Get("every") != "" {
		q.Set("every", "yes")
	}
	at := url.URL{Path: "/asks/" + id.String(), RawQuery: q.Encode()}
	return at.String()
}

// askOf is the ask that the path names.
func (h *Handler) askOf(r *http.Request) (askView, error) {
	id, err := store.ParseID[store.AskKind](r.PathValue("id"))
	if err != nil {
		return askView{}, err
	}
	return h.loadAsk(r.Context(), id)
}

// drawAsk draws an ask as the answer to a form that was not taken.
func (h *Handler) drawAsk(w http.ResponseWriter, r *http.Request, v askView, ref *reason.Refusal, form url.Values) error {
	h.c.Refused(r.Context(), ref.Word)
	page, err := h.webAsk(r.Context(), v)
	if err != nil {
		return err
	}
	page.Mark, page.Tick, page.Error = form.Get("t"), form.Get("every") != "", ref.Message
	return h.draw(w, r, ref.Status(), page.Page())
}

// drawWrongMark answers a link that is not the one that was given out. Whoever reads it may answer the ask in the inbox.
func (h *Handler) drawWrongMark(w http.ResponseWriter, r *http.Request) error {
	h.c.Refused(r.Context(), reason.Forbidden)
	return h.draw(w, r, http.StatusForbidden, web.AskLinkDead{Focus: h.signedInFocus(r.Context())}.Page())
}

// signedInFocus is the frame of a page with one question for the viewer.
func (h *Handler) signedInFocus(ctx context.Context) web.Focus {
	f := h.focus()
	f.User = viewerOf(ctx).email
	return f
}

// webAsk is an ask's page.
func (h *Handler) webAsk(ctx context.Context, v askView) (web.Ask, error) {
	who, a := viewerOf(ctx), v.ask
	shown, err := h.c.Desk.Show(ctx, who.caller, a)
	if err != nil {
		return web.Ask{}, err
	}
	path := "/asks/" + a.ID.String()
	w := web.Ask{
		Focus: h.signedInFocus(ctx), Now: h.c.Now(), URL: path, State: v.state(),
		AskSummary: webAskSummary(a), AgentURL: "/agents/" + a.AgentID.String(), MadeBy: who.called(v.agent.UserID, v.agent.UserName),
		Effects: web.Writes, Said: shown.Description, Version: a.Version, Digest: hex.EncodeToString(a.Digest[:min(len(a.Digest), 8)]), Every: a.Every, Cut: shown.Cut,
		AnsweredBy: a.AnsweredBy, AnsweredAt: moment(a.AnsweredAt), Used: a.ConsumedAt != nil,
	}
	if w.State == web.AskWaits {
		w.Live = "/live" + path
	}
	if shown.Destructive {
		w.Effects = web.Destroys
	}
	if shown.Cut {
		text, err := jsontext.AppendUnquote(nil, shown.Arguments)
		if err != nil {
			return web.Ask{}, fmt.Errorf("read arguments of ask %s: %w", a.ID, err)
		}
		w.JSON = string(text)
	} else {
		w.Arguments, w.JSON = arguments(shown.Arguments)
	}
	if v.upstream != nil {
		w.Claimed, w.Connection = v.upstream.TrustHints, v.upstream.Name+", shared by the organisation"
		w.Upstream = askRoute(*v.upstream, shown.Name)
	}
	return w, nil
}

// askRoute is the way of a call to an upstream, which knows the tool by that name.
func askRoute(u store.Upstream, tool string) *web.AskRoute {
	route := &web.AskRoute{Name: u.Name, Host: u.URL, Tool: tool}
	if at, err := url.Parse(u.URL); err == nil && at.Host != "" {
		route.Scheme, route.Host, route.Address = at.Scheme+"://", at.Host, at.RequestURI()
	}
	return route
}

// state is what became of an ask. One of a revoked agent has nobody left to answer to.
func (v askView) state() web.AskState {
	switch v.ask.State {
	case store.AskAllowed:
		return web.AskAllowed
	case store.AskDenied:
		return web.AskDenied
	case store.AskExpired:
		return web.AskExpired
	case store.AskOpen:
		if v.agent.RevokedAt == nil {
			return web.AskWaits
		}
	}
	return web.AskWithdrawn
}

// called is how v's pages call a user: "you", or by that name.
func (v viewer) called(user store.UserID, name string) string {
	switch {
	case user == v.caller.User:
		return "you"
	case name == "":
		return "the operator"
	}
	return name
}

// LiveAsks is GET /live/asks: the stream of the inbox.
func (h *Handler) LiveAsks(w http.ResponseWriter, r *http.Request) error {
	return h.live(w, r, func(ctx context.Context) (scene, error) {
		list, err := h.askList(ctx)
		if err != nil {
			return scene{}, err
		}
		card := parts{"asks": func(now time.Time) templ.Component {
			list.Now = now
			return list.Card()
		}}
		return scene{"asks", card, card}, nil
	})
}

// LiveAsk is GET /live/asks/{id}: the stream of an ask's page, which closes it when it is answered elsewhere. While it
// waits nothing is sent: somebody may have ticked a box.
func (h *Handler) LiveAsk(w http.ResponseWriter, r *http.Request) error {
	id, err := store.ParseID[store.AskKind](r.PathValue("id"))
	if err != nil {
		return err
	}
	return h.live(w, r, func(ctx context.Context) (scene, error) {
		v, err := h.loadAsk(ctx, id)
		if err != nil || v.state() == web.AskWaits {
			return scene{}, err
		}
		if v.ask.Kind != store.AskApproval {
			page, err := h.webConnectionAsk(ctx, v)
			all := parts{"ask-head": page.Head, "ask-decide": page.Decide}
			return scene{string(page.State), all, all}, err
		}
		page, err := h.webAsk(ctx, v)
		if err != nil {
			return scene{}, err
		}
		all := parts{"ask-head": page.Head, "ask-decide": page.Decide}
		return scene{string(page.State), all, all}, nil
	})
}
