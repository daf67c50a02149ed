package oidc

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// A Flow is one way to the provider and back.
type Flow struct {
	state, nonce, verifier string
}

// NewFlow is the flow of a browser that keeps seed, which nobody can guess.
func NewFlow(seed string) Flow {
	of := func(use string) string { // 43 characters, as RFC 7636 §4.1 wants of a verifier
		m := hmac.New(sha256.New, []byte(seed))
		_, _ = m.Write([]byte(use)) // never fails; see hash.Hash
		return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	return Flow{state: of("oidc state"), nonce: of("oidc nonce"), verifier: of("oidc verifier")}
}

// Owns reports whether state, as a browser brings it back, is the flow's.
func (f Flow) Owns(state string) bool {
	return subtle.ConstantTimeCompare([]byte(f.state), []byte(state)) == 1
}
