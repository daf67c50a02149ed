package server_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/server"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// The 401 table, for every method; B08 of the field cases as far as static tokens go.
func TestBearerIsCheckedBeforeEverything(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	_, token := k.Agent(t)
	revoked, revokedToken := k.Agent(t)
	renewed, oldToken := k.Agent(t)
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		if _, err := tx.RenewAgentToken(t.Context(), renewed.ID); err != nil {
			return err
		}
		return tx.RevokeAgent(t.Context(), revoked.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	unknown, _ := store.NewToken(store.StaticTokenPrefix)
	metadata := `Bearer resource_metadata="` + k.URL + `/.well-known/oauth-protected-resource/mcp"`
	for _, x := range []struct {
		name, url string
		headers   []string
		reason    string
	}{
		{"none", "/mcp", nil, "token_missing"},
		{"basic", "/mcp", []string{"Authorization: Basic " + token}, "token_missing"},
		{"empty", "/mcp", []string{"Authorization: "}, "token_missing"},
		{"scheme alone", "/mcp", []string{"Authorization: Bearer"}, "token_unknown"},
		{"scheme glued", "/mcp", []string{"Authorization: Bearer" + token}, "token_missing"},
		{"garbage", "/mcp", []string{"Authorization: Bearer nonsense"}, "token_unknown"},
		{"two words", "/mcp", []string{"Authorization: Bearer " + token + " x"}, "token_unknown"},
		{"quoted", "/mcp", []string{`Authorization: Bearer "` + token + `"`}, "token_unknown"},
		{"well formed, unknown", "/mcp", []string{"Authorization: Bearer " + unknown}, "token_unknown"},
		{"one character off", "/mcp", []string{"Authorization: Bearer " + token[:len(token)-1]}, "token_unknown"},
		{"revoked agent", "/mcp", []string{"Authorization: Bearer " + revokedToken}, "token_unknown"},
		{"renewed", "/mcp", []string{"Authorization: Bearer " + oldToken}, "token_unknown"},
		{"two headers", "/mcp", []string{"Authorization: Bearer " + token, "Authorization: Bearer " + token}, "token_unknown"},
		{"in the query", "/mcp?access_token=" + token, nil, "token_missing"},
		{"as a cookie", "/mcp", []string{"Cookie: token=" + token}, "token_missing"},
		{"huge", "/mcp", []string{"Authorization: Bearer " + strings.Repeat("a", 8000)}, "token_unknown"},
		{"old version header", "/mcp", []string{"MCP-Protocol-Version: 2024-11-05"}, "token_missing"},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS"} {
			body := ""
			if method == "POST" {
				body = strings.Repeat("not JSON ", 1000)
			}
			a := ask(t, bare, method, k.URL+x.url, body, x.headers...)
			challenge := a.header.Get("WWW-Authenticate")
			if a.status != http.StatusUnauthorized || !strings.Contains(a.body, `"error":"unauthorized"`) || !strings.Contains(a.body, `"reason":"`+x.reason+`"`) ||
				!strings.HasPrefix(challenge, metadata) {
				t.Errorf("%s %s = %d %s (%s), want 401 %s", method, x.name, a.status, a.body, challenge, x.reason)
			}
			if told := strings.Contains(challenge, `error="invalid_token"`); told != (x.reason != "token_missing") {
				t.Errorf("%s %s: challenge %q; error belongs there only with a token", method, x.name, challenge)
			}
			if a.header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s has no request id", method, x.name)
			}
		}
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		a := ask(t, bare, "POST", k.URL+"/mcp", ping, "Authorization: "+scheme+" "+token, "Content-Type: application/json")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "session_required") {
			t.Errorf("%s with a good token = %d %s, want it let through to 400 session_required", scheme, a.status, a.body)
		}
	}
	if log := k.Log.String(); strings.Contains(log, token) || strings.Contains(log, revokedToken) || strings.Contains(log, oldToken) {
		t.Error("a token stands in the log")
	}
}

