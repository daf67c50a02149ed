package oauth

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// clientURIs are what clients in the field register.
var clientURIs = []string{
	"https://claude.ai/api/mcp/auth_callback",
	"https://claude.com/api/mcp/auth_callback",
	"https://chatgpt.com/connector_platform_oauth_redirect",
	"https://chatgpt.com/connector/oauth/abc123",
	"cursor://anysphere.cursor-mcp/oauth/callback",
	"https://www.cursor.com/agents/mcp/oauth/callback",
	"http://localhost:8787/callback",
	"https://insiders.vscode.dev/redirect",
	"https://vscode.dev/redirect",
	"http://127.0.0.1/",
	"http://127.0.0.1:33418/",
	"http://localhost/callback",
	"http://127.0.0.1/callback",
	"http://127.0.0.1:49152/callback/4dfZq1x_9-AB",
	"http://localhost:6274/oauth/callback/debug",
	"https://grok.com/connectors-oauth-exchange-code/",
	"https://global.consent.azure-apim.net/redirect/graft-5f1e",
	"https://n8n.example.org/rest/oauth2-credential/callback",
}

// soundURIs are acceptable for other reasons.
var soundURIs = []string{
	"http://localhost", "http://localhost:1", "http://[::1]:5000/callback", "HTTP://LocalHost:3118/callback", "http://127.0.0.1?a=b",
	"https://a.example", "https://a.example/", "https://a.example:8443/cb?tenant=7&x=%C3%A4", "https://a.example/cb/..;/x", "https://a_b.example./cb",
	"https://xn--bcher-kva.example/cb", "https://192.0.2.7/cb", "https://10.0.0.5/cb", "https://[2001:db8::7]:8443/cb", "https://good.evil.example/",
	"https://a.example/@user", "https://a.example/a:b", "https://a.example/.well-known/cb", "https://a.example/cb?",
	"com.example.app:/oauth2redirect", "com.example.app://cb", "com.googleusercontent.apps.123-abc:/cb", "vscode://vscode.mcp/cb", "zed://oauth", "x:/cb",
	"windsurf://cb?tenant=7",
}

