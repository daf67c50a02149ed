package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
)

const appURL = "https://app.example/oauth/client.json"

func TestDocumentURLs(t *testing.T) {
	t.Parallel()
	for id, problem := range map[string]string{
		appURL: "",
		"https://claude.ai/oauth/mcp-oauth-client-metadata": "",
		"https://app.example/":                              "",
		"https://app.example:443/client":                    "",
		"https://app.example/client?v=2":                    "",
		"https://app.example/a.b/..c/d..":                   "",
		"https://App.Example/Client":                        "",
		"https://[2606:2800:220:1::1]/client":               "",
		"https://app.example//client":                       "",
		"https://app.example/" + strings.Repeat("a", 2028):  "",
		"https://app.example/" + strings.Repeat("a", 2029):  "longer than 2048",
		"":                                     "https://",
		"client":                               "https://",
		"http://app.example/client":            "https://",
		"https:///client":                      "https://",
		"https:app.example/client":             "https://",
		"ftp://app.example/client":             "https://",
		"https://app.example":                  "no path",
		"https://app.example?v=2":              "no path",
		"https://app.example/client#":          "fragment",
		"https://app.example/client#a":         "fragment",
		"https://user@app.example/client":      "user name",
		"https://user:word@app.example/client": "user name",
		"https://@app.example/client":          "user name",
		"https://a@b@app.example/client":       "user name",
		"https://app.example/./client":         ". or ..",
		"https://app.example/a/../client":      ". or ..",
		"https://app.example/a/..":             ". or ..",
		"https://app.example/%2e/client":       ". or ..",
		"https://app.example/a/%2E%2e/client":  ". or ..",
		"https://app.example/a/.%2e/client":    ". or ..",
		"https://app.example/a%2f..%2fclient":  ". or ..",
		"https://app.example/cli ent":          "not a URL",
		"https://app.example/client\n":         "not a URL",
		"https://app.example/cl\x00ient":       "not a URL",
		"https://app.example\\@evil.example/c": "not a URL",
		"https://app.example/a\\..\\client":    "not a URL",
		"https://äpp.example/client":           "not a URL",
		"https://app.example/%zz":              "not a URL",
		"https://app.example/client?v=%":       "not a URL",
		"https://app.example:port/client":      "not a URL",
		" https://app.example/client":          "not a URL",
		"https://app.example/<script>":         "not a URL",
	} {
		err := isDocumentURL(id)
		if problem == "" && err != nil {
			t.Errorf("isDocumentURL(%q) = %v, want nil", id, err)
		}
		if problem != "" && (reason.Of(err).Word != reason.InputInvalid || !strings.Contains(err.Error(), problem)) {
			t.Errorf("isDocumentURL(%q) = %v, want input_invalid that says %q", id, err, problem)
		}
	}
}

