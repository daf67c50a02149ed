package egress_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func scheme(t testing.TB, name string) egress.Scheme {
	t.Helper()
	s, err := egress.SchemeNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// credentialOf is what is kept of a connection with that config, once a person has typed fields.
func credentialOf(t testing.TB, name string, config, fields map[string]string) egress.Credential {
	t.Helper()
	s := scheme(t, name)
	config, err := s.CheckConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := s.NewCredential(fields)
	if err != nil {
		t.Fatal(err)
	}
	return egress.Credential{Key: t.Name(), Config: config, Secret: secret}
}

func injection(t testing.TB, name string, config, fields map[string]string) egress.Injection {
	t.Helper()
	in, err := scheme(t, name).Inject(credentialOf(t, name, config, fields))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// sent is a request as the vendor saw it.
type sent struct {
	Query  string
	Header http.Header
}

// sends asks a vendor that remembers what it saw.
func sends(t testing.TB, path, name string, config, fields map[string]string) (got sent) {
	t.Helper()
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		got = sent{r.URL.RawQuery, r.Header.Clone()}
	})
	if _, err := get(t, c, base, path, injection(t, name, config, fields)); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSchemesShowTheCredentialAsVendorsWantIt(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	for _, tt := range []struct {
		name, scheme   string
		config, fields m
		path           string
		header, want   string // "" is the query
	}{
		{"none", "none", nil, nil, "/?a=1", "", "a=1"},
		{"bearer", "bearer", nil, m{"token": "t0ken"}, "/", "Authorization", "Bearer t0ken"},
		{"a header", "api_key_header", m{"headerName": "x-api-key"}, m{"apiKey": "k3y"}, "/", "X-Api-Key", "k3y"},
		{"a header with a word before", "api_key_header", m{"headerName": "Authorization", "prefix": "Token"}, m{"apiKey": "k3y"}, "/", "Authorization", "Token k3y"},
		{"a parameter", "api_key_query", m{"queryParam": "api_key"}, m{"apiKey": "k3y"}, "/", "", "api_key=k3y"},
		{"beside others, as they are spelled", "api_key_query", m{"queryParam": "key"}, m{"apiKey": "a+b&c=ü?"[:5]}, "/?q=a%2Bb+c&keys=1&&x", "", "q=a%2Bb+c&keys=1&x&key=a%2Bb%26c"},
		{"in place of the caller's own", "api_key_query", m{"queryParam": "key"}, m{"apiKey": "k3y"}, "/?key=x&a=1&k%65y=y", "", "a=1&key=k3y"},
		{"basic", "basic", nil, m{"username": "u", "password": "p:a:ß€ "}, "/", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p:a:ß€ "))},
		{"a key as the user", "basic", nil, m{"username": "sk_1"}, "/", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("sk_1:"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := sends(t, tt.path, tt.scheme, tt.config, tt.fields)
			have := got.Query
			if tt.header != "" {
				have = got.Header.Get(tt.header)
			}
			if have != tt.want {
				t.Errorf("the vendor saw %q, want %q", have, tt.want)
			}
		})
	}
}

func TestASchemeTakesItsOwnConfigAlone(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	for _, tt := range []struct {
		scheme string
		config m
		field  string
	}{
		{"bearer", m{"headerName": "X"}, "schemeConfig"},
		{"api_key_header", nil, "schemeConfig.headerName"},
		{"api_key_header", m{"headerName": "Cookie"}, "schemeConfig.headerName"},
		{"api_key_header", m{"headerName": "Content-Length"}, "schemeConfig.headerName"},
		{"api_key_header", m{"headerName": "X Y"}, "schemeConfig.headerName"},
		{"api_key_header", m{"headerName": "X-Key", "prefix": "a\nb"}, "schemeConfig.prefix"},
		{"api_key_header", m{"headerName": "authorization"}, "schemeConfig.prefix"},
		{"api_key_query", m{"queryParam": "a=b"}, "schemeConfig.queryParam"},
		{"api_key_query", m{"queryParam": ""}, "schemeConfig.queryParam"},
	} {
		_, err := scheme(t, tt.scheme).CheckConfig(tt.config)
		if r := reason.Of(err); err == nil || r.Word != reason.InputInvalid || r.Details["field"] != tt.field {
			t.Errorf("%s with %v = %v, want input_invalid of %s", tt.scheme, tt.config, err, tt.field)
		}
	}
	got, err := scheme(t, "api_key_header").CheckConfig(m{"headerName": " X-Key "})
	if diff := cmp.Diff(m{"headerName": "X-Key"}, got); diff != "" || err != nil {
		t.Errorf("CheckConfig() (-want +got): %s, %v", diff, err)
	}
	if _, err := egress.SchemeNamed("magic"); reason.Of(err).Details["field"] != "scheme" || !strings.Contains(err.Error(), "bearer") {
		t.Errorf("SchemeNamed(magic) = %v, want the names", err)
	}
}

// G01 to G04, G07 and D12: what is pasted is cleaned where that is safe, and told where it is not; nothing is repeated.
func TestFieldG01ToG07WhatIsPasted(t *testing.T) {
	t.Parallel()
	bearer := func(typed string) string {
		return strings.TrimPrefix(sends(t, "/", "bearer", nil, map[string]string{"token": typed}).Header.Get("Authorization"), "Bearer ")
	}
	for name, typed := range map[string]string{
		"G01 a newline": canary + "\n", "G01 white space": " \t" + canary + " \r\n", "G02 a byte order mark": "\ufeff" + canary, "G02 a space of no width": canary + "\u200b",
		"G02 a space that does not break": "\u00a0" + canary, "G03 Bearer": "Bearer " + canary, "G03 bearer, twice the space": "bearer  " + canary,
	} {
		if got := bearer(typed); got != canary {
			t.Errorf("%s: the vendor saw %q", name, got)
		}
	}
	for name, tt := range map[string]struct{ scheme, field, typed string }{
		"G01 a line break inside":         {"bearer", "token", canary[:4] + "\n" + canary[4:]},
		"G02 a typographic dash":          {"bearer", "token", canary + "\u2013x"},
		"G02 a space of no width inside":  {"bearer", "token", canary[:4] + "\u200b" + canary[4:]},
		"G02 bytes that are no text":      {"bearer", "token", canary + "\xff"},
		"G04 dots":                        {"bearer", "token", "••••••••"},
		"G04 stars":                       {"bearer", "token", "********"},
		"G04 our own mark":                {"bearer", "token", "[redacted]"},
		"nothing":                         {"bearer", "token", " \n"},
		"only the word":                   {"bearer", "token", "Bearer "},
		"G07 as long as a book":           {"bearer", "token", strings.Repeat(canary, 2000)},
		"D12 a colon in the user":         {"basic", "username", "a:b" + canary},
		"D12 neither user nor password":   {"basic", "username", ""},
		"a control character in password": {"basic", "password", canary + "\x01"},
	} {
		_, err := scheme(t, tt.scheme).NewCredential(map[string]string{tt.field: tt.typed})
		if r := reason.Of(err); err == nil || r.Word != reason.InputInvalid || r.Details["field"] != "secret_"+tt.field {
			t.Errorf("%s = %v, want input_invalid of secret_%s", name, err, tt.field)
		}
		assertNoCanary(t, err)
	}
	// G07: long ones that are right.
	if got := bearer(strings.Repeat("k", 8000)); len(got) != 8000 {
		t.Errorf("of a key of 8,000 characters the vendor saw %d", len(got))
	}
}

func TestACredentialThatLacksAPartIsNotSent(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	if _, err := scheme(t, "bearer").Inject(egress.Credential{}); reason.Of(err).Word != reason.CredentialIncomplete {
		t.Errorf("without any = %v, want credential_incomplete", err)
	}
	in, err := scheme(t, "bearer").Inject(egress.Credential{Secret: credentialOf(t, "api_key_query", map[string]string{"queryParam": "k"}, map[string]string{"apiKey": canary}).Secret})
	if err != nil {
		t.Fatal(err)
	}
	_, err = get(t, c, base, "/", in)
	if reason.Of(err).Word != reason.CredentialIncomplete {
		t.Errorf("with another scheme's = %v, want credential_incomplete", err)
	}
	assertNoCanary(t, err)
}

// Every scheme can be shown, documented and asked for.
func TestTheTableOfSchemesIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range egress.Schemes() {
		if s.Name == "" || s.Title == "" || !strings.HasSuffix(s.About, ".") || seen[s.Name] {
			t.Errorf("%+v lacks a name, title or sentence, or is there twice", s.Name)
		}
		seen[s.Name] = true
		for _, f := range append(s.Config, s.Secrets...) {
			if f.Name == "" || f.Label == "" {
				t.Errorf("%s has a field without name or label: %+v", s.Name, f.Name)
			}
		}
	}
	if b, err := json.Marshal(credentialOf(t, "bearer", nil, map[string]string{"token": canary})); err == nil && strings.Contains(string(b), canary) {
		t.Errorf("a credential in JSON is %s", b)
	}
}
