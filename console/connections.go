package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// Connections is GET /connections. Those of upstreams are on the Upstreams page.
func (h *Handler) Connections(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := viewerOf(ctx)
	var list []store.Connection
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		list, err = tx.Connections(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("load connections: %w", err)
	}
	page := web.Connections{Now: h.c.Now(), Change: v.caller.MayMakeAgents()}
	for _, c := range list {
		if c.UpstreamID.IsZero() {
			page.Rows = append(page.Rows, webConnection(v, c))
		}
	}
	if page.Shell, err = h.shell(ctx, atConnections); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// webConnection is what v's pages say of a connection.
func webConnection(v viewer, c store.Connection) web.Connection {
	w := web.Connection{
		Name: c.DisplayName, Vendor: c.Vendor, URL: "/connections/" + c.ID.String(), Scheme: schemeTitle(c.Scheme), Hosts: c.Hosts, Whose: "shared",
		SetAt: moment(c.SetAt), HealthAt: moment(c.HealthAt), Docs: c.DocsURL,
	}
	switch {
	case c.UserID == v.caller.User && !c.Shared():
		w.Whose = "yours"
	case !c.Shared():
		w.Whose = c.UserName
	}
	if c.SetAt != nil {
		w.SetBy = orOperator(c.SetBy)
	}
	switch c.Status() {
	case "connected":
		w.Status = web.Connected
	case "incomplete":
		w.Status, w.Note = web.Incomplete, "Nobody has entered its credential yet."
	case store.HealthFailing:
		w.Status, w.Note = web.Refused, "The vendor refused its credential. Enter it again."
	default:
		w.Status = web.Revoked
	}
	return w
}

// schemeTitle is what people call a scheme.
func schemeTitle(name string) string {
	if s, err := egress.SchemeNamed(name); err == nil {
		return s.Title
	}
	return name
}

// secretFields are the fields that a person types. Nothing is ever filled in.
func secretFields(s egress.Scheme, errs map[string]string) []web.SchemeField {
	return webFields("secret_", s.Secrets, nil, errs)
}

func configFields(s egress.Scheme, typed, errs map[string]string) []web.SchemeField {
	return webFields("schemeConfig.", s.Config, typed, errs)
}

func webFields(prefix string, fields []egress.Field, typed, errs map[string]string) []web.SchemeField {
	out := make([]web.SchemeField, len(fields))
	for i, f := range fields {
		help := f.Help
		if f.Example != "" {
			help = strings.TrimSpace(help + " Such as " + f.Example + ".")
		}
		if len(f.Options) > 0 {
			help = strings.TrimSpace(help + " One of " + strings.Join(f.Options, ", ") + ".")
		}
		out[i] = web.SchemeField{
			ID: prefix + f.Name, Label: f.Label, Help: help, Optional: f.Optional, Long: f.Long, Field: web.Field{Value: typed[f.Name], Error: errs[prefix+f.Name]},
		}
	}
	return out
}

// read takes the values of a form whose names begin with prefix.
func read(form url.Values, prefix string, fields []egress.Field) map[string]string {
	m := map[string]string{}
	for _, f := range fields {
		m[f.Name] = form.Get(prefix + f.Name)
	}
	return m
}

// ConnectionNew is GET /connections/new: the choice of a scheme, and then its form.
func (h *Handler) ConnectionNew(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if !viewerOf(ctx).caller.MayMakeAgents() {
		return readsOnly()
	}
	page := web.ConnectionNew{Share: viewerOf(ctx).caller.MayManage()}
	page.Shared = page.Share
	if name := r.URL.Query().Get("scheme"); name != "" {
		s, err := egress.SchemeNamed(name)
		if err != nil {
			return reason.NotFound
		}
		page = withScheme(page, s, nil, nil)
	}
	return h.drawConnectionNew(w, r, http.StatusOK, page)
}

func withScheme(page web.ConnectionNew, s egress.Scheme, typed, errs map[string]string) web.ConnectionNew {
	page.Scheme = web.SchemeChoice{Name: s.Name, Title: s.Title, About: s.About}
	page.Config, page.Secrets = configFields(s, typed, errs), secretFields(s, errs)
	return page
}

func (h *Handler) drawConnectionNew(w http.ResponseWriter, r *http.Request, status int, page web.ConnectionNew) (err error) {
	for _, s := range egress.Schemes() {
		page.Choices = append(page.Choices, web.SchemeChoice{Name: s.Name, Title: s.Title, About: s.About})
	}
	if page.Shell, err = h.shell(r.Context(), atConnections); err != nil {
		return err
	}
	return h.draw(w, r, status, page.Page())
}

// ConnectionCreate is POST /connections.
func (h *Handler) ConnectionCreate(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, form := r.Context(), r.PostForm
	c := viewerOf(ctx).caller
	if !c.MayMakeAgents() {
		return readsOnly()
	}
	s, err := egress.SchemeNamed(form.Get("scheme"))
	if err != nil {
		return err
	}
	config := read(form, "schemeConfig.", s.Config)
	filled := map[string]string{}
	for name, value := range config {
		if value != "" {
			filled[name] = value
		}
	}
	page := web.ConnectionNew{
		Vendor: web.Field{Value: plainLine(form.Get("vendor"))}, Name: web.Field{Value: plainLine(form.Get("name"))},
		Primary: web.Field{Value: plainLine(form.Get("primary"))}, Hosts: web.Field{Value: form.Get("hosts")}, Docs: web.Field{Value: plainLine(form.Get("docs"))},
		Share: c.MayManage(), Shared: form.Get("shared") != "",
	}
	made, err := h.c.Connections.Make(ctx, c, connect.Entry{
		Proposal: connect.Proposal{
			Vendor: page.Vendor.Value, DisplayName: page.Name.Value, Scheme: s.Name, Config: filled, PrimaryHost: page.Primary.Value,
			Hosts: readLines(page.Hosts.Value), DocsURL: page.Docs.Value,
		},
		Shared: page.Shared, Fields: read(form, "secret_", s.Secrets),
	})
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		h.c.Refused(ctx, ref.Word)
		field, _ := ref.Details["field"].(string)
		sentence := capital(ref.Message)
		page = withScheme(page, s, config, map[string]string{field: sentence})
		switch field {
		case "vendor":
			page.Vendor.Error = sentence
		case "displayName":
			page.Name.Error = sentence
		case "primaryHost":
			page.Primary.Error = sentence
		case "hosts":
			page.Hosts.Error = sentence
		default:
			if !slices.ContainsFunc(append(page.Config, page.Secrets...), func(f web.SchemeField) bool { return f.Field.Error != "" }) {
				page.Error = sentence
			}
		}
		return h.drawConnectionNew(w, r, ref.Status(), page)
	}
	if err != nil {
		return fmt.Errorf("make connection: %w", err)
	}
	h.changed(ctx, "Connected %s as %s", made.Vendor, made.DisplayName)
	return h.done(w, r, made.DisplayName+" is connected.", "/connections/"+made.ID.String())
}