// What clients of today say of themselves, in the parts that trip servers.
func TestDocumentsOfRealClients(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		url, body string
		redirects []string
	}{
		"Claude": {
			"https://claude.ai/oauth/mcp-oauth-client-metadata",
			`{"client_id": "https://claude.ai/oauth/mcp-oauth-client-metadata", "client_name": "Claude", "client_uri": "https://claude.ai",
			  "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"], "grant_types": ["authorization_code", "refresh_token"],
			  "response_types": ["code"], "token_endpoint_auth_method": "none"}`,
			[]string{"https://claude.ai/api/mcp/auth_callback"},
		},
		"Claude Code, on localhost without a port": {
			"https://claude.ai/oauth/claude-code-client-metadata",
			`{"client_id": "https://claude.ai/oauth/claude-code-client-metadata", "client_name": "Claude Code",
			  "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}`,
			[]string{"http://localhost/callback", "http://127.0.0.1/callback"},
		},
		"ChatGPT, which prefers a key and lists none": {
			"https://chatgpt.com/oauth/client.json",
			`{"client_id": "https://chatgpt.com/oauth/client.json", "client_name": "ChatGPT",
			  "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"], "token_endpoint_auth_method": "private_key_jwt",
			  "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"], "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
			  "token_endpoint_auth_signing_alg": "RS256", "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer"]}`,
			[]string{"https://chatgpt.com/connector_platform_oauth_redirect"},
		},
		"VS Code, with a grant that is not spoken here": {
			"https://vscode.dev/oauth/client-metadata.json",
			`{"client_id": "https://vscode.dev/oauth/client-metadata.json", "client_name": "Visual Studio Code",
			  "redirect_uris": ["http://127.0.0.1:33418/", "http://127.0.0.1/", "https://vscode.dev/redirect"], "token_endpoint_auth_method": "none",
			  "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"]}`,
			[]string{"http://127.0.0.1:33418/", "http://127.0.0.1/", "https://vscode.dev/redirect"},
		},
		"Goose, which refreshes without saying so": {
			"https://goose-docs.ai/oauth/client-metadata.json",
			`{"client_id": "https://goose-docs.ai/oauth/client-metadata.json", "client_name": "goose",
			  "redirect_uris": ["http://127.0.0.1/oauth_callback"], "grant_types": ["authorization_code"]}`,
			[]string{"http://127.0.0.1/oauth_callback"},
		},
	} {
		c, err := parseDocument(x.url, []byte(x.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.ID != x.url || c.AuthMethod != authNone || c.Secret != nil || c.Name == "" {
			t.Errorf("%s: %+v, want a public client of that id", name, c)
		}
		if diff := cmp.Diff(x.redirects, c.RedirectURIs); diff != "" {
			t.Errorf("%s: redirect URIs (-want +got):\n%s", name, diff)
		}
		if again, err := parseDocument(x.url, c.Document); err != nil || !cmp.Equal(again, c) {
			t.Errorf("%s: what is kept is read as %+v, %v, want %+v", name, again, err, c)
		}
	}
}

func TestDocumentsAreHeldToTheRules(t *testing.T) {
	t.Parallel()
	const good = `"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": ["https://app.example/cb"]`
	uris := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"https://app.example/cb",`, n), ",") }
	for body, problem := range map[string]string{
		`{` + good + `}`: "",
		`{` + good + `, "token_endpoint_auth_method": null, "token_endpoint_auth_methods_supported": []}`:                                 "",
		`{` + good + `, "token_endpoint_auth_methods_supported": ["none"]}`:                                                               "",
		`{` + good + `, "token_endpoint_auth_method": "none", "token_endpoint_auth_methods_supported": ["private_key_jwt"]}`:              "",
		`{` + good + `, "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"]}`:                                        "",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": [` + uris(10) + `]}`:                                      "",
		`{"client_id": "` + appURL + `", "client_name": "A\u0000pp\n", "redirect_uris": [` + uris(1) + `], "x": "\u0000", "y": 1e999999}`: "",

		``:                 "not a JSON object",
		`null`:             "not a JSON object",
		`[]`:               "not a JSON object",
		`"` + appURL + `"`: "not a JSON object",
		`<!doctype html>`:  "not a JSON object",
		`{` + good + `} x`: "not a JSON object",
		`{` + good:         "not a JSON object",
		`{` + good + `, "client_id": "https://evil.example/"}`: "not a JSON object", // twice
		`{` + good + ", \"x\": \"\xff\"}":                      "not a JSON object",
		`{}`:                                                   "client_id is not exactly",
		`{"error": "not found"}`:                               "client_id is not exactly",
		`{"client_id": 7, "client_name": "App", "redirect_uris": [` + uris(1) + `]}`:                        "client_id is not exactly",
		`{"client_id": "` + appURL + `/", "client_name": "App", "redirect_uris": [` + uris(1) + `]}`:        "client_id is not exactly",
		`{"client_id": "https://APP.example/oauth/client.json", "client_name": "App", "redirect_uris": []}`: "client_id is not exactly",
		`{"Client_ID": "` + appURL + `", "client_name": "App", "redirect_uris": [` + uris(1) + `]}`:         "client_id is not exactly",

		`{"client_id": "` + appURL + `", "redirect_uris": [` + uris(1) + `]}`:                               "no client_name",
		`{"client_id": "` + appURL + `", "client_name": " \t", "redirect_uris": [` + uris(1) + `]}`:         "no client_name",
		`{"client_id": "` + appURL + `", "client_name": ["App"], "redirect_uris": [` + uris(1) + `]}`:       "no client_name",
		`{"client_id": "` + appURL + `", "client_name": "App"}`:                                             "1 to 10 redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": []}`:                        "1 to 10 redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": "https://app.example/cb"}`:  "1 to 10 redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": [7]}`:                       "1 to 10 redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": [` + uris(11) + `]}`:        "1 to 10 redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": [` + uris(1) + `, null]}`:   "number 2 of its redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": ["javascript:alert(1)"]}`:   "number 1 of its redirect_uris",
		`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": ["http://app.example/cb"]}`: "number 1 of its redirect_uris",

		`{` + good + `, "client_secret": "hunter2"}`:                                                                             "holds a client_secret",
		`{` + good + `, "client_secret": null}`:                                                                                  "holds a client_secret",
		`{` + good + `, "client_secret_expires_at": 0}`:                                                                          "holds a client_secret",
		`{` + good + `, "token_endpoint_auth_method": "client_secret_basic"}`:                                                    "with a secret",
		`{` + good + `, "token_endpoint_auth_method": "client_secret_post"}`:                                                     "with a secret",
		`{` + good + `, "token_endpoint_auth_method": "client_secret_jwt"}`:                                                      "with a secret",
		`{` + good + `, "token_endpoint_auth_method": "client_secret_basic", "token_endpoint_auth_methods_supported": ["none"]}`: "with a secret",
		`{` + good + `, "token_endpoint_auth_methods_supported": ["client_secret_basic"]}`:                                       "must list none",
		`{` + good + `, "token_endpoint_auth_method": "private_key_jwt"}`:                                                        "private_key_jwt, which is not taken here",
		`{` + good + `, "token_endpoint_auth_methods_supported": ["private_key_jwt"]}`:                                           "private_key_jwt, which is not taken here",
		`{` + good + `, "token_endpoint_auth_method": "tls_client_auth"}`:                                                        "must list none",
		`{` + good + `, "token_endpoint_auth_method": ["none"]}`:                                                                 "token_endpoint_auth_method is not text",
		`{` + good + `, "token_endpoint_auth_methods_supported": "none"}`:                                                        "token_endpoint_auth_methods_supported is not a list",
	} {
		c, err := parseDocument(appURL, []byte(body))
		if problem == "" {
			if err != nil || c.Name != "App" || c.AuthMethod != authNone {
				t.Errorf("parseDocument(%s) = %+v, %v, want a public client App", body, c, err)
			}
			continue
		}
		if reason.Of(err).Word != reason.InputInvalid || !strings.Contains(err.Error(), problem) || !strings.HasSuffix(err.Error(), "Tell the app's maker.") {
			t.Errorf("parseDocument(%s) = %v, want input_invalid that says %q and what to do", body, err, problem)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") || strings.Contains(fmt.Sprint(err), "alert") {
			t.Errorf("the refusal repeats the document: %v", err)
		}
	}
}

