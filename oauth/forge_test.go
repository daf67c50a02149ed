package oauth_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// TestAttack14And15ForgedTokens takes a good token apart and puts it together wrong, signed with the true key where that
// is not the fault itself.
func TestAttack14And15ForgedTokens(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	good, _ := h.pair(h.register("none"))
	kid, key, err := h.keys.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	public, err := h.keys.Public(t.Context(), kid)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	was := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(good, was); err != nil {
		t.Fatal(err)
	}
	forge := func(method jwt.SigningMethod, key any, change func(header map[string]any, claims jwt.MapClaims)) string {
		t.Helper()
		claims := jwt.MapClaims{}
		for name, value := range was {
			claims[name] = value
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["typ"], token.Header["kid"] = "at+jwt", kid.String()
		change(token.Header, claims)
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	ours := func(change func(map[string]any, jwt.MapClaims)) string {
		return forge(jwt.SigningMethodEdDSA, key, change)
	}
	claim := func(name string, value any) string {
		return ours(func(_ map[string]any, c jwt.MapClaims) { c[name] = value })
	}
	header := func(name string, value any) string {
		return ours(func(h map[string]any, _ jwt.MapClaims) { h[name] = value })
	}
	without := func(name string) string { return ours(func(_ map[string]any, c jwt.MapClaims) { delete(c, name) }) }
	asIs := func(map[string]any, jwt.MapClaims) {}
	if got := h.verify(0, ours(asIs)); got != "" {
		t.Fatalf("what is put together right is refused with %s", got)
	}
	parts := strings.Split(good, ".")
	other := store.NewID[store.AgentKind](h.now()).String()
	for name, token := range map[string]string{
		"no signature":          parts[0] + "." + parts[1] + ".",
		"alg none":              base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt","kid":"`+kid.String()+`"}`)) + "." + parts[1] + ".",
		"HS256 by the public":   forge(jwt.SigningMethodHS256, []byte(public), asIs),
		"another key":           forge(jwt.SigningMethodEdDSA, stranger, asIs),
		"an unknown kid":        header("kid", store.NewID[store.KeyKind](h.now()).String()),
		"no kid":                header("kid", nil),
		"a kid of a path":       header("kid", "../../etc/passwd"),
		"a kid of SQL":          header("kid", "' OR 1=1 --"),
		"typ JWT":               header("typ", "JWT"),
		"no typ":                header("typ", nil),
		"critical":              header("crit", []string{"exp"}),
		"another issuer":        claim("iss", "https://evil.example"),
		"another audience":      claim("aud", "https://evil.example/mcp"),
		"two audiences":         claim("aud", []string{origin + "/mcp", "https://evil.example/mcp"}),
		"no audience":           without("aud"),
		"no end":                without("exp"),
		"no beginning":          without("iat"),
		"from the future":       claim("iat", h.now().Add(time.Minute).Unix()),
		"another agent":         claim("sub", other),
		"a grant of nobody":     claim("gid", store.NewID[store.GrantKind](h.now()).String()),
		"another organisation":  claim("org", store.NewID[store.OrgKind](h.now()).String()),
		"another client":        claim("client_id", "https://evil.example/client.json"),
		"no id":                 without("jti"),
		"a person":              claim("sub", h.person.User.String()),
		"cut":                   good[:len(good)-8],
		"four parts":            good + ".x",
		"padding":               good + "=",
		"longer than any of us": strings.Repeat("a", 5000) + ".b.c",
	} {
		h.wantVerified(name, token, reason.TokenUnknown)
	}
	// Whatever else a header says of keys is not looked at.
	h.wantVerified("a jku", header("jku", "https://evil.example/jwks.json"), "")
	h.wantVerified("a jwk", header("jwk", map[string]string{"kty": "OKP"}), "")
	h.wantVerified("a clock a little ahead", claim("iat", h.now().Add(4*time.Second).Unix()), "")
	h.wantVerified("one that ran out", claim("exp", h.now().Unix()), reason.TokenExpired)
	h.wantVerified("one that ran out of somebody else", ours(func(_ map[string]any, c jwt.MapClaims) {
		c["exp"], c["iss"] = h.now().Unix(), "https://evil.example"
	}), reason.TokenUnknown)
}
