package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/getgraft/graft/internal/servertest"
)

const goRedirect = "http://127.0.0.1:8979/callback"

// A tokenWatch notes how clients prove themselves at the token endpoint.
type tokenWatch struct {
	next *http.Transport
	mu   sync.Mutex
	seen []string // grant_type and whether Authorization was there, in turn
}

// RoundTrip implements http.RoundTripper.
func (w *tokenWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if r.URL.Path == "/mcp/oauth/token" && err == nil {
		how := "body"
		if r.Header.Get("Authorization") != "" {
			how = "header"
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, how+" "+resp.Status)
	}
	return resp, err
}

func (w *tokenWatch) saw() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// TestGoOAuth2 has golang.org/x/oauth2 find out by itself how it may prove who it is: what it tries first does not use up the
// code.
func TestGoOAuth2(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	owner := newPerson(t, kit)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	plain := &http.Client{Transport: transport}
	resource, err := oauthex.GetProtectedResourceMetadata(t.Context(), kit.URL+"/.well-known/oauth-protected-resource/mcp", kit.URL+"/mcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	as, err := auth.GetAuthServerMetadata(t.Context(), resource.AuthorizationServers[0], plain)
	if err != nil || as == nil {
		t.Fatalf("metadata = %v, %v", as, err)
	}
	for method, want := range map[string][]string{
		"client_secret_basic": {"header 200 OK", "header 200 OK"},
		"client_secret_post":  {"header 401 Unauthorized", "body 200 OK", "body 200 OK"},
		"none":                {"header 401 Unauthorized", "body 200 OK", "body 200 OK"},
	} {
		t.Run(method, func(t *testing.T) {
			client, err := oauthex.RegisterClient(t.Context(), as.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
				ClientName: "Gopher", RedirectURIs: []string{goRedirect}, TokenEndpointAuthMethod: method,
			}, plain)
			if err != nil {
				t.Fatal(err)
			}
			seen := &tokenWatch{next: transport}
			ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: seen})
			conf := oauth2.Config{
				ClientID: client.ClientID, ClientSecret: client.ClientSecret, RedirectURL: goRedirect, Scopes: []string{"mcp"},
				Endpoint: oauth2.Endpoint{AuthURL: as.AuthorizationEndpoint, TokenURL: as.TokenEndpoint, AuthStyle: oauth2.AuthStyleAutoDetect},
			}
			verifier := oauth2.GenerateVerifier()
			back := owner.allow(conf.AuthCodeURL("s1", oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", resource.Resource)), "Gopher").Query()
			if back.Get("state") != "s1" || back.Get("iss") != as.Issuer {
				t.Errorf("the client was told %v", back)
			}
			first, err := conf.Exchange(ctx, back.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil {
				t.Fatal(err)
			}
			second, err := conf.TokenSource(ctx, &oauth2.Token{RefreshToken: first.RefreshToken}).Token()
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(second.Expiry); left < 59*time.Minute || left > time.Hour || second.Type() != "Bearer" ||
				second.AccessToken == first.AccessToken || second.RefreshToken == first.RefreshToken {
				t.Errorf("the refresh gave %+v after %+v", second, first)
			}
			if got := seen.saw(); !slices.Equal(got, want) {
				t.Errorf("the token endpoint saw %q, want %q", got, want)
			}
			for _, token := range []string{first.AccessToken, second.AccessToken} {
				if got := connect(t, kit.URL, token).call(); got != http.StatusOK {
					t.Errorf("call = %d, want 200", got)
				}
			}
		})
	}
}

// TestGoSDK has the official Go SDK come with the URL alone, refresh, and ask the person again once its agent is revoked.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config auth.AuthorizationCodeHandlerConfig
		app    string
	}{
		"registered": {auth.AuthorizationCodeHandlerConfig{
			DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Gopher", RedirectURIs: []string{goRedirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
			}},
		}, "Gopher"},
		"document": {auth.AuthorizationCodeHandlerConfig{
			ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: sdkDocumentURL}, RedirectURL: "http://localhost:8979/callback",
		}, "SDK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := servertest.Start(t, withDocument)
			owner := newPerson(t, kit)
			var given []*oauth2.Token // in exchange for codes
			config := c.config
			config.RequestRefreshToken = true
			config.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			config.AuthorizationCodeFetcher = func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				back, err := owner.tryAnswer(args.URL, c.app, "allow")
				if err != nil {
					return nil, err
				}
				q := back.Query()
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			}
			// The access token counts as run out from the start, so that what calls is one from a refresh.
			config.NewTokenSource = func(ctx context.Context, conf *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
				given = append(given, token)
				return conf.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}), nil
			}
			handler, err := auth.NewAuthorizationCodeHandler(&config)
			if err != nil {
				t.Fatal(err)
			}
			open := func() *gosdk.ClientSession {
				t.Helper()
				client := gosdk.NewClient(&gosdk.Implementation{Name: "graft-e2e", Version: "1.0.0"}, nil)
				session, err := client.Connect(t.Context(), &gosdk.StreamableClientTransport{Endpoint: kit.URL + "/mcp", OAuthHandler: handler, MaxRetries: -1}, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = session.Close() }) // whose agent may be revoked
				return session
			}
			session := open()
			lists(t, session)
			if len(given) != 1 {
				t.Fatalf("%d authorizations, want one", len(given))
			}
			source, err := handler.TokenSource(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			token, err := source.Token()
			if err != nil || token.AccessToken == given[0].AccessToken || token.RefreshToken == given[0].RefreshToken {
				t.Errorf("the SDK has %+v, %v, want what a refresh gave", token, err)
			}

			owner.revokesAgentOf(token.AccessToken)
			eventually(t, "the SDK asks the person again", func() bool {
				_, err = session.CallTool(t.Context(), &gosdk.CallToolParams{Name: "find_tool", Arguments: map[string]any{"query": "reshape"}})
				return len(given) == 2
			})
			if err != nil {
				t.Errorf("the call that asked = %v, want its result", err)
			}
			lists(t, open())
			if len(given) != 2 {
				t.Errorf("%d authorizations, want two", len(given))
			}
		})
	}
}

// lists has a session of the Go SDK list the tools.
func lists(t *testing.T, session *gosdk.ClientSession) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got tools
	for _, tool := range list.Tools {
		got = append(got, struct {
			Name string `json:"name"`
		}{tool.Name})
	}
	got.check(t)
}
