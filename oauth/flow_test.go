package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/oauth"
)

// A house is a deployment of two replicas on one database, on a clock that can be moved, with somebody who consents.
type house struct {
	t        testing.TB
	db       *store.DB
	dsn      string
	keys     *signing.Tokens
	person   store.Caller
	replicas [2]*replica
	nanos    atomic.Int64
	log      lines
}

type replica struct {
	*httptest.Server
	oauth    *oauth.Server
	verifier *oauth.Verifier
}

func (h *house) now() time.Time       { return time.Unix(0, h.nanos.Load()) }
func (h *house) pass(d time.Duration) { h.nanos.Add(int64(d)) }

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, dsn: storetest.PrivateURL(t)}
	h.nanos.Store(time.Now().UnixNano())
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	out, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.replicas {
		db := storetest.Open(t, h.dsn, h.now)
		keys := signing.New(db, master).Tokens(h.now)
		h.db, h.keys = db, keys
		documents, err := oauth.NewDocuments(oauth.DocumentsConfig{DB: db, Client: out, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		log := audit.New(audit.Config{DB: db})
		ctx, stop := context.WithCancel(context.Background())
		var writing sync.WaitGroup
		writing.Go(func() { log.Run(ctx) })
		t.Cleanup(func() {
			stop()
			writing.Wait()
		})
		s, err := oauth.New(oauth.Config{DB: db, Origin: origin, Keys: keys, Documents: documents, Audit: log, Log: slog.New(slog.NewTextHandler(&h.log, nil)), Now: h.now})
		if err != nil {
			t.Fatal(err)
		}
		v, err := oauth.NewVerifier(oauth.VerifierConfig{DB: db, Origin: origin, Keys: keys, Healthy: func() bool { return false }, Now: h.now})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/mcp/oauth/register", s.Register)
		mux.HandleFunc("/mcp/oauth/token", s.Token)
		mux.HandleFunc("/mcp/oauth/revoke", s.Revoke)
		mux.HandleFunc("GET /mcp/oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
			if err := s.Authorize(w, r); err != nil {
				http.Error(w, err.Error(), reason.Of(err).Status())
			}
		})
		h.replicas[i] = &replica{httptest.NewServer(mux), s, v}
		t.Cleanup(h.replicas[i].Close)
	}
	h.person = storetest.Organisation(t, h.db)
	h.person.Via = store.ViaSession
	return h
}

// direct follows no redirect: where one leads is what is looked at.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// A reply is what came back, with its JSON where it is that.
type reply struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

func (a reply) str(name string) string { s, _ := a.json[name].(string); return s }

func (h *house) send(r *http.Request) reply {
	h.t.Helper()
	resp, err := direct.Do(r.WithContext(h.t.Context()))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	a := reply{status: resp.StatusCode, header: resp.Header, text: string(b)}
	_ = json.Unmarshal(b, &a.json) // what is none has none
	return a
}

// post posts a form to an endpoint of a replica.
func (h *house) post(at int, path string, form url.Values, change ...func(*http.Request)) reply {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.replicas[at].URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range change {
		c(r)
	}
	return h.send(r)
}

func basic(id, secret string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) }
}

// An app is a client that registered.
type app struct {
	id, secret, method string
}

const callback = "https://app.example/cb"

func (h *house) register(method string, uris ...string) app {
	h.t.Helper()
	if uris == nil {
		uris = []string{callback}
	}
	b, err := json.Marshal(map[string]any{"client_name": "App", "redirect_uris": uris, "token_endpoint_auth_method": method})
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.replicas[0].URL+"/mcp/oauth/register", strings.NewReader(string(b)))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a := h.send(r)
	if a.status != http.StatusCreated {
		h.t.Fatalf("register = %d %s", a.status, a.text)
	}
	return app{a.str("client_id"), a.str("client_secret"), method}
}

const verifierText = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// query is an authorization request that is right.
func (a app) query() url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {callback}, "state": {"st at+e"}, "code_challenge": {challengeOf(verifierText)},
		"code_challenge_method": {"S256"}, "resource": {origin + "/mcp"}, "scope": {"mcp"},
	}
}

