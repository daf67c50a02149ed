package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/server"
)

// access is what an app has that somebody connected.
type access struct {
	token, refresh string
	code, verifier string // which are used up
	client         string
	id             store.TokenID
	holder         store.Caller
}

// connect has the owner of a kit connect an app that registers for it.
func connect(t testing.TB, k *servertest.Kit) access {
	t.Helper()
	const verifier, callback = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "https://app.example/cb"
	var client struct {
		ID string `json:"client_id"`
	}
	decode(t, ask(t, bare, "POST", k.URL+"/mcp/oauth/register", `{"redirect_uris":["`+callback+`"],"token_endpoint_auth_method":"none"}`,
		"Content-Type: application/json"), http.StatusCreated, &client)

	sum := sha256.Sum256([]byte(verifier))
	_, request := store.NewToken(store.ConsentTokenPrefix)
	now := k.DB.Now()
	err := k.DB.System().AddOAuthRequest(t.Context(), store.OAuthRequest{Hash: request, Browser: request, CreatedAt: now, ExpiresAt: now.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	person := k.Owner
	person.Via = store.ViaSession
	var code string
	err = k.DB.As(t.Context(), person, func(tx *store.Tx) (err error) {
		_, code, err = tx.AllowRequest(t.Context(), store.NewGrant{
			Request: request, Name: "App", ClientID: client.ID, ClientName: "App", RedirectURI: callback,
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Scope: "mcp", CodeLives: time.Minute,
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}, "client_id": {client.ID}}
	decode(t, ask(t, bare, "POST", k.URL+"/mcp/oauth/token", form.Encode(), "Content-Type: application/x-www-form-urlencoded"), http.StatusOK, &got)

	var claims struct {
		ID    store.TokenID `json:"jti"`
		Grant store.GrantID `json:"gid"`
		Agent store.AgentID `json:"sub"`
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(got.Access, ".")[1])
	if err == nil {
		err = json.Unmarshal(b, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return access{got.Access, got.Refresh, code, verifier, client.ID, claims.ID, store.Caller{
		Org: k.Owner.Org, User: k.Owner.User, Agent: claims.Agent, Grant: claims.Grant, Role: k.Owner.Role, Via: store.ViaBearer,
	}}
}

func decode(t testing.TB, a answer, status int, into any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("answer %d %s, want %d", a.status, a.body, status)
	}
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatal(err)
	}
}

// A client that has the URL alone finds its way: what one document names is where it is said to be.
func TestTheDocumentsLeadToTheEndpoints(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	a := ask(t, bare, "POST", k.URL+"/mcp", ping)
	_, metadata, _ := strings.Cut(a.header.Get("WWW-Authenticate"), `resource_metadata="`)
	metadata = strings.TrimSuffix(metadata, `"`)
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	decode(t, ask(t, bare, "GET", metadata, ""), http.StatusOK, &resource)
	if resource.Resource != k.URL+"/mcp" || len(resource.Servers) != 1 || resource.Servers[0] != k.URL {
		t.Fatalf("%s = %+v", metadata, resource)
	}
	var s struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
		Register  string `json:"registration_endpoint"`
		Revoke    string `json:"revocation_endpoint"`
	}
	for _, at := range []string{"", "/mcp", "/mcp/"} {
		decode(t, ask(t, bare, "GET", k.URL+"/.well-known/oauth-authorization-server"+at, ""), http.StatusOK, &s)
		if s.Issuer != k.URL {
			t.Errorf("issuer %q, want %q", s.Issuer, k.URL)
		}
	}
	for endpoint, status := range map[string]int{s.Token: 400, s.Register: 415, s.Revoke: 400} {
		if a := ask(t, bare, "POST", endpoint, ""); a.status != status && a.status != http.StatusBadRequest || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("POST %s = %d %v", endpoint, a.status, a.header)
		}
	}
	if a := ask(t, bare, "GET", s.Authorize, ""); a.status != http.StatusBadRequest || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") ||
		!strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("GET %s = %d %v, want a page that says what is wrong", s.Authorize, a.status, a.header)
	}
	var keys struct {
		Keys []struct{ Kid, Kty, Crv string }
	}
	connect(t, k)
	decode(t, ask(t, bare, "GET", k.URL+"/.well-known/jwks.json", ""), http.StatusOK, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].Crv != "Ed25519" {
		t.Errorf("keys = %+v, want one", keys)
	}
}

// An app's token opens a session, and another agent's does not get into it.
func TestAnAppsTokenIsABearerLikeAnyOther(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	one, two := connect(t, k), connect(t, k)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`
	headers := func(token string, more ...string) []string {
		return append([]string{"Authorization: Bearer " + token, "Content-Type: application/json", "Accept: application/json, text/event-stream"}, more...)
	}
	opened := ask(t, bare, "POST", k.URL+"/mcp", initialize, headers(one.token)...)
	session := opened.header.Get("Mcp-Session-Id")
	if opened.status != http.StatusOK || session == "" {
		t.Fatalf("initialize = %d %s", opened.status, opened.body)
	}
	if a := ask(t, bare, "POST", k.URL+"/mcp", ping, headers(one.token, "Mcp-Session-Id: "+session)...); a.status != http.StatusOK {
		t.Errorf("ping = %d %s", a.status, a.body)
	}
	if a := ask(t, bare, "POST", k.URL+"/mcp", ping, headers(two.token, "Mcp-Session-Id: "+session)...); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "session_mismatch") {
		t.Errorf("ping by another app = %d %s", a.status, a.body)
	}
	for _, token := range []string{one.token, one.refresh} {
		if strings.Contains(k.Log.String(), token) {
			t.Errorf("the log has a token")
		}
	}
}

func TestTheChallengeOfAListingIsTheOperators(t *testing.T) {
	t.Parallel()
	for token, status := range map[string]int{"": http.StatusNotFound, "abc.DEF-123": http.StatusOK} {
		k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) { c.OpenAIChallenge = token }})
		a := ask(t, bare, "GET", k.URL+"/.well-known/openai-apps-challenge", "")
		if a.status != status || status == http.StatusOK && (a.body != token || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain")) {
			t.Errorf("challenge = %d %q %v, want %d %q", a.status, a.body, a.header, status, token)
		}
	}
}

// What comes too often is told so in the words of each reader.
func TestRatesOfTheAuthorizationServer(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) { c.RateRegister, c.RateOAuth = "2/m", "2/m" }})
	for range 2 {
		ask(t, bare, "POST", k.URL+"/mcp/oauth/register", "{}", "Content-Type: application/json")
		ask(t, bare, "POST", k.URL+"/mcp/oauth/token", "", "Content-Type: application/x-www-form-urlencoded")
	}
	for _, path := range []string{"/mcp/oauth/register", "/mcp/oauth/token"} {
		a := ask(t, bare, "POST", k.URL+path, "")
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"error":"temporarily_unavailable"`) {
			t.Errorf("%s = %d %s %v", path, a.status, a.body, a.header)
		}
	}
	if a := ask(t, bare, "GET", k.URL+"/mcp/oauth/authorize", ""); a.status != http.StatusTooManyRequests && a.status != http.StatusBadRequest {
		t.Errorf("authorize = %d %s", a.status, a.body)
	}
}

