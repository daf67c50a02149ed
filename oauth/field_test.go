package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// Cases from the field, by their numbers.

func TestFieldB01ParallelRefreshesAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	_, first := h.pair(a)
	got := make([]reply, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = h.post(i%2, "/mcp/oauth/token", a.refresh(first)) })
	}
	all.Wait()
	h.pass(10 * time.Second)
	got = append(got, h.post(0, "/mcp/oauth/token", a.refresh(first)))
	for _, g := range got {
		if g.status != http.StatusOK || g.text != got[0].text {
			t.Errorf("refresh = %d %s, want %s", g.status, g.text, got[0].text)
		}
	}
	h.wantVerified("the new access token", got[0].str("access_token"), "")
	h.pass(30 * time.Second)
	h.want("40 s later", h.post(0, "/mcp/oauth/token", a.refresh(first)), http.StatusBadRequest, "invalid_grant")
	h.wantVerified("the new access token then", got[0].str("access_token"), reason.TokenUnknown)
}

func TestFieldB02LoopbackRedirectsWithAnyPort(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none", "http://127.0.0.1/callback", "http://localhost/callback")
	for uri, want := range map[string]int{
		"http://127.0.0.1:49152/callback":        http.StatusSeeOther,
		"http://localhost:3118/callback":         http.StatusSeeOther,
		"http://[::1]:5000/callback":             http.StatusBadRequest,
		"http://127.0.0.1:49152/other":           http.StatusBadRequest,
		"http://127.0.0.1.evil.test:80/callback": http.StatusBadRequest,
		"http://localhost@evil.test/callback":    http.StatusBadRequest,
	} {
		q := a.query()
		q.Set("redirect_uri", uri)
		if got := h.authorize(q); got.status != want || (got.header.Get("Location") != "") != (want == http.StatusSeeOther) {
			t.Errorf("%s: authorize = %d to %q, want %d", uri, got.status, got.header.Get("Location"), want)
		}
	}
}

func TestFieldB06ASecretInABasicHeaderAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("client_secret_basic")
	if strings.ContainsFunc(a.id+a.secret, func(r rune) bool { return url.QueryEscape(string(r)) != string(r) }) {
		t.Errorf("%q or its secret has characters that are written in two ways", a.id)
	}
	alone := func(code string) url.Values {
		form := a.redeem(code)
		form.Del("client_id")
		return form
	}
	h.want("by header alone", h.post(0, "/mcp/oauth/token", alone(h.code(a.query())), basic(a.id, a.secret)), http.StatusOK, "")
	wrong := h.post(0, "/mcp/oauth/token", alone(h.code(a.query())), basic(a.id, a.secret+"x"))
	h.want("a wrong secret", wrong, http.StatusUnauthorized, "invalid_client")
	if !strings.HasPrefix(wrong.header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("a wrong secret is answered with %v", wrong.header)
	}
	public := h.register("none")
	form := public.redeem(h.code(public.query()))
	form.Set("client_secret", "made-up")
	h.want("a secret of one that has none", h.post(0, "/mcp/oauth/token", form), http.StatusUnauthorized, "invalid_client")
}

func TestFieldB07AClientThatIsGoneIsToldToRegister(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	idle, used := h.register("none"), h.register("none")
	_, refresh := h.pair(used)
	h.pass(60 * 24 * time.Hour)
	if n, err := h.db.System().ReapOAuthClients(t.Context(), h.now().Add(-48*time.Hour)); err != nil || n != 1 {
		t.Errorf("ReapOAuthClients = %d, %v, want the one that nobody used", n, err)
	}
	gone := h.post(0, "/mcp/oauth/token", idle.refresh(refresh))
	h.want("a deleted client", gone, http.StatusUnauthorized, "invalid_client")
	if got := h.authorize(idle.query()); got.status != http.StatusBadRequest || got.header.Get("Location") != "" {
		t.Errorf("authorize of a deleted client = %d %v", got.status, got.header)
	}
	if got := h.authorize(used.query()); got.status != http.StatusSeeOther {
		t.Errorf("authorize of one with a grant, 60 days later = %d %s", got.status, got.text)
	}
	h.want("its refresh", h.post(0, "/mcp/oauth/token", used.refresh(refresh)), http.StatusOK, "")
}

func TestFieldB09StateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none", callback+"?tenant=7")
	for _, state := range []string{"a+b/c==", "x%25y", `{"r":"/p?q=1&z"}`, "snow\u2603", strings.Repeat("s", 2000), "with space", "\xff\xfe", "a\x00b"} {
		q := a.query()
		q.Set("redirect_uri", callback+"?tenant=7")
		q.Set("state", state)
		h.connect(q, store.AgentID{}) // which holds it against what was sent, and the redirect URI before it
	}
}

func TestFieldB10OneConsentIsOneCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	one, two := a.query(), a.query()
	one.Set("state", "one")
	two.Set("state", "two")
	codes := map[string]bool{h.code(one): true, h.code(two): true}
	if len(codes) != 2 {
		t.Errorf("two requests gave %d codes", len(codes))
	}
	for code := range codes {
		h.want("the code of each", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusOK, "")
	}
}

func TestFieldB11ACodeIsOfOneUse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, other := h.register("none"), h.register("none")
	code := h.code(a.query())
	with := func(name, value string) url.Values {
		form := a.redeem(code)
		form.Set(name, value)
		return form
	}
	h.want("another client", h.post(0, "/mcp/oauth/token", other.redeem(code)), http.StatusBadRequest, "invalid_grant")
	h.want("another redirect URI", h.post(0, "/mcp/oauth/token", with("redirect_uri", "https://app.example/other")), http.StatusBadRequest, "invalid_grant")
	h.want("no verifier", h.post(0, "/mcp/oauth/token", with("code_verifier", "")), http.StatusBadRequest, "invalid_grant")
	h.want("a wrong one", h.post(0, "/mcp/oauth/token", with("code_verifier", strings.Repeat("y", 64))), http.StatusBadRequest, "invalid_grant")
	h.want("then the right one", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusOK, "")
	h.want("again", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusBadRequest, "invalid_grant")
}