func (h *house) authorize(q url.Values) reply {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.replicas[0].URL+"/mcp/oauth/authorize?"+q.Encode(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.send(r)
}

// code is what a person who connects the app sends it.
func (h *house) code(q url.Values) string {
	h.t.Helper()
	code, _ := h.connect(q, store.AgentID{})
	return code
}

func (h *house) connect(q url.Values, agent store.AgentID) (code string, made store.AgentID) {
	h.t.Helper()
	a := h.authorize(q)
	id, ok := strings.CutPrefix(a.header.Get("Location"), "/consent/")
	if a.status != http.StatusSeeOther || !ok {
		h.t.Fatalf("authorize = %d %v %s", a.status, a.header, a.text)
	}
	browser := (&http.Response{Header: a.header}).Cookies()[0].Value
	desk := h.replicas[1].oauth.Desk() // another replica than the one that stored it
	p, err := desk.Look(h.t.Context(), h.person.User, id, browser)
	if err != nil {
		h.t.Fatal(err)
	}
	made, to, err := desk.Allow(h.t.Context(), h.person, p, consent.Choice{Agent: agent, Name: "App"})
	if err != nil {
		h.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		h.t.Fatal(err)
	}
	got := u.Query()
	if got.Get("state") != q.Get("state") || len(got["iss"]) != 1 || got.Get("iss") != origin || !strings.HasPrefix(to, q.Get("redirect_uri")) {
		h.t.Fatalf("the answer goes to %s", to)
	}
	return got.Get("code"), made
}

// redeem is the token request for a code that is right.
func (a app) redeem(code string) url.Values {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifierText}}
	return a.prove(form)
}

func (a app) refresh(token string) url.Values {
	return a.prove(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
}

// prove adds what the client proves itself by in the body.
func (a app) prove(form url.Values) url.Values {
	form.Set("client_id", a.id)
	if a.method == "client_secret_post" {
		form.Set("client_secret", a.secret)
	}
	return form
}

// pair connects an app and returns what it got.
func (h *house) pair(a app) (access, refresh string) {
	h.t.Helper()
	got := h.post(1, "/mcp/oauth/token", a.redeem(h.code(a.query())))
	if got.status != http.StatusOK {
		h.t.Fatalf("token = %d %s", got.status, got.text)
	}
	return got.str("access_token"), got.str("refresh_token")
}

// verify says what a replica makes of a bearer: the word, or "" where it is good.
func (h *house) verify(at int, token string) reason.Word {
	h.t.Helper()
	_, err := h.replicas[at].verifier.Verify(h.t.Context(), http.Header{"Authorization": {"Bearer " + token}})
	if err == nil {
		return ""
	}
	return reason.Of(err).Word
}

func (h *house) wantVerified(name, token string, want reason.Word) {
	h.t.Helper()
	for at := range h.replicas {
		if got := h.verify(at, token); got != want {
			h.t.Errorf("%s: replica %d verifies with %q, want %q", name, at, got, want)
		}
	}
}

func (h *house) want(name string, a reply, status int, code string) {
	h.t.Helper()
	if a.status != status || a.str("error") != code {
		h.t.Errorf("%s = %d %s, want %d %s", name, a.status, a.text, status, code)
	}
	if status == http.StatusOK && code == "" || status == http.StatusBadRequest {
		if a.header.Get("Cache-Control") != "no-store" {
			h.t.Errorf("%s may be kept: %v", name, a.header)
		}
	}
}

func TestAConnectionFromTheURLToItsEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		a := h.register(method)
		if (a.secret == "") != (method == "none") {
			t.Errorf("%s: the secret is %q", method, a.secret)
		}
		prove := func(*http.Request) {}
		if method == "client_secret_basic" {
			prove = basic(a.id, a.secret)
		}
		code, agent := h.connect(a.query(), store.AgentID{})
		got := h.post(0, "/mcp/oauth/token", a.redeem(code), prove)
		h.want(method, got, http.StatusOK, "")
		if got.str("token_type") != "Bearer" || got.json["expires_in"] != 3600.0 || got.str("scope") != "mcp" || got.header.Get("Pragma") != "no-cache" {
			t.Errorf("%s: the answer is %s %v", method, got.text, got.header)
		}
		c, err := h.replicas[1].verifier.Verify(t.Context(), http.Header{"Authorization": {"Bearer " + got.str("access_token")}})
		if err != nil || c.Agent != agent || c.Org != h.person.Org || c.Grant.IsZero() || c.Via != store.ViaBearer {
			t.Errorf("%s: Verify = %+v, %v", method, c, err)
		}
		next := h.post(1, "/mcp/oauth/token", a.refresh(got.str("refresh_token")), prove)
		h.want(method+" refresh", next, http.StatusOK, "")
		if next.str("access_token") == got.str("access_token") || next.str("refresh_token") == got.str("refresh_token") {
			t.Errorf("%s: the refresh answered the old pair", method)
		}
		h.wantVerified(method+": the old access token lives out its hour", got.str("access_token"), "")
		h.want(method+" revoke", h.post(0, "/mcp/oauth/revoke", a.prove(url.Values{"token": {next.str("access_token")}}), prove), http.StatusOK, "")
		h.wantVerified(method+": the access token that was revoked", next.str("access_token"), reason.TokenUnknown)
		h.wantVerified(method+": the one beside it", got.str("access_token"), "")
		h.want(method+" revoke", h.post(0, "/mcp/oauth/revoke", a.prove(url.Values{"token": {next.str("refresh_token")}, "token_type_hint": {"access_token"}}), prove), http.StatusOK, "")
		h.wantVerified(method+": after the grant's end", got.str("access_token"), reason.TokenUnknown)
		h.want(method+" refresh after it", h.post(0, "/mcp/oauth/token", a.refresh(next.str("refresh_token")), prove), http.StatusBadRequest, "invalid_grant")
	}
}

