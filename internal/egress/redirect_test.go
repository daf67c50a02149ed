package egress_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

// A record is what a server was asked.
type record struct {
	mu    sync.Mutex
	lines []string // method, URI, body
	all   strings.Builder
}

func (l *record) add(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)))
	fmt.Fprintf(&l.all, "%s %s %v %s\n", r.Method, r.RequestURI, r.Header, body)
}

func (l *record) take() (lines []string, all string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.lines = nil; l.all.Reset() }()
	return l.lines, l.all.String()
}

// startRedirecting serves two origins: each answers "/to/STATUS?LOCATION" with that redirect, and everything else with
// what it was asked.
func startRedirecting(t testing.TB) (c *egress.Client, base, other string, asked, askedOther *record) {
	t.Helper()
	start := func(l *record) *httptest.Server {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.add(r)
			var status int
			if _, err := fmt.Sscanf(r.URL.Path, "/to/%d", &status); err == nil {
				to := r.URL.Query()["to"]
				w.Header()["Location"] = to
				w.WriteHeader(status)
				return
			}
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	asked, askedOther = &record{}, &record{}
	first, second := start(asked), start(askedOther)
	return newClient(t, egress.Config{Allow: loopback, RootCAs: trust(first)}), first.URL, second.URL, asked, askedOther
}

func to(status int, locations ...string) string {
	q := url.Values{"to": locations}
	return fmt.Sprintf("/to/%d?%s", status, q.Encode())
}

var credentialKinds = map[string]func(testing.TB) egress.Injection{
	"bearer": func(t testing.TB) egress.Injection { return bearer(t, canary) },
	"basic":  func(t testing.TB) egress.Injection { return inHeader(t, "Authorization", "Basic") },
	"custom": func(t testing.TB) egress.Injection { return inHeader(t, "X-Api-Key", "") },
	"plain":  func(t testing.TB) egress.Injection { return inHeader(t, "Api-Key", "") },
	"cookie": func(testing.TB) egress.Injection { return egress.InCookie("session", secret(canary)) },
	"query":  func(testing.TB) egress.Injection { return egress.InQuery("key", secret(canary)) },
}

func inHeader(t testing.TB, name, prefix string) egress.Injection {
	t.Helper()
	in, err := egress.Header(name, prefix, secret(canary))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestFieldD01RedirectToAnotherHostDoesNotCarryTheCredential(t *testing.T) {
	t.Parallel()
	c, base, other, asked, askedOther := startRedirecting(t)
	for kind, in := range credentialKinds {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				for _, inSet := range []bool{false, true} {
					hosts := hostsOf(t, base)
					if inSet {
						hosts = hostsOf(t, base, other)
					}
					resp, err := c.Do(t.Context(), egress.Request{
						Method: method, URL: base + to(status, other+"/x"), Hosts: hosts, Follow: 3, Inject: []egress.Injection{in(t)},
						Body: []byte("the body"), Header: http.Header{"X-Mine": {"mine"}, "Accept": {"text/plain"}, "Content-Type": {"text/plain"}},
					})
					what := fmt.Sprintf("%s: %s %d, in the set %t", kind, method, status, inSet)
					if err != nil {
						t.Errorf("%s: %v", what, err)
						continue
					}
					if lines, all := asked.take(); len(lines) != 1 || !strings.Contains(all, canary) {
						t.Errorf("%s: the vendor got %v", what, all)
					}
					lines, all := askedOther.take()
					if strings.Contains(all, canary) || strings.Contains(all, "mine") || strings.Contains(all, "the body") || strings.Contains(all, "Referer") || strings.Contains(all, "Content-Type") {
						t.Errorf("%s: the other host got %s", what, all)
					}
					followed := inSet && (method != "POST" || status == 303)
					want := []string(nil)
					if followed {
						want = []string{strings.Replace(method, "POST", "GET", 1) + " /x"}
					}
					if diff := cmp.Diff(want, lines); diff != "" {
						t.Errorf("%s: the other host (-want +got):\n%s", what, diff)
					}
					if followed != (resp.Status == 200) || !followed && resp.Header.Get("Location") != other+"/x" {
						t.Errorf("%s: answer = %d %v", what, resp.Status, resp.Header)
					}
					if followed && !strings.Contains(all, "text/plain") {
						t.Errorf("%s: Accept did not arrive in %s", what, all)
					}
				}
			}
		}
	}
}

func TestRedirectWithinTheOriginIsFollowedWithTheCredential(t *testing.T) {
	t.Parallel()
	c, base, _, asked, _ := startRedirecting(t)
	host := strings.TrimPrefix(base, "https:")
	for location, want := range map[string]string{
		"/x": "/x", "x": "/to/x", "?y=1": "/to/302?y=1", host + "/z": "/z", base + "/a%2Fb/%252e?q=a+b": "/a%2Fb/%252e?q=a+b", "/x#fragment": "/x", "../../y": "/y",
	} {
		for kind, in := range credentialKinds {
			_, err := c.Do(t.Context(), egress.Request{
				URL: base + to(302, location), Hosts: hostsOf(t, base), Follow: 1, Inject: []egress.Injection{in(t)}, Header: http.Header{"X-Mine": {"mine"}},
			})
			if err != nil {
				t.Errorf("%s, %s: %v", location, kind, err)
			}
			lines, all := asked.take()
			if len(lines) != 2 || strings.Count(all, canary) != 2 || strings.Count(all, "mine") != 2 {
				t.Errorf("%s, %s: the vendor got %s", location, kind, all)
			} else if got := lines[1]; kind != "query" && got != "GET "+want {
				t.Errorf("%s: got %s, want GET %s", location, got, want)
			}
		}
	}
}

