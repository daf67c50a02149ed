package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// challengeMethod is the only one there is; plain, which the standard falls back to, protects nobody.
const challengeMethod = "S256"

// checkChallenge is what the authorization endpoint has against a code challenge (RFC 7636 §4.3, made mandatory by
// OAuth 2.1 §4.1.1): a Fault, or nil.
func checkChallenge(challenge, method string) error {
	switch {
	case challenge == "":
		return invalidRequest("code_challenge is missing: PKCE is required.")
	case method == "":
		return invalidRequest("code_challenge_method is missing, which means plain: send S256.")
	case method != challengeMethod:
		return invalidRequest("code_challenge_method must be S256.")
	case !isChallenge(challenge):
		return invalidRequest("code_challenge must be the SHA-256 of the verifier in base64url: 43 characters without padding.")
	}
	return nil
}

// isChallenge reports whether s has the form of an S256 challenge: 32 bytes in base64url.
func isChallenge(s string) bool {
	return len(s) == base64.RawURLEncoding.EncodedLen(sha256.Size) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '.' || r == '~' || !unreserved(r)
	})
}

// isVerifier reports whether s has the form of a code verifier (RFC 7636 §4.1).
func isVerifier(s string) bool {
	return len(s) >= 43 && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return !unreserved(r) })
}

// unreserved are the characters of RFC 3986 §2.3.
func unreserved(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r)
}

// verifies reports whether verifier is what challenge was made of (RFC 7636 §4.6), and takes as long for any that is not.
func verifies(challenge, verifier string) bool {
	if !isVerifier(verifier) {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) == 1
}
