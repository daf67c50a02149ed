package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/oidc"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// SignOn is the provider where people may sign in.
type SignOn struct {
	Provider *oidc.Provider
	Name     string // as pages call it
}

// errandLife is how long a person has at the provider.
const errandLife = 10 * time.Minute

// What a browser is sent to the provider for.
const (
	toSignOn  = "sign in"
	toBind    = "bind"
	toConfirm = "confirm"
	toJoin    = "join"
)

// An errand is one way of a browser to the provider and back. It is kept under the hash of a cookie, from which alone state,
// nonce and verifier follow; what is kept proves nothing to anybody.
type errand struct {
	For    string
	Next   string    // where to go after
	User   string    // of the account that an identity is bound to, or that confirms
	Name   string    // of the identity that is bound, or of the person who joins
	Invite []byte    // the hash of the invite's token, which the cookie has
	Began  time.Time // at the provider, by our clock

	token string // of the cookie
	more  string // what the cookie has beside it: an invite's token
}

// way is how to go on where the errand failed.
func (e errand) way() (label, to string) {
	switch e.For {
	case toBind:
		return "Back to Settings", "/settings"
	case toConfirm:
		return "Go back", "/confirm?" + url.Values{"next": {e.Next}}.Encode()
	case toJoin:
		return "Back to the invite", "/invite/" + e.more
	}
	if e.Next == "" || e.Next == "/" {
		return "Back to sign-in", "/signin"
	}
	return "Back to sign-in", "/signin?" + url.Values{"next": {e.Next}}.Encode()
}

// signOnName is what pages call the provider; "" where there is none.
func (h *Handler) signOnName() string {
	if h.c.SignOn == nil {
		return ""
	}
	return h.c.SignOn.Name
}

// issuer is the provider's name for itself, which its identities have; "" where there is none.
func (h *Handler) issuer() string {
	if h.c.SignOn == nil {
		return ""
	}
	return h.c.SignOn.Provider.Issuer()
}

// SignOnBegin is POST /sign-in/oidc.
func (h *Handler) SignOnBegin(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	return h.toProvider(w, r, errand{For: toSignOn, Next: localPath(r.PostForm.Get("next"))})
}

// ConfirmSignOn is POST /confirm/oidc, for whom there is no other way to confirm who they are.
func (h *Handler) ConfirmSignOn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ways, err := h.confirmWays(r)
	if err != nil {
		return err
	}
	if ways.SignOn == "" {
		return reason.NotFound
	}
	return h.toProvider(w, r, errand{For: toConfirm, Next: localPath(r.PostForm.Get("next")), User: viewerOf(r.Context()).caller.User.String()})
}

// JoinSignOn is POST /invite/{token}/oidc: it makes the account on the way back.
func (h *Handler) JoinSignOn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	i, err := h.invitation(r)
	if err != nil {
		return h.inviteFailed(w, r, err)
	}
	page := h.joinPage(i)
	if i.in {
		return h.draw(w, r, http.StatusOK, page.Page())
	}
	page.Name.Value = strings.TrimSpace(r.PostForm.Get("name"))
	if err := store.CheckName("name", page.Name.Value, 80); err != nil {
		page.Name.Error = reason.Of(err).Message
		page.Error = "Nothing was made yet. " + anotherLook(1)
		return h.draw(w, r, reason.InputInvalid.Status(), page.Page())
	}
	hash := store.HashToken(i.token)
	return h.toProvider(w, r, errand{For: toJoin, Next: "/", Name: page.Name.Value, Invite: hash[:], more: i.token})
}

