package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/getgraft/graft/internal/store"
)

const (
	sessionLife  = 30 * 24 * time.Hour // from sign-in, however much it is used
	sessionIdle  = 7 * 24 * time.Hour  // since it was last used
	sessionTouch = time.Hour           // how exactly "last used" is kept
)

// The values of a session. Times are Unix seconds.
const (
	keyUser  = "user"  // the UserID, in wire form
	keyOrg   = "org"   // the OrgID that the person acts in
	keyBegan = "began" // when they signed in
	keySeen  = "seen"  // when the session was last used, to sessionTouch
	keyFlash = "flash" // a sentence for the next page

	keyConfirmed = "confirmed" // when they last confirmed who they are, if they did
	keyAgent     = "agent"     // the User-Agent that they signed in with
	keyAddress   = "address"   // and where from
	keySignedOn  = "signed on" // they signed in at the provider, which may have asked them long ago
)

func (h *Handler) newSessions() *scs.SessionManager {
	m := scs.New()
	m.Store = sessionStore{h.c.DB.System(), h.c.Now}
	m.Lifetime = sessionLife
	return m
}

// cookieName binds the cookie to this host and to https where there is https (RFC 6265bis §4.1.3.2).
func (h *Handler) cookieName() string {
	if h.secure {
		return "__Host-graft"
	}
	return "graft"
}

type cookieKey struct{}

// cookieOf is the session cookie that the request came with, or "". Its second result says whether Session has run.
func cookieOf(ctx context.Context) (string, bool) {
	s, ok := ctx.Value(cookieKey{}).(string)
	return s, ok
}

// Session loads the browser's session for next. It does not ask whether anybody is signed in. A database that does
// not answer is a page that says so, never a sign-out.
//
// The manager's own LoadAndSave is not used: it saves from within the response, when an error can no longer be
// answered, and it wraps the writer of streams. Here whatever changes a session saves it, before anything is written.
func (h *Handler) Session(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var token string
		if c, err := r.Cookie(h.cookieName()); err == nil {
			token = c.Value
		}
		ctx, err := h.sessions.Load(r.Context(), token)
		if err != nil {
			h.Fail(w, r, fmt.Errorf("load web session: %w", err))
			return
		}
		ctx = context.WithValue(ctx, cookieKey{}, token)
		if err := h.touch(ctx); err != nil {
			h.Fail(w, r.WithContext(ctx), err)
			return
		}
		w.Header().Add("Vary", "Cookie")
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// touch moves a session's last use forward, seldom enough to cost nothing.
func (h *Handler) touch(ctx context.Context) error {
	now, seen := h.c.Now(), h.sessions.GetInt64(ctx, keySeen)
	if seen == 0 || now.Sub(time.Unix(seen, 0)) < sessionTouch {
		return nil
	}
	h.sessions.Put(ctx, keySeen, now.Unix())
	return h.save(ctx)
}

// save writes the session of ctx down.
func (h *Handler) save(ctx context.Context) error {
	if _, _, err := h.sessions.Commit(ctx); err != nil {
		return fmt.Errorf("save web session: %w", err)
	}
	return nil
}

type provenKey struct{}

// A proof is what a user proved who they are with: a password, by its hash, a passkey, or an identity.
type proof struct {
	password string
	passkey  store.PasskeyID
	identity store.IdentityID
	seen     time.Time // when the identity's provider last asked them; zero where it does not say
}

// with is the proof's name in the audit log: nothing for a password, which was the only one for long.
func (p proof) with() string {
	switch {
	case !p.passkey.IsZero():
		return " with a passkey"
	case !p.identity.IsZero():
		return " with single sign-on"
	}
	return ""
}

// begin signs user in, in a session that nobody knew before and that holds nothing of an earlier one. Where what they
// proved it with is no longer theirs, it is reason.NotFound. ctx is that of r, or one that outlives it.
func (h *Handler) begin(ctx context.Context, w http.ResponseWriter, r *http.Request, user store.UserID, by proof, org store.OrgID, flash string) error {
	if err := h.sessions.Clear(ctx); err != nil {
		return fmt.Errorf("clear web session: %w", err)
	}
	now := h.c.Now().Unix()
	h.sessions.Put(ctx, keyUser, user.String())
	h.sessions.Put(ctx, keyOrg, org.String())
	h.sessions.Put(ctx, keyBegan, now)
	h.sessions.Put(ctx, keySeen, now)
	if !by.identity.IsZero() {
		h.sessions.Put(ctx, keySignedOn, true)
		if !by.seen.IsZero() {
			h.sessions.Put(ctx, keyConfirmed, min(by.seen.Unix(), now))
		}
	}
	if flash != "" {
		h.sessions.Put(ctx, keyFlash, flash)
	}
	agent := strings.ToValidUTF8(r.UserAgent(), "")
	h.sessions.Put(ctx, keyAgent, agent[:min(len(agent), 512)])
	if h.c.Address != nil {
		h.sessions.Put(ctx, keyAddress, h.c.Address(r))
	}
	if err := h.renew(ctx, w, by, sessionLife); err != nil {
		return err
	}
	h.noteSignIn(ctx, user, org)
	return nil
}

// renew gives the session of ctx a cookie that nobody knew before, for as long as life, and saves it. The old cookie is
// nobody's then.
func (h *Handler) renew(ctx context.Context, w http.ResponseWriter, by proof, life time.Duration) error {
	if err := h.sessions.RenewToken(ctx); err != nil {
		return fmt.Errorf("renew web session: %w", err)
	}
	if err := h.save(context.WithValue(ctx, provenKey{}, by)); err != nil {
		return err
	}
	h.setCookie(w, h.sessions.Token(ctx), int(life/time.Second))
	return nil
}

// end signs out: the session is gone for every copy of its cookie.
func (h *Handler) end(ctx context.Context, w http.ResponseWriter) error {
	if err := h.sessions.Destroy(ctx); err != nil {
		return fmt.Errorf("end web session: %w", err)
	}
	h.setCookie(w, "", -1)
	return nil
}

func (h *Handler) setCookie(w http.ResponseWriter, token string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: h.cookieName(), Value: token, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: h.secure, SameSite: http.SameSiteLaxMode,
	})
}

