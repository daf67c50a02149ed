package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// webConnectionAsk is the page of an ask for a connection, its credential or its use.
func (h *Handler) webConnectionAsk(ctx context.Context, v askView) (web.ConnectionAsk, error) {
	who, a := viewerOf(ctx), v.ask
	shown, err := h.c.Connections.Show(ctx, who.caller, a)
	if err != nil {
		return web.ConnectionAsk{}, err
	}
	path := "/asks/" + a.ID.String()
	w := web.ConnectionAsk{
		Focus: h.signedInFocus(ctx), Now: h.c.Now(), URL: path, State: v.state(), AskSummary: webAskSummary(a), MadeBy: who.called(v.agent.UserID, v.agent.UserName),
		Kind: web.AskKind(a.Kind), Why: shown.Why, Name: web.Field{Value: shown.DisplayName}, AnsweredBy: a.AnsweredBy, AnsweredAt: moment(a.AnsweredAt),
		Connection: web.Connection{
			Name: shown.DisplayName, Vendor: shown.Vendor, Scheme: schemeTitle(shown.Scheme), Hosts: append([]string{shown.PrimaryHost}, shown.Hosts...), Docs: shown.DocsURL,
		},
	}
	if v.connection != nil && a.Kind != store.AskConnection {
		w.Connection = webConnection(who, *v.connection)
	}
	if w.State != web.AskWaits {
		return w, nil
	}
	w.Live = "/live" + path
	s, err := egress.SchemeNamed(shown.Scheme)
	if err != nil {
		return web.ConnectionAsk{}, err
	}
	w.Config = configFacts(s, shown.Config)
	if a.Kind != store.AskScope {
		w.Secrets = secretFields(s, nil)
	}
	if a.Kind == store.AskConnection {
		w.Others = v.agent.UserID != who.caller.User
		w.Share = !w.Others && who.caller.MayManage()
	}
	return w, nil
}

// answerConnectionAsk is the POST of an ask that is no approval.
func (h *Handler) answerConnectionAsk(w http.ResponseWriter, r *http.Request, v askView) error {
	ctx, form := r.Context(), r.PostForm
	c, id := viewerOf(ctx).caller, v.ask.ID
	shown, err := h.c.Connections.Show(ctx, c, v.ask)
	if err != nil {
		return err
	}
	s, err := egress.SchemeNamed(shown.Scheme)
	if err != nil {
		return err
	}
	fields := read(form, "secret_", s.Secrets)
	line := ""
	switch answer := form.Get("answer"); {
	case answer == "deny":
		_, err = h.c.Connections.Decline(ctx, c, id)
		line = "Answered no to the ask of %s for %s"
	case answer != "allow":
		err = reason.Refuse(reason.InputInvalid, "Nothing was answered. Press one of the buttons.").Field("answer")
	case v.ask.Kind == store.AskScope:
		_, err = h.c.Connections.Allow(ctx, c, id)
		line = "Let %s use the connection to %s"
	case v.ask.Kind == store.AskCredential:
		_, err = h.c.Connections.Enter(ctx, c, v.ask.ConnectionID, fields, id)
		line = "Entered, as asked by %s, the credential of %s"
	default:
		p := shown.Proposal
		p.DisplayName = plainLine(form.Get("name"))
		_, err = h.c.Connections.Make(ctx, c, connect.Entry{Proposal: p, Shared: form.Get("shared") != "", Fields: fields, Ask: id})
		line = "Connected, as asked by %s, %s"
	}
	if ref := reason.Of(err); err != nil && (ref.Details["field"] != nil || ref.Word == reason.ApprovalExpired) {
		return h.drawConnectionAsk(w, r, v, ref)
	}
	if err != nil {
		return fmt.Errorf("answer ask %s: %w", id, err)
	}
	h.changed(ctx, line, v.ask.AgentName, shown.Vendor)
	http.Redirect(w, r, "/asks/"+id.String(), http.StatusSeeOther)
	return nil
}

// drawConnectionAsk draws an ask as the answer to a form that was not taken.
func (h *Handler) drawConnectionAsk(w http.ResponseWriter, r *http.Request, v askView, ref *reason.Refusal) error {
	ctx := r.Context()
	h.c.Refused(ctx, ref.Word)
	if ref.Word == reason.ApprovalExpired {
		var err error
		if v, err = h.loadAsk(ctx, v.ask.ID); err != nil {
			return err
		}
	}
	page, err := h.webConnectionAsk(ctx, v)
	if err != nil {
		return err
	}
	page.Mark, page.Shared = r.PostForm.Get("t"), r.PostForm.Get("shared") != ""
	page.Name.Value = plainLine(r.PostForm.Get("name"))
	field, _ := ref.Details["field"].(string)
	at := slices.IndexFunc(page.Secrets, func(f web.SchemeField) bool { return f.ID == field })
	switch {
	case at >= 0:
		page.Secrets[at].Field.Error = capital(ref.Message)
	case field == "displayName":
		page.Name.Error = capital(ref.Message)
	default:
		page.Error = capital(ref.Message)
	}
	return h.draw(w, r, ref.Status(), page.Page())
}