// toProvider keeps what for, bound to the browser by a cookie, and draws the page that goes on to the provider. It is no
// redirect: Chromium holds form-action to those that follow a form.
func (h *Handler) toProvider(w http.ResponseWriter, r *http.Request, e errand) error {
	ctx := r.Context()
	var hash store.TokenHash
	e.token, hash = store.NewToken(store.SignOnTokenPrefix)
	e.Began = h.c.Now()
	at, err := h.c.SignOn.Provider.AuthURL(whileThere(r).Context(), oidc.NewFlow(e.token), e.For == toConfirm)
	if err != nil {
		return h.signOnFailed(w, r, e, err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write errand: %w", err)
	}
	if err := h.c.DB.System().HoldChallenge(ctx, hash, data, e.Began.Add(errandLife)); err != nil {
		return fmt.Errorf("hold errand: %w", err)
	}
	value := e.token
	if e.more != "" {
		value += "." + e.more
	}
	h.setSignOnCookie(w, value, int(errandLife/time.Second))
	return h.draw(w, r, http.StatusOK, web.SignOnward{Focus: h.focus(), Provider: h.signOnName(), URL: at}.Page())
}

// setSignOnCookie sets a cookie that comes back with a browser which the provider leads here.
func (h *Handler) setSignOnCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: h.cookieName() + "-oidc", Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: h.secure, SameSite: http.SameSiteLaxMode,
	})
}

// errNoErrand is of a browser that was not sent to the provider, or too long ago.
var errNoErrand = errors.New("no errand of this browser's")

// takeErrand is what this browser was sent for. It is used up, whatever comes of it. What brings another's state uses
// nothing up.
func (h *Handler) takeErrand(w http.ResponseWriter, r *http.Request) (e errand, err error) {
	c, err := r.Cookie(h.cookieName() + "-oidc")
	if err != nil {
		return e, errNoErrand
	}
	token, more, _ := strings.Cut(c.Value, ".")
	if !store.WellFormed(store.SignOnTokenPrefix, token) || !oidc.NewFlow(token).Owns(r.URL.Query().Get("state")) {
		return e, errNoErrand
	}
	h.setSignOnCookie(w, "", -1)
	data, err := h.c.DB.System().TakeChallenge(r.Context(), store.HashToken(token))
	if store.IsAbsent(err) {
		return e, errNoErrand
	}
	if err != nil {
		return e, fmt.Errorf("take errand: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("read errand: %w", err)
	}
	e.token, e.more = token, more
	return e, nil
}

// SignOnBack is GET /sign-in/oidc/callback, where the provider leads the browser back to. It is the one GET that changes
// something: what for was decided by a POST of this browser, which alone has the cookie.
func (h *Handler) SignOnBack(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return reason.NotFound
	}
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has a code in it
	e, err := h.takeErrand(w, r)
	if errors.Is(err, errNoErrand) {
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title:   "This has ended",
			Message: "It was begun more than ten minutes ago, in another browser or at another address, or it was used already. Start again.",
		})
	}
	if err != nil {
		return err
	}
	var since time.Time
	if e.For == toConfirm {
		since = e.Began
	}
	who, err := h.c.SignOn.Provider.Finish(r.Context(), oidc.NewFlow(e.token), r.URL.Query(), since)
	if err != nil {
		return h.signOnFailed(w, r, e, err)
	}
	// From here on the browser's leaving hides nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wholeTime)
	defer cancel()
	r = r.WithContext(ctx)
	switch e.For {
	case toSignOn:
		return h.signInBySignOn(w, r, e, who)
	case toBind:
		return h.bind(w, r, e, who)
	case toConfirm:
		return h.confirmBySignOn(w, r, e, who)
	case toJoin:
		return h.joinBySignOn(w, r, e, who)
	}
	return reason.NotFound
}

// signInBySignOn signs in who is known by that identity. Nobody is known by anything else that the provider says.
func (h *Handler) signInBySignOn(w http.ResponseWriter, r *http.Request, e errand, who oidc.Claims) error {
	ctx := r.Context()
	i, err := h.c.DB.System().Identity(ctx, h.issuer(), who.Subject)
	if err != nil && !store.IsAbsent(err) {
		return fmt.Errorf("find identity: %w", err)
	}
	var orgs []store.Membership
	if err == nil {
		if orgs, err = h.c.DB.System().Memberships(ctx, i.UserID); err != nil {
			return fmt.Errorf("load memberships of %s: %w", i.UserID, err)
		}
	}
	if len(orgs) > 0 {
		by := proof{identity: i.ID, seen: who.SeenAt}
		if err = h.begin(ctx, w, r, i.UserID, by, orgs[0].Org, ""); err == nil {
			h.recordAs(ctx, newViewer(i.UserID, orgs[0]).caller, "Signed in%s", by.with())
			http.Redirect(w, r, e.Next, http.StatusSeeOther)
			return nil
		}
		if !store.IsAbsent(err) { // else removed meanwhile
			return err
		}
	}
	return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
		Title: "Nobody here signs in with that account",
		Message: "Sign in another way and add it on Settings. If you have no account here yet, ask for an invite, and join with " +
			h.signOnName() + " from there.",
	})
}