func TestHostAndOriginAreOurs(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) {
		c.OriginsAllow = []string{"https://inspector.example", "https://dev.example:*"}
	}})
	_, token := k.Agent(t)
	port := k.URL[strings.LastIndex(k.URL, ":")+1:]
	direct := k.Replicas()[0].URL
	auth := []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
	for host, ok := range map[string]bool{
		"localhost:" + port: true, "LOCALHOST:" + port: true, "127.0.0.1:" + port: true, "[::1]:" + port: true,
		"evil.example": false, "evil.example:" + port: false, "localhost.evil.example:" + port: false, "127.0.0.1.nip.io:" + port: false,
		"localhost:1": false, "10.0.0.1:" + port: false, "": true,
	} {
		headers := auth
		if host != "" {
			headers = append([]string{"Host: " + host}, auth...)
		}
		for _, path := range []string{"/mcp", "/signin"} {
			a := ask(t, bare, "POST", direct+path, ping, headers...)
			if refused := strings.Contains(a.body, "host_not_allowed") || strings.Contains(a.body, "does not answer for another host"); refused == ok || refused && a.status != http.StatusForbidden {
				t.Errorf("Host %q on %s = %d %.200s, allowed %v", host, path, a.status, a.body, ok)
			}
		}
		if a := ask(t, bare, "GET", direct+"/healthz", "", headers...); a.status != http.StatusOK {
			t.Errorf("Host %q on /healthz = %d, want 200: probes come by address", host, a.status)
		}
	}
	for origin, ok := range map[string]bool{
		"": true, k.URL: true, "http://localhost:6274": true, "https://inspector.example": true, "https://dev.example:3000": true, "https://dev.example": true,
		"http://inspector.example": false, "https://inspector.example:8443": false, "https://evil.example": false, "null": false,
		"https://inspector.example.evil.example": false, "http://127.0.0.1.evil.example": false, "file://": false, "https://localhost:6274": false,
	} {
		headers := auth
		if origin != "" {
			headers = append([]string{"Origin: " + origin}, auth...)
		}
		a := ask(t, bare, "POST", k.URL+"/mcp", ping, headers...)
		if refused := strings.Contains(a.body, "origin_not_allowed"); refused == ok || refused && a.status != http.StatusForbidden {
			t.Errorf("Origin %q = %d %s, allowed %v", origin, a.status, a.body, ok)
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); ok && got != origin || !ok && got != "" {
			t.Errorf("Origin %q: Allow-Origin = %q", origin, got)
		}
	}
}

// A page of another site cannot post a form, whatever cookies the browser holds.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	browser := k.SignIn(t, k.Owner)
	for _, h := range []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example", "Sec-Fetch-Site: same-site"} {
		a := ask(t, browser, "POST", k.URL+"/agents", fields("name", "planted"), form, h)
		if a.status != http.StatusForbidden {
			t.Errorf("a form with %s = %d, want 403", h, a.status)
		}
		token, _ := store.NewToken(store.InviteTokenPrefix)
		for _, path := range []string{"/members", "/members/" + k.Owner.User.String() + "/role", "/members/" + k.Owner.User.String() + "/remove", "/invite/" + token} {
			if a := ask(t, browser, "POST", k.URL+path, fields("email", "planted@example.com", "role", "member"), form, h); a.status != http.StatusForbidden {
				t.Errorf("a form to %s with %s = %d, want 403", path, h, a.status)
			}
		}
	}
	if a := ask(t, browser, "GET", k.URL+"/members", ""); strings.Contains(a.body, "planted") {
		t.Error("a form of another site invited somebody")
	}
	if a := ask(t, browser, "GET", k.URL+"/agents", ""); strings.Contains(a.body, "planted") {
		t.Error("a form of another site made an agent")
	}
	if a := ask(t, browser, "POST", k.URL+"/agents", fields("name", "own"), form, "Sec-Fetch-Site: same-origin", "Origin: "+k.URL); a.status != http.StatusOK {
		t.Errorf("an own form = %d", a.status)
	}
}

func TestRatesAreHeldPerAgentAndAddress(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, Configure: func(c *server.Config) {
		c.RateMCP, c.RateSignIn = "5/m", "3/m"
		c.TrustedProxies = []string{"127.0.0.1"}
	}})
	_, one := k.Agent(t)
	_, two := k.Agent(t)
	limited := 0
	var last answer
	for range 12 { // a window may turn over once on the way
		last = ask(t, bare, "POST", k.URL+"/mcp", ping, "Authorization: Bearer "+one, "Content-Type: application/json", "Origin: "+k.URL)
		if last.status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 || last.header.Get("Retry-After") == "" || !strings.Contains(last.body, `"error":"too_many_requests"`) || !strings.Contains(last.body, `"reason":"rate_limited"`) ||
		last.header.Get("Access-Control-Allow-Origin") != k.URL {
		t.Errorf("12 requests at 5/m: %d limited, last %d %s %v", limited, last.status, last.body, last.header)
	}
	if a := ask(t, bare, "POST", k.URL+"/mcp", ping, "Authorization: Bearer "+two, "Content-Type: application/json"); a.status == http.StatusTooManyRequests {
		t.Error("another agent pays for it")
	}
	// A batch is as many requests as it has members, whenever the window turns over.
	opened := ask(t, bare, "POST", k.URL+"/mcp", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), "Authorization: Bearer "+two, "Content-Type: application/json")
	batch := ask(t, bare, "POST", k.URL+"/mcp", "["+strings.Repeat(ping+",", 6)+ping+"]",
		"Authorization: Bearer "+two, "Content-Type: application/json", "Mcp-Session-Id: "+opened.header.Get("Mcp-Session-Id"))
	if batch.status != http.StatusTooManyRequests || batch.header.Get("Retry-After") == "" || !strings.Contains(batch.body, `"reason":"rate_limited"`) {
		t.Errorf("a batch of 7 at 5/m = %d %s", batch.status, batch.body)
	}
	limited = 0
	for range 8 {
		if a := ask(t, bare, "POST", k.URL+"/signin", fields("email", "a@example.com", "password", "x"), form); a.status == http.StatusTooManyRequests {
			limited++
			if a.header.Get("Retry-After") == "" || !strings.Contains(a.header.Get("Content-Type"), "text/html") {
				t.Errorf("a limited sign-in answers %v", a.header)
			}
		}
	}
	if limited == 0 {
		t.Error("8 sign-ins at 3/m were all taken")
	}
}