// An access token that ran out is told from any other, and no row of it is needed for that.
func TestAnExpiredTokenIsToldFromAnUnknownOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	access, refresh := h.pair(a)
	h.pass(time.Hour - time.Second)
	h.wantVerified("a second before its end", access, "")
	h.pass(time.Second)
	h.wantVerified("at its end", access, reason.TokenExpired)
	h.want("the way back", h.post(0, "/mcp/oauth/token", a.refresh(refresh)), http.StatusOK, "")
	h.wantVerified("still", access, reason.TokenExpired)
}

func TestAttack01And02And03UnprovenIsNeverRedirected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none", callback, "http://localhost/callback")
	with := func(name string, values ...string) url.Values {
		q := a.query()
		q[name] = values
		return q
	}
	for name, q := range map[string]url.Values{
		"unknown client":      with("client_id", store.NewID[store.ClientKind](h.now()).String()),
		"no client":           with("client_id"),
		"two clients":         with("client_id", a.id, a.id),
		"no redirect URI":     with("redirect_uri"),
		"two redirect URIs":   with("redirect_uri", callback, callback),
		"another":             with("redirect_uri", "https://evil.example/cb"),
		"userinfo":            with("redirect_uri", "https://app.example@evil.example/cb"),
		"a longer host":       with("redirect_uri", "https://app.example.evil.example/cb"),
		"a dot segment":       with("redirect_uri", "https://app.example/cb/../x"),
		"an encoded one":      with("redirect_uri", "https://app.example/cb/%2e%2e/x"),
		"a parameter segment": with("redirect_uri", "https://app.example/cb/..;/x"),
		"a backslash":         with("redirect_uri", `https://app.example\@evil.example/cb`),
		"a query":             with("redirect_uri", callback+"?x=1"),
		"a fragment":          with("redirect_uri", callback+"#x"),
		"another case":        with("redirect_uri", "https://app.example/CB"),
		"a port of https":     with("redirect_uri", "https://app.example:444/cb"),
		"javascript":          with("redirect_uri", "JaVaScRiPt:alert(1)"),
		"data":                with("redirect_uri", "data:text/html,x"),
		"a longer localhost":  with("redirect_uri", "http://localhost.evil.example/callback"),
		"another loopback":    with("redirect_uri", "http://127.0.0.1/callback"),
		"a short address":     with("redirect_uri", "http://127.1/callback"),
		"another path":        with("redirect_uri", "http://localhost:1/other"),
		"markup":              with("redirect_uri", "https://app.example/<script>"),
	} {
		if got := h.authorize(q); got.status != http.StatusBadRequest || got.header.Get("Location") != "" {
			t.Errorf("%s: authorize = %d to %q %s", name, got.status, got.header.Get("Location"), got.text)
		}
	}
	if got := h.authorize(with("redirect_uri", "http://localhost:53682/callback")); got.status != http.StatusSeeOther {
		t.Errorf("any port of a loopback: authorize = %d %s", got.status, got.text)
	}
}