// badURIs are refused, with a word of the sentence that says why.
var badURIs = map[string]string{
	"": "empty",
	"https://a.example/" + strings.Repeat("a", maxRedirectURI): "longer",

	// Not absolute.
	"/callback": "absolute", "callback": "absolute", "//a.example/cb": "absolute", "a.example/cb": "absolute", ":/cb": "absolute",
	"1a:/cb": "absolute", "java%73cript:/x": "absolute", "a_b:/x": "absolute",
	"https:": "no host", "https:/cb": "no host", "https:a.example/cb": "no host", "https://": "no host", "https:///a.example/cb": "no host",
	"https://?a=b": "no host", "http:localhost/cb": "no host",

	// What a browser leaves out, or turns into something else.
	" javascript:alert(1)": "printable", "java\tscript:alert(1)": "printable", "\x01javascript:alert(1)": "printable", "https://a.example/\ncb": "printable",
	"https://a.example/c b": "printable", "https://a.example/\x00": "printable", "https://a.example/\x7f": "printable", "https://b\u00fccher.example/": "printable",
	"https://\uff41.example/": "printable", "\u212aey:/cb": "printable", "https://a.example/\xff": "printable",
	"https://a.example\\@evil.example/": "no URI has", "https:\\\\a.example": "no URI has", "https://a.example/{id}": "no URI has", "https://a.example/\"": "no URI has",
	"https://a.example/<script>": "no URI has",
	"https://a.example/cb#":      "fragment", "https://a.example/cb#x": "fragment", "cursor://a/cb#x": "fragment", "https://a.example#@evil.example/": "fragment",
	"https://*.example/cb": "wildcard", "https://a.example/*": "wildcard", "http://localhost:*/cb": "wildcard",
	"https://a.example/%": "hexadecimal", "https://a.example/%4": "hexadecimal", "https://a.example/%zz": "hexadecimal",
	"https://a.example/cb/../x": "path", "https://a.example/./cb": "path", "https://a.example/cb/%2e%2E/x": "path", "https://a.example/..": "path",
	"https://a.example/.%2e": "path", "com.example:/../x": "path",

	// Another host than the first look says.
	"https://good.example@evil.example/": "user name", "https://a:b@evil.example/": "user name", "https://a@b@evil.example/": "user name",
	"http://localhost@evil.example/callback": "user name", "http://localhost:1@evil.example/": "user name", "cursor://a@b/cb": "user name", "https://@a.example/": "user name",
	"https://a%2eexample/": "host", "https://a..example/": "host", "https://.a.example/": "host", "https://./": "host", "https://a.example:/": "host",
	"https://a.example:x/": "host", "https://a.example:65536/": "host", "https://a.example:000443/": "host", "https://a.example:1:2/": "host", "https://:443/": "host",
	"https://127.1/": "host", "https://2130706433/": "host", "https://0x7f000001/": "host", "https://0x7f.1/": "host", "https://127.0.0.1./": "host", "https://a.0x/": "host",
	"https://127.0.0.01/": "host", "https://[::1/": "host", "https://[fe80::1%25eth0]/": "host", "https://[::1]x/": "host", "https://[127.0.0.1]/": "host", "https://a!b/": "host",

	"cursor://a:x/cb": "host", "cursor://:1/cb": "host", "cursor://a%2fb/cb": "host", "cursor://[/cb": "host",

	// http to elsewhere.
	"http://public.example/cb": "http", "http://localhost.evil.example/": "http", "http://127.0.0.1.evil.example:80/callback": "http", "http://10.0.0.5/cb": "http",
	"http://127.0.0.2/cb": "http", "http://localhost./cb": "http", "http://[::ffff:7f00:1]/cb": "http", "http://0.0.0.0/cb": "http", "http://127.1/callback": "host",

	// Schemes that are no app's.
	"applescript://com.apple.scripteditor?action=new": "scheme", "x-man-page://ls": "scheme", "vnc://a.example": "scheme", "rdp://a.example": "scheme",
	"shortcuts://run-shortcut": "scheme", "steam://run/1": "scheme", "steambrowser://a": "scheme", "skype:a?call=/": "scheme", "jnlp://a.example/x": "scheme",
	"jnlps://a.example/x": "scheme", "ms-officecmd:/x": "scheme", "ms-excel:/x": "scheme", "search-ms:/query": "scheme",
	"onenote:/x": "scheme", "x-help-action://a": "scheme", "help:/x": "scheme", "zoommtg://a": "scheme", "teamviewer8://a": "scheme", "apt:/x": "scheme",
	"itunes://a": "scheme", "macappstore://a": "scheme", "X-Man-Page://ls": "scheme", "com.apple.systempreferences:/x": "scheme",
	"javascript:alert(1)": "scheme", "JaVaScRiPt:alert(1)": "scheme", "javascript://a.example/%0aalert(1)": "scheme", "data:text/html,x": "scheme", "DATA:,": "scheme",
	"vbscript:x": "scheme", "file:///etc/passwd": "scheme", "blob:https://a.example/1": "scheme", "about:blank": "scheme", "view-source:https://a.example": "scheme",
	"filesystem:https://a.example/x": "scheme", "ws://a.example/": "scheme", "wss://a.example/": "scheme", "ftp://a.example/": "scheme", "mailto:a@b.example": "scheme",
	"tel:+1": "scheme", "intent://a#Intent;end": "fragment", "intent://a/": "scheme", "chrome://settings": "scheme", "chrome-extension://abc/cb": "scheme",
	"ms-msdt:/id": "scheme", "search-ms:/x": "scheme", "urn:ietf:wg:oauth:2.0:oob": "scheme", "http+unix://x/": "scheme", "web+mcp://x": "scheme",
	"cursor:callback": "path", "com.example.app:cb": "path",

	// What the answer would be mistaken by.
	"https://a.example/cb?iss=https://evil.example": "iss", "https://a.example/cb?a=b&code=x": "code", "https://a.example/cb?%73tate=x": "state",
	"https://a.example/cb?error": "error", "https://a.example/cb?a;b": "query", "https://a.example/cb?a=%": "query", "cursor://a/cb?code=1": "code",
}

