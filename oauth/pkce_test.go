package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The pair of RFC 7636, appendix B.
const (
	rfcVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	rfcChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestVerifies(t *testing.T) {
	t.Parallel()
	if !verifies(rfcChallenge, rfcVerifier) {
		t.Error("the pair of RFC 7636 does not fit")
	}
	for name, verifier := range map[string]string{
		"empty": "", "the challenge": rfcChallenge, "one bit off": rfcVerifier[:42] + "l", "cut": rfcVerifier[:42], "longer": rfcVerifier + "A", "padded": rfcVerifier + "=",
		"another case": strings.ToLower(rfcVerifier), "a space": rfcVerifier + " ",
	} {
		if verifies(rfcChallenge, verifier) {
			t.Errorf("verifies with %s = true", name)
		}
	}
	if verifies("", rfcVerifier) || verifies(rfcChallenge+"=", rfcVerifier) {
		t.Error("verifies with no challenge, or a padded one")
	}
	// What fits but is no verifier, since its 42 characters are too few to guess at.
	short := strings.Repeat("a", 42)
	if verifies(challengeOf(short), short) {
		t.Error("verifies with a short verifier = true")
	}
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestVerifierForm(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		strings.Repeat("a", 43): true, strings.Repeat("-._~", 32): true, rfcVerifier: true,
		strings.Repeat("a", 42): false, strings.Repeat("a", 129): false, strings.Repeat("a", 42) + "+": false, strings.Repeat("a", 42) + "=": false,
		strings.Repeat("a", 42) + " ": false, strings.Repeat("a", 42) + "\n": false, strings.Repeat("\u00e4", 43): false, strings.Repeat("a", 43) + "\x00": false, "": false,
	} {
		if got := isVerifier(s); got != want {
			t.Errorf("isVerifier(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestCheckChallenge(t *testing.T) {
	t.Parallel()
	if err := checkChallenge(rfcChallenge, "S256"); err != nil {
		t.Errorf("checkChallenge = %v, want nil", err)
	}
	for _, tt := range []struct{ challenge, method, word string }{
		{"", "S256", "missing"},
		{"", "", "missing"},
		{rfcChallenge, "", "plain"},
		{rfcVerifier, "plain", "S256"},
		{rfcChallenge, "s256", "S256"},
		{rfcChallenge, "S512", "S256"},
		{rfcChallenge[:42], "S256", "43"},
		{rfcChallenge + "A", "S256", "43"},
		{rfcChallenge + "=", "S256", "43"},
		{rfcChallenge[:42] + "=", "S256", "43"},
		{rfcChallenge[:42] + "+", "S256", "43"},
		{rfcChallenge[:42] + ".", "S256", "43"},
		{rfcChallenge[:42] + "~", "S256", "43"},
		{rfcChallenge[:41] + "\u00e4", "S256", "43"},
	} {
		if f := faultOf(checkChallenge(tt.challenge, tt.method)); f.Code != "invalid_request" || !strings.Contains(f.Description, tt.word) {
			t.Errorf("checkChallenge(%q, %q) = %v, want invalid_request about: %s", tt.challenge, tt.method, f, tt.word)
		}
	}
}

func TestAVerifierFitsItsOwnChallengeAlone(t *testing.T) {
	t.Parallel()
	verifiers := rapid.StringMatching(`[a-zA-Z0-9._~-]{43,128}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := verifiers.Draw(t, "a"), verifiers.Draw(t, "b")
		if c := challengeOf(a); checkChallenge(c, "S256") != nil || !verifies(c, a) || verifies(c, b) != (a == b) {
			t.Fatalf("the challenge of %q is not its own", a)
		}
	})
}

func FuzzVerifies(f *testing.F) {
	f.Add(rfcChallenge, rfcVerifier)
	f.Add("", "")
	f.Add(rfcVerifier, rfcVerifier)
	f.Fuzz(func(t *testing.T, challenge, verifier string) {
		if verifies(challenge, verifier) && (challenge != challengeOf(verifier) || !isVerifier(verifier) || !isChallenge(challenge)) {
			t.Errorf("verifies(%q, %q) = true", challenge, verifier)
		}
	})
}
