package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// A consentForm is what the form of a consent says: which organisation, which agent.
type consentForm struct {
	org   string   // the id; "" is the preset one
	drawn string   // the id of the organisation whose agents the form listed
	old   bool     // an existing agent
	name  string   // of a new one
	which string   // the id of the existing one
	uses  []string // ids of connections that a new one may use
}

func readConsent(v url.Values, app string) consentForm {
	c := consentForm{org: v.Get("org"), drawn: v.Get("drawn"), old: v.Get("agent") == "old", name: plainLine(v.Get("name")), which: v.Get("which"), uses: v["connection"]}
	if !v.Has("name") {
		c.name = consent.AgentName(app)
	}
	return c
}

// plainLine is what was typed into a field of one line.
func plainLine(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""))
}

// url is the address of the page with the choice on it.
func (c consentForm) url(path string) string {
	agent := "new"
	if c.old {
		agent = "old"
	}
	return path + "?" + url.Values{"org": {c.org}, "agent": {agent}, "name": {c.name}, "which": {c.which}, "connection": c.uses}.Encode()
}

// mistakes are what is wrong with a choice: sentences beside the field they are about.
type mistakes struct{ name, which, form string }

// Consent is GET /consent/{request}. It decides nothing.
func (h *Handler) Consent(w http.ResponseWriter, r *http.Request) error {
	p, err := h.look(r)
	if err != nil {
		return h.bounced(w, r, err)
	}
	return h.drawConsent(w, r, http.StatusOK, p, readConsent(r.URL.Query(), p.ClientName), mistakes{})
}

// look reads the request that the path names, for the browser that it began in.
func (h *Handler) look(r *http.Request) (consent.Pending, error) {
	id := r.PathValue("request")
	return h.c.Consent.Look(r.Context(), viewerOf(r.Context()).caller.User, id, consent.BrowserToken(r, id, h.secure))
}

// bounced leads back to a proven app that asked for what it may not have. Chromium holds form-action to every redirect that
// follows a form, and the form was the one to sign in: so this is a page that goes on, as an answer's is.
func (h *Handler) bounced(w http.ResponseWriter, r *http.Request, err error) error {
	var b *consent.Bounce
	if !errors.As(err, &b) {
		return err
	}
	return h.drawOnward(w, r, web.Onward{App: "the app", Told: "what is wrong with what it asked for", URL: b.URL})
}

// drawConsent draws the question. An organisation that is not among those the viewer may make agents in is not found.
func (h *Handler) drawConsent(w http.ResponseWriter, r *http.Request, status int, p consent.Pending, c consentForm, wrong mistakes) error {
	ctx := r.Context()
	page := web.Consent{
		Focus: h.consentFocus(r), Now: h.c.Now(), URL: r.URL.Path, Form: p.Form, App: consent.AppName(p.ClientName),
		Document: document(p.ClientID), Answer: place(p.RedirectURI), ExpiresAt: p.Expires,
		Name: web.Field{Value: c.name, Error: wrong.name}, Old: c.old, Which: web.Field{Value: c.which, Error: wrong.which}, Error: wrong.form,
	}
	orgs, err := h.makesAgentsIn(ctx)
	if err != nil {
		return err
	}
	if len(orgs) == 0 {
		h.c.Refused(ctx, reason.Forbidden)
		return h.draw(w, r, reason.Forbidden.Status(), page.Page())
	}
	in, err := pick(ctx, orgs, c.org)
	if err != nil {
		return err
	}
	page.Org = in.caller.Org.String()
	for _, o := range orgs {
		page.Orgs = append(page.Orgs, web.Choice{Value: o.caller.Org.String(), Label: o.org})
	}
	if page.Agents, err = h.agentChoices(ctx, in); err != nil {
		return err
	}
	page.Old = page.Old && len(page.Agents) > 0
	if page.Connections, err = h.connectionChoices(ctx, in, c.uses); err != nil {
		return err
	}
	return h.draw(w, r, status, page.Page())
}

// consentFocus is the frame of the page: with who is asked, and a way to answer as somebody else.
func (h *Handler) consentFocus(r *http.Request) web.Focus {
	f := h.focus()
	f.User, f.Back = viewerOf(r.Context()).email, r.URL.Path
	return f
}

