package egress_test

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

// odd is a credential whose every encoding differs from it.
const odd = `c/AN+ary?7f3a&"sk" é`

// forms of it, as a vendor may write them.
func forms() map[string]string {
	quoted, _ := json.Marshal(odd) // a string
	return map[string]string{
		"raw": odd, "json": strings.Trim(string(quoted), `"`), "query": url.QueryEscape(odd), "path": url.PathEscape(odd),
		"base64": base64.StdEncoding.EncodeToString([]byte(odd)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(odd)),
		"hex": hex.EncodeToString([]byte(odd)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(odd))),
	}
}

func assertNoForm(t testing.TB, what, text string) {
	t.Helper()
	for name, form := range forms() {
		if strings.Contains(text, form) {
			t.Errorf("%s: %s of the secret stands in %s", what, name, text)
		}
	}
}

func TestFieldD09SecretReflectedByTheVendorIsRedacted(t *testing.T) {
	t.Parallel()
	kinds := []string{"application/json", "text/plain", "text/html", "application/xml", "image/png", "application/octet-stream", "", "nonsense"}
	all := forms()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		form := all[strings.TrimPrefix(r.URL.Path, "/")]
		w.Header()["Content-Type"] = []string{r.URL.Query().Get("kind")}
		if strings.IndexFunc(form, func(c rune) bool { return c < ' ' }) < 0 {
			w.Header().Set("X-Echo", "it is "+form+".")
			w.Header().Set("Location", "https://elsewhere.test/?key="+form)
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "key="+form)
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"`+form+`","again":"`+form)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, form[:len(form)/2])
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, form[len(form)/2:]+`"}`)
	})
	in, err := egress.Header("X-Api-Key", "", secret(odd))
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		for _, kind := range kinds {
			resp, err := get(t, c, base, "/"+name+"?kind="+url.QueryEscape(kind), in)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := `{"error":"[redacted]","again":"[redacted][redacted]"}`
			if got := string(resp.Body); got != want || !resp.Redacted || resp.Status != http.StatusUnauthorized {
				t.Errorf("%s in %q: %d %s, redacted %t, want %s", name, kind, resp.Status, got, resp.Redacted, want)
			}
			assertNoForm(t, name, fmt.Sprint(resp.Header))
			if got := resp.Header.Get("X-Echo"); got != "it is [redacted]." {
				t.Errorf("%s: X-Echo = %q", name, got)
			}
		}
		// Who sent no credential has none to lose.
		if resp, err := get(t, c, base, "/"+name); err != nil || !strings.Contains(string(resp.Body), all[name]) || resp.Redacted {
			t.Errorf("%s without credential = %+v, %v", name, resp, err)
		}
	}
}

func TestFieldD09BasicCredentialIsRedactedInBase64(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "inside": base64.StdEncoding.EncodeToString([]byte("a:" + r.Header.Get("Authorization")))})
	})
	in, err := egress.Header("Authorization", "Basic", secret(base64.StdEncoding.EncodeToString([]byte("user:"+canary))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := get(t, c, base, "/", in)
	if err != nil || !resp.Redacted || !strings.Contains(string(resp.Body), `"Basic [redacted]"`) || strings.Contains(string(resp.Body), "dXNlcjp") {
		t.Errorf("Do = %+v, %v", resp, err)
	}
}

func TestRedactionDoesNotHoldUpAnEventStream(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"data: one\n", "data: CANARY-7f3", "a-sk and more\n", "data: " + canary + "\n", "data: CANARY\n"} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			if strings.HasSuffix(piece, "\n") {
				<-next
			}
		}
	})
	s, err := c.Stream(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	lines := bufio.NewReader(s)
	for _, want := range []string{"data: one\n", "data: [redacted] and more\n", "data: [redacted]\n", "data: CANARY\n"} {
		if line, err := lines.ReadString('\n'); line != want || err != nil {
			t.Errorf("line = %q, %v, want %q", line, err, want)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) || !s.Redacted {
		t.Errorf("the end is %v, redacted %t", err, s.Redacted)
	}
}

func TestLengthOfARedactedAnswerIsItsOwn(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		body := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body)
	})
	for path, want := range map[string]string{"/hello": "5", "/<" + canary + ">": "12"} {
		resp, err := get(t, c, base, path, bearer(t, canary))
		if err != nil || resp.Header.Get("Content-Length") != want || fmt.Sprint(len(resp.Body)) != want {
			t.Errorf("%s = %+v, %v, want %s bytes", path, resp, err, want)
		}
		s, err := c.Stream(t.Context(), egress.Request{URL: base + path, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}})
		if err != nil || s.Header.Get("Content-Length") != "" {
			t.Errorf("Stream %s = %+v, %v, want no length: it is not known yet", path, s, err)
			continue
		}
		_ = s.Close()
		if _, err := s.Read(make([]byte, 100)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("Read after Close = %v, want an error", err)
		}
	}
}

