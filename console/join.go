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

// An invitation is an invite that works, and who is signed in in the browser that opened its link.
type invitation struct {
	store.Invitation
	token  string
	viewer viewer
	in     bool // somebody is signed in
}

// invitation looks at the invite of the request and uses nothing up.
func (h *Handler) invitation(r *http.Request) (invitation, error) {
	return h.invitationOf(r.Context(), r.PathValue("token"))
}

func (h *Handler) invitationOf(ctx context.Context, token string) (i invitation, err error) {
	i.token = token
	if !store.WellFormed(store.InviteTokenPrefix, i.token) {
		return i, reason.Refuse(reason.LinkNotValid, "This invite was used or withdrawn, or has expired.")
	}
	if i.Invitation, err = h.c.DB.System().Invitation(ctx, i.token); err != nil {
		return i, fmt.Errorf("load invite: %w", err)
	}
	i.viewer, i.in, err = h.lookUp(ctx)
	return i, err
}

func (h *Handler) joinPage(i invitation) web.Join {
	page := web.Join{
		Focus: h.focus(), Action: "/invite/" + i.token, OrgName: i.OrgName, MadeBy: i.MadeBy, Role: string(i.Role), Email: web.Field{Value: i.Email}, SignOn: h.signOnName(),
	}
	if i.in {
		page.As = i.viewer.email
	}
	return page
}

// inviteFailed draws what has become of an invite's link; other errors it returns.
func (h *Handler) inviteFailed(w http.ResponseWriter, r *http.Request, err error) error {
	if ref := reason.Of(err); ref.Word == reason.LinkNotValid {
		h.c.Refused(r.Context(), ref.Word)
		return h.draw(w, r, ref.Status(), web.InviteDead{Focus: h.focus()}.Page())
	}
	return err
}

// JoinPage is GET /invite/{token}. Who is signed out sees one form, whether or not the address has an account: whoever
// made the invite can look too, and learns nothing.
func (h *Handler) JoinPage(w http.ResponseWriter, r *http.Request) error {
	i, err := h.invitation(r)
	if err != nil {
		return h.inviteFailed(w, r, err)
	}
	return h.draw(w, r, http.StatusOK, h.joinPage(i).Page())
}

// Join is POST /invite/{token}: it uses the invite up and signs in.
func (h *Handler) Join(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	i, err := h.invitation(r)
	if err != nil {
		return h.inviteFailed(w, r, err)
	}
	if i.in {
		return h.inviteFailed(w, r, h.joinSignedIn(w, r, i))
	}
	if r.PostForm.Get("known") != "" {
		return h.inviteFailed(w, r, h.joinByPassword(w, r, i))
	}
	return h.inviteFailed(w, r, h.joinByForm(w, r, i))
}

// joinSignedIn joins with the account that is signed in.
func (h *Handler) joinSignedIn(w http.ResponseWriter, r *http.Request, i invitation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wholeTime)
	defer cancel()
	_, _, err := h.c.DB.System().Join(ctx, i.token, store.Joining{User: i.viewer.caller.User})
	if ref := reason.Of(err); err != nil && ref.Word == reason.Forbidden { // the page says whose it is
		h.c.Refused(ctx, ref.Word)
		return h.draw(w, r, ref.Status(), h.joinPage(i).Page())
	}
	if err != nil {
		return fmt.Errorf("join by invite: %w", err)
	}
	m, err := h.joined(ctx, i.viewer.caller.User, i)
	if err != nil {
		return err
	}
	h.noteSignIn(ctx, i.viewer.caller.User, m.Org)
	h.sessions.Put(ctx, keyOrg, m.Org.String())
	return h.done(w, r.WithContext(ctx), joinedFlash(m), "/")
}

