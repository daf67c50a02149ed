package oauth

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	resource := func(is string) map[string]any {
		return map[string]any{
			"resource": is, "authorization_servers": []any{"https://graft.test"}, "scopes_supported": []any{"mcp"},
			"bearer_methods_supported": []any{"header"}, "resource_name": "Graft",
		}
	}
	methods := []any{"none", "client_secret_basic", "client_secret_post"}
	server := map[string]any{
		"issuer":                                         "https://graft.test",
		"authorization_endpoint":                         "https://graft.test/mcp/oauth/authorize",
		"token_endpoint":                                 "https://graft.test/mcp/oauth/token",
		"registration_endpoint":                          "https://graft.test/mcp/oauth/register",
		"revocation_endpoint":                            "https://graft.test/mcp/oauth/revoke",
		"scopes_supported":                               []any{"mcp", "offline_access"},
		"response_types_supported":                       []any{"code"},
		"response_modes_supported":                       []any{"query"},
		"grant_types_supported":                          []any{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"code_challenge_methods_supported":               []any{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
	}
	for _, tt := range []struct {
		path   string
		h      http.HandlerFunc
		status int
		want   map[string]any // nil: an error
	}{
		{"/.well-known/oauth-protected-resource", s.ResourceMetadata, 200, resource("https://graft.test/mcp")},
		{"/.well-known/oauth-protected-resource/mcp", s.ResourceMetadata, 200, resource("https://graft.test/mcp")},
		{"/.well-known/oauth-protected-resource/mcp/", s.ResourceMetadata, 200, resource("https://graft.test/mcp/")},
		{"/.well-known/oauth-protected-resource/mcp?x=/mcp/", s.ResourceMetadata, 200, resource("https://graft.test/mcp")},
		{"/.well-known/oauth-authorization-server", s.ServerMetadata, 200, server},
		{"/.well-known/oauth-authorization-server/mcp", s.ServerMetadata, 200, server},
		{"/.well-known/openid-configuration", s.NoOpenID, 404, nil},
		{"/.well-known/openid-configuration/mcp", s.NoOpenID, 404, nil},
		{"/mcp/.well-known/openid-configuration", s.NoOpenID, 404, nil},
	} {
		// A proxy's headers, and the host that the request was sent to, have no part in what is answered.
		header := map[string]string{"X-Forwarded-Host": "evil.test", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.test"}
		resp := ask(t, tt.h, http.MethodGet, tt.path, header, "")
		var got map[string]any
		if err := json.Unmarshal([]byte(resp.body), &got); err != nil || resp.status != tt.status {
			t.Errorf("GET %s = %d %s, %v, want %d and JSON", tt.path, resp.status, resp.body, err, tt.status)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" && tt.want != nil {
			t.Errorf("GET %s (-want +got):\n%s", tt.path, diff)
		}
		if tt.want == nil && (got["error"] != "not_found" || got["issuer"] != nil) {
			t.Errorf("GET %s = %s, want an error", tt.path, resp.body)
		}
		for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"} {
			if got := resp.header.Get(name); got != want {
				t.Errorf("GET %s has %s: %q, want %q", tt.path, name, got, want)
			}
		}
		head := ask(t, tt.h, http.MethodHead, tt.path, nil, "")
		if head.status != tt.status || head.body != "" || head.length != int64(len(resp.body)) || head.header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("HEAD %s = %d %q %v, want %d and the headers of GET", tt.path, head.status, head.body, head.header, tt.status)
		}
	}
}

func TestPreflightsAndOtherMethods(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	keys := s.Keys(func(context.Context) ([]PublicKey, error) { return nil, nil })
	for name, tt := range map[string]struct {
		h     http.HandlerFunc
		allow string
		other string
	}{
		"resource": {s.ResourceMetadata, "GET, HEAD, OPTIONS", "POST"},
		"server":   {s.ServerMetadata, "GET, HEAD, OPTIONS", "DELETE"},
		"openid":   {s.NoOpenID, "GET, HEAD, OPTIONS", "PUT"},
		"keys":     {keys, "GET, HEAD, OPTIONS", "POST"},
		"register": {s.Register, "POST, OPTIONS", "GET"},
	} {
		resp := ask(t, tt.h, http.MethodOptions, "/", map[string]string{
			"Origin": "https://inspector.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
		}, "")
		allowed := strings.ToLower(resp.header.Get("Access-Control-Allow-Headers"))
		if resp.status != http.StatusNoContent || resp.body != "" || resp.header.Get("Access-Control-Allow-Origin") != "*" || resp.header.Get("Access-Control-Allow-Methods") != tt.allow ||
			!strings.Contains(allowed, "authorization") || !strings.Contains(allowed, "content-type") || !strings.Contains(allowed, "mcp-protocol-version") ||
			resp.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("OPTIONS of %s = %d %q %v", name, resp.status, resp.body, resp.header)
		}
		resp = ask(t, tt.h, tt.other, "/", nil, "")
		if resp.status != http.StatusMethodNotAllowed || resp.header.Get("Allow") != tt.allow || !strings.Contains(resp.body, `"error":"invalid_request"`) ||
			resp.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s of %s = %d %s %v, want 405 and Allow: %s", tt.other, name, resp.status, resp.body, resp.header, tt.allow)
		}
	}
}

// The key and its form are those of RFC 8037, appendix A.2.
func TestKeys(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	var log lines
	s, err := New(configOf(t, db, &log))
	if err != nil {
		t.Fatal(err)
	}
	public, err := hex.DecodeString("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
	if err != nil {
		t.Fatal(err)
	}
	two := []PublicKey{{"key_a", ed25519.PublicKey(public)}, {"key_b", make(ed25519.PublicKey, 32)}}
	resp := ask(t, s.Keys(func(context.Context) ([]PublicKey, error) { return two, nil }), http.MethodGet, "/.well-known/jwks.json", nil, "")
	want := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"key_a","use":"sig","alg":"EdDSA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},` +
		`{"kty":"OKP","crv":"Ed25519","kid":"key_b","use":"sig","alg":"EdDSA","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`
	if resp.status != http.StatusOK || resp.body != want || resp.header.Get("Cache-Control") != "public, max-age=300" || resp.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("keys = %d %s %v, want %s", resp.status, resp.body, resp.header, want)
	}
	if none := ask(t, s.Keys(func(context.Context) ([]PublicKey, error) { return nil, nil }), http.MethodGet, "/", nil, ""); none.body != `{"keys":[]}` {
		t.Errorf("no keys = %s", none.body)
	}
	resp = ask(t, s.Keys(func(context.Context) ([]PublicKey, error) { return nil, errors.New("secret words") }), http.MethodGet, "/", nil, "")
	if resp.status != http.StatusInternalServerError || !strings.Contains(resp.body, `"server_error"`) || strings.Contains(resp.body, "secret") || resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("keys that cannot be listed = %d %s %v", resp.status, resp.body, resp.header)
	}
	if got := log.text(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "list signing keys: secret words") {
		t.Errorf("log = %s", got)
	}
}
