package store_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/store"
)

var prefixes = []string{store.StaticTokenPrefix, store.LinkTokenPrefix}

func TestNewTokensAreWellFormed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, prefix := range prefixes {
		for range 200 {
			token, hash := store.NewToken(prefix)
			if !store.WellFormed(prefix, token) || store.HashToken(token) != hash {
				t.Errorf("NewToken(%q) = %q, want it well formed and under its hash", prefix, token)
			}
			if want := len(prefix) + 43 + 6; len(token) != want || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("NewToken(%q) = %q, want %d characters of base64url", prefix, token, want)
			}
			for _, other := range prefixes {
				if other != prefix && store.WellFormed(other, token) {
					t.Errorf("WellFormed(%q, %q) = true, want false: it is of another kind", other, token)
				}
			}
			seen[token] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("different tokens = %d, want 400", len(seen))
	}
}

func TestAMistypedTokenIsNotWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
		token, _ := store.NewToken(prefix)
		at := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		c := rapid.Byte().Draw(t, "character")
		for name, other := range map[string]string{
			"changed":  token[:at] + string([]byte{c}) + token[at+1:],
			"left out": token[:at] + token[at+1:],
			"doubled":  token[:at+1] + token[at:],
			"cut":      token[:at],
		} {
			if other != token && store.WellFormed(prefix, other) {
				t.Fatalf("WellFormed(%q) with a character %s at %d = true, want false", other, name, at)
			}
		}
		if at+1 < len(token) && token[at] != token[at+1] {
			swapped := token[:at] + token[at+1:at+2] + token[at:at+1] + token[at+2:]
			if store.WellFormed(prefix, swapped) {
				t.Fatalf("WellFormed(%q) with two characters swapped at %d = true, want false", swapped, at)
			}
		}
	})
}

func TestDifferentTokensHashDifferently(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (store.HashToken(a) == store.HashToken(b)) != (a == b) {
			t.Fatalf("HashToken(%q) and HashToken(%q) are equal: %v, want %v", a, b, a != b, a == b)
		}
	})
}

func FuzzWellFormed(f *testing.F) {
	token, _ := store.NewToken(store.StaticTokenPrefix)
	link, _ := store.NewToken(store.LinkTokenPrefix)
	for _, s := range []string{"", "grft_", token, link, token[:len(token)-1], token + "A", strings.ToUpper(token)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !store.WellFormed(store.StaticTokenPrefix, s) {
			return
		}
		if len(s) != 54 || !strings.HasPrefix(s, "grft_") {
			t.Errorf("WellFormed(%q) = true, want only 54 characters from grft_ on", s)
		}
		for i := range len(s) {
			other := []byte(s)
			other[i] ^= 1
			if store.WellFormed(store.StaticTokenPrefix, string(other)) {
				t.Errorf("WellFormed(%q) and WellFormed(%q) = true, want one at most", s, other)
			}
		}
	})
}