// connectionOf is the connection that the path names.
func (h *Handler) connectionOf(r *http.Request) (c store.Connection, usage store.Usage, err error) {
	id, err := store.ParseID[store.ConnectionKind](r.PathValue("id"))
	if err != nil {
		return c, usage, err
	}
	ctx := r.Context()
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if c, err = tx.Connection(ctx, id); err != nil {
			return err
		}
		if !c.UpstreamID.IsZero() {
			return reason.NotFound
		}
		usage, err = tx.ConnectionUsage(ctx, id)
		return err
	})
	if err != nil {
		return c, usage, fmt.Errorf("load connection %s: %w", id, err)
	}
	return c, usage, nil
}

func (h *Handler) webConnectionDetail(ctx context.Context, c store.Connection, u store.Usage, errs map[string]string) (web.ConnectionDetail, error) {
	v := viewerOf(ctx)
	page := web.ConnectionDetail{Now: h.c.Now(), Connection: webConnection(v, c), Agents: u.Agents, Answers: u.Tools}
	page.Enter = c.Shared() && v.caller.MayManage() || !c.Shared() && v.caller.MayChange(c.UserID) && v.caller.User == c.UserID
	page.End = c.Shared() && v.caller.MayManage() || !c.Shared() && v.caller.MayChange(c.UserID)
	s, err := egress.SchemeNamed(c.Scheme)
	if err != nil {
		return page, err
	}
	page.Config = configFacts(s, c.Config)
	page.Secrets = secretFields(s, errs)
	return page, nil
}