func TestRedirectThatIsNotFollowedIsTheAnswer(t *testing.T) {
	t.Parallel()
	c, base, other, asked, askedOther := startRedirecting(t)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("https led to http") }))
	t.Cleanup(plain.Close)
	for name, r := range map[string]struct {
		locations []string
		status    int
		follow    int
		hosts     []string
	}{
		"not asked for":            {[]string{"/x"}, 302, 0, nil},
		"negative":                 {[]string{"/x"}, 302, -1, nil},
		"not in the set":           {[]string{"https://elsewhere.test/x"}, 302, 3, nil},
		"http":                     {[]string{plain.URL + "/x"}, 302, 3, []string{plain.URL}},
		"private":                  {[]string{"https://169.254.169.254/latest/"}, 302, 3, []string{"169.254.169.254"}},
		"another spelling":         {[]string{"https://2130706433/"}, 302, 3, nil},
		"user":                     {[]string{"https://u:p@" + strings.TrimPrefix(base, "https://") + "/x"}, 302, 3, nil},
		"another scheme":           {[]string{"file:///etc/passwd"}, 302, 3, nil},
		"no location":              {nil, 302, 3, nil},
		"empty":                    {[]string{""}, 302, 3, nil},
		"two":                      {[]string{"/x", "/y"}, 302, 3, nil},
		"no URL":                   {[]string{"https://[::1"}, 302, 3, nil},
		"with the credential":      {[]string{other + "/x?key=" + canary}, 302, 3, []string{other}},
		"with it in base64":        {[]string{other + "/x?key=" + "Q0FOQVJZLTdmM2Etc2s="}, 302, 3, []string{other}},
		"not a redirect":           {[]string{"/x"}, 201, 3, nil},
		"choice":                   {[]string{"/x"}, 300, 3, nil},
		"use proxy":                {[]string{"/x"}, 305, 3, nil},
		"not modified":             {[]string{"/x"}, 304, 3, nil},
		"out of the path":          {[]string{other + "/v1/x"}, 302, 3, []string{other + "/v2"}},
		"out of the path, in dots": {[]string{other + "/v2/%2e%2e/v1"}, 302, 3, []string{other + "/v2"}},
	} {
		resp, err := c.Do(t.Context(), egress.Request{
			URL: base + to(r.status, r.locations...), Hosts: hostsOf(t, append(r.hosts, base)...), Follow: r.follow, Inject: []egress.Injection{bearer(t, canary)},
		})
		if err != nil || resp.Status != r.status {
			t.Errorf("%s: %+v, %v, want %d", name, resp, err, r.status)
			continue
		}
		if lines, _ := asked.take(); len(lines) != 1 {
			t.Errorf("%s: the vendor got %v", name, lines)
		}
		if lines, _ := askedOther.take(); len(lines) != 0 {
			t.Errorf("%s: the other host got %v", name, lines)
		}
		got := fmt.Sprint(resp.Header)
		if strings.Contains(got, canary) || strings.Contains(got, "Q0FO") || strings.HasPrefix(name, "with ") != resp.Redacted {
			t.Errorf("%s: answered with %s, redacted %t", name, got, resp.Redacted)
		}
	}
}

func TestRedirectsAreFollowedThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	c, base, _, asked, _ := startRedirecting(t)
	for follow, want := range map[int]int{1: 2, 2: 3, 3: 4, 100: 4} {
		location := "/end"
		for range 5 {
			location = to(302, location)
		}
		resp, err := c.Do(t.Context(), egress.Request{URL: base + location, Hosts: hostsOf(t, base), Follow: follow})
		if err != nil || resp.Status != http.StatusFound {
			t.Errorf("Do = %+v, %v, want the redirect that is one too many", resp, err)
		}
		if lines, _ := asked.take(); len(lines) != want {
			t.Errorf("Follow %d: %d requests, want %d", follow, len(lines), want)
		}
	}
}

func TestCredentialDoesNotComeBackWithARedirect(t *testing.T) {
	t.Parallel()
	c, base, other, asked, askedOther := startRedirecting(t)
	_, err := c.Do(t.Context(), egress.Request{
		URL: base + to(302, other+to(302, base+"/chosen-by-the-other")), Hosts: hostsOf(t, base, other), Follow: 3, Inject: []egress.Injection{bearer(t, canary)},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, all := asked.take()
	_, elsewhere := askedOther.take()
	if len(lines) != 2 || strings.Count(all, canary) != 1 || strings.Contains(elsewhere, canary) {
		t.Errorf("the vendor got\n%sand the other host\n%swant the credential once", all, elsewhere)
	}
}

// The exempt 127.0.0.1 stands for a public address, and 127.0.0.2 for a private one.
func TestFieldD03RedirectToANameOfAPrivateAddressIsNotDialled(t *testing.T) {
	t.Parallel()
	var location string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(srv.Close)
	hits, addr := countConnections(t, "127.0.0.2:0")
	location = fmt.Sprintf("https://inside.test:%d/latest/", addr.(*net.TCPAddr).Port)
	c := newClient(t, egress.Config{Allow: loopback, RootCAs: trust(srv), Resolver: serveDNS(t, map[string]zone{"inside.test": always("127.0.0.2")})})
	_, err := c.Do(t.Context(), egress.Request{URL: srv.URL, Hosts: hostsOf(t, srv.URL, location), Follow: 3, Inject: []egress.Injection{bearer(t, canary)}})
	assertRefused(t, "Do", err, reason.HostNotPublic)
	if !errors.Is(err, egress.ErrSent) {
		t.Errorf("Do = %v, want ErrSent: the first request was answered", err)
	}
	if hits.Load() != 0 {
		t.Errorf("the private address was connected to %d times", hits.Load())
	}
}