// Whoever looks for why an app stopped finds it among what was done: the grant ended by itself, not by a person.
func TestAGrantThatEndsByItselfIsWrittenDown(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1})
	post := func(path string, form url.Values) int {
		t.Helper()
		return ask(t, bare, "POST", k.URL+path, form.Encode(), "Content-Type: application/x-www-form-urlencoded").status
	}
	reused, revoked := connect(t, k), connect(t, k)
	used := url.Values{
		"grant_type": {"authorization_code"}, "code": {reused.code}, "redirect_uri": {"https://app.example/cb"},
		"code_verifier": {reused.verifier}, "client_id": {reused.client},
	}
	if got := post("/mcp/oauth/token", used); got != http.StatusBadRequest {
		t.Fatalf("a code used twice: status %d, want 400", got)
	}
	for range 2 { // the second finds nothing to end
		if got := post("/mcp/oauth/revoke", url.Values{"token": {revoked.refresh}, "client_id": {revoked.client}}); got != http.StatusOK {
			t.Fatalf("revoke: status %d, want 200", got)
		}
	}
	k.StopAll() // so that everything is written
	var links []store.AuditLink
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) (err error) {
		links, err = tx.AuditEntries(t.Context(), store.AuditFilter{Kind: audit.Change})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got := map[string]store.AgentID{}
	for _, l := range links {
		got[l.Line] = l.Agent
	}
	want := map[string]store.AgentID{
		"Disconnected " + reused.client + ": its code was used twice":      reused.holder.Agent,
		"Disconnected " + revoked.client + ": it gave its grant up itself": revoked.holder.Agent,
	}
	if !maps.Equal(got, want) || len(links) != len(want) {
		t.Errorf("%d changes = %v, want %v", len(links), got, want)
	}
}