func TestNamesAreCutAndCleaned(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"App":                    "App",
		" A\x00p\x1bp\u0085\n":   "App",
		strings.Repeat("ä", 201): strings.Repeat("ä", 200),
		"\x00":                   "",
	} {
		if got := plain(given); got != want {
			t.Errorf("plain(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestFreshnessIsTheHeadersWithinBounds(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{
		"":                                minFresh,
		"public":                          minFresh,
		"max-age=0":                       minFresh,
		"max-age=-1":                      minFresh,
		"max-age=299":                     minFresh,
		"max-age=301":                     301 * time.Second,
		"public, MAX-AGE=600":             10 * time.Minute,
		`max-age="600"`:                   10 * time.Minute,
		"max-age=86400":                   maxFresh,
		"max-age=86401":                   maxFresh,
		"max-age=99999999999999999999999": maxFresh,
		"max-age=9223372036854775807":     maxFresh,
		"max-age=many":                    minFresh,
		"max-age=7200, max-age=600":       10 * time.Minute,
		"max-age=7200, no-cache":          minFresh,
		"no-store, max-age=7200":          minFresh,
		"private, max-age=7200":           2 * time.Hour,
	} {
		if got := freshFor(http.Header{"Cache-Control": {said}}); got != want {
			t.Errorf("freshFor(%q) = %v, want %v", said, got, want)
		}
	}
	aged := http.Header{"Cache-Control": {"max-age=7200"}, "Age": {"3600"}}
	if got := freshFor(aged); got != time.Hour {
		t.Errorf("freshFor after an hour in a cache = %v, want 1h", got)
	}
}

// What is accepted is a URL that goes out as it is written, and within the rules of the draft.
func FuzzIsDocumentURL(f *testing.F) {
	for _, seed := range []string{appURL, "https://a/%2e%2e/", "https://a:443/?q=%41", "https://u@a/", "https://a/#", "https://[::1]/x", "https://a\\b/", "HTTPS://a/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if err := isDocumentURL(id); err != nil {
			if r := (*reason.Refusal)(nil); !errors.As(err, &r) || r.Word != reason.InputInvalid {
				t.Fatalf("isDocumentURL(%q) = %v, want input_invalid", id, err)
			}
			return
		}
		u, err := url.Parse(id)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || u.Path == "" || len(id) > 2048 {
			t.Fatalf("isDocumentURL accepts %q, which is %+v, %v", id, u, err)
		}
		if !strings.HasSuffix(id, u.RequestURI()) {
			t.Errorf("%q goes out as %q", id, u.RequestURI())
		}
		for _, written := range []string{u.Path, u.EscapedPath()} {
			if clean := path.Clean(written); strings.Trim(clean, "/") != strings.Trim(singleSlashes(written), "/") {
				t.Errorf("the path of %q is %q to a server that resolves dots", id, clean)
			}
		}
	})
}

