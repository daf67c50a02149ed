package e2e_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// sdkDocument is the client ID metadata document of sdk-oauth.mjs, which the operator gives: its host is nowhere.
const (
	sdkDocumentURL = "https://sdk.example/client.json"
	sdkDocument    = `{"client_id":"` + sdkDocumentURL + `","client_name":"SDK","redirect_uris":["http://localhost/callback"],"token_endpoint_auth_method":"none"}`
)

// withDocument is a gateway whose operator gives it.
var withDocument = servertest.Options{Documents: map[string]string{sdkDocumentURL: sdkDocument}}

// TestSDKsFromTheURLAlone has both official TypeScript SDKs come from nothing but the URL to a tool list, refresh, and begin
// again once their agent is revoked.
func TestSDKsFromTheURLAlone(t *testing.T) {
	t.Parallel()
	list, call := map[string]any{"list": true}, map[string]any{"call": "run_tool", "arguments": reshape()}
	scope := map[string]string{"v1": "mcp", "v2": "mcp offline_access"} // v2 asks for what a refresh token may need
	for _, version := range []string{"v1", "v2"} {
		for name, c := range map[string]struct{ id, method string }{
			"registered": {"", map[string]string{"v1": "client_secret_post", "v2": "client_secret_basic"}[version]},
			"document":   {sdkDocumentURL, ""},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				kit := servertest.Start(t, withDocument)
				owner := newPerson(t, kit)
				args := []string{version, kit.URL + "/mcp"}
				if c.id != "" {
					args = append(args, c.id)
				}
				sdk := &sdkOAuth{t, e2e.NewProgram(t, e2e.Client(t, "sdk-oauth.mjs")).Start(args...)}

				// No credential: an authorization begins, and somebody allows it.
				first := sdk.begins(list)
				if (first.Client.ID == c.id) != (c.id != "") || first.Client.Method != c.method {
					t.Errorf("the SDK is %+v, want %+v", first.Client, c)
				}
				sdk.do(map[string]any{"redirect": owner.allow(first.Authorize, "SDK").String()})
				a := sdk.works(list)
				a.Tools.check(t)
				a.Tokens.check(t, scope[version])

				// Without the access token, the refresh token.
				revokes(t, kit, a)
				before := a.Tokens
				eventually(t, "the SDK refreshes", func() bool { a = sdk.works(call); return a.Tokens.Access != before.Access })
				a.Result.check(t)
				a.Tokens.check(t, scope[version])
				if a.Tokens.Refresh == before.Refresh || len(a.Dropped) > 0 {
					t.Errorf("the SDK has %+v and threw away %v", a.Tokens, a.Dropped)
				}

				// Without the agent, the person once more: it is a new grant, for a client that is known already.
				owner.revokesAgentOf(a.Tokens.Access)
				var again sdkAnswer
				eventually(t, "the SDK begins again", func() bool {
					again = sdk.do(call)
					return again.Authorize != ""
				})
				if !slices.Equal(again.Dropped, []string{"tokens"}) || again.Client.ID != first.Client.ID {
					t.Errorf("the SDK threw away %v and is %q, want its tokens alone and to be %q", again.Dropped, again.Client.ID, first.Client.ID)
				}
				sdk.do(map[string]any{"redirect": owner.allow(again.Authorize, "SDK").String()})
				sdk.works(list).Tools.check(t)
			})
		}
	}
}

type sdkOAuth struct {
	t *testing.T
	p *e2e.Process
}

// sdkAnswer is what sdk-oauth.mjs says.
type sdkAnswer struct {
	Client       registration
	Tokens       issued
	Dropped      []string
	Authorize    string
	Error        string
	Unauthorized bool
	Tools        tools
	Result       toolResult
}

// do has the SDK do something that works, or that begins an authorization.
func (s *sdkOAuth) do(command map[string]any) (a sdkAnswer) {
	s.t.Helper()
	s.p.Send(command)
	s.p.Next(&a)
	if a.Error != "" && (!a.Unauthorized || a.Authorize == "") {
		s.t.Fatalf("%v = %+v", command, a)
	}
	return a
}

// begins has the SDK do something that it lacks the credential for.
func (s *sdkOAuth) begins(command map[string]any) sdkAnswer {
	s.t.Helper()
	a := s.do(command)
	if a.Authorize == "" {
		s.t.Fatalf("the SDK did not begin an authorization: %+v", a)
	}
	return a
}

// works has the SDK do something that it has the credential for, or gets without anybody.
func (s *sdkOAuth) works(command map[string]any) sdkAnswer {
	s.t.Helper()
	a := s.do(command)
	if a.Error != "" || a.Authorize != "" {
		s.t.Fatalf("%v = %+v", command, a)
	}
	return a
}

// revokes ends the access token that the SDK has, and nothing else.
func revokes(t *testing.T, kit *servertest.Kit, a sdkAnswer) {
	t.Helper()
	form := url.Values{"token": {a.Tokens.Access}, "client_id": {a.Client.ID}}
	if a.Client.Method == "client_secret_post" {
		form.Set("client_secret", a.Client.Secret)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, kit.URL+"/mcp/oauth/revoke", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a.Client.Method == "client_secret_basic" {
		req.SetBasicAuth(a.Client.ID, a.Client.Secret)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("revoke = %s", resp.Status)
	}
}
