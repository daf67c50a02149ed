package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/web"
)

// Upstreams is GET /upstreams.
func (h *Handler) Upstreams(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	page, err := h.upstreamList(ctx)
	if err != nil {
		return err
	}
	if page.Shell, err = h.shell(ctx, atUpstreams); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// upstreamList reads the page of upstreams and secrets, all but its shell.
func (h *Handler) upstreamList(ctx context.Context) (web.Upstreams, error) {
	c := viewerOf(ctx).caller
	page := web.Upstreams{Now: h.c.Now(), Change: c.MayManage()}
	var list []store.Upstream
	var secrets []store.Secret
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		if list, err = tx.Upstreams(ctx); err != nil {
			return err
		}
		secrets, err = tx.Secrets(ctx)
		return err
	})
	if err != nil {
		return page, fmt.Errorf("load upstreams: %w", err)
	}
	for _, u := range list {
		if u.RevokedAt == nil {
			page.Rows = append(page.Rows, webUpstream(u))
		}
	}
	for _, s := range secrets {
		page.Secrets.Rows = append(page.Secrets.Rows, webSecret(s))
	}
	return page, nil
}

func webUpstream(u store.Upstream) web.Upstream {
	w := web.Upstream{
		Name: u.Name, URL: "/upstreams/" + u.ID.String(), Address: u.URL, Health: web.NotTried, Tools: u.Tools, LeftOut: u.LeftOut,
		ListedAt: moment(u.LastListedAt), Error: u.LastError, AddedBy: orOperator(u.CreatedBy), AddedAt: u.CreatedAt,
	}
	switch u.State {
	case store.UpstreamOK:
		w.Health = web.Healthy
	case store.UpstreamFailing:
		w.Health, w.Next = web.Failing, whatNext(u)
	}
	return w
}

// whatNext is what to do about an upstream that cannot be listed.
func whatNext(u store.Upstream) string {
	if len(u.Unset) > 0 {
		return "Save " + strings.Join(u.Unset, ", ") + " on the Upstreams page, then test."
	}
	switch reason.Word(u.LastErrorWord) {
	case reason.UpstreamUnauthorized:
		return "Save the secret that its headers name anew, or replace the headers, then test."
	case reason.UpstreamUnavailable, reason.Timeout:
		return "The gateway tries again by itself. See whether the server runs and is reachable from here, then test."
	case reason.HostNotPublic:
		return "Use an address that is reachable from the internet, or ask whoever runs Graft to allow the network."
	}
	return "Mend it there, then test."
}

// UpstreamNew is GET /upstreams/new.
func (h *Handler) UpstreamNew(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if !viewerOf(ctx).caller.MayManage() {
		return readsOnly()
	}
	shell, err := h.shell(ctx, atUpstreams)
	if err != nil {
		return err
	}
	page := web.UpstreamNew{Shell: shell, Headers: moreRows(nil)}
	if page.Secrets, err = h.secretNames(ctx); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

func (h *Handler) secretNames(ctx context.Context) ([]string, error) {
	list, err := h.secrets(ctx)
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return names, err
}

// UpstreamCreate is POST /upstreams. One that cannot be reached is kept: its page says why.
func (h *Handler) UpstreamCreate(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, form := r.Context(), r.PostForm
	c := viewerOf(ctx).caller
	if !c.MayManage() {
		return readsOnly()
	}
	typed := readHeaders(form)
	page := web.UpstreamNew{
		Name: web.Field{Value: strings.TrimSpace(form.Get("name"))}, Address: web.Field{Value: strings.TrimSpace(form.Get("url"))},
		TrustHints: form.Get("trust_hints") != "", ListAll: form.Get("list_all") != "",
		Include: web.Field{Value: form.Get("include")}, Exclude: web.Field{Value: form.Get("exclude")}, Headers: shownAgain(typed),
	}
	if form.Get("more") != "" {
		page.Headers = moreRows(page.Headers)
		return h.drawUpstreamNew(w, r, http.StatusOK, page)
	}
	u, err := h.c.Upstreams.Add(ctx, c, upstream.Addition{
		Name: page.Name.Value, URL: page.Address.Value, Headers: typed.filled(), Settings: readSettings(form, store.UpstreamSettings{}),
	})
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		h.c.Refused(ctx, ref.Word)
		sentence := capital(ref.Message)
		switch ref.Details["field"] {
		case "name":
			page.Name.Error = sentence
		case "url":
			page.Address.Error = sentence
		case "include":
			page.Include.Error = sentence
		case "exclude":
			page.Exclude.Error = sentence
		case "header":
			page.Headers = blame(page.Headers, sentence)
		default:
			page.Error = sentence
		}
		return h.drawUpstreamNew(w, r, ref.Status(), page)
	}
	if err != nil {
		return fmt.Errorf("add upstream: %w", err)
	}
	h.changed(ctx, "Added upstream %s", u.Name)
	r = whileThere(r)
	if u, err = h.c.Upstreams.Try(r.Context(), c, u.ID); err != nil {
		return fmt.Errorf("list the upstream that was added: %w", err)
	}
	at := "/upstreams/" + u.ID.String()
	if u.State == store.UpstreamOK {
		return h.done(w, r, u.Name+" is added. "+offers(u.Tools), at)
	}
	return h.done(w, r, u.Name+" is added, and cannot be reached yet.", at)
}

func offers(tools int) string {
	if tools == 1 {
		return "It offers 1 tool."
	}
	return fmt.Sprintf("It offers %d tools.", tools)
}