var slashes = regexp.MustCompile("/+")

func singleSlashes(path string) string { return slashes.ReplaceAllString(path, "/") }

// Whatever a document holds, it makes a public client by the rules, which is made again of what is kept, or a refusal.
func FuzzParseDocument(f *testing.F) {
	for _, members := range []string{
		``, `, "token_endpoint_auth_method": "none"`, `, "client_secret": ""`, `, "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"]`,
		`, "x": [[[[{"a": 1e99}]]]]`, `, "client_id": ""`,
	} {
		f.Add([]byte(`{"client_id": "` + appURL + `", "client_name": "App", "redirect_uris": ["https://app.example/cb"]` + members + `}`))
	}
	f.Add([]byte(`{"client_id": "` + appURL + `", "client_name": "\u0000\u202e\ud83d\ude00", "redirect_uris": ["http://localhost/", "cursor://x/y"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := parseDocument(appURL, body)
		if err != nil {
			if r := (*reason.Refusal)(nil); !errors.As(err, &r) || r.Word != reason.InputInvalid {
				t.Fatalf("parseDocument = %v, want input_invalid", err)
			}
			return
		}
		if c.ID != appURL || c.AuthMethod != authNone || c.Secret != nil || c.Name == "" || len([]rune(c.Name)) > maxClientName || strings.ContainsFunc(c.Name, unicode.IsControl) {
			t.Errorf("parseDocument = %+v", c)
		}
		if n := len(c.RedirectURIs); n < 1 || n > maxRedirectURIs {
			t.Errorf("%d redirect URIs", n)
		}
		for _, uri := range c.RedirectURIs {
			if err := checkRedirectURI(uri); err != nil {
				t.Errorf("redirect URI %q: %v", uri, err)
			}
		}
		if again, err := parseDocument(appURL, c.Document); err != nil || !cmp.Equal(again, c) {
			t.Errorf("what is kept is read as %+v, %v, want %+v", again, err, c)
		}
	})
}
