package server_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

func TestFieldB03And04TheDocumentsSayOneThing(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	var as struct {
		Issuer string `json:"issuer"`
		Iss    bool   `json:"authorization_response_iss_parameter_supported"`
	}
	// Whoever stands before us and says otherwise changes nothing.
	forged := []string{"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "Forwarded: host=evil.example"}
	decode(t, ask(t, bare, "GET", k.URL+"/.well-known/oauth-authorization-server", "", forged...), http.StatusOK, &as)
	for path, want := range map[string]string{"": k.URL + "/mcp", "/mcp": k.URL + "/mcp", "/mcp/": k.URL + "/mcp/"} {
		var doc struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		decode(t, ask(t, bare, "GET", k.URL+"/.well-known/oauth-protected-resource"+path, "", forged...), http.StatusOK, &doc)
		if doc.Resource != want || len(doc.Servers) != 1 || doc.Servers[0] != as.Issuer || as.Issuer != k.URL || !as.Iss {
			t.Errorf("%q: %+v and %+v", path, doc, as)
		}
	}
	// A client that was given the address with a slash is led to the document that has it.
	if a := ask(t, bare, "POST", k.URL+"/mcp/", ping); !strings.Contains(a.header.Get("WWW-Authenticate"), `/.well-known/oauth-protected-resource/mcp/"`) {
		t.Errorf("POST /mcp/ = %v", a.header)
	}
}

func TestFieldB05DiscoveryIsJSONOrNothing(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	for _, path := range []string{
		"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp", "/.well-known/openid-configuration",
		"/mcp/.well-known/oauth-authorization-server", "/.well-known/openid-configuration/mcp", "/mcp/.well-known/openid-configuration",
		"/.well-known/openid-configuration/x", "/x/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/other", "/.well-known/oauth-protected-resource/other",
	} {
		a := ask(t, bare, "GET", k.URL+path, "")
		if a.status != http.StatusOK && a.status != http.StatusNotFound || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			t.Errorf("GET %s = %d %v", path, a.status, a.header)
		}
		if strings.Contains(path, "openid") && (a.status != http.StatusNotFound || a.header.Get("Access-Control-Allow-Origin") != "*") {
			t.Errorf("GET %s = %d %v, want 404 that every origin may read", path, a.status, a.header)
		}
	}
}

func TestFieldB08EveryMethodIsChallengedAlike(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	ended := connect(t, k)
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), ended.holder.Agent) }); err != nil {
		t.Fatal(err)
	}
	live := connect(t, k)
	for name, tt := range map[string]struct {
		headers []string
		query   string
		reason  string
	}{
		"none":        {nil, "", "token_missing"},
		"in a query":  {nil, "?access_token=" + url.QueryEscape(live.token), "token_missing"},
		"garbage":     {[]string{"Authorization: Bearer a.b.c"}, "", "token_unknown"},
		"an end":      {[]string{"Authorization: bearer " + ended.token}, "", "token_unknown"},
		"two of them": {[]string{"Authorization: Bearer " + live.token, "Authorization: Bearer " + live.token}, "", "token_unknown"},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			a := ask(t, bare, method, k.URL+"/mcp"+tt.query, ping, tt.headers...)
			challenge := a.header.Get("WWW-Authenticate")
			if a.status != http.StatusUnauthorized || !strings.Contains(a.body, `"reason":"`+tt.reason+`"`) || !strings.HasPrefix(challenge, `Bearer resource_metadata="`+k.URL) ||
				strings.Contains(challenge, `error="invalid_token"`) != (tt.reason != "token_missing") {
				t.Errorf("%s: %s = %d %s %q", name, method, a.status, a.body, challenge)
			}
		}
	}
}

