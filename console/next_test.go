package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/getgraft/graft/console"
)

func TestLocalPathLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/":                          "/",
		"/agents":                    "/agents",
		"/agents?q=a%20b&show=few":   "/agents?q=a%20b&show=few",
		"/agents/agt_1#token":        "/agents/agt_1#token",
		"/consent/1?r=https://a.b/c": "/consent/1?r=https://a.b/c",
		"/ä":                         "/ä",
		"/a//b":                      "/a//b",

		"":                             "/",
		"agents":                       "/",
		"https://evil.example":         "/",
		"https:evil.example":           "/",
		"HTTPS://evil.example/":        "/",
		"javascript:alert(1)":          "/",
		"data:text/html,x":             "/",
		"//evil.example":               "/",
		"///evil.example":              "/",
		"/\\evil.example":              "/",
		"\\\\evil.example":             "/",
		"/a\\..\\..\\evil.example":     "/",
		"/\t/evil.example":             "/",
		"/\n/evil.example":             "/",
		"/\r/evil.example":             "/",
		"\t//evil.example":             "/",
		" //evil.example":              "/",
		"/ /evil.example":              "/",
		"/agents\r\nSet-Cookie: a=b":   "/",
		"/\x00":                        "/",
		"/\x7f":                        "/",
		"/%2f/evil.example":            "/",
		"/%2F%2Fevil.example":          "/",
		"/%zz":                         "/",
		"?next=//evil.example":         "/",
		"#//evil.example":              "/",
		"@evil.example":                "/",
		".evil.example":                "/",
		"/" + strings.Repeat("a", 2e4): "/",
	} {
		if got := console.LocalPath(in); got != want {
			t.Errorf("LocalPath(%.80q) = %.80q, want %q", in, got, want)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "/agents?q=1", "//evil.example", "/\\evil.example", "/\t/evil.example", "/.//evil.example", "/%2f/evil.example", "https://evil.example"} {
		f.Add(s)
	}
	base := &url.URL{Scheme: "https", Host: "graft.example.org", Path: "/signin"}
	// What browsers do to an address before they read it (WHATWG URL, basic URL parser).
	browser := strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/")
	f.Fuzz(func(t *testing.T, s string) {
		got := console.LocalPath(s)
		if got != s && got != "/" {
			t.Fatalf("LocalPath(%q) = %q, want it or /", s, got)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", nil)
		http.Redirect(w, r, got, http.StatusSeeOther)
		for _, target := range []string{got, w.Header().Get("Location")} {
			seen := browser.Replace(strings.TrimFunc(target, func(r rune) bool { return r <= ' ' }))
			if strings.HasPrefix(seen, "//") || !strings.HasPrefix(seen, "/") {
				t.Fatalf("LocalPath(%q) leads a browser to %q", s, seen)
			}
			u, err := base.Parse(seen)
			if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
				t.Fatalf("LocalPath(%q) leads to %v, %v", s, u, err)
			}
		}
	})
}
