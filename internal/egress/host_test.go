package egress_test

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func TestHostsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ entry, want string }{
		{"api.github.com", "api.github.com"},
		{"API.GitHub.com.", "api.github.com"},
		{"https://api.github.com", "api.github.com"},
		{"HTTPS://api.github.com:443/", "api.github.com"},
		{"api.github.com:0443", "api.github.com"},
		{"api.github.com:8443", "api.github.com:8443"},
		{"http://api.github.com", "http://api.github.com"},
		{"http://api.github.com:80", "http://api.github.com"},
		{"http://api.github.com:443", "http://api.github.com:443"},
		{"https://api.github.com:80", "api.github.com:80"},
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"faß.example", "xn--fa-hia.example"},
		{"api。github。com", "api.github.com"},
		{"ａｐｉ.github.com", "api.github.com"},
		{"my_tools:8080", "my_tools:8080"},
		{"r3---sn-x.example.com", "r3---sn-x.example.com"},
		{"8.8.8.8", "8.8.8.8"},
		{"[::ffff:8.8.8.8]", "8.8.8.8"},
		{"[2001:4860:4860:0:0:0:0:8888]", "[2001:4860:4860::8888]"},
		{"[2001:4860:4860::8888]:8443", "[2001:4860:4860::8888]:8443"},
		{"0xample.com", "0xample.com"},
		{"1.2.3.com", "1.2.3.com"},
		{"api.github.com/v3", "api.github.com/v3"},
		{"https://API.github.com:443/v3/", "api.github.com/v3"},
		{"http://10.0.0.5:8080/a/B%20c", "http://10.0.0.5:8080/a/B%20c"},
		{"api.github.com/bücher", "api.github.com/b%C3%BCcher"},
		{"[2001:db8::1]/x", "[2001:db8::1]/x"},
	} {
		h, err := egress.ParseHosts(c.entry)
		if err != nil {
			t.Errorf("ParseHosts(%q): %v", c.entry, err)
			continue
		}
		if diff := cmp.Diff([]string{c.want}, h.Strings()); diff != "" {
			t.Errorf("ParseHosts(%q).Strings() (-want +got):\n%s", c.entry, diff)
		}
	}
}

func TestWhatIsNotAHostIsRefused(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", " ", "https://", "ftp://api.github.com", "user@api.github.com", "https://u:p@api.github.com",
		"api.github.com?x", "api.github.com?", "api.github.com#x", "api github.com", "api..github.com", ".github.com", "*.github.com",
		"api.github.com:0", "api.github.com:65536", "api.github.com:x", "127.1", "0x7f.1", "2130706433", "::1", "[::1%25lo]", "[::1", "a\x00b", "a\nb",
		strings.Repeat("a.", 127) + "com", "xn--a", "api.github.com//", "api.github.com//v3", "api.github.com/v3//x", "api.github.com/..", "api.github.com/v3/../x",
		"api.github.com/./v3", "api.github.com/%2e%2E/x", "api.github.com/v3%2Fx", "api.github.com/v3%5cx", `api.github.com/v3\x`, "api.github.com/..;/x", "api.github.com/v3#",
	} {
		if h, err := egress.ParseHosts("api.example.com", entry); err == nil {
			t.Errorf("ParseHosts(%q) = %v, want a refusal", entry, h.Strings())
		} else if r := reason.Of(err); r.Details["field"] != "hosts" {
			t.Errorf("ParseHosts(%q) = %v, want a refusal about hosts", entry, err)
		}
	}
}

func TestHostsAreASet(t *testing.T) {
	t.Parallel()
	h := hostsOf(t, "b.example", "a.example", "https://B.example.:443", "http://a.example")
	if diff := cmp.Diff([]string{"b.example", "a.example", "http://a.example"}, h.Strings()); diff != "" {
		t.Errorf("Strings() (-want +got):\n%s", diff)
	}
}

