package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// ways are the ways that a user has to sign in.
type ways struct {
	password   bool
	passkeys   []store.Passkey
	identities []store.Identity // of whatever provider
	here       int              // identities at the provider there is
}

// one reports whether there is one alone, and no password.
func (w ways) one() bool { return !w.password && len(w.passkeys)+w.here == 1 }

// ways are the viewer's.
func (h *Handler) ways(ctx context.Context) (ways, error) {
	who := viewerOf(ctx)
	user, err := h.c.DB.System().UserByEmail(ctx, who.email)
	if err != nil {
		return ways{}, fmt.Errorf("load user: %w", err)
	}
	p, err := h.person(ctx, user.ID, "", "")
	if err != nil {
		return ways{}, err
	}
	out := ways{password: user.Password != "", passkeys: p.passkeys}
	if out.identities, err = h.c.DB.System().Identities(ctx, user.ID); err != nil {
		return ways{}, fmt.Errorf("load identities of %s: %w", user.ID, err)
	}
	for _, i := range out.identities {
		if i.Issuer == h.issuer() {
			out.here++
		}
	}
	return out, nil
}

func (h *Handler) webIdentity(i store.Identity) web.Identity {
	return web.Identity{
		Name: i.Name, URL: "/settings/identities/" + i.ID.String(), MadeAt: i.CreatedAt, UsedAt: moment(i.LastUsedAt), Elsewhere: i.Issuer != h.issuer(),
	}
}

// IdentityNew is GET /settings/identities/new. Whoever has only found a browser open makes no way in for later.
func (h *Handler) IdentityNew(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	return h.drawIdentityNew(w, r, http.StatusOK, web.Field{Value: h.signOnName()})
}

func (h *Handler) drawIdentityNew(w http.ResponseWriter, r *http.Request, status int, name web.Field) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.IdentityNew{Shell: shell, Provider: h.signOnName(), Name: name}.Page())
}

// IdentityAdd is POST /settings/identities: the way to the provider, from which the identity comes back.
func (h *Handler) IdentityAdd(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, "/settings/identities/new") {
		return nil
	}
	if err := readForm(r); err != nil {
		return err
	}
	name := strings.TrimSpace(r.PostForm.Get("name"))
	if err := store.CheckName("name", name, 80); err != nil {
		ref := reason.Of(err)
		h.c.Refused(r.Context(), ref.Word)
		return h.drawIdentityNew(w, r, ref.Status(), web.Field{Value: name, Error: ref.Message})
	}
	return h.toProvider(w, r, errand{For: toBind, Name: name, User: viewerOf(r.Context()).caller.User.String()})
}

// identityOf is the identity of the viewer's that the path names, and whether it is the only way that they sign in.
func (h *Handler) identityOf(r *http.Request) (i store.Identity, only bool, err error) {
	id, err := store.ParseID[store.IdentityKind](r.PathValue("id"))
	if err != nil {
		return store.Identity{}, false, err
	}
	ways, err := h.ways(r.Context())
	if err != nil {
		return store.Identity{}, false, err
	}
	for _, i := range ways.identities {
		if i.ID == id {
			return i, i.Issuer == h.issuer() && ways.one(), nil
		}
	}
	return store.Identity{}, false, reason.NotFound
}

// IdentityRenamePage is GET /settings/identities/{id}.
func (h *Handler) IdentityRenamePage(w http.ResponseWriter, r *http.Request) error {
	i, _, err := h.identityOf(r)
	if err != nil {
		return err
	}
	return h.drawIdentityRename(w, r, http.StatusOK, i, web.Field{Value: i.Name})
}

func (h *Handler) drawIdentityRename(w http.ResponseWriter, r *http.Request, status int, i store.Identity, name web.Field) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.IdentityRename{Shell: shell, Identity: h.webIdentity(i), Name: name}.Page())
}

// IdentityRename is POST /settings/identities/{id}.
func (h *Handler) IdentityRename(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	i, _, err := h.identityOf(r)
	if err != nil {
		return err
	}
	ctx, name := r.Context(), strings.TrimSpace(r.PostForm.Get("name"))
	err = h.c.DB.System().RenameIdentity(ctx, i.UserID, i.ID, name)
	if ref := reason.Of(err); err != nil && ref.Details["field"] == "name" {
		h.c.Refused(ctx, ref.Word)
		return h.drawIdentityRename(w, r, ref.Status(), i, web.Field{Value: name, Error: ref.Message})
	}
	if err != nil {
		return fmt.Errorf("rename identity %s: %w", i.ID, err)
	}
	return h.doneForAccount(w, r, "It is called "+name+" now.", "Renamed identity %s to %s", i.Name, name)
}

// IdentityRemovePage is GET /settings/identities/{id}/remove: the question before the end, or why there is none.
func (h *Handler) IdentityRemovePage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	i, only, err := h.identityOf(r)
	if err != nil {
		return err
	}
	return h.drawIdentityRemove(w, r, http.StatusOK, i, only)
}

func (h *Handler) drawIdentityRemove(w http.ResponseWriter, r *http.Request, status int, i store.Identity, only bool) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.IdentityRemove{Shell: shell, Provider: h.signOnName(), Identity: h.webIdentity(i), Only: only}.Page())
}

// IdentityRemove is POST /settings/identities/{id}/remove.
func (h *Handler) IdentityRemove(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	i, _, err := h.identityOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	err = h.c.DB.System().RemoveIdentity(ctx, i.UserID, i.ID, h.issuer())
	if ref := reason.Of(err); err != nil && ref.Word == reason.InputInvalid {
		h.c.Refused(ctx, ref.Word)
		return h.drawIdentityRemove(w, r, ref.Status(), i, true)
	}
	if err != nil {
		return fmt.Errorf("remove identity %s: %w", i.ID, err)
	}
	return h.doneForAccount(w, r, i.Name+" is removed.", "Removed identity %s", i.Name)
}
