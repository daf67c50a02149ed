package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// A viewer is who looks at a page, as the member they are now.
type viewer struct {
	caller store.Caller
	org    string // the organisation's name
	email  string
	name   string // "" while they have given none
	moved  bool   // the organisation they acted in is no longer theirs; this is another
}

type viewerKey struct{}

// viewerOf is the viewer that Require put into ctx.
func viewerOf(ctx context.Context) viewer {
	v, _ := ctx.Value(viewerKey{}).(viewer)
	return v
}

// Require lets through who is signed in and a member still, as a Caller. Others are led to sign in and back.
func (h *Handler) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		v, ok, err := h.lookUp(ctx)
		switch {
		case err != nil:
			h.Fail(w, r, err)
			return
		case !ok:
			toSignIn(w, r)
			return
		case v.moved:
			h.sessions.Put(ctx, keyOrg, v.caller.Org.String())
			if err := h.save(ctx); err != nil {
				h.Fail(w, r, err)
				return
			}
			if !reads(r) { // it was meant for the other organisation
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
		}
		ctx = context.WithValue(store.WithCaller(ctx, v.caller), viewerKey{}, v)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// toSignIn leads to the sign-in page and back to what was asked for. A script that opens a stream cannot be led.
func toSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == eventStream {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	target := "/signin"
	if back := localPath(r.URL.RequestURI()); reads(r) && back != "/" {
		target += "?" + url.Values{"next": {back}}.Encode()
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// lookUp finds who is signed in, in the organisation they chose, else in the first of theirs. A user who is a member
// nowhere is not signed in.
func (h *Handler) lookUp(ctx context.Context) (viewer, bool, error) {
	user, err := store.ParseID[store.UserKind](h.sessions.GetString(ctx, keyUser))
	if err != nil {
		return viewer{}, false, nil //nolint:nilerr // a session without a user is one of nobody
	}
	list, err := h.c.DB.System().Memberships(ctx, user)
	if err != nil {
		return viewer{}, false, fmt.Errorf("load memberships of %s: %w", user, err)
	}
	if len(list) == 0 {
		return viewer{}, false, nil
	}
	chosen := h.sessions.GetString(ctx, keyOrg)
	for _, m := range list {
		if m.Org.String() == chosen {
			return newViewer(user, m), true, nil
		}
	}
	v := newViewer(user, list[0])
	v.moved = true
	return v, true, nil
}

func newViewer(user store.UserID, m store.Membership) viewer {
	return viewer{
		caller: store.Caller{Org: m.Org, User: user, Role: m.Role, Via: store.ViaSession},
		org:    m.OrgName, email: m.Email, name: m.Name,
	}
}

// still reports whether v's session goes on and v is the member they were. It asks the database, for streams that
// outlive their request's first look.
func (h *Handler) still(ctx context.Context, v viewer) (bool, error) {
	cookie, _ := cookieOf(ctx)
	if _, err := h.c.DB.System().WebSession(ctx, store.HashToken(cookie)); err != nil {
		if store.IsAbsent(err) {
			return false, nil
		}
		return false, fmt.Errorf("load web session: %w", err)
	}
	now, ok, err := h.lookUp(ctx)
	return ok && now.caller == v.caller, err
}

// The entries of the side list.
const (
	atHome        = "Home"
	atAsks        = "Asks"
	atActivity    = "Activity"
	atAgents      = "Agents"
	atConnections = "Connections"
	atUpstreams   = "Upstreams"
	atMembers     = "Members"
	atSettings    = "Settings"
)

// frame is the shell of v's pages. here is the entry of the side list that the page belongs to, or "".
func (v viewer) frame(here string) web.Shell {
	item := func(label, url, icon string) web.NavItem {
		return web.NavItem{Label: label, URL: url, Icon: icon, Current: label == here}
	}
	return web.Shell{Org: v.org, User: v.email, Nav: []web.NavGroup{
		{Items: []web.NavItem{item(atHome, "/", "home"), item(atAsks, "/asks", "ask"), item(atActivity, "/activity", "activity")}},
		{Label: "Access", Items: []web.NavItem{
			item(atAgents, "/agents", "agent"), item(atConnections, "/connections", "connection"), item(atUpstreams, "/upstreams", "upstream"),
			item(atMembers, "/members", "members"),
		}},
	}, Foot: []web.NavItem{item(atSettings, "/settings", "settings")}}
}

// frame is the viewer's frame with how many asks wait for them.
func (h *Handler) frame(ctx context.Context, here string) (web.Shell, error) {
	v := viewerOf(ctx)
	s := v.frame(here)
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		s.Nav[0].Items[1].Waiting, err = tx.CountOpenAsks(ctx)
		return err
	})
	if err != nil {
		return web.Shell{}, fmt.Errorf("count asks: %w", err)
	}
	return s, nil
}

// shell is the viewer's frame with the sentence that the last POST left, which is shown once.
func (h *Handler) shell(ctx context.Context, here string) (web.Shell, error) {
	s, err := h.frame(ctx, here)
	if err != nil {
		return web.Shell{}, err
	}
	if s.Flash = h.sessions.GetString(ctx, keyFlash); s.Flash == "" {
		return s, nil
	}
	h.sessions.Remove(ctx, keyFlash)
	return s, h.save(ctx)
}

// focus is the frame of a page for anybody.
func (h *Handler) focus() web.Focus { return web.Focus{Host: h.host} }