func TestOnlyHostsOfTheSetAreCalled(t *testing.T) {
	t.Parallel()
	c := newClient(t, egress.Config{Resolver: serveDNS(t, nil)})
	for _, r := range []struct {
		hosts []string
		url   string
		in    bool
	}{
		{nil, "https://api.example.com/", false},
		{[]string{"api.example.com"}, "https://api.example.com/", true},
		{[]string{"api.example.com"}, "https://API.example.com.:443/x?y#z", true},
		{[]string{"a.example", "bücher.example"}, "https://xn--bcher-kva.example/", true},
		{[]string{"api.example.com:8443"}, "https://api.example.com:8443/", true},
		{[]string{"api.example.com"}, "https://api.example.com:8443/", false},
		{[]string{"api.example.com:8443"}, "https://api.example.com/", false},
		{[]string{"api.example.com"}, "http://api.example.com/", false},
		{[]string{"api.example.com"}, "http://api.example.com:443/", false},
		{[]string{"http://api.example.com"}, "https://api.example.com/", false},
		{[]string{"api.example.com"}, "https://example.com/", false},
		{[]string{"example.com"}, "https://api.example.com/", false},
		{[]string{"example.com"}, "https://example.com.evil.test/", false},
		{[]string{"example.com"}, "https://evilexample.com/", false},
		{[]string{"example.com"}, "https://evil.test/example.com", false},
		{[]string{"example.com"}, "https://evil.test/#example.com", false},
		{[]string{"example.com"}, "https://evil.test?example.com", false},
		{[]string{"example.com"}, "https://еxample.com/", false}, // Cyrillic е
	} {
		_, err := c.Do(t.Context(), egress.Request{URL: r.url, Hosts: hostsOf(t, r.hosts...)})
		want := reason.HostNotInSet
		if r.in {
			want = reason.UpstreamUnavailable // no such name: it was looked up
		}
		assertRefused(t, r.url+" with "+strings.Join(r.hosts, ", "), err, want)
	}
}

// FuzzParseHosts holds that what is accepted has one spelling, which every reader of URLs takes for the same host.
func FuzzParseHosts(f *testing.F) {
	for _, s := range spellings {
		if u, err := url.Parse(s.url); err == nil {
			f.Add(u.Host)
		}
	}
	for _, seed := range []string{"api.github.com", "API.Example.com.:443", "bücher.example:8443", "[::ffff:8.8.8.8]", "http://10.0.0.1:80", "[2001:db8::1]:8443", "my_tools", "x.test/v2", "x.test/a/../b", "x.test/a%2e", "x.test/ü"} {
		f.Add(seed)
	}
	name := regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)
	number := regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
	f.Fuzz(func(t *testing.T, entry string) {
		h, err := egress.ParseHosts(entry)
		if err != nil {
			if r := reason.Of(err); r.Word != reason.InputInvalid && r.Word != reason.HostNotPublic {
				t.Errorf("ParseHosts(%q) = %v", entry, err)
			}
			return
		}
		canonical := h.Strings()[0]
		again, err := egress.ParseHosts(canonical)
		if err != nil || !slices.Equal(again.Strings(), h.Strings()) {
			t.Errorf("ParseHosts(%q) = %q, whose own spelling is %q, %v", entry, canonical, again.Strings(), err)
		}
		if !strings.Contains(canonical, "://") {
			canonical = "https://" + canonical
		}
		u, err := url.Parse(canonical)
		if err != nil || u.String() != canonical || u.User != nil || strings.HasSuffix(u.Path, "/") {
			t.Fatalf("ParseHosts(%q) = %q, which reads as %v, %v", entry, canonical, u, err)
		}
		host := u.Hostname()
		if addr, err := netip.ParseAddr(host); err == nil {
			if addr.String() != host || addr.Zone() != "" || addr.Is4In6() {
				t.Errorf("ParseHosts(%q) = %q, an address in another spelling than %s", entry, canonical, addr)
			}
			return
		}
		if !name.MatchString(host) || number.MatchString(host) || len(host) > 253 {
			t.Errorf("ParseHosts(%q) = %q, which some resolver may take for something else", entry, canonical)
		}
	})
}