func TestRedirectURIsOfRegistrations(t *testing.T) {
	t.Parallel()
	for _, uri := range append(append([]string{}, clientURIs...), soundURIs...) {
		if err := checkRedirectURI(uri); err != nil {
			t.Errorf("checkRedirectURI(%q) = %v, want nil", uri, err)
		}
		if !matchRedirect([]string{uri}, uri) {
			t.Errorf("matchRedirect of %q and itself = false", uri)
		}
	}
	for uri, word := range badURIs {
		if err := checkRedirectURI(uri); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("checkRedirectURI(%.80q) = %v, want an error about: %s", uri, err, word)
		}
		if matchRedirect([]string{uri}, uri) {
			t.Errorf("matchRedirect(%.80q) = true for what cannot be registered", uri)
		}
	}
}

func TestMatchRedirect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		registered, asked string
		want              bool
	}{
		// Any port on this computer, whether or not one was registered.
		{"http://127.0.0.1/callback", "http://127.0.0.1:49152/callback", true},
		{"http://localhost/callback", "http://localhost:3118/callback", true},
		{"http://localhost:8787/callback", "http://localhost:1/callback", true},
		{"http://localhost:8787/callback", "http://localhost/callback", true},
		{"http://[::1]/callback", "http://[::1]:5000/callback", true},
		{"http://127.0.0.1:33418/", "http://127.0.0.1:40001/", true},
		{"http://localhost/cb?tenant=7", "http://localhost:1/cb?tenant=7", true},

		// No path is the same as / there, and only there.
		{"http://127.0.0.1", "http://127.0.0.1:40001/", true},
		{"http://127.0.0.1/", "http://127.0.0.1:40001", true},
		{"http://127.0.0.1/?a=b", "http://127.0.0.1:40001?a=b", true},
		{"http://127.0.0.1/callback", "http://127.0.0.1/callback/", false},
		{"https://a.example", "https://a.example/", false},
		{"https://a.example/", "https://a.example", false},

		// The names of this computer do not stand for one another, nor does another path, query or scheme.
		{"http://127.0.0.1/callback", "http://localhost:1/callback", false},
		{"http://127.0.0.1/callback", "http://[::1]:1/callback", false},
		{"http://localhost/callback", "http://LOCALHOST:1/callback", false},
		{"http://localhost/callback", "http://localhost:1/other", false},
		{"http://localhost/callback", "http://localhost:1/callback?a=b", false},
		{"http://localhost/callback", "http://localhost:1/callback?", false},
		{"http://localhost/callback", "http://localhost:1/Callback", false},
		{"http://localhost/callback", "http://localhost:1/%63allback", false},
		{"http://localhost/callback", "https://localhost:1/callback", false},
		{"https://localhost/callback", "https://localhost:1/callback", false},
		{"http://localhost/callback", "http://localhost:/callback", false},
		{"http://localhost/callback", "http://localhost:99999/callback", false},
		{"http://localhost/callback", "http://localhost:1/callback#x", false},
		{"http://localhost/callback", "http://localhost.evil.example/callback", false},
		{"http://127.0.0.1/callback", "http://127.0.0.1.evil.example:80/callback", false},
		{"http://127.0.0.1/callback", "http://127.1/callback", false},
		{"http://127.0.0.1/callback", "http://127.0.0.1@evil.example/callback", false},
		{"http://127.0.0.1/callback", "http://evil.example\\127.0.0.1/callback", false},
		{"http://127.0.0.1:1/callback", "http://127.0.0.1:1:2/callback", false},

		// Elsewhere every byte counts.
		{"https://a.example/cb", "https://a.example:443/cb", false},
		{"https://a.example/cb", "https://a.example:8443/cb", false},
		{"https://a.example/cb", "https://A.example/cb", false},
		{"https://a.example/cb", "HTTPS://a.example/cb", false},
		{"https://a.example/cb", "https://a.example/cb?x=1", false},
		{"https://a.example/cb", "https://a.example/cb/x", false},
		{"https://a.example/cb", "https://a.example/cb/../x", false},
		{"https://a.example/cb", "https://a.example/%63b", false},
		{"https://a.example/cb", "https://a.example/cb#", false},
		{"https://a.example/cb", "https://a.example.evil.example/cb", false},
		{"https://a.example/cb", "https://a.example@evil.example/cb", false},
		{"https://a.example/cb", "https://xn--a-ecp.example/cb", false},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp:1/oauth/callback", false},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "cursor://other/oauth/callback", false},
		{"com.example.app:/cb", "com.example.app:/cb", true},
		{"https://a.example/cb", "", false},
		{"https://a.example/cb", "/cb", false},
	} {
		if got := matchRedirect([]string{"https://other.example/", tt.registered}, tt.asked); got != tt.want {
			t.Errorf("matchRedirect(%q, %q) = %v, want %v", tt.registered, tt.asked, got, tt.want)
		}
	}
	if matchRedirect(nil, "https://a.example/") {
		t.Error("matchRedirect of nothing registered = true")
	}
}