// Guesses at one account are counted together, from wherever they come. Nobody at one address keeps its owner out.
func TestGuessesAtOneAccountAreCounted(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, Configure: func(c *server.Config) {
		c.RateSignIn, c.TrustedProxies = "2/m", []string{"127.0.0.1"}
	}})
	k.SignIn(t, k.Owner)
	var email string
	list, err := k.DB.System().Memberships(t.Context(), k.Owner.User)
	if err == nil {
		email = list[0].Email
	}
	try := func(from int, email, password string) int {
		return ask(t, bare, "POST", k.Replicas()[0].URL+"/signin", fields("email", email, "password", password), form,
			"X-Forwarded-For: 192.0.2."+strconv.Itoa(from), "Host: "+strings.TrimPrefix(k.URL, "http://")).status
	}
	for range 4 {
		try(1, email, "guess")
	}
	if status := try(2, email, "correct horse battery"); status != http.StatusSeeOther {
		t.Errorf("the owner's sign-in beside somebody who guesses = %d, want 303", status)
	}
	limited := 0
	for from := range 30 { // a window may turn over once on the way
		if try(10+from, " "+strings.ToUpper(email), "guess") == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 8 {
		t.Errorf("of 30 guesses from 30 addresses %d were refused, want all beyond 5 times 2 a minute", limited)
	}
	if status := try(3, "another@example.com", "guess"); status != http.StatusUnauthorized {
		t.Errorf("an attempt at another account = %d, want 401", status)
	}
}

func TestDatabaseOutageIs503(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Private: true})
	k.Owner = organisation(t, k)
	_, token := k.Agent(t)
	headers := []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
	restore := storetest.Outage(t, k.DSN)
	a := ask(t, bare, "POST", k.URL+"/mcp", ping, headers...)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `"reason":"unavailable"`) || a.header.Get("Retry-After") == "" || a.header.Get("WWW-Authenticate") != "" {
		t.Errorf("/mcp without a database = %d %s, want 503 unavailable and no challenge", a.status, a.body)
	}
	if a := ask(t, bare, "GET", k.URL+"/readyz", ""); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `"database":"does not answer"`) {
		t.Errorf("/readyz without a database = %d %s", a.status, a.body)
	}
	if a := ask(t, bare, "GET", k.URL+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("/healthz without a database = %d, want 200: the process is alive", a.status)
	}
	restore()
	if a := ask(t, bare, "POST", k.URL+"/mcp", ping, headers...); a.status != http.StatusBadRequest {
		t.Errorf("/mcp afterwards = %d %s, want the token good again", a.status, a.body)
	}
	if a := ask(t, bare, "GET", k.URL+"/readyz", ""); a.status != http.StatusOK {
		t.Errorf("/readyz afterwards = %d %s", a.status, a.body)
	}
}

func TestUnknownPathsAnswerTheirReader(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	for path, kind := range map[string]string{
		"/.well-known/openid-configuration": "application/json", "/.well-known/openid-configuration/mcp": "application/json", "/.well-known/else": "application/json",
		"/mcp/.well-known/oauth-authorization-server": "application/json", "/nowhere": "text/html", "/agents/x/y/z": "text/html",
	} {
		a := ask(t, bare, "GET", k.URL+path, "")
		if a.status != http.StatusNotFound || !strings.HasPrefix(a.header.Get("Content-Type"), kind) {
			t.Errorf("GET %s = %d %q, want 404 %s", path, a.status, a.header.Get("Content-Type"), kind)
		}
	}
}

func TestPagesCarryTheirHeaders(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	for _, path := range []string{"/signin", "/consent/x", "/nowhere"} {
		a := ask(t, bare, "GET", k.URL+path, "")
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		} {
			if !strings.HasPrefix(a.header.Get(name), want) {
				t.Errorf("%s: %s = %q, want %q", path, name, a.header.Get(name), want)
			}
		}
		if policy := a.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy = %q, want nothing unsafe, and no frames around it", path, policy)
		}
	}
}

// Probes and link checkers ask with HEAD, which every path that answers GET has to answer (RFC 9110 §9.3.2).
func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/signin": 200, "/": 303, "/mcp": 401, "/nowhere": 404} {
		if a := ask(t, bare, "HEAD", k.URL+path, ""); a.status != want || a.body != "" {
			t.Errorf("HEAD %s = %d %q, want %d and no body", path, a.status, a.body, want)
		}
	}
	if a := ask(t, bare, "HEAD", k.Replicas()[0].URL+"/healthz", "", "Host: probe.invalid"); a.status != http.StatusOK {
		t.Errorf("HEAD /healthz of another host = %d, want 200", a.status)
	}
}
