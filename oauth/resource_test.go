package oauth

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOwnResource(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		origin, asked string
		want          bool
	}{
		{"https://graft.test", "https://graft.test/mcp", true},
		{"https://graft.test", "https://graft.test/mcp/", true},
		{"https://graft.test", "https://graft.test", true},
		{"https://graft.test", "https://graft.test/", true},
		{"https://graft.test", "HTTPS://GRAFT.TEST:443/mcp", true},
		{"https://graft.test:443", "https://graft.test/mcp", true},
		{"https://graft.test:8443", "https://graft.test:8443/mcp", true},
		{"http://localhost:8080", "http://localhost:8080/mcp", true},
		{"http://localhost", "http://LOCALHOST:80/", true},
		{"http://[::1]:8080", "http://[::1]:8080/mcp", true},

		{"https://graft.test", "https://other.test/mcp", false},
		{"https://graft.test", "http://graft.test/mcp", false},
		{"https://graft.test", "https://graft.test:80/mcp", false},
		{"http://graft.test", "http://graft.test:443/mcp", false},
		{"https://graft.test", "https://graft.test:8443/mcp", false},
		{"https://graft.test", "https://graft.test:/mcp", false},
		{"https://graft.test", "https://graft.test./mcp", false},
		{"https://graft.test", "https://sub.graft.test/mcp", false},
		{"https://graft.test", "https://graft.test.evil.test/mcp", false},
		{"https://graft.test", "https://graft.test/MCP", false},
		{"https://graft.test", "https://graft.test/mcp//", false},
		{"https://graft.test", "https://graft.test//mcp", false},
		{"https://graft.test", "https://graft.test/mcp/x", false},
		{"https://graft.test", "https://graft.test/mcp2", false},
		{"https://graft.test", "https://graft.test/%6dcp", false},
		{"https://graft.test", "https://graft.test/x/../mcp", false},
		{"https://graft.test", "https://graft.test/mcp#", false},
		{"https://graft.test", "https://graft.test/mcp#x", false},
		{"https://graft.test", "https://graft.test#x", false},
		{"https://graft.test", "https://graft.test/mcp?", false},
		{"https://graft.test", "https://graft.test?a=b", false},
		{"https://graft.test", "https://a@graft.test/mcp", false},
		{"https://graft.test", "https://graft.test@evil.test/mcp", false},
		{"https://graft.test", "https://graft.test\\/mcp", false},
		{"https://graft.test", " https://graft.test/mcp", false},
		{"https://graft.test", "https://graft.test/mcp ", false},
		{"https://graft.test", "https://graft.test/mcp\n", false},
		{"https://kraft.test", "https://\u212araft.test/mcp", false}, // the Kelvin sign, whose small letter is k
		{"https://graft.test", "https:graft.test/mcp", false},
		{"https://graft.test", "https:///graft.test/mcp", false},
		{"https://graft.test", "graft.test/mcp", false},
		{"https://graft.test", "//graft.test/mcp", false},
		{"https://graft.test", "/mcp", false},
		{"https://graft.test", "mcp", false},
		{"https://graft.test", "urn:graft", false},
		{"https://graft.test", "://", false},
		{"https://graft.test", "", false},
		{"", "", false},
	} {
		if got := ownResource(tt.origin, tt.asked); got != tt.want {
			t.Errorf("ownResource(%q, %q) = %v, want %v", tt.origin, tt.asked, got, tt.want)
		}
	}
}

// holdResource holds that what is taken for ours leads to us, as the parser of the standard library reads it.
func holdResource(t interface{ Fatalf(string, ...any) }, asked string) {
	if !ownResource("https://graft.test", asked) {
		return
	}
	u, err := url.Parse(asked)
	if err != nil || u.Scheme != "https" || !strings.EqualFold(u.Hostname(), "graft.test") || u.Port() != "" && u.Port() != "443" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Trim(u.EscapedPath(), "/") != "" && strings.TrimSuffix(u.EscapedPath(), "/") != "/mcp" {
		t.Fatalf("ownResource(%q) = true, and it is read as %#v, %v", asked, u, err)
	}
}

func TestNoOtherResourceIsOurs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		holdResource(t, piece("scheme", "https", "HTTPS", "http", "")+piece("slashes", "://", ":", ":///")+piece("user", "", "", "a@")+
			piece("host", "graft.test", "GRAFT.test", "graft.test.", "evil.test", "")+piece("port", "", ":443", ":80", ":")+
			piece("path", "", "/", "/mcp", "/mcp/", "//", "/mcp/x")+piece("rest", "", "", "?", "#", "?a", "#a", "\t"))
	})
}

func FuzzOwnResource(f *testing.F) {
	for _, s := range []string{"https://graft.test/mcp", "HTTPS://GRAFT.TEST:443/", "https://graft.test@evil.test/mcp", "https://graft.test?x", "https://graft.test#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, asked string) { holdResource(t, asked) })
}
