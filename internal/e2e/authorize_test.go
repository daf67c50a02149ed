package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
)

// A client that has never been here registers, is let in by somebody in a browser, and calls a tool.
func TestAnAppFromItsRegistrationToItsFirstCall(t *testing.T) {
	t.Parallel()
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, e2e.Phone))
	v.welcome(kit)
	v.Visit(v.url + "/agents/new") // which has no stream that the end of the session could meet
	v.signOut()
	client := startApp(t)
	var registered struct {
		ClientID string `json:"client_id"`
	}
	v.posts("/mcp/oauth/register", "application/json", `{"client_name":"Claude","redirect_uris":["`+client.url+`"],"token_endpoint_auth_method":"none"}`, http.StatusCreated, &registered)

	const verifier = "a-verifier-of-forty-three-characters-at-least"
	sum := sha256.Sum256([]byte(verifier))
	v.Visit(v.url + "/mcp/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {registered.ClientID}, "redirect_uri": {client.url}, "state": {"s1"}, "scope": {"mcp"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {v.url + "/mcp"},
	}.Encode())
	v.SeeText("h1", "Sign in")
	v.Fill("#email", visitorEmail)
	v.Fill("#password", visitorPassword)
	v.arrive(withPassword, "Let Claude work in Northfield?")
	v.SeeText("main", "It registered itself.")
	v.look("consent-registered")
	v.Click(".decide .primary")
	v.SeeText("h1", "Back in the app")
	answer := client.answer(t)

	var tokens struct {
		Access string `json:"access_token"`
	}
	v.posts("/mcp/oauth/token", "application/x-www-form-urlencoded", url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {client.url}, "client_id": {registered.ClientID}, "code_verifier": {verifier},
	}.Encode(), http.StatusOK, &tokens)
	app := connect(t, v.url, tokens.Access)
	if got := app.call(); got != http.StatusOK {
		t.Errorf("call = %d, want 200", got)
	}

	v.Visit(v.url + "/apps")
	v.arrive("main table a.btn", "Disconnect Claude?")
	v.arrive("main .btn.solid", "Claude")
	eventually(t, "the app is refused", func() bool { return app.call() == http.StatusUnauthorized })
}

// posts sends a body to the gateway as a program does, and reads the JSON of its answer.
func (v *visitor) posts(path, kind, body string, status int, into any) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != status {
		v.t.Fatalf("POST %s = %d, %v: %s", path, resp.StatusCode, err, b.String())
	}
	if err := json.Unmarshal(b.Bytes(), into); err != nil {
		v.t.Fatalf("POST %s: %v: %s", path, err, b.String())
	}
}