func TestAttack05And23FaultsGoBackWithStateAndIssuer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none", callback+"?keep=1")
	for name, tt := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"no challenge":      {func(q url.Values) { q.Del("code_challenge") }, "invalid_request"},
		"no method":         {func(q url.Values) { q.Del("code_challenge_method") }, "invalid_request"},
		"plain":             {func(q url.Values) { q.Set("code_challenge_method", "plain") }, "invalid_request"},
		"42 characters":     {func(q url.Values) { q.Set("code_challenge", challengeOf("x")[1:]) }, "invalid_request"},
		"padding":           {func(q url.Values) { q.Set("code_challenge", challengeOf("x")[1:]+"=") }, "invalid_request"},
		"no response type":  {func(q url.Values) { q.Del("response_type") }, "invalid_request"},
		"token":             {func(q url.Values) { q.Set("response_type", "token") }, "unsupported_response_type"},
		"fragment":          {func(q url.Values) { q.Set("response_mode", "fragment") }, "invalid_request"},
		"two scopes":        {func(q url.Values) { q["scope"] = []string{"mcp", "mcp"} }, "invalid_request"},
		"a bad scope":       {func(q url.Values) { q.Set("scope", `a"b`) }, "invalid_scope"},
		"another resource":  {func(q url.Values) { q.Set("resource", "https://evil.example/mcp") }, "invalid_target"},
		"one of two":        {func(q url.Values) { q.Add("resource", origin+"/other") }, "invalid_target"},
		"a request object":  {func(q url.Values) { q.Set("request", "x") }, "request_not_supported"},
		"a request address": {func(q url.Values) { q.Set("request_uri", "x") }, "request_uri_not_supported"},
		"nobody asked":      {func(q url.Values) { q.Set("prompt", "none") }, "interaction_required"},
	} {
		q := a.query()
		q.Set("redirect_uri", callback+"?keep=1")
		tt.change(q)
		got := h.authorize(q)
		to, err := url.Parse(got.header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		back := to.Query()
		if got.status != http.StatusSeeOther || to.Host != "app.example" || back.Get("error") != tt.want || back.Get("state") != "st at+e" || len(back["iss"]) != 1 ||
			back.Get("iss") != origin || back.Get("keep") != "1" || back.Has("code") {
			t.Errorf("%s: authorize = %d to %s, want %s", name, got.status, to, tt.want)
		}
	}
	q := a.query()
	q.Set("redirect_uri", callback+"?keep=1")
	q["state"] = []string{"a", "b"}
	if back := h.authorize(q).header.Get("Location"); !strings.Contains(back, "error=invalid_request") || strings.Contains(back, "state=") {
		t.Errorf("two states: authorize leads to %s", back)
	}
}

func TestInterop01And13ResourcesAndScopesThatClientsSend(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	for name, change := range map[string]func(url.Values){
		"the origin":         func(q url.Values) { q.Set("resource", origin) },
		"the origin, slash":  func(q url.Values) { q.Set("resource", origin+"/") },
		"a slash":            func(q url.Values) { q.Set("resource", origin+"/mcp/") },
		"capitals":           func(q url.Values) { q.Set("resource", "HTTPS://GRAFT.example:443/mcp") },
		"none":               func(q url.Values) { q.Del("resource") },
		"claudeai":           func(q url.Values) { q.Set("scope", "claudeai openid") },
		"no scope":           func(q url.Values) { q.Del("scope") },
		"prompt=consent":     func(q url.Values) { q.Set("prompt", "consent") },
		"an unknown one":     func(q url.Values) { q.Set("audience", "x") },
		"a state of 8 KB":    func(q url.Values) { q.Set("state", strings.Repeat("s", 8<<10)) },
		"offline_access too": func(q url.Values) { q.Set("scope", "mcp offline_access") },
	} {
		q := a.query()
		change(q)
		got := h.post(0, "/mcp/oauth/token", a.redeem(h.code(q)))
		want := "mcp"
		if q.Get("scope") == "mcp offline_access" {
			want = q.Get("scope")
		}
		if got.status != http.StatusOK || got.str("scope") != want {
			t.Errorf("%s: token = %d %s", name, got.status, got.text)
		}
		h.wantVerified(name, got.str("access_token"), "")
	}
}

func TestAttack05And06And09CodesAndVerifiers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	wrong := func(code string) url.Values {
		form := a.redeem(code)
		form.Set("code_verifier", strings.Repeat("x", 43))
		return form
	}
	code := h.code(a.query())
	h.want("a wrong verifier", h.post(0, "/mcp/oauth/token", wrong(code)), http.StatusBadRequest, "invalid_grant")
	none := a.redeem(code)
	none.Del("code_verifier")
	h.want("no verifier", h.post(0, "/mcp/oauth/token", none), http.StatusBadRequest, "invalid_grant")
	other := a.redeem(code)
	other.Set("redirect_uri", callback+"/")
	h.want("another redirect URI", h.post(0, "/mcp/oauth/token", other), http.StatusBadRequest, "invalid_grant")
	elsewhere := a.redeem(code)
	elsewhere.Set("resource", "https://evil.example/mcp")
	h.want("another resource", h.post(0, "/mcp/oauth/token", elsewhere), http.StatusBadRequest, "invalid_target")
	h.want("then the right one", h.post(1, "/mcp/oauth/token", a.redeem(code)), http.StatusOK, "")

	code = h.code(a.query())
	for range 5 {
		h.want("a wrong verifier", h.post(0, "/mcp/oauth/token", wrong(code)), http.StatusBadRequest, "invalid_grant")
	}
	h.want("the right one after five", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusBadRequest, "invalid_grant")

	code = h.code(a.query())
	h.pass(10 * time.Minute)
	h.want("after ten minutes", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusBadRequest, "invalid_grant")
}