// done ends a POST that did what it was asked: a sentence for the next page, and the way there.
func (h *Handler) done(w http.ResponseWriter, r *http.Request, flash, url string) error {
	h.sessions.Put(r.Context(), keyFlash, flash)
	if err := h.save(r.Context()); err != nil {
		return err
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
	return nil
}

// sessionStore keeps scs sessions in web_session, by the hash of their cookie. It rules on their end itself, since
// scs knows no clock but its own.
type sessionStore struct {
	system *store.System
	now    func() time.Time
}

// FindCtx implements scs.CtxStore.
func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	data, err := s.system.WebSession(ctx, store.HashToken(token))
	if store.IsAbsent(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// CommitCtx implements scs.CtxStore. The session that a request came with is only ever changed: once it has ended,
// another request that was under way does not bring it back.
func (s sessionStore) CommitCtx(ctx context.Context, token string, data []byte, _ time.Time) error {
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return err
	}
	text, _ := values[keyUser].(string)
	user, err := store.ParseID[store.UserKind](text)
	if err != nil {
		return fmt.Errorf("read user of web session: %w", err)
	}
	began, _ := values[keyBegan].(int64)
	expires := time.Unix(began, 0).Add(sessionLife)
	if idle := s.now().Add(sessionIdle); idle.Before(expires) {
		expires = idle
	}
	if came, _ := cookieOf(ctx); came == token {
		if err := s.system.ChangeWebSession(ctx, store.HashToken(token), data, expires); !store.IsAbsent(err) {
			return err
		}
		return nil
	}
	by, ok := ctx.Value(provenKey{}).(proof)
	switch {
	case !ok:
		return errors.New("a web session begins without anything that was proved")
	case !by.passkey.IsZero():
		return s.system.BeginPasskeySession(ctx, store.HashToken(token), user, by.passkey, data, expires)
	case !by.identity.IsZero():
		return s.system.BeginIdentitySession(ctx, store.HashToken(token), user, by.identity, data, expires)
	}
	return s.system.BeginWebSession(ctx, store.HashToken(token), user, by.password, data, expires)
}

// DeleteCtx implements scs.CtxStore.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.system.DeleteWebSession(ctx, store.HashToken(token))
}

// Find implements scs.Store, as the two below do; scs calls the methods with a context instead.
func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s sessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete implements scs.Store.
func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
