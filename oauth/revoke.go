package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/getgraft/graft/internal/store"
)

// Revoke is POST /mcp/oauth/revoke (RFC 7009). A refresh token ends its grant, an access token itself alone. For anything
// else nothing changes and the answer is the same 200, another client's token included: RFC 7009 §2.1 would refuse that
// one, and so tell whoever asks that it is somebody's.
func (s *Server) Revoke(w http.ResponseWriter, r *http.Request) {
	if !admit(w, r, http.MethodPost) {
		return
	}
	form, err := readForm(w, r)
	if err == nil {
		var c Client
		if c, err = s.authenticate(r, form); err == nil {
			err = s.revoke(r.Context(), c, form.Get("token"))
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// revoke finds what kind of token it is by itself: the client's hint may be wrong.
func (s *Server) revoke(ctx context.Context, c Client, token string) error {
	switch {
	case token == "":
		return invalidRequest("token is missing.")
	case store.WellFormed(store.RefreshTokenPrefix, token):
		g, err := s.c.DB.System().OAuthToken(ctx, store.HashToken(token))
		if err == nil {
			err = s.c.DB.As(ctx, holder(g), func(tx *store.Tx) error { return tx.RevokeByClient(ctx, c.ID) })
		}
		if err == nil && g.ClientID == c.ID {
			s.recordEnd(ctx, g, "Disconnected "+g.ClientID+": it gave its grant up itself")
		}
		return known(err)
	case len(token) > maxHeader:
		return nil
	}
	a, err := s.issuer.read(ctx, token)
	if errors.Is(err, errNotOurs) || errors.Is(err, errExpired) || err == nil && a.client != c.ID {
		return nil
	}
	if err != nil {
		return err
	}
	g, err := s.c.DB.System().LiveGrant(ctx, a.grant, a.id)
	if err == nil && g.ClientID == c.ID {
		err = s.c.DB.As(ctx, holder(g), func(tx *store.Tx) error { return tx.DenyToken(ctx, a.id, a.expires) })
	}
	return known(err)
}

// known passes over what is not there, which is revoked enough.
func known(err error) error {
	if store.IsAbsent(err) {
		return nil
	}
	return err
}