// Two at once redeem one code: one is given tokens, and because the code was there twice they end at once.
func TestAttack07And09ACodeThatComesTwiceEndsWhatItGave(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	code := h.code(a.query())
	var all sync.WaitGroup
	var got [2]reply
	for at := range got {
		all.Go(func() { got[at] = h.post(at, "/mcp/oauth/token", a.redeem(code)) })
	}
	all.Wait()
	if got[0].status > got[1].status {
		got[0], got[1] = got[1], got[0]
	}
	h.want("the first", got[0], http.StatusOK, "")
	h.want("the second", got[1], http.StatusBadRequest, "invalid_grant")
	h.wantVerified("what the first got", got[0].str("access_token"), reason.TokenUnknown)
	h.want("its refresh", h.post(0, "/mcp/oauth/token", a.refresh(got[0].str("refresh_token"))), http.StatusBadRequest, "invalid_grant")
}

func TestAttack08And13AnotherClientChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, evil := h.register("none"), h.register("none")
	code := h.code(a.query())
	h.want("its code", h.post(0, "/mcp/oauth/token", evil.redeem(code)), http.StatusBadRequest, "invalid_grant")
	got := h.post(0, "/mcp/oauth/token", a.redeem(code))
	h.want("the victim's own", got, http.StatusOK, "")
	h.want("its code again", h.post(0, "/mcp/oauth/token", evil.redeem(code)), http.StatusBadRequest, "invalid_grant")
	refresh := got.str("refresh_token")
	h.want("its refresh token", h.post(0, "/mcp/oauth/token", evil.refresh(refresh)), http.StatusBadRequest, "invalid_grant")
	for _, token := range []string{refresh, got.str("access_token")} {
		h.want("revoking it", h.post(0, "/mcp/oauth/revoke", evil.prove(url.Values{"token": {token}})), http.StatusOK, "")
	}
	h.wantVerified("the victim's access token", got.str("access_token"), "")
	next := h.post(0, "/mcp/oauth/token", a.refresh(refresh))
	h.want("the victim's refresh", next, http.StatusOK, "")
	h.want("a retired one within its time", h.post(0, "/mcp/oauth/token", evil.refresh(refresh)), http.StatusBadRequest, "invalid_grant")
	h.want("the victim's again", h.post(0, "/mcp/oauth/token", a.refresh(refresh)), http.StatusOK, "")
	h.pass(time.Minute)
	h.want("a retired one after its time", h.post(0, "/mcp/oauth/token", evil.refresh(refresh)), http.StatusBadRequest, "invalid_grant")
	h.wantVerified("the victim's newest", next.str("access_token"), "")
}

func TestAttack10And11And12Refreshes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	access, first := h.pair(a)

	// 50 at once, on two replicas: one rotation, 50 answers to the last byte.
	var all sync.WaitGroup
	got := make([]reply, 50)
	for i := range got {
		all.Go(func() { got[i] = h.post(i%2, "/mcp/oauth/token", a.refresh(first)) })
	}
	all.Wait()
	for _, g := range got {
		if g.status != http.StatusOK || g.text != got[0].text {
			t.Fatalf("refresh = %d %s, want %s", g.status, g.text, got[0].text)
		}
	}
	h.pass(29 * time.Second)
	again := h.post(0, "/mcp/oauth/token", a.refresh(first))
	if again.text != got[0].text {
		t.Errorf("at 29 s = %s, want %s", again.text, got[0].text)
	}
	h.pass(2 * time.Second)
	h.want("at 31 s", h.post(1, "/mcp/oauth/token", a.refresh(first)), http.StatusBadRequest, "invalid_grant")
	h.want("its successor", h.post(1, "/mcp/oauth/token", a.refresh(got[0].str("refresh_token"))), http.StatusBadRequest, "invalid_grant")
	for _, token := range []string{access, got[0].str("access_token")} {
		h.wantVerified("an access token of the grant", token, reason.TokenUnknown)
	}

	// What was revoked is not answered again, within its time or not.
	_, first = h.pair(a)
	next := h.post(0, "/mcp/oauth/token", a.refresh(first))
	h.want("revoke", h.post(0, "/mcp/oauth/revoke", a.prove(url.Values{"token": {next.str("refresh_token")}})), http.StatusOK, "")
	h.want("the retired one after the revocation", h.post(1, "/mcp/oauth/token", a.refresh(first)), http.StatusBadRequest, "invalid_grant")

	// Likewise where its agent was.
	code, agent := h.connect(a.query(), store.AgentID{})
	first = h.post(0, "/mcp/oauth/token", a.redeem(code)).str("refresh_token")
	h.post(0, "/mcp/oauth/token", a.refresh(first))
	if err := h.db.As(t.Context(), h.person, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent) }); err != nil {
		t.Fatal(err)
	}
	h.want("the retired one after its agent's end", h.post(1, "/mcp/oauth/token", a.refresh(first)), http.StatusBadRequest, "invalid_grant")
}