// viewerOfErrand is the viewer, where they are still who began the errand.
func (h *Handler) viewerOfErrand(ctx context.Context, e errand) (context.Context, viewer, bool, error) {
	v, in, err := h.lookUp(ctx)
	if err != nil || !in || v.caller.User.String() != e.User {
		return ctx, viewer{}, false, err
	}
	return context.WithValue(store.WithCaller(ctx, v.caller), viewerKey{}, v), v, true, nil
}

func (h *Handler) drawAnotherViewer(w http.ResponseWriter, r *http.Request, e errand) error {
	return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
		Title: "You are not signed in as before", Message: "Your session ended meanwhile, or somebody else signed in. Nothing was changed.",
	})
}

// bind adds the identity to the account that began the errand.
func (h *Handler) bind(w http.ResponseWriter, r *http.Request, e errand, who oidc.Claims) error {
	ctx, v, same, err := h.viewerOfErrand(r.Context(), e)
	if err != nil {
		return err
	}
	if !same {
		return h.drawAnotherViewer(w, r, e)
	}
	r = r.WithContext(ctx)
	_, err = h.c.DB.System().AddIdentity(ctx, store.Identity{UserID: v.caller.User, Issuer: h.issuer(), Subject: who.Subject, Name: e.Name})
	ref := reason.Of(err)
	switch {
	case err == nil:
		return h.doneForAccount(w, r, e.Name+" is added. You can sign in with it.", "Added identity %s of %s", e.Name, h.signOnName())
	case ref.Word == reason.NameTaken:
		return h.drawTaken(w, r, e, v.caller.User, who)
	case ref.Details["field"] == "identity":
		return h.drawSignOnFailed(w, r, e, ref.Word, web.SignOnFailed{Title: "Nothing was added", Message: ref.Message})
	}
	return fmt.Errorf("add identity: %w", err)
}

// drawTaken says whose the identity is already: the person's own, or another's, whom it does not name.
func (h *Handler) drawTaken(w http.ResponseWriter, r *http.Request, e errand, user store.UserID, who oidc.Claims) error {
	v := web.SignOnFailed{
		Title: "That account is taken", Message: "Somebody else here signs in with that account. Nothing was changed. Use another at " + h.signOnName() + ", or remove it from the other account first.",
	}
	i, err := h.c.DB.System().Identity(r.Context(), h.issuer(), who.Subject)
	if err != nil && !store.IsAbsent(err) {
		return fmt.Errorf("find identity: %w", err)
	}
	if err == nil && i.UserID == user {
		v.Title, v.Message = "You have that one already", "It is on your list as "+i.Name+". To add another, sign out at "+h.signOnName()+" first."
	}
	return h.drawSignOnFailed(w, r, e, reason.NameTaken, v)
}

// confirmBySignOn is Confirm with an identity of the viewer's.
func (h *Handler) confirmBySignOn(w http.ResponseWriter, r *http.Request, e errand, who oidc.Claims) error {
	ctx, v, same, err := h.viewerOfErrand(r.Context(), e)
	if err != nil {
		return err
	}
	if !same {
		return h.drawAnotherViewer(w, r, e)
	}
	i, err := h.c.DB.System().Identity(ctx, h.issuer(), who.Subject)
	if err != nil && !store.IsAbsent(err) {
		return fmt.Errorf("find identity: %w", err)
	}
	if err != nil || i.UserID != v.caller.User {
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title: "That is not your account", Message: "You signed in at " + h.signOnName() + " with another account than here. Try again with your own.",
		})
	}
	return h.confirmed(ctx, w, r.WithContext(ctx), proof{identity: i.ID}, e.Next)
}

