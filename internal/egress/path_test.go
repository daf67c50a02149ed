package egress_test

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func TestFieldD04PathGoesOutAsWrittenBelowItsPrefix(t *testing.T) {
	t.Parallel()
	arrived := make(chan string, 200)
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) { arrived <- r.RequestURI })
	hosts := hostsOf(t, base+"/v1/files", base+"/other/")
	for _, p := range []string{
		"/v1/files", "/v1/files/", "/v1/files/a/raw", "/v1/files/a%2Fb/raw", "/v1/files/a%2fb/raw", "/v1/files/%252e%252e%252f/raw", "/v1/files/a%20b/raw",
		"/v1/files/%C3%BC%3Fx=1%23f/raw", "/v1/files/...", "/v1/files/.hidden/a.b/..c", "/v1/files/a;b=c", "/v1/files/https%3A%2F%2Fx.test%2F", "/v1/files?q=../..", "/other", "/other/x",
		"/v1/files/!$&'()*+,;=:@", "/v1/files/a+b",
	} {
		if _, err := c.Do(t.Context(), egress.Request{URL: base + p, Hosts: hosts}); err != nil {
			t.Errorf("%s: %v", p, err)
		} else if got := <-arrived; got != p {
			t.Errorf("%s went out as %s", p, got)
		}
	}
	for p, want := range map[string]reason.Word{
		"": reason.HostNotInSet, "/": reason.HostNotInSet, "/v1": reason.HostNotInSet, "/v1/": reason.HostNotInSet, "/v1/filesystem": reason.HostNotInSet, "/v1/file": reason.HostNotInSet,
		"/V1/files": reason.HostNotInSet, "/v1%2Ffiles": reason.HostNotInSet, "/v1/file%73": reason.HostNotInSet, "/x/v1/files": reason.HostNotInSet, "/others": reason.HostNotInSet, "?/v1/files": reason.HostNotInSet,
		"/v1/files/..": reason.InputInvalid, "/v1/files/../admin": reason.InputInvalid, "/v1/files/./x": reason.InputInvalid, "/v1/files/.": reason.InputInvalid,
		"/v1/files/%2e%2e/admin": reason.InputInvalid, "/v1/files/%2E./admin": reason.InputInvalid, "/v1/files/.%2e": reason.InputInvalid, "/v1/files/%2e": reason.InputInvalid,
		"/v1/files/..%2fadmin": reason.InputInvalid, "/v1/files/a%2F..%2F..%2Fadmin": reason.InputInvalid, "/v1/files/%2e%2e%2fadmin": reason.InputInvalid,
		`/v1/files/..\admin`: reason.InputInvalid, `/v1/files/a\b`: reason.InputInvalid, "/v1/files/..%5cadmin": reason.InputInvalid, "/v1/files/a%5Cb": reason.InputInvalid,
		"/v1/files//admin": reason.InputInvalid, "//v1/files": reason.InputInvalid, "/v1//files": reason.InputInvalid, "/v1/files///": reason.InputInvalid,
		"/v1/files/..;/admin": reason.InputInvalid, "/v1/files/..;a=b/admin": reason.InputInvalid, "/v1/files/..%00/admin": reason.InputInvalid, "/v1/files/..%20/admin": reason.InputInvalid,
		"/v1/files/%c0%ae%c0%ae/admin": reason.InputInvalid, "/v1/files/.%3B/x": reason.InputInvalid, "/v1/files/../v1/files": reason.InputInvalid,
	} {
		_, err := c.Do(t.Context(), egress.Request{URL: base + p, Hosts: hosts})
		assertRefused(t, p, err, want)
		if r := reason.Of(err); want == reason.InputInvalid && r.Details["field"] != "url" || want == reason.HostNotInSet && r.Details["hosts"] == nil {
			t.Errorf("%s: %v with %v", p, err, r.Details)
		}
	}
	// An entry without a path is all of its origin, whatever else is in the set.
	for _, p := range []string{"/", "/v1/files/../x", "//x", "/a%2F..", "/v1/files/%2e%2e"} {
		if _, err := c.Do(t.Context(), egress.Request{URL: base + p, Hosts: hostsOf(t, base+"/v1", base)}); err != nil {
			t.Errorf("%s: %v", p, err)
		} else if got := <-arrived; got != p {
			t.Errorf("%s went out as %s", p, got)
		}
	}
}

func TestHostsWithPathsAreASet(t *testing.T) {
	t.Parallel()
	h := hostsOf(t, "https://api.example.com/v2", "uploads.example.com:8443", "API.example.com/v2/", "api.example.com/v2/x", "api.example.com")
	want := []string{"api.example.com/v2", "uploads.example.com:8443", "api.example.com/v2/x", "api.example.com"}
	if diff := cmp.Diff(want, h.Strings()); diff != "" {
		t.Errorf("Strings() (-want +got):\n%s", diff)
	}
	if again := hostsOf(t, h.Strings()...); !slices.Equal(again.Strings(), want) {
		t.Errorf("read again: %v", again.Strings())
	}
}

// Whatever a server makes of what is let through, it is below the prefix: with its escapes undone, once or twice, its
// backslashes turned, its parameters cut, its dots and double slashes resolved.
func TestNoPathLeavesItsPrefixProperty(t *testing.T) {
	t.Parallel()
	c := newClient(t, egress.Config{Resolver: serveDNS(t, nil)})
	hosts := hostsOf(t, "vendor.test/v1/files")
	parts := []string{"/", "/", "a", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", `\`, ";", "%3b", "%00", "%20", "b", "%c3%bc", "v1", "files", "//", "+"}
	rapid.Check(t, func(t *rapid.T) {
		p := "/v1/files" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "parts"), "")
		_, err := c.Do(t.Context(), egress.Request{URL: "https://vendor.test" + p, Hosts: hosts})
		if word := reason.Of(err).Word; word == reason.HostNotInSet || word == reason.InputInvalid {
			return
		} else if word != reason.UpstreamUnavailable { // no such name: it was let through
			t.Fatalf("%s: %v", p, err)
		}
		plain, err := url.PathUnescape(p)
		if err != nil {
			t.Fatal(err)
		}
		var cut []string
		for segment := range strings.SplitSeq(strings.ReplaceAll(plain, `\`, "/"), "/") {
			name, _, _ := strings.Cut(segment, ";")
			cut = append(cut, strings.Trim(name, " \x00"))
		}
		for _, reading := range []string{p, plain, strings.ReplaceAll(plain, `\`, "/"), strings.Join(cut, "/")} {
			if clean := path.Clean(reading); clean != "/v1/files" && !strings.HasPrefix(clean, "/v1/files/") && !strings.HasPrefix(clean, "/v1/files;") {
				t.Fatalf("%s was let through, and may be read as %s", p, clean)
			}
		}
	})
}