func TestRedirectHost(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]struct {
		host     string
		loopback bool
	}{
		"https://Claude.ai/api/mcp/auth_callback":      {"claude.ai", false},
		"https://a.example:8443/cb":                    {"a.example:8443", false},
		"https://localhost/cb":                         {"localhost", false},
		"http://localhost:3118/callback":               {"localhost:3118", true},
		"http://[::1]:5000?a":                          {"[::1]:5000", true},
		"cursor://anysphere.cursor-mcp/oauth/callback": {"cursor:", false},
		"com.example.app:/cb":                          {"com.example.app:", false},
		"nothing":                                      {"", false},
	} {
		if host, loopback := redirectHost(uri); host != want.host || loopback != want.loopback {
			t.Errorf("redirectHost(%q) = %q, %v, want %q, %v", uri, host, loopback, want.host, want.loopback)
		}
	}
}

// anyURI draws URIs made of pieces that redirect URIs are made of, sound and not, so that many of them nearly are.
func anyURI(t *rapid.T, label string) string {
	piece := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label+name) }
	return piece(" scheme", "http://", "http://", "https://", "HTTP://", "cursor://", "com.example:/", "javascript:", "http:", "") +
		piece(" user", "", "", "", "", "a@", "localhost@") +
		piece(" host", "localhost", "127.0.0.1", "[::1]", "Localhost", "a.example", "localhost.a.example", "127.1", "[::1", "\u212a", "") +
		piece(" port", "", ":1", ":49152", ":65535", ":65536", ":", ":x") +
		piece(" path", "", "/", "/cb", "/cb/", "/cb/../x", "/%63b", "/c\\b", "/c\tb") +
		piece(" query", "", "", "?", "?a=b", "?iss=x") +
		piece(" fragment", "", "", "", "#", "#x")
}

func TestOnlyWhatWasRegisteredMatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		registered := make([]string, rapid.IntRange(0, 4).Draw(t, "registered"))
		for i := range registered {
			registered[i] = anyURI(t, "registered")
		}
		asked := anyURI(t, "asked")
		if rapid.Bool().Draw(t, "as registered") && len(registered) > 0 {
			asked = registered[0]
		}
		holdMatch(t, registered, asked)
	})
}