// configFacts are what a scheme knows of a connection that is no secret.
func configFacts(s egress.Scheme, config map[string]string) (list []web.Argument) {
	for _, f := range s.Config {
		if config[f.Name] != "" {
			list = append(list, web.Argument{Name: f.Label, Value: config[f.Name]})
		}
	}
	return list
}

// Connection is GET /connections/{id}.
func (h *Handler) Connection(w http.ResponseWriter, r *http.Request) error {
	c, u, err := h.connectionOf(r)
	if err != nil {
		return err
	}
	page, err := h.webConnectionDetail(r.Context(), c, u, nil)
	if err != nil {
		return err
	}
	if page.Shell, err = h.shell(r.Context(), atConnections); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// ConnectionCredential is POST /connections/{id}/credential. It brings a revoked connection back.
func (h *Handler) ConnectionCredential(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	c, u, err := h.connectionOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	s, err := egress.SchemeNamed(c.Scheme)
	if err != nil {
		return err
	}
	_, err = h.c.Connections.Enter(ctx, viewerOf(ctx).caller, c.ID, read(r.PostForm, "secret_", s.Secrets), store.AskID{})
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		h.c.Refused(ctx, ref.Word)
		field, _ := ref.Details["field"].(string)
		page, err := h.webConnectionDetail(ctx, c, u, map[string]string{field: capital(ref.Message)})
		if err != nil {
			return err
		}
		if page.Shell, err = h.shell(ctx, atConnections); err != nil {
			return err
		}
		return h.draw(w, r, ref.Status(), page.Page())
	}
	if err != nil {
		return fmt.Errorf("enter credential: %w", err)
	}
	h.changed(ctx, "Entered the credential of %s", c.DisplayName)
	return h.done(w, r, "The credential of "+c.DisplayName+" is saved.", "/connections/"+c.ID.String())
}

// ConnectionRevokePage is GET /connections/{id}/revoke, for browsers without scripts.
func (h *Handler) ConnectionRevokePage(w http.ResponseWriter, r *http.Request) error {
	c, u, err := h.connectionOf(r)
	if err != nil {
		return err
	}
	page, err := h.webConnectionDetail(r.Context(), c, u, nil)
	if err != nil {
		return err
	}
	if !page.End || c.RevokedAt != nil {
		return readsOnly()
	}
	if page.Shell, err = h.shell(r.Context(), atConnections); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.RevokePage())
}

// ConnectionRevoke is POST /connections/{id}/revoke.
func (h *Handler) ConnectionRevoke(w http.ResponseWriter, r *http.Request) error {
	c, _, err := h.connectionOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if !h.fresh(ctx) {
		h.confirmFirst(w, r, "/connections/"+c.ID.String()+"/revoke")
		return nil
	}
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) error { _, err := tx.RevokeConnection(ctx, c.ID); return err })
	if err != nil {
		return fmt.Errorf("revoke connection %s: %w", c.ID, err)
	}
	h.changed(ctx, "Revoked the connection %s to %s", c.DisplayName, c.Vendor)
	return h.done(w, r, c.DisplayName+" is revoked. Its credential is destroyed.", "/connections/"+c.ID.String())
}
