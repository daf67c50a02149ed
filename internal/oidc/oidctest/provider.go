package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client that a Provider knows, and its secret, which a form and a header spell differently.
const (
	ClientID = "graft"
	Secret   = "CANARY-5b1e /+:oidc"
)

// A Provider signs in whoever its fields say. Change them between requests, never during one.
type Provider struct {
	URL string // the issuer
	// Subject and Email are of the person at its page.
	Subject, Email string
	// SignedIn is when they signed in there; zero is now, and a provider that does not say.
	SignedIn time.Time
	Now      func() time.Time

	// Refuse has the provider answer with that error, and Description with its words.
	Refuse, Description string
	// Metadata changes what it says of itself.
	Metadata func(map[string]any)
	// Claims changes what an ID token says.
	Claims func(map[string]any)
	// Sign is how a token is signed; nil is RS256 with Key.
	Sign func(p *Provider, payload []byte) string
	// Answer is how a path is answered in place of the provider's own way.
	Answer map[string]http.HandlerFunc
	// Key is what tokens are signed with, and Published those that it tells of.
	Key       Key
	Published []Key

	server *httptest.Server
	mu     sync.Mutex
	codes  map[string]grant
	asked  map[string]int // requests by path
	Issued []string       // every code and token it gave
}

// A Key signs, under its name.
type Key struct {
	ID      string
	Private *rsa.PrivateKey
}

// NewKey makes a key of that name.
func NewKey(t testing.TB, id string) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, private}
}

// first is a key that every Provider of a test binary begins with: making one takes a while.
var first = sync.OnceValue(func() Key {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // with the system's own randomness
	}
	return Key{"first", private}
})

type grant struct {
	query url.Values // of the request that it answers
}

// Start starts a provider that ends with the test.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{
		Subject: "sub-" + rand.Text(), Email: "ana@login.example", Now: time.Now,
		Key: first(), codes: map[string]grant{}, asked: map[string]int{},
	}
	p.Published = []Key{p.Key}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.URL = "http://" + p.server.Listener.Addr().String()
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

// Asked is how many requests came for a path.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	p.mu.Unlock()
	if answer := p.Answer[r.URL.Path]; answer != nil {
		answer(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.Tell(w)
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.token(w, r)
	case "/keys":
		p.keys(w)
	default:
		http.NotFound(w, r)
	}
}

// Tell answers with what the provider says of itself.
func (p *Provider) Tell(w http.ResponseWriter) {
	says := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if p.Metadata != nil {
		p.Metadata(says)
	}
	answer(w, http.StatusOK, says)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // else the client left
}

// authorize is the page where a person signs in, which ours does at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || !strings.Contains(q.Get("scope"), "openid") ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "the request is not one of ours", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.Refuse != "" {
		answer.Set("error", p.Refuse)
		answer.Set("error_description", p.Description)
	} else {
		code := p.issue("code-" + rand.Text())
		p.mu.Lock()
		p.codes[code] = grant{q}
		p.mu.Unlock()
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *Provider) issue(s string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Issued = append(p.Issued, s)
	return s
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code string) {
		answer(w, status, map[string]string{"error": code, "error_description": "CANARY " + r.PostFormValue("code")})
	}
	id, secret, _ := r.BasicAuth()
	if id != url.QueryEscape(ClientID) || secret != url.QueryEscape(Secret) || r.PostFormValue("client_secret") != "" {
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	}
	p.mu.Lock()
	g, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != g.query.Get("redirect_uri") ||
		b64(sum[:]) != g.query.Get("code_challenge") {
		refuse(http.StatusBadRequest, "invalid_grant")
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": p.issue("access-" + rand.Text()), "token_type": "Bearer", "expires_in": 300, "id_token": p.issue(p.idToken(g)),
	})
}

func (p *Provider) idToken(g grant) string {
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "sub": p.Subject, "aud": ClientID, "nonce": g.query.Get("nonce"), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"email": p.Email, "email_verified": true,
	}
	if !p.SignedIn.IsZero() {
		claims["auth_time"] = p.SignedIn.Unix()
	}
	if p.Claims != nil {
		p.Claims(claims)
	}
	payload, _ := json.Marshal(claims) // of what a test put there
	if p.Sign != nil {
		return p.Sign(p, payload)
	}
	return SignRS256(p.Key, payload)
}

func (p *Provider) keys(w http.ResponseWriter) {
	list := []map[string]string{}
	for _, k := range p.Published {
		list = append(list, map[string]string{
			"kty": "RSA", "use": "sig", "kid": k.ID, "n": b64(k.Private.N.Bytes()), "e": b64(big.NewInt(int64(k.Private.E)).Bytes()),
		})
	}
	answer(w, http.StatusOK, map[string]any{"keys": list})
}

// Visit sends a browser to the provider, and returns what it brings back in the query of the redirect.
func (p *Provider) Visit(t testing.TB, at string) url.Values {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.server.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("the provider answered %s with status %d and leads nowhere", at, resp.StatusCode)
	}
	return back.Query()
}