func TestFieldD10HeaderInjectionIsRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(r.Header) })
	for _, value := range []string{"en\r\nX-Admin: 1", "en\nHost: evil", "a\x00b", "a\rb", "a\x7fb"} {
		_, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Header: http.Header{"Accept-Language": {value}}})
		assertRefused(t, fmt.Sprintf("%q", value), err, reason.InputInvalid)
		if r := reason.Of(err); r.Details["field"] != "headers" || !strings.Contains(r.Message, "Accept-Language") || strings.Contains(r.Message, value) {
			t.Errorf("%q: %v, want it to name the header alone", value, err)
		}
	}
	resp, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Header: http.Header{
		"Accept-Language": {"naïve"}, "Authorization": {"mine"}, "Host": {"evil.test"}, "Content-Length": {"9"}, "Transfer-Encoding": {"chunked"}, "Connection": {"X-Named"}, "X-Named": {"x"},
	}})
	if err != nil || string(resp.Body) != `{"Accept-Encoding":["identity"],"Accept-Language":["naïve"],"User-Agent":["Graft"]}`+"\n" {
		t.Errorf("Do = %+v, %v", resp, err)
	}
}

// Every way in which a call may fail, with the credential and a secret query in play: no word of either in any error.
func TestNoFailureTellsQueryOrCredential(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{Call: 2 * time.Second, ResponseBody: 1000, ResponseHeaders: 10, RequestBody: 100}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+r.URL.RawQuery)
		switch r.URL.Path {
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat(canary, 1000))
		case "/flood":
			for range 20 {
				w.Header().Add("X-Echo", canary)
			}
		case "/gzip", "/x":
			w.Header().Set("Content-Encoding", r.URL.Path[1:])
			_, _ = io.WriteString(w, canary)
		case "/cut":
			w.Header().Set("Content-Length", "900")
			_, _ = io.WriteString(w, canary)
			panic(http.ErrAbortHandler)
		case "/hang":
			_, _ = io.WriteString(w, canary)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/away":
			w.Header().Set("Location", "https://nowhere.test/"+r.URL.Query().Get("u"))
			w.WriteHeader(http.StatusFound)
		}
	})
	exempt := hostsOf(t, base+"/a", "https://nowhere.test")
	for name, call := range map[string]struct {
		req  egress.Request
		want reason.Word
	}{
		"body too long":     {egress.Request{URL: base + "/long"}, reason.TooLarge},
		"too many headers":  {egress.Request{URL: base + "/flood"}, reason.TooLarge},
		"broken encoding":   {egress.Request{URL: base + "/gzip"}, reason.UpstreamUnavailable},
		"unknown encoding":  {egress.Request{URL: base + "/x"}, reason.UpstreamUnavailable},
		"cut":               {egress.Request{URL: base + "/cut"}, reason.UpstreamUnavailable},
		"deadline":          {egress.Request{URL: base + "/hang", Timeout: 50 * time.Millisecond}, reason.Timeout},
		"silence":           {egress.Request{URL: base + "/hang", Silence: 50 * time.Millisecond}, reason.Timeout},
		"request too long":  {egress.Request{URL: base, Body: []byte(strings.Repeat(canary, 100))}, reason.TooLarge},
		"method":            {egress.Request{URL: base, Method: canary + " x"}, reason.InputInvalid},
		"header":            {egress.Request{URL: base, Header: http.Header{"X-A": {canary + "\n"}}}, reason.InputInvalid},
		"path not in set":   {egress.Request{URL: base + "/" + canary, Hosts: exempt}, reason.HostNotInSet},
		"path in dots":      {egress.Request{URL: base + "/a/../" + canary, Hosts: exempt}, reason.InputInvalid},
		"hop to nowhere":    {egress.Request{URL: base + "/away", Follow: 1, Hosts: hostsOf(t, base, "nowhere.test")}, reason.UpstreamUnavailable},
		"credential":        {egress.Request{URL: base, Inject: []egress.Injection{bearer(t, canary+"\n")}}, reason.InputInvalid},
		"no such name":      {egress.Request{URL: "https://nowhere.test/", Hosts: exempt}, reason.UpstreamUnavailable},
		"private":           {egress.Request{URL: "https://10.0.0.1/", Hosts: hostsOf(t, "10.0.0.1")}, reason.HostNotPublic},
		"host not in set":   {egress.Request{URL: "https://" + strings.ToLower(canary) + ".test/"}, reason.HostNotInSet},
		"URL without sense": {egress.Request{URL: "https://[" + canary}, reason.InputInvalid},
	} {
		if len(call.req.Hosts.Strings()) == 0 {
			call.req.Hosts = hostsOf(t, base)
		}
		if call.req.Inject == nil {
			call.req.Inject = []egress.Injection{bearer(t, canary)}
		}
		call.req.URL += "?key=" + canary
		_, err := c.Do(t.Context(), call.req)
		assertRefused(t, name, err, call.want)
		if name != "host not in set" { // whose own name it is
			assertNoCanary(t, err)
		}
	}
}
