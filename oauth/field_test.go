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
