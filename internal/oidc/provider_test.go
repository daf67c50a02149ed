package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/oidc"
	"github.com/getgraft/graft/internal/oidc/oidctest"
	"github.com/getgraft/graft/internal/vault"
)

const redirect = "https://graft.example.org/sign-in/oidc/callback"

// a party is us, at a provider.
type party struct {
	t  *testing.T
	op *oidctest.Provider
	*oidc.Provider
	ahead time.Duration
}

func start(t *testing.T) *party {
	t.Helper()
	p := &party{t: t, op: oidctest.Start(t)}
	p.Provider = p.provider(p.op.URL)
	p.op.Now = p.now
	return p
}

func (p *party) now() time.Time { return time.Now().Add(p.ahead) }

func (p *party) provider(issuer string) *oidc.Provider {
	p.t.Helper()
	o, err := oidc.New(oidc.Config{Issuer: issuer, ClientID: oidctest.ClientID, Secret: vault.NewSecret([]byte(oidctest.Secret)), Redirect: redirect, Now: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(o.Close)
	return o
}

// visit sends a browser of its own there, and returns its flow and what it brings back.
func (p *party) visit() (oidc.Flow, url.Values) {
	p.t.Helper()
	f := oidc.NewFlow(fmt.Sprint("seed ", time.Now().UnixNano()))
	at, err := p.AuthURL(p.t.Context(), f, false)
	if err != nil {
		p.t.Fatal(err)
	}
	return f, p.op.Visit(p.t, at)
}

// signIn goes there and back.
func (p *party) signIn() (oidc.Claims, error) {
	p.t.Helper()
	f, back := p.visit()
	c, err := p.Finish(p.t.Context(), f, back, time.Time{})
	p.silent(err)
	return c, err
}

// silent looks for what no error may say.
func (p *party) silent(err error) {
	p.t.Helper()
	if err == nil {
		return
	}
	for _, secret := range append([]string{"CANARY", url.QueryEscape(oidctest.Secret)}, p.op.Issued...) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			p.t.Errorf("an error says %q: %v", secret, err)
		}
	}
}

func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.op.SignedIn = time.Now().Add(-time.Hour)
	c, err := p.signIn()
	if err != nil || c.Subject != p.op.Subject || c.SeenAt.Unix() != p.op.SignedIn.Unix() {
		t.Errorf("Finish() = %+v, %v, want %s", c, err, p.op.Subject)
	}
	if _, err := p.signIn(); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]int{"/.well-known/openid-configuration": 1, "/keys": 1, "/token": 2} {
		if got := p.op.Asked(path); got != want {
			t.Errorf("%s was asked for %d times, want %d", path, got, want)
		}
	}
}

