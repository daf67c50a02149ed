package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// confirmedFor is how long after signing in, or confirming who they are, somebody may destroy something.
const confirmedFor = 15 * time.Minute

// fresh reports whether the viewer signed in or confirmed who they are that recently.
func (h *Handler) fresh(ctx context.Context) bool {
	at := h.sessions.GetInt64(ctx, keyConfirmed)
	if !h.sessions.GetBool(ctx, keySignedOn) {
		at = max(at, h.sessions.GetInt64(ctx, keyBegan))
	}
	return h.c.Now().Sub(time.Unix(at, 0)) <= confirmedFor
}

// confirmFirst leads a viewer who is not fresh to confirm who they are, and then to next, and reports whether it did. A
// handler calls it before it destroys something, and so does the one of the page that asks whether to: next is that page,
// so that nothing which was posted is lost on the way.
func (h *Handler) confirmFirst(w http.ResponseWriter, r *http.Request, next string) bool {
	if h.fresh(r.Context()) {
		return false
	}
	http.Redirect(w, r, "/confirm?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
	return true
}

// ConfirmPage is GET /confirm. Who is fresh already goes on.
func (h *Handler) ConfirmPage(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	if h.fresh(r.Context()) {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	return h.drawConfirm(w, r, http.StatusOK, web.Confirm{Next: next})
}

// drawConfirm completes v and draws it.
func (h *Handler) drawConfirm(w http.ResponseWriter, r *http.Request, status int, v web.Confirm) error {
	page, err := h.confirmWays(r)
	if err != nil {
		return err
	}
	page.Next, page.Error = v.Next, v.Error
	return h.draw(w, r, status, page.Page())
}

// confirmWays is the page with the ways that the viewer may confirm by. The provider is one where there is no other.
func (h *Handler) confirmWays(r *http.Request) (web.Confirm, error) {
	ways, err := h.ways(r.Context())
	v := web.Confirm{
		Focus: h.focus(), Email: viewerOf(r.Context()).email, Password: ways.password, Passkeys: len(ways.passkeys) > 0 && h.hasPasskeys(r),
	}
	if !v.Password && !v.Passkeys && ways.here > 0 {
		v.SignOn = h.signOnName()
	}
	return v, err
}

// ConfirmOptions is POST /confirm/passkey: what the browser signs with a passkey of the viewer's.
func (h *Handler) ConfirmOptions(w http.ResponseWriter, r *http.Request) error {
	who := viewerOf(r.Context())
	p, err := h.person(r.Context(), who.caller.User, who.email, who.name)
	if err != nil {
		return err
	}
	if len(p.passkeys) == 0 {
		return reason.NotFound
	}
	return h.askToSign(w, r, p)
}

// Confirm is POST /confirm. Its session goes on under a new cookie: whoever had a copy of the old one has confirmed
// nothing.
func (h *Handler) Confirm(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, next := r.Context(), localPath(r.PostForm.Get("next"))
	by, err := h.prove(w, r)
	if ref := reason.Of(err); err != nil && ref.Word == reason.SignInFailed {
		h.c.Refused(ctx, ref.Word)
		return h.drawConfirm(w, r, ref.Status(), web.Confirm{Next: next, Error: ref.Message})
	}
	if err != nil {
		return err
	}
	return h.confirmed(ctx, w, r, by, next)
}

// confirmed ends a confirmation: the viewer proved who they are.
func (h *Handler) confirmed(ctx context.Context, w http.ResponseWriter, r *http.Request, by proof, next string) error {
	now := h.c.Now()
	h.sessions.Put(ctx, keyConfirmed, now.Unix())
	err := h.renew(ctx, w, by, time.Unix(h.sessions.GetInt64(ctx, keyBegan), 0).Add(sessionLife).Sub(now))
	if store.IsAbsent(err) { // what proved it was changed meanwhile
		toSignIn(w, r)
		return nil
	}
	if err != nil {
		return err
	}
	h.changed(ctx, "Confirmed who they are%s", by.with())
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// prove finds what the form proves the viewer with. What proves nothing, or somebody else, is reason.SignInFailed.
func (h *Handler) prove(w http.ResponseWriter, r *http.Request) (proof, error) {
	who := viewerOf(r.Context())
	if r.PostForm.Get("passkey") != "" {
		k, err := h.signed(w, r)
		if err == nil && k.UserID != who.caller.User {
			err = h.notProven(r.Context(), reason.NotFound)
		}
		return proof{passkey: k.ID}, err
	}
	if h.c.Tried != nil {
		if err := h.c.Tried(w, r, who.email); err != nil {
			return proof{}, err
		}
	}
	user, ok, err := h.authenticate(r, who.email, r.PostForm.Get("password"))
	if err == nil && !ok {
		err = reason.Refuse(reason.SignInFailed, "That is not your password. Try again.")
	}
	return proof{password: user.Password}, err
}
