package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// basic is an Authorization header as RFC 6749 §2.3.1 wants it.
func basic(id, secret string) []string {
	return rawBasic(url.QueryEscape(id) + ":" + url.QueryEscape(secret))
}

func rawBasic(pair string) []string {
	return []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(pair))}
}

func tokenRequest(t testing.TB, query string, authorization []string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tokenPath+query, nil)
	r.Header["Authorization"] = authorization
	return r
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	made := func(method string) (id, secret string) {
		_, got := register(t, s, "application/json", `{"redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"`+method+`"}`)
		id, _ = got["client_id"].(string)
		secret, _ = got["client_secret"].(string)
		return id, secret
	}
	public, _ := made(authNone)
	byBasic, basicSecret := made(authBasic)
	byPost, postSecret := made(authPost)
	unknown := store.NewID[store.ClientKind](time.Now()).String()
	wrong, _ := store.NewToken(store.ClientSecretPrefix)

	for name, tt := range map[string]struct {
		query  string
		header []string
		form   url.Values
		want   string // a client
		code   string // of a Fault
		basic  bool
	}{
		"none":                          {form: url.Values{"client_id": {public}}, want: public},
		"none with an empty secret":     {form: url.Values{"client_id": {public}, "client_secret": {""}}, want: public},
		"none under a bearer of others": {header: []string{"Bearer abc"}, form: url.Values{"client_id": {public}}, want: public},
		"basic alone":                   {header: basic(byBasic, basicSecret), want: byBasic},
		"basic not encoded":             {header: rawBasic(byBasic + ":" + basicSecret), want: byBasic},
		"basic in other letters":        {header: []string{"bASIC  " + basic(byBasic, basicSecret)[0][6:]}, want: byBasic},
		"basic with every byte encoded": {header: rawBasic(everyByte(byBasic) + ":" + everyByte(basicSecret)), want: byBasic},
		"basic and the id again":        {header: basic(byBasic, basicSecret), form: url.Values{"client_id": {byBasic}}, want: byBasic},
		"post":                          {form: url.Values{"client_id": {byPost}, "client_secret": {postSecret}}, want: byPost},

		"nothing":                      {code: "invalid_client"},
		"a secret without an id":       {form: url.Values{"client_secret": {postSecret}}, code: "invalid_client"},
		"unknown, none":                {form: url.Values{"client_id": {unknown}}, code: "invalid_client"},
		"unknown, basic":               {header: basic(unknown, wrong), code: "invalid_client", basic: true},
		"unknown, post":                {form: url.Values{"client_id": {unknown}, "client_secret": {wrong}}, code: "invalid_client"},
		"no id of ours":                {form: url.Values{"client_id": {"mine\x00"}}, code: "invalid_client"},
		"an id in other letters":       {form: url.Values{"client_id": {strings.ToUpper(public)}}, code: "invalid_client"},
		"a wrong secret by basic":      {header: basic(byBasic, wrong), code: "invalid_client", basic: true},
		"a wrong secret by post":       {form: url.Values{"client_id": {byPost}, "client_secret": {wrong}}, code: "invalid_client"},
		"another client's secret":      {header: basic(byBasic, postSecret), code: "invalid_client", basic: true},
		"a cut secret":                 {header: basic(byBasic, basicSecret[:len(basicSecret)-1]), code: "invalid_client", basic: true},
		"the hash for the secret":      {header: basic(byBasic, hashOf(basicSecret)), code: "invalid_client", basic: true},
		"none for one with a secret":   {form: url.Values{"client_id": {byBasic}}, code: "invalid_client"},
		"post for a basic one":         {form: url.Values{"client_id": {byBasic}, "client_secret": {basicSecret}}, code: "invalid_client"},
		"basic for a post one":         {header: basic(byPost, postSecret), code: "invalid_client", basic: true},
		"a secret for none, by post":   {form: url.Values{"client_id": {public}, "client_secret": {wrong}}, code: "invalid_client"},
		"a secret for none, by basic":  {header: basic(public, wrong), code: "invalid_client", basic: true},
		"an empty secret by basic":     {header: basic(public, ""), code: "invalid_client", basic: true},
		"an assertion":                 {form: url.Values{"client_id": {public}, "client_assertion": {"a.b.c"}}, code: "invalid_client"},
		"basic that is no base64":      {header: []string{"Basic !!!"}, form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"basic of nothing":             {header: []string{"Basic"}, form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"basic without a colon":        {header: rawBasic("abc"), form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"basic with a bad escape":      {header: rawBasic("a%zz:b"), form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"basic without an id":          {header: rawBasic(":b"), form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"base64 with bits left over":   {header: []string{"Basic YTpiYR=="}, form: url.Values{"client_id": {public}}, code: "invalid_client", basic: true},
		"malformed basic and a secret": {header: []string{"Basic x"}, form: url.Values{"client_id": {byPost}, "client_secret": {postSecret}}, code: "invalid_client", basic: true},

		"basic and post":          {header: basic(byBasic, basicSecret), form: url.Values{"client_id": {byBasic}, "client_secret": {basicSecret}}, code: "invalid_request"},
		"basic and another id":    {header: basic(byBasic, basicSecret), form: url.Values{"client_id": {byPost}}, code: "invalid_request"},
		"two headers":             {header: []string{basic(byBasic, basicSecret)[0], "Bearer abc"}, code: "invalid_request"},
		"the id twice":            {form: url.Values{"client_id": {public, public}}, code: "invalid_request"},
		"the secret twice":        {form: url.Values{"client_id": {byPost}, "client_secret": {postSecret, ""}}, code: "invalid_request"},
		"a secret in the query":   {query: "?client_secret=" + postSecret, form: url.Values{"client_id": {byPost}}, code: "invalid_request"},
		"the same, rightly below": {query: "?client_secret=" + postSecret, form: url.Values{"client_id": {byPost}, "client_secret": {postSecret}}, code: "invalid_request"},
		"an id in the query":      {query: "?client_id=" + public, code: "invalid_request"},
	} {
		got, err := s.authenticate(tokenRequest(t, tt.query, tt.header), tt.form)
		if tt.code == "" {
			if err != nil || got.ID != tt.want {
				t.Errorf("%s: %v, %v, want %s", name, got.ID, err, tt.want)
			}
			continue
		}
		f := faultOf(err)
		status := http.StatusBadRequest
		if tt.code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		if f.Code != tt.code || f.Status != status || f.Basic != tt.basic || got.ID != "" {
			t.Errorf("%s: %v, %+v, want %d %s, basic = %v", name, got.ID, f, status, tt.code, tt.basic)
		}
		for _, secret := range []string{basicSecret, postSecret, wrong} {
			if strings.Contains(f.Error(), secret) {
				t.Errorf("%s: the fault holds a secret: %v", name, f)
			}
		}
	}
}

func everyByte(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%" + string(hex[s[i]>>4]) + string(hex[s[i]&15]))
	}
	return b.String()
}

func hashOf(s string) string {
	h := store.HashToken(s)
	return string(h[:])
}

// A client is known by whatever finds it; what finds none, or cannot look, is told apart.
func TestAuthenticateAsksForTheClientByItsID(t *testing.T) {
	t.Parallel()
	db, _ := storetest.New(t)
	s := newServer(t, db)
	const url1 = "https://app.example/client.json"
	cause := errors.New("secret words")
	s.clients = clientsFunc(func(_ context.Context, id string) (Client, error) {
		switch id {
		case url1:
			return Client{ID: id, AuthMethod: authNone, Document: []byte(`{}`)}, nil
		case "broken":
			return Client{}, cause
		}
		return Client{}, reason.NotFound
	})
	if c, err := s.authenticate(tokenRequest(t, "", nil), url.Values{"client_id": {url1}}); err != nil || c.ID != url1 {
		t.Errorf("authenticate = %v, %v, want the document's client", c, err)
	}
	if _, err := s.authenticate(tokenRequest(t, "", basic(url1, "x")), nil); faultOf(err).Code != "invalid_client" {
		t.Errorf("authenticate of a document's client with a secret = %v, want invalid_client", err)
	}
	if _, err := s.authenticate(tokenRequest(t, "", nil), url.Values{"client_id": {"broken"}}); !errors.Is(err, cause) || faultOf(err) != serverError {
		t.Errorf("authenticate while clients cannot be found = %v, want that", err)
	}
	if _, err := s.authenticate(tokenRequest(t, "", nil), url.Values{"client_id": {"other"}}); faultOf(err).Code != "invalid_client" {
		t.Errorf("authenticate of nobody = %v, want invalid_client", err)
	}
}

// Whoever uses a registration keeps it from being reaped.
// To name a client is no use of it: whoever registered many could keep them all for ever.
func TestNamingAClientKeepsItNot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	db := storetest.Open(t, storetest.PrivateURL(t), func() time.Time { return now })
	s := newServer(t, db)
	_, got := register(t, s, "application/json", `{"redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"none"}`)
	id, _ := got["client_id"].(string)
	form := url.Values{"client_id": {id}}
	now = now.Add(47 * time.Hour)
	if _, err := s.authenticate(tokenRequest(t, "", nil), form); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	if n, err := db.System().ReapOAuthClients(t.Context(), now.Add(-48*time.Hour)); err != nil || n != 1 {
		t.Errorf("reaped %d, %v, want 1", n, err)
	}
	if _, err := s.authenticate(tokenRequest(t, "", nil), form); faultOf(err).Code != "invalid_client" {
		t.Errorf("authenticate of a reaped client = %v, want invalid_client", err)
	}
}

// Ids and secrets of any characters survive the header, and no other pair than the one sent comes out.
func TestBasicIsFormEncoded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id, secret := rapid.String().Draw(t, "id"), rapid.String().Draw(t, "secret")
		got, given, err := basicCredentials(http.Header{"Authorization": basic(id, secret)})
		if !given || (err == nil) != (id != "" && secret != "") || err == nil && got != (credentials{id, secret, authBasic}) {
			t.Fatalf("basicCredentials of %q and %q = %+v, %v, %v", id, secret, got, given, err)
		}
	})
}

func FuzzBasicCredentials(f *testing.F) {
	for _, s := range []string{"", "Basic", "Basic YTpi", "basic YTpi", "Basic  YTpi ", "Basic YTpi,YTpi", "Bearer x", "Basic " + base64.StdEncoding.EncodeToString([]byte("a%3ab:c+d")), "Basic YQ=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, given, err := basicCredentials(http.Header{"Authorization": {line}})
		if given != (strings.EqualFold(line, "Basic") || len(line) > 5 && strings.EqualFold(line[:6], "Basic ")) {
			t.Errorf("basicCredentials(%q): given = %v", line, given)
		}
		if err != nil && (faultOf(err).Code != "invalid_client" || !faultOf(err).Basic || c != credentials{}) {
			t.Errorf("basicCredentials(%q) = %+v, %v", line, c, err)
		}
		if given && err == nil && (c.id == "" || c.secret == "" || c.method != authBasic) {
			t.Errorf("basicCredentials(%q) = %+v", line, c)
		}
	})
}