// joinBySignOn uses the invite up: for the account that has the identity, or for a new one that it is bound to.
func (h *Handler) joinBySignOn(w http.ResponseWriter, r *http.Request, e errand, who oidc.Claims) error {
	ctx := r.Context()
	if hash := store.HashToken(e.more); string(hash[:]) != string(e.Invite) {
		return reason.NotFound // its cookie was changed
	}
	i, err := h.invitationOf(ctx, e.more)
	if err != nil {
		return h.inviteFailed(w, r, err)
	}
	if i.in { // meanwhile, and joins by one button
		http.Redirect(w, r, "/invite/"+i.token, http.StatusSeeOther)
		return nil
	}
	found, err := h.c.DB.System().Identity(ctx, h.issuer(), who.Subject)
	in := store.Joining{User: found.UserID}
	if store.IsAbsent(err) {
		in = store.Joining{Name: e.Name, Identity: &store.Identity{Issuer: h.issuer(), Subject: who.Subject, Name: h.signOnName()}}
	} else if err != nil {
		return fmt.Errorf("find identity: %w", err)
	}
	err = h.joinAs(w, r, i, in, proof{identity: found.ID, seen: who.SeenAt})
	switch ref := reason.Of(err); {
	case err != nil && ref.Word == reason.Forbidden:
		return h.drawSignOnFailed(w, r, e, ref.Word, web.SignOnFailed{
			Title: "That account is somebody else's", Message: "It signs in to another account here, and this invite is for " + i.Email + ". Use another at " + h.signOnName() + ".",
		})
	case err != nil && ref.Details["field"] == "identity":
		return h.drawTaken(w, r, e, store.UserID{}, who)
	}
	return h.inviteFailed(w, r, err)
}

// signOnFailed says what went wrong at the provider. What is for whoever runs Graft goes to the log.
func (h *Handler) signOnFailed(w http.ResponseWriter, r *http.Request, e errand, err error) error {
	ctx, name := r.Context(), h.signOnName()
	if left := whileThere(r).Context().Err(); left != nil {
		return fmt.Errorf("wait for the provider: %w", left)
	}
	attrs := []any{slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx))}
	var refused *oidc.Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == "access_denied":
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title: "Nobody was signed in", Message: "It was not allowed at " + name + ". Nothing was changed.", Words: refused.Description,
		})
	case errors.As(err, &refused):
		h.c.Log.WarnContext(ctx, "single sign-on refused", attrs...)
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title: "Nobody was signed in", Message: "At " + name + " something went wrong: " + refused.Code + ". Try again, or go on another way.", Words: refused.Description,
		})
	case errors.Is(err, oidc.ErrNotFresh):
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title:   "You were not asked anew",
			Message: name + " did not ask you to sign in just now, or did not say that it did. Try again. If it does not help, whoever runs Graft makes a link with which you set a password.",
		})
	case errors.Is(err, oidc.ErrNotProven):
		h.c.Log.WarnContext(ctx, "single sign-on not proven", attrs...)
		return h.drawSignOnFailed(w, r, e, reason.SignInFailed, web.SignOnFailed{
			Title: "Nobody was signed in", Message: "What " + name + " answered does not prove who you are. Start again. If it does not help, tell whoever runs Graft.",
		})
	case errors.Is(err, oidc.ErrUnavailable):
		h.c.Log.WarnContext(ctx, "single sign-on unavailable", attrs...)
		return h.drawSignOnFailed(w, r, e, reason.UpstreamUnavailable, web.SignOnFailed{
			Title: "No answer from " + name, Message: "It cannot be reached, or does not answer as it should. Try again in a minute, or go on another way.",
		})
	}
	return err
}

// drawSignOnFailed completes v with the way on, and draws it.
func (h *Handler) drawSignOnFailed(w http.ResponseWriter, r *http.Request, e errand, word reason.Word, v web.SignOnFailed) error {
	h.c.Refused(r.Context(), word)
	v.Focus, v.Provider = h.focus(), h.signOnName()
	v.Way, v.WayURL = e.way()
	return h.draw(w, r, word.Status(), v.Page())
}
