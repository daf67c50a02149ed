package console

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// UpstreamChangePage is GET /upstreams/{id}/change.
func (h *Handler) UpstreamChangePage(w http.ResponseWriter, r *http.Request) error {
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	shell, err := h.shell(r.Context(), atUpstreams)
	if err != nil {
		return err
	}
	page := changePage(u)
	page.Shell = shell
	if page.Secrets, err = h.secretNames(r.Context()); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// changePage is the page that changes u, as it stands.
func changePage(u store.Upstream) web.UpstreamChange {
	page := web.UpstreamChange{
		Upstream: webUpstream(u), TrustHints: u.TrustHints, ListAll: u.ListAll != nil && *u.ListAll,
		Include: web.Field{Value: strings.Join(u.IncludeTools, "\n")}, Exclude: web.Field{Value: strings.Join(u.ExcludeTools, "\n")},
	}
	for _, name := range u.Headers {
		page.Headers = append(page.Headers, web.Header{Name: web.Field{Value: name}})
	}
	page.Headers = append(page.Headers, web.Header{})
	return page
}

// UpstreamSettings is POST /upstreams/{id}/settings.
func (h *Handler) UpstreamSettings(w http.ResponseWriter, r *http.Request) error {
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, form := r.Context(), r.PostForm
	in := readSettings(form, store.UpstreamSettings{ConnectSeconds: u.ConnectSeconds, CallSeconds: u.CallSeconds})
	all := form.Get("list_all") != ""
	in.ListAll = &all
	err = h.c.Upstreams.Change(ctx, viewerOf(ctx).caller, u.ID, in)
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		page := changePage(u)
		page.TrustHints, page.ListAll, page.Include.Value, page.Exclude.Value = in.TrustHints, all, form.Get("include"), form.Get("exclude")
		switch ref.Details["field"] {
		case "include":
			page.Include.Error = capital(ref.Message)
		case "exclude":
			page.Exclude.Error = capital(ref.Message)
		default:
			page.Error = capital(ref.Message)
		}
		return h.drawChange(w, r, ref, page)
	}
	if err != nil {
		return fmt.Errorf("change upstream %s: %w", u.ID, err)
	}
	h.changed(ctx, "Changed the settings of upstream %s", u.Name)
	r = whileThere(r)
	if _, err := h.c.Upstreams.Try(r.Context(), viewerOf(ctx).caller, u.ID); err != nil {
		return fmt.Errorf("list upstream %s: %w", u.ID, err)
	}
	return h.done(w, r, "The settings of "+u.Name+" are saved.", "/upstreams/"+u.ID.String())
}

// UpstreamHeaders is POST /upstreams/{id}/headers. It replaces all of them.
func (h *Handler) UpstreamHeaders(w http.ResponseWriter, r *http.Request) error {
	u, err := h.managedUpstream(r)
	if err != nil {
		return err
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, c := r.Context(), viewerOf(r.Context()).caller
	typed := readHeaders(r.PostForm)
	page := changePage(u)
	page.Headers = shownAgain(typed)
	if r.PostForm.Get("more") != "" {
		page.Headers = moreRows(page.Headers)
		return h.drawChange(w, r, nil, page)
	}
	err = h.c.Upstreams.SetHeaders(ctx, c, u.ID, typed.filled())
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		page.Headers = blame(page.Headers, capital(ref.Message))
		return h.drawChange(w, r, ref, page)
	}
	if err != nil {
		return fmt.Errorf("set headers of upstream %s: %w", u.ID, err)
	}
	h.changed(ctx, "Replaced the headers of upstream %s", u.Name)
	r = whileThere(r)
	if _, err := h.c.Upstreams.Try(r.Context(), c, u.ID); err != nil {
		return fmt.Errorf("list upstream %s: %w", u.ID, err)
	}
	return h.done(w, r, "The headers of "+u.Name+" are replaced.", "/upstreams/"+u.ID.String())
}

// drawChange draws the page again; ref is nil where nothing was refused.
func (h *Handler) drawChange(w http.ResponseWriter, r *http.Request, ref *reason.Refusal, page web.UpstreamChange) (err error) {
	status := http.StatusOK
	if ref != nil {
		h.c.Refused(r.Context(), ref.Word)
		status = ref.Status()
	}
	if page.Shell, err = h.frame(r.Context(), atUpstreams); err != nil {
		return err
	}
	if page.Secrets, err = h.secretNames(r.Context()); err != nil {
		return err
	}
	return h.draw(w, r, status, page.Page())
}
