package oauth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// refresh gives the next pair for a refresh token, which retires it (RFC 6749 §6, RFC 9700 §4.14.2). A client that lost the
// answer asks again with the retired one and is given the very same for store.RefreshWindow; after that the same
// presentation says that two hold it, and the grant ends.
func (s *Server) refresh(r *http.Request, form url.Values) (tokenAnswer, error) {
	ctx, old := r.Context(), form.Get("refresh_token")
	hash := store.HashToken(old)
	g, err := s.presented(r, form, func() (g store.GrantOf, err error) {
		if !store.WellFormed(store.RefreshTokenPrefix, old) {
			return g, reason.NotFound
		}
		return s.c.DB.System().OAuthToken(ctx, hash)
	})
	notGood := invalidGrant("The refresh token is not good, or not good any more. Connect again.")
	switch {
	case store.IsAbsent(err) && old == "":
		return tokenAnswer{}, invalidRequest("refresh_token is missing.")
	case store.IsAbsent(err):
		return tokenAnswer{}, notGood
	case err != nil:
		return tokenAnswer{}, err
	}
	if !within(g.Scope, form.Get("scope")) {
		return tokenAnswer{}, invalidScope("The scope is wider than what was granted.")
	}
	access, err := s.issuer.mint(ctx, g)
	if err != nil {
		return tokenAnswer{}, err
	}
	next, nextHash := store.NewToken(store.RefreshTokenPrefix)
	answer := newTokenAnswer(access, next, g.Scope)
	sealed, err := sealAnswer(old, g, answer)
	if err != nil {
		return tokenAnswer{}, err
	}
	outcome, before, err := s.c.DB.RotateToken(ctx, holder(g), store.Rotation{
		Hash: hash, ClientID: g.ClientID, Within: store.RefreshWindow, Next: nextHash, Answer: sealed,
	})
	switch {
	case store.IsAbsent(err):
		return tokenAnswer{}, notGood
	case err != nil:
		return tokenAnswer{}, err
	}
	switch outcome {
	case store.Given:
		return answer, nil
	case store.Repeated:
		return openAnswer(old, g, before)
	case store.Reused:
		s.tellReuse(ctx, g, "refresh token")
		return tokenAnswer{}, invalidGrant("The refresh token was used before. What it belongs to has ended; connect again.")
	}
	return tokenAnswer{}, notGood
}

// sealAnswer seals the answer that retires a token, under a key that only the token gives: the database does not hold it.
func sealAnswer(token string, g store.GrantOf, answer tokenAnswer) ([]byte, error) {
	plain, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("keep answer: %w", err)
	}
	aead, err := answerKey(token)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, answerOf(g)), nil
}

func openAnswer(token string, g store.GrantOf, sealed []byte) (answer tokenAnswer, err error) {
	aead, err := answerKey(token)
	if err != nil {
		return tokenAnswer{}, err
	}
	plain, err := aead.Open(nil, nil, sealed, answerOf(g))
	if err != nil {
		return tokenAnswer{}, errors.New("the kept answer does not open")
	}
	return answer, json.Unmarshal(plain, &answer)
}

// answerKey derives the key; cipher draws the nonce, which stands before what is sealed.
func answerKey(token string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(token), nil, "graft refresh answer 1", 32)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// answerOf is what an answer is sealed to.
func answerOf(g store.GrantOf) []byte { return []byte(g.Grant.String() + " " + g.ClientID) }