// makesAgentsIn are the organisations in which the viewer may make agents, as who they are there.
func (h *Handler) makesAgentsIn(ctx context.Context) ([]viewer, error) {
	user := viewerOf(ctx).caller.User
	list, err := h.c.DB.System().Memberships(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("load memberships of %s: %w", user, err)
	}
	var in []viewer
	for _, m := range list {
		if v := newViewer(user, m); v.caller.MayMakeAgents() {
			in = append(in, v)
		}
	}
	return in, nil
}

// pick is the organisation of that id; for "" the one that the viewer acts in, or the first.
func pick(ctx context.Context, orgs []viewer, id string) (viewer, error) {
	want := id
	if want == "" {
		want = viewerOf(ctx).caller.Org.String()
	}
	for _, o := range orgs {
		if o.caller.Org.String() == want {
			return o, nil
		}
	}
	if id == "" && len(orgs) > 0 {
		return orgs[0], nil
	}
	return viewer{}, reason.NotFound
}

// agentChoices are the live agents of an organisation that v may change, the last used first.
func (h *Handler) agentChoices(ctx context.Context, v viewer) ([]web.Choice, error) {
	var agents []store.Agent
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		agents, err = tx.Agents(ctx, store.AgentFilter{Most: agentsShown})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load agents: %w", err)
	}
	var list []web.Choice
	for _, a := range agents {
		if a.RevokedAt != nil || !v.caller.MayChange(a.UserID) {
			continue
		}
		label := a.Name
		if a.UserID != v.caller.User {
			label += ", made by " + a.UserName
		}
		list = append(list, web.Choice{Value: a.ID.String(), Label: label})
	}
	return list, nil
}

// ConsentAnswer is POST /consent/{request}.
func (h *Handler) ConsentAnswer(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	id := r.PathValue("request")
	p, err := h.c.Consent.Answered(r.Context(), viewerOf(r.Context()).caller.User, id, consent.BrowserToken(r, id, h.secure), r.PostForm.Get("form"))
	if err != nil {
		return h.bounced(w, r, err)
	}
	c := readConsent(r.PostForm, p.ClientName)
	switch r.PostForm.Get("answer") {
	case "allow":
		return h.allow(w, r, p, c)
	case "deny":
		return h.deny(w, r, p, c)
	case "choose":
		http.Redirect(w, r, c.url(r.URL.Path), http.StatusSeeOther)
		return nil
	}
	return reason.Refuse(reason.RequestInvalid, "The answer is neither yes nor no. Go back and press Connect or Cancel.")
}

// allow connects the app, in the organisation that the form names.
func (h *Handler) allow(w http.ResponseWriter, r *http.Request, p consent.Pending, c consentForm) error {
	ctx := r.Context()
	orgs, err := h.makesAgentsIn(ctx)
	if err != nil {
		return err
	}
	if len(orgs) == 0 {
		return readsOnly()
	}
	in, err := pick(ctx, orgs, c.org)
	if err != nil {
		return err
	}
	want := consent.Choice{Name: c.name}
	if !c.old && (c.drawn == "" || c.drawn == in.caller.Org.String()) { // else what was ticked is another organisation's
		for _, text := range c.uses {
			id, err := store.ParseID[store.ConnectionKind](text)
			if err != nil {
				return err
			}
			want.Connections = append(want.Connections, id)
		}
	}
	if c.old {
		if c.drawn != "" && c.drawn != in.caller.Org.String() {
			return h.notTaken(w, r, p, c, reason.Refuse(reason.InputInvalid, "Choose the agent again: these are the ones of %s.", in.org).Field("agent"))
		}
		if want.Agent, err = store.ParseID[store.AgentKind](c.which); err != nil {
			return err
		}
	}
	id, to, err := h.c.Consent.Allow(ctx, in.caller, p, want)
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		return h.notTaken(w, r, p, c, ref)
	}
	if err != nil {
		return fmt.Errorf("allow %s: %w", p.ClientID, err)
	}
	http.SetCookie(w, consent.SpentCookie(r.PathValue("request"), h.secure))
	name := h.agentName(ctx, in, id, c.name)
	h.record(ctx, in.caller, audit.Entry{
		Kind: audit.Change, Agent: id, Outcome: audit.OK, Line: fmt.Sprintf("Connected %s to agent %s", appLine(p.ClientName, p.ClientID, p.RedirectURI), name),
	})
	return h.drawOnward(w, r, web.Onward{App: consent.AppName(p.ClientName), Org: in.org, Agent: name, AgentURL: "/agents/" + id.String(), URL: to})
}

