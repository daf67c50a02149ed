package oauth_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/oauth"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const origin = "https://graft.example"

func tokens(t *testing.T, db *store.DB) *signing.Tokens {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return signing.New(db, master).Tokens(db.Now)
}

func verifier(t *testing.T, db *store.DB) *oauth.Verifier {
	t.Helper()
	v, err := oauth.NewVerifier(oauth.VerifierConfig{
		DB: db, Origin: origin, Keys: tokens(t, db), Healthy: func() bool { return false }, Now: db.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifyResolvesATokenToItsAgent(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	member := storetest.Member(t, db, owner, store.RoleMember)
	a, token := storetest.Agent(t, db, owner, "one")
	b, other := storetest.Agent(t, db, member, "two")
	v := verifier(t, db)
	for tok, want := range map[string]store.Caller{
		token: {Org: owner.Org, User: owner.User, Agent: a.ID, Role: store.RoleOwner, Via: store.ViaBearer},
		other: {Org: owner.Org, User: member.User, Agent: b.ID, Role: store.RoleMember, Via: store.ViaBearer},
	} {
		got, err := v.Verify(t.Context(), http.Header{"Authorization": {"Bearer " + tok}})
		if err != nil || got != want {
			t.Errorf("Verify = %+v, %v; want %+v", got, err, want)
		}
	}
	unknown, _ := store.NewToken(store.StaticTokenPrefix)
	link, _ := store.NewToken(store.LinkTokenPrefix)
	for _, tok := range []string{unknown, link, strings.ToUpper(token), token + "A", "grft_"} {
		if _, err := v.Verify(t.Context(), http.Header{"Authorization": {"Bearer " + tok}}); reason.Of(err).Word != reason.TokenUnknown {
			t.Errorf("Verify of an unknown token = %v, want token_unknown", err)
		} else if strings.Contains(err.Error(), tok) {
			t.Errorf("the refusal holds the token: %v", err)
		}
	}
}

func TestChallengeIsASCIIAndQuoted(t *testing.T) {
	t.Parallel()
	got := oauth.Challenge("https://g.example", "/mcp", reason.Refuse(reason.TokenUnknown, "No \"such\" token – über\n\\"))
	want := `Bearer resource_metadata="https://g.example/.well-known/oauth-protected-resource/mcp", error="invalid_token", error_description="No 'such' token - -ber-'"`
	if got != want {
		t.Errorf("Challenge = %s\nwant        %s", got, want)
	}
	if got := oauth.Challenge("https://g.example", "/mcp", reason.Refuse(reason.TokenMissing, "x")); strings.Contains(got, "error") {
		t.Errorf("Challenge without a token = %s, want no error", got)
	}
}

// Whatever the header holds, the outcome is a token made of token characters, or a word of the table.
func FuzzToken(f *testing.F) {
	real, _ := store.NewToken(store.StaticTokenPrefix)
	for _, s := range []string{"Bearer " + real, "bearer x", "Bearer", "Bearer  ", "Basic YTpi", "", "Bearer a b", "Bearer \x00", "Bearer " + strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		token, err := oauth.Token(http.Header{"Authorization": {line}})
		if err != nil {
			if w := reason.Of(err).Word; w != reason.TokenMissing && w != reason.TokenUnknown {
				t.Errorf("Token(%q) = %v", line, err)
			}
			return
		}
		if token == "" || strings.ContainsAny(token, " \t\r\n\"',;\x00") || !strings.Contains(line, token) {
			t.Errorf("Token(%q) = %q", line, token)
		}
		if store.WellFormed(store.StaticTokenPrefix, token) && !strings.HasPrefix(token, store.StaticTokenPrefix) {
			t.Errorf("%q is well formed without its prefix", token)
		}
	})
}
