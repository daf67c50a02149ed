package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// register sends body to the registration endpoint.
func register(t testing.TB, s *Server, contentType, body string) (w *httptest.ResponseRecorder, got map[string]any) {
	t.Helper()
	w = httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, registerPath, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	s.Register(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("register %.200s: %d %q: %v", body, w.Code, w.Body, err)
	}
	return w, got
}

// Every client is told what holds of what it said.
func TestRegister(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	const both = "mcp offline_access"
	for name, tt := range map[string]struct {
		body   string
		want   map[string]any // beside id, time and secret
		secret bool
	}{
		"nothing but an address": {
			`{"redirect_uris":["http://localhost/callback"]}`,
			map[string]any{"redirect_uris": []any{"http://localhost/callback"}, "token_endpoint_auth_method": "client_secret_basic", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": both},
			true,
		},
		"Cursor": {
			`{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],` +
				`"application_type":"web","token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`,
			map[string]any{"client_name": "Cursor", "redirect_uris": []any{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}, "application_type": "web", "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": both},
			false,
		},
		"Claude": {
			`{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post","scope":"claudeai","logo_uri":"javascript:alert(1)","client_uri":"https://claude.ai"}`,
			map[string]any{"client_name": "Claude", "redirect_uris": []any{"https://claude.ai/api/mcp/auth_callback"}, "token_endpoint_auth_method": "client_secret_post", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": "mcp"},
			true,
		},
		"VS Code": {
			`{"client_name":"Visual Studio Code","redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],` +
				`"grant_types":["urn:ietf:params:oauth:grant-type:device_code","refresh_token","authorization_code"],"token_endpoint_auth_method":"none","application_type":"native","scope":"offline_access"}`,
			map[string]any{"client_name": "Visual Studio Code", "redirect_uris": []any{"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"}, "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": both},
			false,
		},
		"Zed, and types beside ours": {
			`{"redirect_uris":["http://127.0.0.1:27523/"],"grant_types":["authorization_code","implicit"],"response_types":["id_token","code"],"token_endpoint_auth_method":"none","application_type":"desktop"}`,
			map[string]any{"redirect_uris": []any{"http://127.0.0.1:27523/"}, "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code"}, "response_types": []any{"code"}, "scope": both},
			false,
		},
		"members of no meaning, and none": {
			`{"redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"none","client_name":null,"scope":null,"grant_types":null,"response_types":[],"application_type":null,` +
				`"software_statement":"a.b.c","jwks":{"keys":[]},"contacts":["x"],"x":{"y":[1]},"client_id":"mine","client_secret":"mine"}`,
			map[string]any{"redirect_uris": []any{"https://a.example/cb"}, "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": both},
			false,
		},
		"a name of 5 kB": {
			`{"redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"none","client_name":"<script>alert(1)</script>\u202e\u0000 ` + strings.Repeat("\u00e4", 2500) + `"}`,
			map[string]any{"client_name": "<script>alert(1)</script> " + strings.Repeat("\u00e4", 174), "redirect_uris": []any{"https://a.example/cb"}, "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}, "scope": both},
			false,
		},
	} {
		w, got := register(t, s, "application/json; charset=utf-8", tt.body)
		if w.Code != http.StatusCreated || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Pragma") != "no-cache" ||
			w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: answered %d %v %v", name, w.Code, got, w.Header())
			continue
		}
		id, _ := got["client_id"].(string)
		secret, hasSecret := got["client_secret"].(string)
		expires, hasExpiry := got["client_secret_expires_at"]
		if hasSecret != tt.secret || hasExpiry != tt.secret || hasExpiry && expires != 0.0 || hasSecret && !store.WellFormed(store.ClientSecretPrefix, secret) {
			t.Errorf("%s: secret %q, expires %v, want one = %v", name, secret, expires, tt.secret)
		}
		// B06: form-encoded or not, id and secret are the same.
		if strings.ContainsFunc(id+secret, func(r rune) bool { return !unreserved(r) }) {
			t.Errorf("%s: id %q or secret has a character that a form encodes", name, id)
		}
		key, err := store.ParseID[store.ClientKind](id)
		if err != nil {
			t.Fatalf("%s: client_id = %q, %v", name, id, err)
		}
		row, err := db.System().OAuthClient(t.Context(), key)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got["client_id_issued_at"] != float64(row.CreatedAt.Unix()) {
			t.Errorf("%s: issued at %v, want %v", name, got["client_id_issued_at"], row.CreatedAt.Unix())
		}
		for _, member := range []string{"client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at"} {
			delete(got, member)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		// What was answered is what is kept, and of the secret its hash alone.
		c, err := s.registered(t.Context(), id)
		want := Client{ID: id, Name: row.Name, RedirectURIs: row.RedirectURIs, AuthMethod: fmt.Sprint(tt.want["token_endpoint_auth_method"])}
		if tt.secret {
			hash := store.HashToken(secret)
			want.Secret = &hash
		}
		if diff := cmp.Diff(want, c); diff != "" || err != nil {
			t.Errorf("%s: registered, %v (-want +got):\n%s", name, err, diff)
		}
		if diff := cmp.Diff(tt.want["redirect_uris"], anys(c.RedirectURIs)); diff != "" || tt.want["client_name"] != nil && tt.want["client_name"] != c.Name {
			t.Errorf("%s: kept as %v", name, c)
		}
	}
}

func anys(list []string) (all []any) {
	for _, s := range list {
		all = append(all, s)
	}
	return all
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	const sound = `"redirect_uris":["https://a.example/cb"]`
	many := strings.TrimSuffix(strings.Repeat(`"https://a.example/cb",`, 11), ",")
	for _, tt := range []struct {
		kind, body string
		status     int
		code, word string
	}{
		{"", `{` + sound + `}`, 415, "invalid_client_metadata", "application/json"},
		{"text/plain", `{` + sound + `}`, 415, "invalid_client_metadata", "application/json"},
		{"application/x-www-form-urlencoded", `redirect_uris=https://a.example/cb`, 415, "invalid_client_metadata", "application/json"},
		{"text/plain; a=application/json", `{` + sound + `}`, 415, "invalid_client_metadata", "application/json"},
		{"application/json;;", `{` + sound + `}`, 415, "invalid_client_metadata", "application/json"},
		{"application/json", `{` + sound + `,"x":"` + strings.Repeat("a", maxRegistration) + `"}`, 413, "invalid_client_metadata", "16384"},
		{"application/json", ``, 400, "invalid_client_metadata", "object"},
		{"application/json", `null`, 400, "invalid_client_metadata", "object"},
		{"application/json", `[]`, 400, "invalid_client_metadata", "object"},
		{"application/json", `"a"`, 400, "invalid_client_metadata", "object"},
		{"application/json", `{`, 400, "invalid_client_metadata", "JSON"},
		{"application/json", `{` + sound + `}{}`, 400, "invalid_client_metadata", "JSON"},
		{"application/json", `{` + sound + `,` + sound + `}`, 400, "invalid_client_metadata", "twice"},
		{"application/json", `{` + sound + `,"client_name":"\ud800"}`, 400, "invalid_client_metadata", "JSON"},
		{"application/json", `{` + sound + `,"client_name":"` + "\xff" + `"}`, 400, "invalid_client_metadata", "JSON"},

		{"application/json", `{}`, 400, "invalid_redirect_uri", "missing"},
		{"application/json", `{"redirect_uris":null}`, 400, "invalid_redirect_uri", "missing"},
		{"application/json", `{"redirect_uris":[]}`, 400, "invalid_redirect_uri", "empty"},
		{"application/json", `{"redirect_uris":"https://a.example/cb"}`, 400, "invalid_redirect_uri", "list"},
		{"application/json", `{"redirect_uris":[1]}`, 400, "invalid_redirect_uri", "list"},
		{"application/json", `{"redirect_uris":[null]}`, 400, "invalid_redirect_uri", "empty"},
		{"application/json", `{"Redirect_URIs":["https://a.example/cb"]}`, 400, "invalid_redirect_uri", "missing"},
		{"application/json", `{"redirect_uris":[` + many + `]}`, 400, "invalid_redirect_uri", "at most 10"},
		{"application/json", `{"redirect_uris":["https://a.example/cb","javascript:alert(1)"]}`, 400, "invalid_redirect_uri", "redirect_uris[1] has the scheme javascript"},
		{"application/json", `{"redirect_uris":[" javascript:alert(1)"]}`, 400, "invalid_redirect_uri", "printable"},
		{"application/json", `{"redirect_uris":["java\tscript:alert(1)"]}`, 400, "invalid_redirect_uri", "printable"},
		{"application/json", `{"redirect_uris":["http://public.test/cb"]}`, 400, "invalid_redirect_uri", "http"},
		{"application/json", `{"redirect_uris":["https://a.example/cb#x"]}`, 400, "invalid_redirect_uri", "fragment"},
		{"application/json", `{"redirect_uris":["https://a.example/` + strings.Repeat("a", 2048) + `"]}`, 400, "invalid_redirect_uri", "2048"},

		{"application/json", `{` + sound + `,"token_endpoint_auth_method":"private_key_jwt"}`, 400, "invalid_client_metadata", "token_endpoint_auth_method"},
		{"application/json", `{` + sound + `,"token_endpoint_auth_method":"tls_client_auth"}`, 400, "invalid_client_metadata", "token_endpoint_auth_method"},
		{"application/json", `{` + sound + `,"token_endpoint_auth_method":["none"]}`, 400, "invalid_client_metadata", "token_endpoint_auth_method"},
		{"application/json", `{` + sound + `,"grant_types":["implicit"]}`, 400, "invalid_client_metadata", "grant_types"},
		{"application/json", `{` + sound + `,"grant_types":["password","client_credentials"]}`, 400, "invalid_client_metadata", "grant_types"},
		{"application/json", `{` + sound + `,"grant_types":["refresh_token"]}`, 400, "invalid_client_metadata", "grant_types"},
		{"application/json", `{` + sound + `,"grant_types":"authorization_code"}`, 400, "invalid_client_metadata", "grant_types"},
		{"application/json", `{` + sound + `,"response_types":["token"]}`, 400, "invalid_client_metadata", "response_types"},
		{"application/json", `{` + sound + `,"scope":"mcp  x"}`, 400, "invalid_client_metadata", "scope"},
		{"application/json", `{` + sound + `,"scope":["mcp"]}`, 400, "invalid_client_metadata", "scope"},
		{"application/json", `{` + sound + `,"client_name":7}`, 400, "invalid_client_metadata", "client_name"},
	} {
		w, got := register(t, s, tt.kind, tt.body)
		description := fmt.Sprint(got["error_description"])
		if w.Code != tt.status || got["error"] != tt.code || !strings.Contains(description, tt.word) || w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("register %q %.120s = %d %v, want %d %s about: %s", tt.kind, tt.body, w.Code, got, tt.status, tt.code, tt.word)
		}
	}
}

// Two registrations that say the same are two clients.
func TestEveryRegistrationIsItsOwn(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	seen := map[any]bool{}
	for range 3 {
		_, got := register(t, s, "application/json", `{"redirect_uris":["https://a.example/cb"]}`)
		seen[got["client_id"]], seen[got["client_secret"]] = true, true
	}
	if len(seen) != 6 {
		t.Errorf("three registrations have %d ids and secrets, want 6: %v", len(seen), seen)
	}
}

// Whatever is sent is settled or refused with a code of the protocol, and what is settled stays so.
func FuzzRegistration(f *testing.F) {
	for _, s := range []string{
		`{"redirect_uris":["http://localhost/callback"]}`, `{"redirect_uris":["https://a.example/cb"],"client_name":"\u202ea\u0000","scope":"openid"}`, `{"redirect_uris":7}`, `[]`, `{`, `null`, ``,
		`{"redirect_uris":["cursor://a/b"],"grant_types":["authorization_code","x"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read := func(body string) (clientMetadata, error) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, registerPath, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			return readRegistration(httptest.NewRecorder(), r)
		}
		m, err := read(body)
		if err != nil {
			if code := faultOf(err).Code; code != "invalid_client_metadata" && code != "invalid_redirect_uri" {
				t.Errorf("register %q = %v", body, err)
			}
			return
		}
		if len(m.RedirectURIs) < 1 || len(m.RedirectURIs) > 10 || len([]rune(m.Name)) > 200 || strings.ContainsFunc(m.Name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("register %q = %+v", body, m)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxRegistration {
			return
		}
		again, err := read(string(text))
		if diff := cmp.Diff(m, again); diff != "" || err != nil {
			t.Errorf("register %s again, %v (-want +got):\n%s", text, err, diff)
		}
	})
}