func TestInterop09RefreshInheritsWhatItDoesNotSay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	_, refresh := h.pair(a)
	for name, tt := range map[string]struct {
		name, value string
		status      int
		code        string
	}{
		"the origin as resource": {"resource", origin, http.StatusOK, ""},
		"another resource":       {"resource", "https://evil.example/mcp", http.StatusBadRequest, "invalid_target"},
		"the same scope":         {"scope", "mcp", http.StatusOK, ""},
		"a wider scope":          {"scope", "mcp admin", http.StatusBadRequest, "invalid_scope"},
	} {
		form := a.refresh(refresh)
		form.Set(tt.name, tt.value)
		h.want(name, h.post(0, "/mcp/oauth/token", form), tt.status, tt.code)
	}
}

func TestAttack24AndInterop12ClientsAndForms(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	public, byBasic, byPost := h.register("none"), h.register("client_secret_basic"), h.register("client_secret_post")
	unknown := app{store.NewID[store.ClientKind](h.now()).String(), "", "none"}
	token := func(name string, form url.Values, status int, code string, change ...func(*http.Request)) {
		t.Helper()
		h.want(name, h.post(0, "/mcp/oauth/token", form, change...), status, code)
	}
	code, _ := store.NewToken(store.CodePrefix)
	token("a deleted client", unknown.redeem(code), http.StatusUnauthorized, "invalid_client")
	token("a dead code", public.redeem(code), http.StatusBadRequest, "invalid_grant")
	token("no code at all", public.redeem(""), http.StatusBadRequest, "invalid_request")
	token("rubbish", public.redeem("rubbish"), http.StatusBadRequest, "invalid_grant")
	dead, _ := store.NewToken(store.RefreshTokenPrefix)
	token("a dead refresh token", public.refresh(dead), http.StatusBadRequest, "invalid_grant")
	token("no refresh token", public.refresh(""), http.StatusBadRequest, "invalid_request")
	token("no grant type", public.prove(url.Values{}), http.StatusBadRequest, "invalid_request")
	token("another grant type", public.prove(url.Values{"grant_type": {"client_credentials"}}), http.StatusBadRequest, "unsupported_grant_type")
	twice := public.redeem(code)
	twice.Add("code", code)
	token("a parameter twice", twice, http.StatusBadRequest, "invalid_request")
	token("one in the query", public.redeem(code), http.StatusBadRequest, "invalid_request", func(r *http.Request) { r.URL.RawQuery = "code=x" })
	token("a trick of a type", public.redeem(code), http.StatusBadRequest, "invalid_request", func(r *http.Request) {
		r.Header.Set("Content-Type", "a/b, application/x-www-form-urlencoded")
	})
	token("a large body", url.Values{"x": {strings.Repeat("x", 70<<10)}}, http.StatusRequestEntityTooLarge, "invalid_request")
	token("a wrong secret", byBasic.redeem(code), http.StatusUnauthorized, "invalid_client", basic(byBasic.id, "wrong"))
	token("post of a basic client", func() url.Values { f := byBasic.redeem(code); f.Set("client_secret", byBasic.secret); return f }(), http.StatusUnauthorized, "invalid_client")
	token("none of a basic client", byBasic.redeem(code), http.StatusUnauthorized, "invalid_client")
	token("both", byPost.redeem(code), http.StatusBadRequest, "invalid_request", basic(byPost.id, byPost.secret))
	if got := h.send(mustRequest(t, http.MethodGet, h.replicas[0].URL+"/mcp/oauth/token")); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") == "" {
		t.Errorf("GET = %d %v", got.status, got.header)
	}

	// golang.org/x/oauth2 tries Basic first and the body then, with the very same code.
	good := h.code(byPost.query())
	h.want("Basic first", h.post(0, "/mcp/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {good}, "redirect_uri": {callback}, "code_verifier": {verifierText},
	}, basic(byPost.id, byPost.secret)), http.StatusUnauthorized, "invalid_client")
	token("the body then", byPost.redeem(good), http.StatusOK, "")
}

