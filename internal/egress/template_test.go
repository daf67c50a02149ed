package egress_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

func secret(s string) vault.Secret { return vault.NewSecret([]byte(s)) }

func TestTemplateIsExpandedWithItsSecrets(t *testing.T) {
	t.Parallel()
	arrived := make(chan string, 1)
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header.Get("X-Auth") })
	long := strings.Repeat("x", 2000)
	secrets := map[string]vault.Secret{"A": secret("one"), "B_2": secret("${A}"), "my-key": secret("three"), "LONG": secret(long), "unused": secret("never")}
	for template, want := range map[string]string{
		"Bearer ${A}":              "Bearer one",
		"${A}":                     "one",
		"${A}${B_2}:${my-key};":    "one${A}:three;", // what a secret holds is not looked at
		"plain":                    "plain",
		"$A ${} ${1} ${a b} ${A":   "$A ${} ${1} ${a b} ${A",
		"$${A}}":                   "$one}",
		"${LONG}.${A}.${LONG}":     long + ".one." + long,
		" ${A} ":                   "one",
		"${A}, ${A} and ${my-key}": "one, one and three",
	} {
		in, err := egress.Template("x-auth", secret(template), secrets)
		if err != nil {
			t.Errorf("Template(%q): %v", template, err)
			continue
		}
		for range 2 { // nothing is used up
			if _, err := get(t, c, base, "/", in); err != nil {
				t.Fatalf("%q: %v", template, err)
			}
			if got := <-arrived; got != want {
				t.Errorf("%q arrives as %q, want %q", template, got, want)
			}
		}
	}
}

func TestTemplateThatCannotBeSentIsRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []struct {
		name, template string
		want           reason.Word
		says           string
	}{
		{"X-Key", "Bearer ${ABSENT} " + canary, reason.UpstreamUnauthorized, "ABSENT"},
		{"X-Key", "Bearer ${EMPTY}", reason.UpstreamUnauthorized, "EMPTY"},
		{"Host", canary, reason.InputInvalid, "header"},
		{"X Y", canary, reason.InputInvalid, "header"},
		{"X-Key", "", reason.InputInvalid, "empty"},
	} {
		_, err := egress.Template(in.name, secret(in.template), map[string]vault.Secret{"EMPTY": {}, "A": secret(canary)})
		assertRefused(t, fmt.Sprintf("Template(%q, %q)", in.name, in.template), err, in.want)
		if err == nil || !strings.Contains(err.Error(), in.says) {
			t.Errorf("Template(%q, %q) = %v, want it to say %q", in.name, in.template, err, in.says)
		}
		assertNoCanary(t, err)
	}
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the vendor got %v", r.Header)
	})
	for _, s := range []string{canary + "\nX: y", canary + "\x00"} {
		in, err := egress.Template("X-Key", secret("a ${A} b"), map[string]vault.Secret{"A": secret(s)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = get(t, c, base, "/", in)
		assertRefused(t, "a secret that no header may carry", err, reason.InputInvalid)
		assertNoCanary(t, err)
	}
}