// An agent that ends takes everything with it: its calls, its refreshes and its streams.
func TestFieldB14ARevokedAgentEndsAtOnce(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	healthy(t, k, true)
	a := connect(t, k)
	headers := []string{"Authorization: Bearer " + a.token, "Content-Type: application/json", "Accept: application/json, text/event-stream"}
	opened := ask(t, bare, "POST", k.URL+"/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`, headers...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"))
	stream, err := bare.Do(r)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("GET /mcp = %v, %v", stream, err)
	}
	defer func() { _ = stream.Body.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 1024); ; {
			if _, err := stream.Body.Read(b); err != nil {
				return
			}
		}
	}()
	began := time.Now()
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), a.holder.Agent) }); err != nil {
		t.Fatal(err)
	}
	refusedWithin(t, k, a.token, began)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the stream is still open after 5 s")
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.refresh}, "client_id": {a.client}}
	if got := ask(t, bare, "POST", k.URL+"/mcp/oauth/token", form.Encode(), "Content-Type: application/x-www-form-urlencoded"); got.status != http.StatusBadRequest ||
		!strings.Contains(got.body, `"error":"invalid_grant"`) {
		t.Errorf("refresh = %d %s", got.status, got.body)
	}
	unknown, _ := store.NewToken(store.RefreshTokenPrefix)
	form = url.Values{"token": {unknown}, "client_id": {a.client}}
	if got := ask(t, bare, "POST", k.URL+"/mcp/oauth/revoke", form.Encode(), "Content-Type: application/x-www-form-urlencoded"); got.status != http.StatusOK {
		t.Errorf("revoking an unknown token = %d %s", got.status, got.body)
	}
}

// Anybody who is signed in may name a document: it is fetched from public addresses alone, whatever upstreams may be in.
func TestADocumentInAnExemptNetworkIsNotFetched(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{}) // with GRAFT_EGRESS_ALLOW=127.0.0.0/8
	var reached atomic.Int32
	host := httptest.NewUnstartedServer(http.NotFoundHandler())
	host.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			reached.Add(1)
		}
	}
	host.StartTLS()
	t.Cleanup(host.Close)
	q := url.Values{
		"response_type": {"code"}, "client_id": {host.URL + "/client.json"}, "redirect_uri": {"https://app.example/cb"},
		"code_challenge": {strings.Repeat("c", 43)}, "code_challenge_method": {"S256"},
	}
	a := ask(t, k.SignIn(t, k.Owner), "GET", k.URL+"/mcp/oauth/authorize?"+q.Encode(), "")
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "does not lead to a public address") || reached.Load() != 0 {
		t.Errorf("consent = %d after %d connections, want a refusal without one:\n%s", a.status, reached.Load(), a.body)
	}
}

// Whatever goes wrong on the way, and wherever a client puts what it should not: no code, verifier, secret or token is in
// a line of the log.
func TestFieldB13NothingOfATokenIsInTheLog(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1})
	a := connect(t, k)
	const secret = "grfts_canary-of-a-client-secret"
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(a.client+":"+secret))
	post := func(path string, form url.Values, headers ...string) int {
		t.Helper()
		headers = append(headers, "Content-Type: application/x-www-form-urlencoded")
		return ask(t, bare, "POST", k.URL+path, form.Encode(), headers...).status
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.refresh}, "client_id": {a.client}}
	for name, got := range map[string]int{
		"a form in the query":          post("/mcp/oauth/token?"+refresh.Encode(), url.Values{}),
		"a form in both places":        post("/mcp/oauth/token?"+refresh.Encode(), refresh),
		"a secret nobody has":          post("/mcp/oauth/token", refresh, basic),
		"a code used before":           post("/mcp/oauth/token", url.Values{"grant_type": {"authorization_code"}, "code": {a.code}, "code_verifier": {a.verifier + "x"}, "client_id": {"cli_other"}}),
		"a token in the query of /mcp": ask(t, bare, "POST", k.URL+"/mcp?access_token="+a.token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Content-Type: application/json").status,
		"a token in the path":          ask(t, bare, "GET", k.URL+"/"+a.refresh, "").status,
		"a revocation by another":      post("/mcp/oauth/revoke", url.Values{"token": {a.refresh}, "client_id": {a.client}}, basic),
	} {
		if got < 400 {
			t.Errorf("%s: status %d, want a refusal", name, got)
		}
	}
	if got := post("/mcp/oauth/token", refresh); got != http.StatusOK {
		t.Errorf("refresh: status %d", got)
	}
	if got := post("/mcp/oauth/revoke", url.Values{"token": {a.refresh}, "client_id": {a.client}}); got != http.StatusOK {
		t.Errorf("revoke: status %d", got)
	}
	k.StopAll() // so that every request has its line
	log := k.Log.String()
	for _, route := range []string{"/mcp/oauth/token", "/mcp/oauth/revoke"} {
		if !strings.Contains(log, route) {
			t.Errorf("no line of %s in the log", route)
		}
	}
	for name, canary := range map[string]string{
		"access token": a.token, "refresh token": a.refresh, "code": a.code, "verifier": a.verifier, "secret": secret, "basic": strings.TrimPrefix(basic, "Authorization: "),
	} {
		if strings.Contains(log, canary) {
			t.Errorf("the %s is in the log", name)
		}
	}
}
