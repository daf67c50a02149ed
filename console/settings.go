package console

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// Settings is GET /settings: the viewer's own account.
func (h *Handler) Settings(w http.ResponseWriter, r *http.Request) error {
	page, err := h.settings(r)
	if err != nil {
		return err
	}
	if page.Shell, err = h.shell(r.Context(), atSettings); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// settings reads the page, all but its shell.
func (h *Handler) settings(r *http.Request) (web.Settings, error) {
	ctx, who := r.Context(), viewerOf(r.Context())
	user, err := h.c.DB.System().UserByEmail(ctx, who.email)
	if err != nil {
		return web.Settings{}, fmt.Errorf("load user: %w", err)
	}
	ways, err := h.ways(ctx)
	if err != nil {
		return web.Settings{}, err
	}
	sessions, err := h.webSessions(ctx)
	if err != nil {
		return web.Settings{}, err
	}
	v := web.Settings{
		Now: h.c.Now(), Name: web.Field{Value: user.Name}, Email: user.Email, HasPassword: user.Password != "",
		CanAdd: h.hasPasskeys(r), Address: h.c.Origin, SignOn: h.signOnName(), Sessions: sessions,
	}
	for _, k := range ways.passkeys {
		v.Passkeys = append(v.Passkeys, webPasskey(k))
	}
	for _, i := range ways.identities {
		v.Identities = append(v.Identities, h.webIdentity(i))
	}
	return v, nil
}

func webPasskey(k store.Passkey) web.Passkey {
	return web.Passkey{Name: k.Name, URL: "/settings/passkeys/" + k.ID.String(), MadeAt: k.CreatedAt, UsedAt: moment(k.LastUsedAt)}
}

// SettingsName is POST /settings/name.
func (h *Handler) SettingsName(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, name := r.Context(), strings.TrimSpace(r.PostForm.Get("name"))
	err := h.c.DB.System().RenameUser(ctx, viewerOf(ctx).caller.User, name)
	if ref := reason.Of(err); err != nil && ref.Details["field"] == "name" {
		h.c.Refused(ctx, ref.Word)
		page, err := h.settings(r)
		if err != nil {
			return err
		}
		page.Name = web.Field{Value: name, Error: ref.Message}
		if page.Shell, err = h.frame(ctx, atSettings); err != nil {
			return err
		}
		return h.draw(w, r, ref.Status(), page.Page())
	}
	if err != nil {
		return fmt.Errorf("rename user: %w", err)
	}
	return h.doneForAccount(w, r, "Your name is saved.", "Changed their name to %s", name)
}

// doneForAccount ends a POST that changed the viewer's account, which each of their organisations is told.
func (h *Handler) doneForAccount(w http.ResponseWriter, r *http.Request, flash, format string, args ...any) error {
	ctx := r.Context()
	e := audit.Entry{Kind: audit.Change, Outcome: audit.OK, Line: fmt.Sprintf(format, args...)}
	if err := h.recordEverywhere(ctx, viewerOf(ctx).caller.User, e); err != nil {
		return err
	}
	return h.done(w, r, flash, "/settings")
}

// recordEverywhere writes e down in each organisation that user is a member of, as of their session.
func (h *Handler) recordEverywhere(ctx context.Context, user store.UserID, e audit.Entry) error {
	orgs, err := h.c.DB.System().Memberships(ctx, user)
	if err != nil {
		return fmt.Errorf("load memberships of %s: %w", user, err)
	}
	for _, o := range orgs {
		h.record(ctx, newViewer(user, o).caller, e)
	}
	return nil
}

// SettingsPasswordPage is GET /settings/password.
func (h *Handler) SettingsPasswordPage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	return h.drawPassword(w, r, http.StatusOK, web.Field{})
}

func (h *Handler) drawPassword(w http.ResponseWriter, r *http.Request, status int, field web.Field) error {
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, status, web.SettingsPassword{Shell: shell, Password: field}.Page())
}

// SettingsPassword is POST /settings/password. The password before was asked for when the viewer signed in or confirmed
// who they are, which was just now.
func (h *Handler) SettingsPassword(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	if err := readForm(r); err != nil {
		return err
	}
	ctx, who := r.Context(), viewerOf(r.Context())
	password := r.PostForm.Get("password")
	local, _, _ := strings.Cut(who.email, "@")
	if wrong := checkPassword(password, who.email, local, who.name, who.org); wrong != "" {
		h.c.Refused(ctx, reason.InputInvalid)
		return h.drawPassword(w, r, reason.InputInvalid.Status(), web.Field{Error: wrong})
	}
	hash, err := h.passwords.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	ended, err := h.c.DB.System().ChangePassword(ctx, who.caller.User, hash, thisSession(ctx))
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	return h.doneForAccount(w, r, "Your password is changed. "+sessionsEnded(ended), "Changed their password")
}