// notTaken draws the question again with what was wrong about the answer.
func (h *Handler) notTaken(w http.ResponseWriter, r *http.Request, p consent.Pending, c consentForm, ref *reason.Refusal) error {
	h.c.Refused(r.Context(), ref.Word)
	var wrong mistakes
	switch ref.Details["field"] {
	case "name":
		wrong.name = ref.Message
	case "agent":
		wrong.which = ref.Message
	default:
		wrong.form = ref.Message
	}
	return h.drawConsent(w, r, ref.Status(), p, c, wrong)
}

// agentName is what the agent is called: with a number, where the name was taken. It is connected by then, so where it
// cannot be read what was asked for has to do.
func (h *Handler) agentName(ctx context.Context, v viewer, id store.AgentID, asked string) string {
	var a store.Agent
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		a, err = tx.Agent(ctx, id)
		return err
	})
	if err != nil {
		h.c.Log.WarnContext(ctx, "agent not read", slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)))
		return asked
	}
	return a.Name
}

// deny tells the app no. Whoever is signed in may do that.
func (h *Handler) deny(w http.ResponseWriter, r *http.Request, p consent.Pending, c consentForm) error {
	ctx := r.Context()
	caller := viewerOf(ctx).caller
	if orgs, err := h.makesAgentsIn(ctx); err != nil {
		return err
	} else if in, err := pick(ctx, orgs, c.org); err == nil {
		caller = in.caller
	}
	to, err := h.c.Consent.Deny(ctx, p)
	if err != nil {
		return fmt.Errorf("deny %s: %w", p.ClientID, err)
	}
	http.SetCookie(w, consent.SpentCookie(r.PathValue("request"), h.secure))
	h.record(ctx, caller, audit.Entry{
		Kind: audit.Change, Outcome: audit.OK, Line: "Did not connect " + appLine(p.ClientName, p.ClientID, p.RedirectURI),
	})
	return h.drawOnward(w, r, web.Onward{App: consent.AppName(p.ClientName), Told: "that you did not allow it", URL: to})
}

// drawOnward draws the page that goes on to the app. It is no redirect: Chromium holds form-action to those that follow a
// form, so Connect would do nothing, and an app that is not installed would leave the person with nothing to read.
func (h *Handler) drawOnward(w http.ResponseWriter, r *http.Request, v web.Onward) error {
	v.Focus, v.Host = h.focus(), strings.TrimSuffix(place(v.URL).Host, ":")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has a code in it
	return h.draw(w, r, http.StatusOK, v.Page())
}

// document is the document that a client is identified by; none for one that registered itself.
func document(clientID string) web.Place {
	if !strings.HasPrefix(clientID, "https://") {
		return web.Place{}
	}
	return place(clientID)
}

// place cuts an address up for its page. What an app's own scheme leads to is known by the scheme alone.
func place(address string) web.Place {
	scheme, rest, _ := strings.Cut(address, ":")
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return web.Place{Kind: web.AtScheme, Host: address[:len(address)-len(rest)], After: rest}
	}
	at := strings.TrimLeft(rest, "/")
	host := at
	if end := strings.IndexAny(at, "/?#"); end >= 0 {
		host = at[:end]
	}
	p := web.Place{Before: address[:len(address)-len(at)], Host: host, After: at[len(host):]}
	if scheme == "http" { // the prover lets it through on loopback alone
		p.Kind = web.AtLoop
	}
	return p
}

// appLine names an app in the audit log, with the part of it that is proven.
func appLine(name, clientID, redirectURI string) string {
	known := document(clientID).Host
	if known == "" {
		known = "answer to " + place(redirectURI).Host
	}
	return fmt.Sprintf("%s (%s)", consent.AppName(name), known)
}