func TestWhatDoesNotProveWhoItIsIsRefused(t *testing.T) {
	t.Parallel()
	set := func(name string, value any) func(*party) {
		return func(p *party) { p.op.Claims = func(c map[string]any) { c[name] = value } }
	}
	for name, spoil := range map[string]func(*party){
		"another nonce":                 set("nonce", "another"),
		"no nonce":                      func(p *party) { p.op.Claims = func(c map[string]any) { delete(c, "nonce") } },
		"another audience":              set("aud", "somebody-else"),
		"several audiences without azp": set("aud", []string{oidctest.ClientID, "somebody-else"}),
		"another azp":                   set("azp", "somebody-else"),
		"another azp among several audiences": func(p *party) {
			p.op.Claims = func(c map[string]any) { c["aud"], c["azp"] = []string{oidctest.ClientID, "x"}, "x" }
		},
		"another issuer":         set("iss", "https://evil.example"),
		"expired":                set("exp", time.Now().Add(-time.Second).Unix()),
		"no expiry":              func(p *party) { p.op.Claims = func(c map[string]any) { delete(c, "exp") } },
		"from the future":        set("iat", time.Now().Add(time.Hour).Unix()),
		"not valid yet":          set("nbf", time.Now().Add(time.Hour).Unix()),
		"signed in tomorrow":     set("auth_time", time.Now().Add(24*time.Hour).Unix()),
		"no subject":             set("sub", ""),
		"a subject too long":     set("sub", strings.Repeat("a", 256)),
		"a subject with a zero":  set("sub", "a\x00b"),
		"claims of another kind": set("auth_time", "yesterday"),
		"alg none":               func(p *party) { p.op.Sign = oidctest.SignNone },
		"HS256 with the public key": func(p *party) {
			p.op.Sign = oidctest.SignHS256
		},
		"an unknown key":                 func(p *party) { p.op.Key = oidctest.NewKey(p.t, "unknown") },
		"another key under a known name": func(p *party) { p.op.Key = oidctest.NewKey(p.t, "first") },
		"a changed payload": func(p *party) {
			p.op.Sign = func(o *oidctest.Provider, payload []byte) string {
				good := strings.Split(oidctest.SignRS256(o.Key, payload), ".")
				bad := strings.Split(oidctest.SignRS256(o.Key, []byte(strings.Replace(string(payload), o.Subject, "victim", 1))), ".")
				return good[0] + "." + bad[1] + "." + good[2]
			}
		},
		"nonsense": func(p *party) { p.op.Sign = func(*oidctest.Provider, []byte) string { return "CANARY.CANARY.CANARY" } },
		"no ID token": func(p *party) {
			p.op.Answer = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"access_token":"CANARY","token_type":"Bearer"}`))
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			spoil(p)
			if c, err := p.signIn(); !errors.Is(err, oidc.ErrNotProven) {
				t.Errorf("Finish() = %+v, %v, want it not proven", c, err)
			}
		})
	}
}

func TestSeveralAudiencesAreTakenWithAnAuthorizedParty(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.op.Claims = func(c map[string]any) { c["aud"], c["azp"] = []string{"api", oidctest.ClientID}, oidctest.ClientID }
	if _, err := p.signIn(); err != nil {
		t.Error(err)
	}
}

// What a browser brings back is held to the flow that it began.
func TestWhatComesBackIsOfTheFlow(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(url.Values){
		"another state":     func(v url.Values) { v.Set("state", "another") },
		"no state":          func(v url.Values) { v.Del("state") },
		"another issuer":    func(v url.Values) { v.Set("iss", "https://evil.example") },
		"an empty issuer":   func(v url.Values) { v.Set("iss", "") },
		"no issuer":         func(v url.Values) { v.Del("iss") }, // which the metadata promises
		"two issuers":       func(v url.Values) { v.Add("iss", "https://evil.example") },
		"two codes":         func(v url.Values) { v.Add("code", "another") },
		"no code":           func(v url.Values) { v.Del("code") },
		"another's code":    func(v url.Values) { v.Set("code", "another") },
		"an error from who": func(v url.Values) { v.Set("error", "access_denied"); v.Set("iss", "https://evil.example") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			f, back := p.visit()
			spoil(back)
			c, err := p.Finish(t.Context(), f, back, time.Time{})
			if p.silent(err); !errors.Is(err, oidc.ErrNotProven) {
				t.Errorf("Finish() = %+v, %v, want it not proven", c, err)
			}
		})
	}
	p := start(t)
	_, back := p.visit()
	other := oidc.NewFlow("another browser")
	if c, err := p.Finish(t.Context(), other, back, time.Time{}); !errors.Is(err, oidc.ErrNotProven) {
		t.Errorf("Finish() in another browser = %+v, %v, want it not proven", c, err)
	}
	// The verifier of another flow is what the provider refuses.
	f, back := p.visit()
	_, elsewhere := p.visit()
	back.Set("code", elsewhere.Get("code"))
	if c, err := p.Finish(t.Context(), f, back, time.Time{}); !errors.Is(err, oidc.ErrNotProven) || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("Finish() with the code of another flow = %+v, %v, want invalid_grant", c, err)
	}
	f, back = p.visit()
	if _, err := p.Finish(t.Context(), f, back, time.Time{}); err != nil {
		t.Error(err)
	}
	if c, err := p.Finish(t.Context(), f, back, time.Time{}); !errors.Is(err, oidc.ErrNotProven) {
		t.Errorf("Finish() again = %+v, %v, want it not proven", c, err)
	}
}

func TestAnIssuerThatDoesNotNameItselfNeedNot(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.op.Metadata = func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }
	f, back := p.visit()
	back.Del("iss")
	if _, err := p.Finish(t.Context(), f, back, time.Time{}); err != nil {
		t.Error(err)
	}
	f, back = p.visit()
	back.Set("iss", "https://evil.example")
	if _, err := p.Finish(t.Context(), f, back, time.Time{}); !errors.Is(err, oidc.ErrNotProven) {
		t.Errorf("Finish() from another issuer = %v, want it not proven", err)
	}
}

func TestARefusalIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.op.Refuse, p.op.Description = "access_denied", "You\u202e are\x00\n  not "+strings.Repeat("let ", 100)
	_, err := p.signIn()
	var refused *oidc.Refusal
	if !errors.As(err, &refused) || refused.Code != "access_denied" || !strings.HasPrefix(refused.Description, "You are not let let") || len([]rune(refused.Description)) > 200 {
		t.Errorf("Finish() = %v with %+v, want the refusal", err, refused)
	}
	p.op.Refuse = "<b>CANARY</b>"
	if _, err := p.signIn(); !errors.As(err, &refused) || refused.Code != "another error" {
		t.Errorf("Finish() = %v with %+v, want another error", err, refused)
	}
}

func TestSigningInAnewIsHeldToItsTime(t *testing.T) {
	t.Parallel()
	p := start(t)
	for _, c := range []struct {
		name string
		at   time.Time
		want error
	}{
		{"just now", time.Now(), nil},
		{"not said", time.Time{}, oidc.ErrNotFresh},
		{"before", time.Now().Add(-2 * time.Minute), oidc.ErrNotFresh},
	} {
		p.op.SignedIn = c.at
		f, at := oidc.NewFlow(c.name), ""
		var err error
		if at, err = p.AuthURL(t.Context(), f, true); err != nil {
			t.Fatal(err)
		}
		if u, _ := url.Parse(at); u.Query().Get("prompt") != "login" || u.Query().Get("max_age") != "0" {
			t.Errorf("asked for at %s, want prompt=login and max_age=0", at)
		}
		if _, err := p.Finish(t.Context(), f, p.op.Visit(t, at), time.Now()); !errors.Is(err, c.want) {
			t.Errorf("Finish() of a sign-in %s = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	p := start(t)
	if _, err := p.signIn(); err != nil {
		t.Fatal(err)
	}
	old := p.op.Key
	p.op.Key = oidctest.NewKey(t, "second")
	p.op.Published = []oidctest.Key{p.op.Key}
	if _, err := p.signIn(); err != nil {
		t.Errorf("Finish() with a new key = %v", err)
	}
	// A key that the provider has taken back counts no longer.
	p.op.Key = old
	if _, err := p.signIn(); !errors.Is(err, oidc.ErrNotProven) {
		t.Errorf("Finish() with a key that was taken back = %v, want it not proven", err)
	}
}

// The keys are fetched anew with the metadata, so that one which leaked is not taken for ever.
func TestMetadataAndKeysAreReadAnewAfterAnHour(t *testing.T) {
	t.Parallel()
	p := start(t)
	if _, err := p.signIn(); err != nil {
		t.Fatal(err)
	}
	p.op.Published = nil
	if _, err := p.signIn(); err != nil {
		t.Errorf("Finish() with a key that is remembered = %v", err)
	}
	p.ahead = time.Hour + time.Second
	if _, err := p.signIn(); !errors.Is(err, oidc.ErrNotProven) {
		t.Errorf("Finish() an hour later = %v, want it not proven", err)
	}
	// While the provider is away, what was known goes on.
	p.op.Published = []oidctest.Key{p.op.Key}
	p.op.Answer = map[string]http.HandlerFunc{"/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	p.ahead += time.Hour + time.Second
	if _, err := p.signIn(); err != nil {
		t.Errorf("Finish() while the metadata cannot be read = %v", err)
	}
}

func TestAProviderThatCannotBeUsedIsToldSoAndTriedAgain(t *testing.T) {
	t.Parallel()
	says := func(name string, value any) func(*party) {
		return func(p *party) { p.op.Metadata = func(m map[string]any) { m[name] = value } }
	}
	answers := func(path string, fn http.HandlerFunc) func(*party) {
		return func(p *party) { p.op.Answer = map[string]http.HandlerFunc{path: fn} }
	}
	const discovery = "/.well-known/openid-configuration"
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"CANARY":"` + strings.Repeat("a", 300<<10) + `"}`))
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere?CANARY", http.StatusTemporaryRedirect)
	}
	broken := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"CANARY`))
	}
	down := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "CANARY", http.StatusServiceUnavailable) }
	for name, spoil := range map[string]func(*party){
		"another issuer":          says("issuer", "https://evil.example"),
		"no token endpoint":       says("token_endpoint", ""),
		"a page of another kind":  says("authorization_endpoint", "javascript:alert(1)"),
		"plain http elsewhere":    says("token_endpoint", "http://login.example.com/token"),
		"keys on the inside":      says("jwks_uri", "https://10.0.0.1/keys"),
		"keys of the cloud":       says("jwks_uri", "https://169.254.169.254/keys"),
		"no asymmetric algorithm": says("id_token_signing_alg_values_supported", []string{"none", "HS256"}),
		"no basic authentication": says("token_endpoint_auth_methods_supported", []string{"client_secret_post"}),
		"huge metadata":           answers(discovery, huge),
		"metadata elsewhere":      answers(discovery, elsewhere),
		"broken metadata":         answers(discovery, broken),
		"metadata down":           answers(discovery, down),
		"huge keys":               answers("/keys", huge),
		"keys elsewhere":          answers("/keys", elsewhere),
		"broken keys":             answers("/keys", broken),
		"keys down":               answers("/keys", down),
		"a huge answer":           answers("/token", huge),
		"an answer elsewhere":     answers("/token", elsewhere),
		"a broken answer":         answers("/token", broken),
		"tokens down":             answers("/token", down),
		"another client": answers("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"CANARY"}`))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			spoil(p)
			f := oidc.NewFlow("one")
			at, err := p.AuthURL(t.Context(), f, false)
			if err == nil {
				_, err = p.Finish(t.Context(), f, p.op.Visit(t, at), time.Time{})
			}
			if p.silent(err); !errors.Is(err, oidc.ErrUnavailable) {
				t.Errorf("signing in = %v, want the provider unavailable", err)
			}
			if p.op.Asked("/elsewhere") != 0 {
				t.Error("a redirect was followed")
			}
			p.op.Metadata, p.op.Answer = nil, nil
			p.ahead = time.Hour + time.Second // and of a failure 5 s would do
			if _, err := p.signIn(); err != nil {
				t.Errorf("signing in once it is mended = %v", err)
			}
		})
	}
}