func sessionsEnded(n int64) string {
	switch n {
	case 0:
		return "No other session was open."
	case 1:
		return "1 other session has ended."
	}
	return fmt.Sprintf("%d other sessions have ended.", n)
}

// thisSession is the session that the request came with.
func thisSession(ctx context.Context) store.TokenHash {
	cookie, _ := cookieOf(ctx)
	return store.HashToken(cookie)
}

// webSessions is the viewer's sessions as their page shows them, this one first.
func (h *Handler) webSessions(ctx context.Context) ([]web.BrowserSession, error) {
	list, err := h.c.DB.System().WebSessions(ctx, viewerOf(ctx).caller.User)
	if err != nil {
		return nil, fmt.Errorf("load web sessions: %w", err)
	}
	this := thisSession(ctx)
	var out []web.BrowserSession
	for _, s := range list {
		_, values, err := scs.GobCodec{}.Decode(s.Data)
		if err != nil {
			return nil, fmt.Errorf("read web session: %w", err)
		}
		text := func(key string) string { s, _ := values[key].(string); return s }
		at := func(key string) time.Time { n, _ := values[key].(int64); return time.Unix(n, 0) }
		v := web.BrowserSession{
			URL: "/settings/sessions/" + hex.EncodeToString(s.Hash), Browser: browser(text(keyAgent)), Address: text(keyAddress),
			BeganAt: at(keyBegan), SeenAt: at(keySeen), This: string(s.Hash) == string(this[:]),
		}
		if v.This {
			out = append([]web.BrowserSession{v}, out...)
			continue
		}
		out = append(out, v)
	}
	return out, nil
}

// sessionOf is the session of the viewer's that the path names. This one is signed out of, not ended here.
func (h *Handler) sessionOf(r *http.Request) (web.BrowserSession, error) {
	list, err := h.webSessions(r.Context())
	if err != nil {
		return web.BrowserSession{}, err
	}
	for _, s := range list {
		if !s.This && s.URL == "/settings/sessions/"+r.PathValue("id") {
			return s, nil
		}
	}
	return web.BrowserSession{}, reason.NotFound
}

// SessionEndPage is GET /settings/sessions/{id}/end: the question before the end.
func (h *Handler) SessionEndPage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	s, err := h.sessionOf(r)
	if err != nil {
		return err
	}
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.SessionEnd{Shell: shell, Session: s}.Page())
}

// SessionEnd is POST /settings/sessions/{id}/end.
func (h *Handler) SessionEnd(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	s, err := h.sessionOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	var hash store.TokenHash
	if _, err := hex.Decode(hash[:], []byte(r.PathValue("id"))); err != nil {
		return reason.NotFound
	}
	if err := h.c.DB.System().EndWebSession(ctx, viewerOf(ctx).caller.User, hash); err != nil {
		return fmt.Errorf("end web session: %w", err)
	}
	return h.doneForAccount(w, r, "The session of "+s.Browser+" has ended.", "Ended a session of theirs: %s", s.Browser)
}

// SessionsEndPage is GET /settings/sessions/end: the question before the end of all but this one.
func (h *Handler) SessionsEndPage(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	list, err := h.webSessions(r.Context())
	if err != nil {
		return err
	}
	shell, err := h.shell(r.Context(), atSettings)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.SessionsEnd{Shell: shell, Others: len(list) - 1}.Page())
}

// SessionsEnd is POST /settings/sessions/end.
func (h *Handler) SessionsEnd(w http.ResponseWriter, r *http.Request) error {
	if h.confirmFirst(w, r, r.URL.Path) {
		return nil
	}
	ctx := r.Context()
	ended, err := h.c.DB.System().EndOtherWebSessions(ctx, viewerOf(ctx).caller.User, thisSession(ctx))
	if err != nil {
		return fmt.Errorf("end web sessions: %w", err)
	}
	return h.doneForAccount(w, r, sessionsEnded(ended), "Ended all other sessions of theirs")
}
