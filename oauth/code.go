package oauth

import (
	"net/http"
	"net/url"

	"github.com/getgraft/graft/internal/store"
)

// redeem gives tokens for a code (RFC 6749 §4.1.3, RFC 7636 §4.5).
func (s *Server) redeem(r *http.Request, form url.Values) (tokenAnswer, error) {
	c, err := s.authenticate(r, form)
	if err != nil {
		return tokenAnswer{}, err
	}
	if err := s.checkResource(form); err != nil {
		return tokenAnswer{}, err
	}
	code := form.Get("code")
	if code == "" {
		return tokenAnswer{}, invalidRequest("code is missing.")
	}
	notGood := invalidGrant("The code is not good, or not good any more. Begin again.")
	if !store.WellFormed(store.CodePrefix, code) {
		return tokenAnswer{}, notGood
	}
	ctx, hash := r.Context(), store.HashToken(code)
	g, err := s.c.DB.System().OAuthCode(ctx, hash)
	if store.IsAbsent(err) {
		return tokenAnswer{}, notGood
	}
	if err != nil {
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
			Hash: hash, ClientID: c.ID, RedirectURI: form.Get("redirect_uri"), Refresh: refreshHash,
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