func mustRequest(t testing.TB, method, to string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// While the database is away nobody's client or token is blamed.
func TestAttack25AnOutageOfTheTokenEndpointBlamesNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	code := h.code(a.query())
	_, refresh := h.pair(a)
	restore := storetest.Outage(t, h.dsn)
	for name, form := range map[string]url.Values{"code": a.redeem(code), "refresh": a.refresh(refresh)} {
		got := h.post(0, "/mcp/oauth/token", form)
		h.want(name, got, http.StatusServiceUnavailable, "temporarily_unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", name)
		}
	}
	restore()
	h.want("the code afterwards", h.post(0, "/mcp/oauth/token", a.redeem(code)), http.StatusOK, "")
	h.want("the refresh afterwards", h.post(0, "/mcp/oauth/token", a.refresh(refresh)), http.StatusOK, "")
}

// A request is bound to its browser, and is answered once.
func TestAttack17ARequestIsOfItsBrowser(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	got := h.authorize(a.query())
	id := strings.TrimPrefix(got.header.Get("Location"), "/consent/")
	browser := (&http.Response{Header: got.header}).Cookies()[0]
	if !browser.Secure || !browser.HttpOnly || browser.SameSite != http.SameSiteLaxMode || !strings.HasPrefix(browser.Name, "__Host-") {
		t.Errorf("the cookie is %v", browser)
	}
	desk := h.replicas[0].oauth.Desk()
	other, _ := store.NewToken(store.BrowserTokenPrefix)
	for _, wrong := range []string{"", other} {
		if _, err := desk.Look(t.Context(), h.person.User, id, wrong); reason.Of(err).Word != reason.ConsentElsewhere {
			t.Errorf("Look() in another browser = %v", err)
		}
	}
	p, err := desk.Look(t.Context(), h.person.User, id, browser.Value)
	if err != nil {
		t.Fatal(err)
	}
	to, err := desk.Deny(t.Context(), p)
	if err != nil || !strings.Contains(to, "error=access_denied") || !strings.Contains(to, "iss=https%3A%2F%2Fgraft.example") || !strings.Contains(to, "state=") {
		t.Errorf("Deny() = %s, %v", to, err)
	}
	if _, err := desk.Look(t.Context(), h.person.User, id, browser.Value); reason.Of(err).Word != reason.ConsentNotValid {
		t.Errorf("Look() after the answer = %v", err)
	}
	if _, _, err := desk.Allow(t.Context(), h.person, p, consent.Choice{Name: "App"}); !errors.Is(err, reason.Refuse(reason.ConsentNotValid, "")) {
		t.Errorf("Allow() after the answer = %v", err)
	}
}

// Two apps may be given one agent; ending one leaves the other, and a token is never of two agents.
func TestTwoAppsOfOneAgentEndApart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.register("none"), h.register("none")
	code, agent := h.connect(a.query(), store.AgentID{})
	other, same := h.connect(b.query(), agent)
	if same != agent {
		t.Fatalf("the second app was given %s, want %s", same, agent)
	}
	one, two := h.post(0, "/mcp/oauth/token", a.redeem(code)), h.post(0, "/mcp/oauth/token", b.redeem(other))
	h.want("revoke", h.post(0, "/mcp/oauth/revoke", a.prove(url.Values{"token": {one.str("refresh_token")}})), http.StatusOK, "")
	h.wantVerified("the app that ended", one.str("access_token"), reason.TokenUnknown)
	h.wantVerified("the other", two.str("access_token"), "")
	h.want("the other's refresh", h.post(0, "/mcp/oauth/token", b.refresh(two.str("refresh_token"))), http.StatusOK, "")
}