func TestFieldB12RegistrationOfEdgeMetadata(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	long := strings.Repeat("n", 5<<10)
	many := `"` + strings.Repeat(`https://app.example/cb", "`, 199) + `https://app.example/cb"`
	for name, tt := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no redirect URI":   {`{"redirect_uris": []}`, http.StatusBadRequest, "invalid_redirect_uri"},
		"a script":          {`{"redirect_uris": ["javascript:alert(1)"]}`, http.StatusBadRequest, "invalid_redirect_uri"},
		"http elsewhere":    {`{"redirect_uris": ["http://public.test/cb"]}`, http.StatusBadRequest, "invalid_redirect_uri"},
		"an app's scheme":   {`{"redirect_uris": ["cursor://anysphere/cb"], "token_endpoint_auth_method": "none"}`, http.StatusCreated, ""},
		"a fragment":        {`{"redirect_uris": ["https://app.example/cb#x"]}`, http.StatusBadRequest, "invalid_redirect_uri"},
		"200 redirect URIs": {`{"redirect_uris": [` + many + `]}`, http.StatusBadRequest, "invalid_redirect_uri"},
		"private_key_jwt":   {`{"redirect_uris": ["https://app.example/cb"], "token_endpoint_auth_method": "private_key_jwt"}`, http.StatusBadRequest, "invalid_client_metadata"},
		"unknown members":   {`{"redirect_uris": ["https://app.example/cb"], "token_endpoint_auth_method": "none", "x": {"y": [1]}}`, http.StatusCreated, ""},
		"no method":         {`{"redirect_uris": ["https://app.example/cb"]}`, http.StatusCreated, ""},
		"a markup name":     {`{"redirect_uris": ["https://app.example/cb"], "token_endpoint_auth_method": "none", "client_name": "<script>x</script>"}`, http.StatusCreated, ""},
		"a name of 5 kB":    {`{"redirect_uris": ["https://app.example/cb"], "token_endpoint_auth_method": "none", "client_name": "` + long + `"}`, http.StatusCreated, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.replicas[0].URL+"/mcp/oauth/register", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		got := h.send(r)
		if got.status != tt.status || got.str("error") != tt.code {
			t.Errorf("%s: register = %d %s, want %d %s", name, got.status, got.text, tt.status, tt.code)
			continue
		}
		_, says := got.json["client_secret_expires_at"]
		if tt.status == http.StatusCreated && (got.str("token_endpoint_auth_method") == "" || got.json["grant_types"] == nil || got.json["redirect_uris"] == nil ||
			(got.str("client_secret") != "") != says || (got.str("token_endpoint_auth_method") == "none") != (got.str("client_secret") == "")) {
			t.Errorf("%s: the answer does not say what holds: %s", name, got.text)
		}
	}
}

func TestFieldB13NothingOfATokenRequestIsInTheLog(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("client_secret_post")
	code := h.code(a.query())
	as := func(change func(url.Values)) url.Values {
		form := a.redeem(code)
		change(form)
		return form
	}
	hygienic := func(name string, got reply, status int, code string) {
		t.Helper()
		h.want(name, got, status, code)
		if got.header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: answered with %v", name, got.header)
		}
	}
	asJSON := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	hygienic("JSON", h.post(0, "/mcp/oauth/token", a.redeem(code), asJSON), http.StatusBadRequest, "invalid_request")
	hygienic("two codes", h.post(0, "/mcp/oauth/token", as(func(v url.Values) { v.Add("code", code) })), http.StatusBadRequest, "invalid_request")
	hygienic("no grant type", h.post(0, "/mcp/oauth/token", as(func(v url.Values) { v.Set("grant_type", "") })), http.StatusBadRequest, "invalid_request")
	hygienic("client_credentials", h.post(0, "/mcp/oauth/token", as(func(v url.Values) { v.Set("grant_type", "client_credentials") })),
		http.StatusBadRequest, "unsupported_grant_type")
	if got := h.send(mustRequest(t, http.MethodGet, h.replicas[0].URL+"/mcp/oauth/token?code="+code)); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET = %d %s, want 405", got.status, got.text)
	}
	first := h.post(0, "/mcp/oauth/token", a.redeem(code))
	h.want("the code", first, http.StatusOK, "")
	next := h.post(0, "/mcp/oauth/token", a.refresh(first.str("refresh_token")))
	h.want("the refresh", next, http.StatusOK, "")
	h.pass(time.Minute)
	h.want("a refresh too late", h.post(0, "/mcp/oauth/token", a.refresh(first.str("refresh_token"))), http.StatusBadRequest, "invalid_grant")
	logged := h.log.String()
	if !strings.Contains(logged, "used twice") {
		t.Fatalf("the log does not tell of the reuse:\n%s", logged)
	}
	body := func(token string) string { // behind the prefix, which all have
		_, after, _ := strings.Cut(token, "_")
		return after[:8]
	}
	for name, secret := range map[string]string{
		"code": body(code), "secret": body(a.secret), "refresh token": body(first.str("refresh_token")), "next one": body(next.str("refresh_token")),
		"access token": first.str("access_token")[len(first.str("access_token"))-20:], "verifier": verifierText[:8],
	} {
		if strings.Contains(logged, secret) {
			t.Errorf("the %s is in the log:\n%s", name, logged)
		}
	}
}
