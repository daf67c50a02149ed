package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/web"
)

// pasted is a secret as it was meant: without the byte order mark, the line break and the word Bearer that come along
// when one copies it.
func pasted(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "\ufeff"))
	const scheme = "bearer "
	if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
		s = strings.TrimSpace(s[len(scheme):])
	}
	return s
}

// SecretSet is POST /secrets. A name that is there gets the new value.
func (h *Handler) SecretSet(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx := r.Context()
	name := strings.TrimSpace(r.PostForm.Get("name"))
	made, err := h.c.Upstreams.SetSecret(ctx, viewerOf(ctx).caller, name, vault.NewSecret([]byte(pasted(r.PostForm.Get("secret")))))
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil {
		h.c.Refused(ctx, ref.Word)
		page, err := h.upstreamList(ctx)
		if err != nil {
			return err
		}
		page.Secrets.Name.Value = name
		if ref.Details["field"] == "name" {
			page.Secrets.Name.Error = ref.Message
		} else {
			page.Secrets.Secret.Error = ref.Message
		}
		if page.Shell, err = h.frame(ctx, atUpstreams); err != nil {
			return err
		}
		return h.draw(w, r, ref.Status(), page.Page())
	}
	if err != nil {
		return fmt.Errorf("set secret: %w", err)
	}
	h.changed(ctx, "Set secret %s", name)
	if made {
		return h.done(w, r, name+" is saved.", "/upstreams")
	}
	return h.done(w, r, name+" has its new value. New connections use it.", "/upstreams")
}

// secretOf is the secret that the path names, for somebody who may change it.
func (h *Handler) secretOf(r *http.Request) (store.Secret, error) {
	ctx := r.Context()
	id, err := store.ParseID[store.SecretKind](r.PathValue("id"))
	if err != nil {
		return store.Secret{}, err
	}
	list, err := h.secrets(ctx)
	if err != nil {
		return store.Secret{}, err
	}
	at := slices.IndexFunc(list, func(s store.Secret) bool { return s.ID == id })
	switch {
	case at < 0:
		return store.Secret{}, reason.NotFound
	case !viewerOf(ctx).caller.MayManage():
		return store.Secret{}, readsOnly()
	}
	return list[at], nil
}

func (h *Handler) secrets(ctx context.Context) (list []store.Secret, err error) {
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		list, err = tx.Secrets(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load secrets: %w", err)
	}
	return list, nil
}

// SecretRemovePage is GET /secrets/{id}/remove: the question before the end.
func (h *Handler) SecretRemovePage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	s, err := h.secretOf(r)
	if err != nil {
		return err
	}
	shell, err := h.shell(r.Context(), atUpstreams)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.SecretRemove{Shell: shell, Secret: webSecret(s)}.Page())
}

// SecretRemove is POST /secrets/{id}/remove.
func (h *Handler) SecretRemove(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	s, err := h.secretOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if err := h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) error { return tx.RemoveSecret(ctx, s.Name) }); err != nil {
		return fmt.Errorf("remove secret %s: %w", s.ID, err)
	}
	h.changed(ctx, "Removed secret %s", s.Name)
	return h.done(w, r, s.Name+" is removed.", "/upstreams")
}

func webSecret(s store.Secret) web.OrgSecret {
	return web.OrgSecret{Name: s.Name, URL: "/secrets/" + s.ID.String(), UsedBy: s.UsedBy, SetBy: orOperator(s.SetBy), SetAt: s.SetAt}
}

// orOperator is who did something; with the CLI that is whoever runs Graft.
func orOperator(name string) string {
	if name == "" {
		return "the operator"
	}
	return name
}