func (h *Handler) drawUpstreamNew(w http.ResponseWriter, r *http.Request, status int, page web.UpstreamNew) (err error) {
	if page.Shell, err = h.frame(r.Context(), atUpstreams); err != nil {
		return err
	}
	if page.Secrets, err = h.secretNames(r.Context()); err != nil {
		return err
	}
	return h.draw(w, r, status, page.Page())
}

// upstreamOf is the live upstream that the path names.
func (h *Handler) upstreamOf(r *http.Request) (u store.Upstream, err error) {
	id, err := store.ParseID[store.UpstreamKind](r.PathValue("id"))
	if err != nil {
		return u, err
	}
	ctx := r.Context()
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		u, err = tx.Upstream(ctx, id)
		return err
	})
	if err == nil && u.RevokedAt != nil {
		err = reason.NotFound
	}
	if err != nil {
		return u, fmt.Errorf("load upstream %s: %w", id, err)
	}
	return u, nil
}

// managedUpstream is upstreamOf for somebody who may change it.
func (h *Handler) managedUpstream(r *http.Request) (store.Upstream, error) {
	u, err := h.upstreamOf(r)
	if err == nil && !viewerOf(r.Context()).caller.MayManage() {
		err = readsOnly()
	}
	return u, err
}

// Upstream is GET /upstreams/{id}.
func (h *Handler) Upstream(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	u, err := h.upstreamOf(r)
	if err != nil {
		return err
	}
	page := web.UpstreamDetail{
		Now: h.c.Now(), Upstream: webUpstream(u), Show: web.ToolFilter(r.URL.Query().Get("show")), Headers: u.Headers, TrustHints: u.TrustHints,
		Listed: listing(u), Include: u.IncludeTools, Exclude: u.ExcludeTools, Change: viewerOf(ctx).caller.MayManage(),
	}
	if page.Tools, err = h.upstreamTools(ctx, u); err != nil {
		return err
	}
	secrets, err := h.secrets(ctx)
	if err != nil {
		return err
	}
	for _, s := range secrets {
		for _, user := range s.UsedBy {
			if user == u.Name {
				page.Uses = append(page.Uses, s.Name)
			}
		}
	}
	if page.Shell, err = h.shell(ctx, atUpstreams); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

func listing(u store.Upstream) web.Listing {
	switch {
	case u.ListAll == nil:
		return web.ListedUnknown
	case *u.ListAll:
		return web.ListedAll
	}
	return web.ListedNone
}

// upstreamTools is what an upstream lists, with what of it agents can use.
func (h *Handler) upstreamTools(ctx context.Context, u store.Upstream) ([]web.UpstreamTool, error) {
	c := viewerOf(ctx).caller
	var rows []store.UpstreamTool
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		rows, err = tx.UpstreamTools(ctx, u.ID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load tools of upstream %s: %w", u.ID, err)
	}
	offered, err := h.c.Upstreams.Tools(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("load effects of upstream %s: %w", u.ID, err)
	}
	effects := map[string]web.Effects{}
	for _, t := range offered {
		if t.Vendor == u.Name {
			effects[t.Original] = effectsOf(t)
		}
	}
	tools := make([]web.UpstreamTool, 0, len(rows))
	for _, row := range rows {
		t := web.UpstreamTool{
			Name: u.Name + "__" + row.Name, Original: row.Original, Summary: summary(row), Effects: effects[row.Original], Version: int(row.Version), LeftOut: row.LeftOut,
		}
		if t.Effects == "" {
			t.Effects = web.Destroys // as every tool is that nobody vouches for
		}
		if row.GoneAt != nil {
			t.LeftOut = "The upstream no longer lists it."
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// summary is the first line of what a tool says of itself, cut to be read at a glance.
func summary(t store.UpstreamTool) string {
	text := t.Description
	if t.Override != "" {
		text = t.Override
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 160
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// UpstreamTest is POST /upstreams/{id}/test: it connects and lists anew. What is wrong stands on the upstream's page.
func (h *Handler) UpstreamTest(w http.ResponseWriter, r *http.Request) error {
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	r = whileThere(r)
	ctx, at := r.Context(), "/upstreams/"+u.ID.String()
	err = h.c.Upstreams.Refresh(ctx, viewerOf(ctx).caller, u.ID)
	if ref := reason.Of(err); err != nil {
		switch ref.Word {
		case reason.Internal, reason.Unavailable, reason.NotFoundWord, reason.Forbidden:
			return fmt.Errorf("test upstream %s: %w", u.ID, err)
		}
		http.Redirect(w, r, at, http.StatusSeeOther)
		return nil
	}
	if u, err = h.upstreamOf(r); err != nil {
		return err
	}
	return h.done(w, r, u.Name+" answers. "+offers(u.Tools), at)
}

// UpstreamRemovePage is GET /upstreams/{id}/remove: the question before the end.
func (h *Handler) UpstreamRemovePage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	shell, err := h.shell(r.Context(), atUpstreams)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.UpstreamRemove{Shell: shell, Upstream: webUpstream(u)}.Page())
}

// UpstreamRemove is POST /upstreams/{id}/remove.
func (h *Handler) UpstreamRemove(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if err := h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) error { return tx.RevokeUpstream(ctx, u.ID) }); err != nil {
		return fmt.Errorf("remove upstream %s: %w", u.ID, err)
	}
	h.changed(ctx, "Removed upstream %s", u.Name)
	return h.done(w, r, u.Name+" is removed.", "/upstreams")
}

// capital is a sentence as it begins.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}
