package oauth

import (
	"net/http"
	"net/url"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// redeem gives tokens for a code (RFC 6749 §4.1.3, RFC 7636 §4.5).
func (s *Server) redeem(r *http.Request, form url.Values) (tokenAnswer, error) {
	ctx, code := r.Context(), form.Get("code")
	hash := store.HashToken(code)
	g, err := s.presented(r, form, func() (g store.GrantOf, err error) {
		if !store.WellFormed(store.CodePrefix, code) {
			return g, reason.NotFound
		}
		return s.c.DB.System().OAuthCode(ctx, hash)
	})
	notGood := invalidGrant("The code is not good, or not good any more. Begin again.")
	switch {
	case store.IsAbsent(err) && code == "":
		return tokenAnswer{}, invalidRequest("code is missing.")
	case store.IsAbsent(err):
		return tokenAnswer{}, notGood
	case err != nil:
		return tokenAnswer{}, err
	}
	access, err := s.issuer.mint(ctx, g)
	if err != nil {
		return tokenAnswer{}, err
	}
	refresh, refreshHash := store.NewToken(store.RefreshTokenPrefix)
	verifier := form.Get("code_verifier")
	var outcome store.Outcome
	err = s.c.DB.As(ctx, holder(g), func(tx *store.Tx) (err error) {
		outcome, err = tx.RedeemCode(ctx, store.Redemption{
			Hash: hash, ClientID: g.ClientID, RedirectURI: form.Get("redirect_uri"), Refresh: refreshHash,
			Verify: func(challenge string) bool { return verifies(challenge, verifier) },
		})
		return err
	})
	switch {
	case store.IsAbsent(err):
		return tokenAnswer{}, notGood
	case err != nil:
		return tokenAnswer{}, err
	}
	switch outcome {
	case store.Given:
		return newTokenAnswer(access, refresh, g.Scope), nil
	case store.NotSent:
		return tokenAnswer{}, invalidGrant("redirect_uri is not the one that the code was sent to.")
	case store.NotVerified:
		return tokenAnswer{}, invalidGrant("code_verifier does not fit the code_challenge.")
	case store.Reused:
		s.tellReuse(ctx, g, "code")
		return tokenAnswer{}, invalidGrant("The code was used before. What it gave has ended.")
	}
	return tokenAnswer{}, notGood
}
