package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// PasskeyNew is GET /settings/passkeys/new. Whoever has only found a browser open makes no way in for later.
func (h *Handler) PasskeyNew(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	return h.drawPasskeyNew(w, r, http.StatusOK, web.PasskeyNew{Name: web.Field{Value: browser(r.UserAgent())}})
}

func (h *Handler) drawPasskeyNew(w http.ResponseWriter, r *http.Request, status int, v web.PasskeyNew) (err error) {
	v.Works, v.Address = h.hasPasskeys(r), h.c.Origin
	if v.Shell, err = h.shell(r.Context(), atSettings); err != nil {
		return err
	}
	return h.draw(w, r, status, v.Page())
}

// PasskeyOptions is POST /settings/passkeys/options: what the browser makes a passkey of.
func (h *Handler) PasskeyOptions(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, "/settings/passkeys/new") {
		return nil
	}
	who := viewerOf(r.Context())
	p, err := h.person(r.Context(), who.caller.User, who.email, who.name)
	if err != nil {
		return err
	}
	return h.askToCreate(w, r, p)
}

// PasskeyAdd is POST /settings/passkeys.
func (h *Handler) PasskeyAdd(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, "/settings/passkeys/new") {
		return nil
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, name := r.Context(), strings.TrimSpace(r.PostForm.Get("name"))
	k, err := h.created(w, r, viewerOf(ctx).caller.User)
	if err == nil {
		k.Name = name
		k, err = h.c.DB.System().AddPasskey(ctx, k)
	}
	ref := reason.Of(err)
	switch field := ref.Details["field"]; {
	case err == nil:
		return h.doneForAccount(w, r, k.Name+" is added. You can sign in with it.", "Added passkey %s", k.Name)
	case field == "name":
		h.c.Refused(ctx, ref.Word)
		return h.drawPasskeyNew(w, r, ref.Status(), web.PasskeyNew{Name: web.Field{Value: name, Error: ref.Message}})
	case field == "passkey" || ref.Word == reason.SignInFailed:
		h.c.Refused(ctx, ref.Word)
		return h.drawPasskeyNew(w, r, ref.Status(), web.PasskeyNew{Name: web.Field{Value: name}, Error: ref.Message})
	}
	return fmt.Errorf("add passkey: %w", err)
}

// refuseScript answers the script of a page with what is wrong, for it to say.
func (h *Handler) refuseScript(w http.ResponseWriter, r *http.Request, ref *reason.Refusal) error {
	h.c.Refused(r.Context(), ref.Word)
	body, err := json.Marshal(map[string]string{"error": ref.Message})
	if err != nil {
		return fmt.Errorf("write refusal: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(ref.Status())
	_, _ = w.Write(body) // else the browser left
	return nil
}

// passkeyOf is the passkey of the viewer's that the path names, and whether it is the only way that they sign in.
func (h *Handler) passkeyOf(r *http.Request) (k store.Passkey, only bool, err error) {
	id, err := store.ParseID[store.PasskeyKind](r.PathValue("id"))
	if err != nil {
		return store.Passkey{}, false, err
	}
	ways, err := h.ways(r.Context())
	if err != nil {
		return store.Passkey{}, false, err
	}
	for _, k := range ways.passkeys {
		if k.ID == id {
			return k, ways.one(), nil
		}
	}
	return store.Passkey{}, false, reason.NotFound
}

// PasskeyRenamePage is GET /settings/passkeys/{id}.
func (h *Handler) PasskeyRenamePage(w http.ResponseWriter, r *http.Request) error {
	k, _, err := h.passkeyOf(r)
	if err != nil {
		return err
	}
	return h.drawPasskeyRename(w, r, http.StatusOK, k, web.Field{Value: k.Name})
}

func (h *Handler) drawPasskeyRename(w http.ResponseWriter, r *http.Request, status int, k store.Passkey, name web.Field) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.PasskeyRename{Shell: shell, Passkey: webPasskey(k), Name: name}.Page())
}

// PasskeyRename is POST /settings/passkeys/{id}.
func (h *Handler) PasskeyRename(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	k, _, err := h.passkeyOf(r)
	if err != nil {
		return err
	}
	ctx, name := r.Context(), strings.TrimSpace(r.PostForm.Get("name"))
	err = h.c.DB.System().RenamePasskey(ctx, k.UserID, k.ID, name)
	if ref := reason.Of(err); err != nil && ref.Details["field"] == "name" {
		h.c.Refused(ctx, ref.Word)
		return h.drawPasskeyRename(w, r, ref.Status(), k, web.Field{Value: name, Error: ref.Message})
	}
	if err != nil {
		return fmt.Errorf("rename passkey %s: %w", k.ID, err)
	}
	return h.doneForAccount(w, r, "It is called "+name+" now.", "Renamed passkey %s to %s", k.Name, name)
}

// PasskeyRemovePage is GET /settings/passkeys/{id}/remove: the question before the end, or why there is none.
func (h *Handler) PasskeyRemovePage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	k, only, err := h.passkeyOf(r)
	if err != nil {
		return err
	}
	return h.drawPasskeyRemove(w, r, http.StatusOK, k, only)
}

func (h *Handler) drawPasskeyRemove(w http.ResponseWriter, r *http.Request, status int, k store.Passkey, only bool) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.PasskeyRemove{Shell: shell, Passkey: webPasskey(k), Only: only}.Page())
}

// PasskeyRemove is POST /settings/passkeys/{id}/remove.
func (h *Handler) PasskeyRemove(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	k, _, err := h.passkeyOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	err = h.c.DB.System().RemovePasskey(ctx, k.UserID, k.ID, h.issuer())
	if ref := reason.Of(err); err != nil && ref.Word == reason.InputInvalid {
		h.c.Refused(ctx, ref.Word)
		return h.drawPasskeyRemove(w, r, ref.Status(), k, true)
	}
	if err != nil {
		return fmt.Errorf("remove passkey %s: %w", k.ID, err)
	}
	return h.doneForAccount(w, r, k.Name+" is removed.", "Removed passkey %s", k.Name)
}