// joinByPassword joins with an account whose password is given, as SignIn takes it.
func (h *Handler) joinByPassword(w http.ResponseWriter, r *http.Request, i invitation) error {
	ctx := r.Context()
	if h.c.Tried != nil {
		if err := h.c.Tried(w, r, i.Email); err != nil {
			return err
		}
	}
	user, ok, err := h.authenticate(r, i.Email, r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if !ok {
		h.c.Refused(ctx, reason.SignInFailed)
		return h.drawKnown(w, r, i, reason.SignInFailed.Status())
	}
	return h.joinAs(w, r, i, store.Joining{User: user.ID}, proof{password: user.Password})
}

// drawKnown draws the invite of an address that has an account.
func (h *Handler) drawKnown(w http.ResponseWriter, r *http.Request, i invitation, status int) error {
	page := h.joinPage(i)
	page.Known, page.Error = true, i.Email+" has an account already. Enter its password. If you do not know it, whoever runs Graft makes a new link."
	if r.PostForm.Get("known") != "" {
		page.Error = "That is not the password of this account. Try again, or ask whoever runs Graft for a new link."
	}
	return h.draw(w, r, status, page.Page())
}

// joinByForm joins with the name and the password of the form: those of a new account, or the password that the address has
// already. The form is held to its rules first, so that nobody learns which it is by sending one that makes nothing.
func (h *Handler) joinByForm(w http.ResponseWriter, r *http.Request, i invitation) error {
	ctx, page, password := r.Context(), h.joinPage(i), r.PostForm.Get("password")
	wrong := 0
	page.Name.Value = strings.TrimSpace(r.PostForm.Get("name"))
	if err := store.CheckName("name", page.Name.Value, 80); err != nil {
		page.Name.Error = reason.Of(err).Message
		wrong++
	}
	local, _, _ := strings.Cut(i.Email, "@")
	if page.Password.Error = checkPassword(password, i.Email, local, page.Name.Value, i.OrgName); page.Password.Error != "" {
		wrong++
	}
	if wrong > 0 {
		page.Error = "Nothing was made yet. " + anotherLook(wrong)
		return h.draw(w, r, reason.InputInvalid.Status(), page.Page())
	}
	u, err := h.c.DB.System().UserByEmail(ctx, i.Email)
	switch {
	case err == nil && u.Password != "":
		return h.joinByPassword(w, r, i)
	case err != nil && !store.IsAbsent(err):
		return fmt.Errorf("load user: %w", err)
	}
	phc, err := h.passwords.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	return h.joinAs(w, r, i, store.Joining{Name: page.Name.Value, Password: phc}, proof{password: phc})
}

// joinAs uses the invite up and signs in. From here on the browser's leaving hides nothing.
func (h *Handler) joinAs(w http.ResponseWriter, r *http.Request, i invitation, in store.Joining, by proof) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wholeTime)
	defer cancel()
	user, _, err := h.c.DB.System().Join(ctx, i.token, in)
	if ref := reason.Of(err); err != nil && ref.Word == reason.NameTaken && ref.Details["field"] == "email" {
		h.c.Refused(ctx, ref.Word)
		return h.drawKnown(w, r, i, ref.Status())
	}
	if err != nil {
		return fmt.Errorf("join by invite: %w", err)
	}
	if in.Identity != nil {
		by.identity, by.seen = in.Identity.ID, h.c.Now() // with nothing to lose yet, they may add another way in
	}
	m, err := h.joined(ctx, user, i)
	if err != nil {
		return err
	}
	if err := h.begin(ctx, w, r, user, by, m.Org, joinedFlash(m)); err != nil {
		return fmt.Errorf("sign in by an invite: %w", err)
	}
	h.recordAs(ctx, newViewer(user, m).caller, "Signed in%s", by.with())
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// joined writes down that user joined, and returns the membership.
func (h *Handler) joined(ctx context.Context, user store.UserID, i invitation) (store.Membership, error) {
	list, err := h.c.DB.System().Memberships(ctx, user)
	if err != nil {
		return store.Membership{}, fmt.Errorf("load memberships of %s: %w", user, err)
	}
	for _, m := range list {
		if m.Org == i.Org {
			h.recordAs(ctx, newViewer(user, m).caller, "Joined by an invite of %s, as %s", i.MadeBy, m.Role)
			return m, nil
		}
	}
	return store.Membership{}, reason.Refuse(reason.LinkNotValid, "Who joined by this invite was removed again.")
}

func joinedFlash(m store.Membership) string {
	return fmt.Sprintf("You are in %s now, as %s.", m.OrgName, m.Role)
}