// holdMatch holds what is true of every match. It reads URIs with the parser of the standard library, not with ours.
func holdMatch(t interface{ Fatalf(string, ...any) }, registered []string, asked string) {
	if !matchRedirect(registered, asked) {
		return
	}
	if err := checkRedirectURI(asked); err != nil {
		t.Fatalf("%q matches and %v", asked, err)
	}
	a, err := url.Parse(asked)
	if err != nil {
		t.Fatalf("%q matches and cannot be read: %v", asked, err)
	}
	if a.User != nil || a.Fragment != "" || strings.ContainsAny(asked, "#\\ \t\r\n\x00") {
		t.Fatalf("%q matches", asked)
	}
	for _, uri := range registered {
		if uri == asked {
			return
		}
		r, err := url.Parse(uri)
		if err != nil || r.Scheme != "http" || a.Scheme != "http" || r.Hostname() != a.Hostname() {
			continue
		}
		switch strings.ToLower(a.Hostname()) {
		case "localhost", "127.0.0.1", "::1":
		default:
			continue
		}
		r.Host, a.Host = "", ""
		if rooted(r.RequestURI()) == rooted(a.RequestURI()) {
			return
		}
	}
	t.Fatalf("%q matches %q", asked, registered)
}

// holdAccepted holds what is true of every URI that may be registered.
func holdAccepted(t interface{ Fatalf(string, ...any) }, uri string) {
	if checkRedirectURI(uri) != nil {
		return
	}
	if strings.ContainsAny(uri, "#\\") || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		t.Fatalf("%q is accepted", uri)
	}
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatalf("%q is accepted and cannot be read: %v", uri, err)
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" || !u.IsAbs() || isRefusedScheme(u.Scheme) && u.Scheme != "http" && u.Scheme != "https" {
		t.Fatalf("%q is accepted, and read as %#v", uri, u)
	}
	host, loopback := redirectHost(uri)
	if web := u.Scheme == "http" || u.Scheme == "https"; web && host != lower(u.Host) || !web && host != u.Scheme+":" {
		t.Fatalf("%q is shown as %q, and read as %#v", uri, host, u)
	}
	if loopback != (u.Scheme == "http") {
		t.Fatalf("%q is accepted, and loopback = %v", uri, loopback)
	}
	if !matchRedirect([]string{uri}, uri) {
		t.Fatalf("%q is accepted and does not match itself", uri)
	}
}

func TestAcceptedRedirectURIsAreWhatTheyLookLike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { holdAccepted(t, anyURI(t, "uri")) })
	rapid.Check(t, func(t *rapid.T) { holdAccepted(t, rapid.String().Draw(t, "uri")) })
}

// A port is all that may differ, and any may.
func TestAnyPortOnThisComputer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom([]string{"localhost", "127.0.0.1", "[::1]"}).Draw(t, "host")
		port := rapid.StringMatching(`(:([1-9][0-9]{0,3}|[1-5][0-9]{4}))?`)
		rest := rapid.StringMatching(`/[a-z/]{0,6}(\?[a-b=]{0,3})?`).Draw(t, "rest")
		a, b := "http://"+host+port.Draw(t, "a")+rest, "http://"+host+port.Draw(t, "b")+rest
		if !matchRedirect([]string{a}, b) {
			t.Fatalf("matchRedirect(%q, %q) = false", a, b)
		}
		if other := "https" + strings.TrimPrefix(b, "http"); matchRedirect([]string{a}, other) {
			t.Fatalf("matchRedirect(%q, %q) = true", a, other)
		}
	})
}

func FuzzRedirectURI(f *testing.F) {
	for _, uri := range append(append([]string{}, clientURIs...), soundURIs...) {
		f.Add(uri, uri)
	}
	for uri := range badURIs {
		f.Add("http://localhost/callback", uri)
	}
	f.Fuzz(func(t *testing.T, registered, asked string) {
		holdAccepted(t, asked)
		holdMatch(t, []string{registered}, asked)
	})
}