// The issuer's host may be private, as the operator's word; another that it names may not, and is not even connected to.
func TestWhatTheProviderNamesIsItsOwnHostOrPublic(t *testing.T) {
	t.Parallel()
	inside := httptest.NewUnstartedServer(http.NotFoundHandler())
	var connections atomic.Int64
	inside.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	inside.StartTLS()
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const said = "does not lead to a public address"
	for _, name := range []string{"jwks_uri", "token_endpoint"} {
		p := start(t)
		p.op.Metadata = func(m map[string]any) { m[name] = "https://localhost:" + port + "/" }
		if _, err := p.signIn(); !errors.Is(err, oidc.ErrUnavailable) || !strings.Contains(err.Error(), said) {
			t.Errorf("%s on the inside = %v, want that it %s", name, err, said)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections went inside, want none", n)
	}
}

func TestAProviderIsNotWaitedForLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	p := start(t)
	f, back := p.visit()
	p.op.Answer = map[string]http.HandlerFunc{"/token": func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // so that the server sees the caller leave
		<-r.Context().Done()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Finish(ctx, f, back, time.Time{}); !errors.Is(err, oidc.ErrUnavailable) || !strings.Contains(err.Error(), "in time") {
		t.Errorf("Finish() = %v, want that it did not answer in time", err)
	}
}

func TestAFailureIsRememberedForAMoment(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.op.Answer = map[string]http.HandlerFunc{"/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	for range 3 {
		if err := p.Check(t.Context()); !errors.Is(err, oidc.ErrUnavailable) || !strings.Contains(err.Error(), "502") {
			t.Errorf("Check() = %v, want it unavailable with its status", err)
		}
	}
	if n := p.op.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	p.op.Answer = nil
	p.ahead = 6 * time.Second
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Of many who want the metadata at once one asks, and its leaving takes nothing from the others.
func TestManyAskOnce(t *testing.T) {
	t.Parallel()
	p := start(t)
	reached, gate := make(chan struct{}, 10), make(chan struct{})
	p.op.Answer = map[string]http.HandlerFunc{"/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) {
		reached <- struct{}{}
		<-gate
		p.op.Tell(w)
	}}
	first, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = p.Check(first) })
	<-reached
	leave()
	for range 5 {
		all.Go(func() {
			if err := p.Check(t.Context()); err != nil {
				t.Errorf("Check() beside one who left = %v", err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Check(gone); !errors.Is(err, oidc.ErrUnavailable) {
		t.Errorf("Check() of who has left = %v, want it unavailable", err)
	}
	close(gate)
	all.Wait()
	if n := p.op.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestAnIssuerIsAnAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://login.example.com", "https://login.example.com/realms/main", "https://login.example.com/", "https://10.0.0.8:8443", "http://localhost:8080", "http://127.0.0.1:1"} {
		if _, err := oidc.CheckIssuer(good); err != nil {
			t.Errorf("CheckIssuer(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{"", "login.example.com", "ftp://login.example.com", "http://login.example.com", "http://10.0.0.8", "https://", "https://a b", "https://u:p@login.example.com", "https://login.example.com?a", "https://login.example.com/?", "https://login.example.com/#a", "https://0x7f.1", "https://login.example.com/" + strings.Repeat("a", 500)} {
		if _, err := oidc.CheckIssuer(bad); err == nil {
			t.Errorf("CheckIssuer(%q) takes it", bad)
		}
	}
}
