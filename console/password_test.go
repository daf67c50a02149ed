package console_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/getgraft/graft/console"
)

const phc = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U"

func TestOnlyTheCanonicalPHCStringIsRead(t *testing.T) {
	t.Parallel()
	if got, err := console.CanonicalPHC(phc); err != nil || got != phc {
		t.Errorf("CanonicalPHC(%q) = %q, %v", phc, got, err)
	}
	for what, bad := range map[string]string{
		"empty":              "",
		"plain text":         "password",
		"another kind":       strings.Replace(phc, "argon2id", "argon2i", 1),
		"another version":    strings.Replace(phc, "v=19", "v=16", 1),
		"no memory":          strings.Replace(phc, "m=19456", "m=0", 1),
		"all memory":         strings.Replace(phc, "m=19456", "m=4294967295", 1),
		"no time":            strings.Replace(phc, "t=2", "t=0", 1),
		"too much time":      strings.Replace(phc, "t=2", "t=1000000", 1),
		"256 threads":        strings.Replace(phc, "p=1", "p=257", 1),
		"a leading zero":     strings.Replace(phc, "t=2", "t=02", 1),
		"a sign":             strings.Replace(phc, "t=2", "t=+2", 1),
		"another order":      strings.Replace(phc, "m=19456,t=2", "t=2,m=19456", 1),
		"a parameter more":   strings.Replace(phc, "p=1", "p=1,x=1", 1),
		"padding":            phc + "=",
		"a line break":       phc + "\n",
		"a line break in it": strings.Replace(phc, "c2Fs", "c2F\ns", 1),
		"a part more":        phc + "$",
		"a short salt":       strings.Replace(phc, "c2FsdHNhbHRzYWx0c2FsdA", "c2Fs", 1),
		"a short key":        phc[:len(phc)-40],
		"loose last bits":    phc[:len(phc)-1] + "V",
	} {
		if bad == phc {
			t.Errorf("%s: the same as the good one", what)
		}
		if got, err := console.CanonicalPHC(bad); err == nil {
			t.Errorf("%s: CanonicalPHC(%q) = %q, want an error", what, bad, got)
		}
	}
}

func FuzzPHC(f *testing.F) {
	f.Add(phc)
	f.Add("$argon2id$v=19$m=8,t=1,p=1$$")
	f.Add(strings.Replace(phc, "t=2", "t=16", 1))
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := console.CanonicalPHC(s); err == nil && got != s {
			t.Fatalf("CanonicalPHC(%q) = %q, want it unchanged or an error", s, got)
		}
	})
}

func TestPasswordsThatAreRefused(t *testing.T) {
	t.Parallel()
	about := []string{"ana.ferreira@northfield.example", "ana.ferreira", "Ana Ferreira", "Northfield Inc", ""}
	for s, want := range map[string]string{
		"":                                "This is 0 characters long. Use at least 12.",
		"x":                               "This is 1 character long. Use at least 12.",
		"elevenchars":                     "This is 11 characters long. Use at least 12.",
		"ñññññññññññ":                     "This is 11 characters long. Use at least 12.",
		strings.Repeat("ab cd ef ", 29):   "This is 261 characters long. Use at most 256.",
		"Ana.Ferreira@northfield.example": "This is something that people know of you. Choose another.",
		"anaferreira-":                    "This is something that people know of you. Choose another.",
		"northfield inc":                  "This is something that people know of you. Choose another.",
		"Password1234":                    "This is one of the first that anybody would try. Choose another.",
		"1234 5678 9012":                  "This is one of the first that anybody would try. Choose another.",
		"Correct Horse Battery Staple":    "This is one of the first that anybody would try. Choose another.",
		"aaaaaaaaaaaaaaaaaaaa":            "This is one of the first that anybody would try. Choose another.",
		"abcabcabcabcabc":                 "This is one of the first that anybody would try. Choose another.",
		goodPassword:                      "",
		"kT7#pQz9!mWx":                    "",
		"ññññéééüüßßø":                    "",
		strings.Repeat("abcdefgh", 32):    "",
		"ana ferreira likes rain":         "",
	} {
		if got := console.CheckPassword(s, about...); got != want {
			t.Errorf("CheckPassword(%.40q) = %q, want %q", s, got, want)
		}
	}
}

func TestWaitingForAHashEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := console.HashWhenFull(ctx, goodPassword); !errors.Is(err, context.Canceled) {
		t.Errorf("hash after the browser left: %v, want %v", err, context.Canceled)
	}
}