// A request of one whose document nobody has read yet is kept only where no document could be what is wrong with it, and
// only for a browser that a person looks at.
func TestNothingIsKeptForWhoSendsJustAnything(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	right := app{id: "https://app.example/client.json"}.query()
	with := func(name, value string) url.Values {
		q := url.Values{}
		for n, v := range right {
			q[n] = v
		}
		if q.Set(name, value); value == "" {
			q.Del(name)
		}
		return q
	}
	if got := h.authorize(right); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/consent/") {
		t.Errorf("a right one: authorize = %d %v", got.status, got.header)
	}
	for name, q := range map[string]url.Values{
		"no challenge":       with("code_challenge", ""),
		"no response type":   with("response_type", ""),
		"another resource":   with("resource", "https://evil.example/mcp"),
		"a bad redirect URI": with("redirect_uri", "javascript:alert(1)"),
		"the id alone":       {"client_id": {"https://a.example/b"}},
	} {
		if got := h.authorize(q); got.status != http.StatusBadRequest || got.header.Get("Location") != "" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: authorize = %d %v", name, got.status, got.header)
		}
	}
	r := mustRequest(t, http.MethodGet, h.replicas[0].URL+"/mcp/oauth/authorize?"+right.Encode())
	r.Header.Set("Sec-Fetch-Mode", "no-cors") // an image of another site's page
	if got := h.send(r); got.status != http.StatusBadRequest || got.header.Get("Set-Cookie") != "" {
		t.Errorf("as an image: authorize = %d %v", got.status, got.header)
	}
}

// A replica whose clock is behind makes sense of a token in a moment, and not never.
func TestATokenOfAFasterClockIsKnownLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v, err := oauth.NewVerifier(oauth.VerifierConfig{DB: h.db, Origin: origin, Keys: h.keys, Healthy: func() bool { return true }, Now: h.now})
	if err != nil {
		t.Fatal(err)
	}
	h.pass(10 * time.Second)
	access, _ := h.pair(h.register("none"))
	header := http.Header{"Authorization": {"Bearer " + access}}
	h.pass(-10 * time.Second)
	if _, err := v.Verify(t.Context(), header); reason.Of(err).Word != reason.TokenUnknown {
		t.Errorf("10 s before it was made Verify = %v", err)
	}
	h.pass(6 * time.Second)
	if _, err := v.Verify(t.Context(), header); err != nil {
		t.Errorf("4 s before it was made Verify = %v", err)
	}
}

// A database that is there and does not do what it should blames nobody either.
func TestADatabaseInTroubleBlamesNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	_, refresh := h.pair(a)
	storetest.Tamper(t, h.dsn, `CREATE TABLE trouble (code text); GRANT SELECT ON trouble TO PUBLIC`)
	storetest.Tamper(t, h.dsn, `
		CREATE FUNCTION be_in_trouble() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE c text := (SELECT code FROM trouble);
		BEGIN
			IF c IS NOT NULL THEN RAISE EXCEPTION 'trouble' USING ERRCODE = c; END IF;
			RETURN new;
		END $$`)
	storetest.Tamper(t, h.dsn, `CREATE TRIGGER trouble BEFORE UPDATE ON oauth_token FOR EACH ROW EXECUTE FUNCTION be_in_trouble()`)
	for _, code := range []string{"57014", "40001", "40P01", "25006", "53100", "53200", "53300"} {
		storetest.Tamper(t, h.dsn, `INSERT INTO trouble VALUES ($1)`, code)
		got := h.post(0, "/mcp/oauth/token", a.refresh(refresh))
		h.want(code, got, http.StatusServiceUnavailable, "temporarily_unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", code)
		}
		storetest.Tamper(t, h.dsn, `DELETE FROM trouble`)
	}
	h.want("afterwards", h.post(0, "/mcp/oauth/token", a.refresh(refresh)), http.StatusOK, "")
}

// What retired a token is kept to be given again, which is over when its grant is.
func TestAnEndedGrantKeepsNoAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	kept := func() int64 {
		return storetest.Tamper(t, h.dsn, `UPDATE oauth_answer SET answer = answer`)
	}
	refreshes := func(person store.Caller) store.AgentID {
		t.Helper()
		h.person = person
		a := h.register("none")
		code, agent := h.connect(a.query(), store.AgentID{})
		first := h.post(0, "/mcp/oauth/token", a.redeem(code))
		h.want("a refresh", h.post(0, "/mcp/oauth/token", a.refresh(first.str("refresh_token"))), http.StatusOK, "")
		if n := kept(); n != 1 {
			t.Fatalf("%d answers are kept, want 1", n)
		}
		return agent
	}
	owner := h.person
	agent := refreshes(owner)
	if err := h.db.As(t.Context(), owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent) }); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d answers are kept after the agent was revoked", n)
	}
	member := storetest.Member(t, h.db, owner, store.RoleMember)
	refreshes(member)
	if err := h.db.As(t.Context(), owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), member.User) }); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d answers are kept after who consented was removed", n)
	}
}
