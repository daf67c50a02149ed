package console

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// SignInPage is GET /signin. Who is signed in already goes on.
func (h *Handler) SignInPage(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	_, ok, err := h.lookUp(r.Context())
	if err != nil {
		return err
	}
	if ok {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	return h.drawSignIn(w, r, http.StatusOK, web.SignIn{Next: next})
}

// drawSignIn completes v and draws it.
func (h *Handler) drawSignIn(w http.ResponseWriter, r *http.Request, status int, v web.SignIn) error {
	v.Focus, v.Passkeys, v.SignOn = h.focus(), h.hasPasskeys(r), h.signOnName()
	if v.Next == "/" {
		v.Next = ""
	}
	o, err := h.c.DB.System().OrganisationByName(r.Context(), "")
	switch ref := reason.Of(err); {
	case err == nil:
		v.OrgName = o.Name
	case ref.Word == reason.NotFoundWord && v.Error == "":
		v.Error = "Nobody has an account here yet. Open the link that Graft printed when it started."
	case ref.Status() >= http.StatusInternalServerError:
		return fmt.Errorf("load organisation: %w", err)
	}
	return h.draw(w, r, status, v.Page())
}

// SignInOptions is POST /signin/passkey: what the browser signs with a passkey, which says whose it is. The same for
// everybody.
func (h *Handler) SignInOptions(w http.ResponseWriter, r *http.Request) error {
	return h.askToSign(w, r, person{})
}

// signInByPasskey is SignIn with what a passkey signed, in place of an address and a password.
func (h *Handler) signInByPasskey(w http.ResponseWriter, r *http.Request, next string) error {
	ctx := r.Context()
	k, err := h.signed(w, r)
	var orgs []store.Membership
	if err == nil {
		if orgs, err = h.c.DB.System().Memberships(ctx, k.UserID); err != nil {
			return fmt.Errorf("load memberships of %s: %w", k.UserID, err)
		}
		err = h.notProven(ctx, reason.NotFound) // of a member nowhere
	}
	if len(orgs) > 0 {
		by := proof{passkey: k.ID}
		if err = h.begin(ctx, w, r, k.UserID, by, orgs[0].Org, ""); err == nil {
			h.recordAs(ctx, newViewer(k.UserID, orgs[0]).caller, "Signed in%s", by.with())
			http.Redirect(w, r, next, http.StatusSeeOther)
			return nil
		}
		if store.IsAbsent(err) { // removed meanwhile
			err = h.notProven(ctx, err)
		}
	}
	ref := reason.Of(err)
	if ref.Word != reason.SignInFailed {
		return err
	}
	h.c.Refused(ctx, ref.Word)
	return h.drawSignIn(w, r, ref.Status(), web.SignIn{Next: next, Error: ref.Message})
}

// SignIn is POST /signin. An address that nobody has, one without a password, a wrong password and a user who is a
// member nowhere get one answer after the same work.
func (h *Handler) SignIn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx := r.Context()
	email, password, next := r.PostForm.Get("email"), r.PostForm.Get("password"), localPath(r.PostForm.Get("next"))
	if r.PostForm.Get("passkey") != "" {
		return h.signInByPasskey(w, r, next)
	}
	if h.c.Tried != nil {
		if err := h.c.Tried(w, r, email); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		user, ok, err := h.authenticate(r, email, password)
		if err != nil {
			return err
		}
		var orgs []store.Membership
		if ok {
			if orgs, err = h.c.DB.System().Memberships(ctx, user.ID); err != nil {
				return fmt.Errorf("load memberships of %s: %w", user.ID, err)
			}
		}
		if len(orgs) > 0 {
			err := h.begin(ctx, w, r, user.ID, proof{password: user.Password}, orgs[0].Org, "")
			if err == nil {
				h.recordAs(ctx, newViewer(user.ID, orgs[0]).caller, "Signed in")
				http.Redirect(w, r, next, http.StatusSeeOther)
				return nil
			}
			if !store.IsAbsent(err) {
				return err
			}
			if try == 1 { // the password or its hash was changed while it was compared
				continue
			}
		}
		h.c.Refused(ctx, reason.SignInFailed)
		return h.drawSignIn(w, r, reason.SignInFailed.Status(), web.SignIn{
			Email: email, Next: next,
			Error: "That email and password do not belong together. Try again, or ask whoever runs Graft for a new link.",
		})
	}
}

// authenticate finds the user whose address and password these are, as they are now.
func (h *Handler) authenticate(r *http.Request, email, password string) (store.User, bool, error) {
	ctx := r.Context()
	var user store.User
	if store.CheckEmail(store.FoldEmail(email)) == nil {
		var err error
		if user, err = h.c.DB.System().UserByEmail(ctx, email); err != nil && !store.IsAbsent(err) {
			return store.User{}, false, fmt.Errorf("load user: %w", err)
		}
	}
	found, err := h.passwords.compare(ctx, user.Password, password)
	if err != nil {
		return store.User{}, false, fmt.Errorf("compare password of %s: %w", user.ID, err)
	}
	if found.right && found.old {
		user.Password = h.rehash(r, user, password)
	}
	return user, found.right, nil
}

// rehash brings a password's hash to today's cost, and returns it. Where that fails the old hash is as good as it was.
func (h *Handler) rehash(r *http.Request, user store.User, password string) string {
	ctx := r.Context()
	phc, err := h.passwords.hash(ctx, password)
	if err == nil {
		err = h.c.DB.System().SetPassword(ctx, user.ID, user.Password, phc)
	}
	if err != nil {
		h.c.Log.WarnContext(ctx, "password not rehashed", slog.String("user", user.ID.String()), slog.Any("err", err),
			slog.String("request_id", h.c.RequestID(ctx)))
		return user.Password
	}
	return phc
}

// SignOut is POST /signout. A page that needs somebody else to sign in says where to go on.
func (h *Handler) SignOut(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	if err := h.end(r.Context(), w); err != nil {
		return err
	}
	h.changed(r.Context(), "Signed out")
	next := "/signin"
	if to := localPath(r.PostForm.Get("next")); to != "/" {
		next = to
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}
