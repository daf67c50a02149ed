package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// registration is what a client was told that it is.
type registration struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	Method string `json:"token_endpoint_auth_method"`
}

// issued is what the token endpoint gave a client.
type issued struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	Type      string `json:"token_type"`
	Scope     string `json:"scope"`
	ExpiresIn int    `json:"expires_in"`
}

func (i issued) check(t *testing.T, scope string) {
	t.Helper()
	if i.Access == "" || !store.WellFormed(store.RefreshTokenPrefix, i.Refresh) || !strings.EqualFold(i.Type, "Bearer") || i.Scope != scope || i.ExpiresIn < 3590 || i.ExpiresIn > 3600 {
		t.Errorf("the client was given %+v, want a pair for an hour with scope %q", i, scope)
	}
}

// A called is how a call of a client's went.
type called struct {
	Status   int
	Scheme   string
	Error    string
	Metadata string `json:"resource_metadata"`
}

// TestOAuth4WebAPI has the strictest client check every answer on the way from the URL alone to the end of a grant.
func TestOAuth4WebAPI(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	owner := newPerson(t, kit)
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		t.Run(method, func(t *testing.T) {
			client := e2e.NewProgram(t, e2e.Client(t, "oauth4webapi.mjs")).Start(kit.URL+"/mcp", method)
			var begun struct{ Authorize, Denied string }
			client.Next(&begun)
			client.Send(map[string]any{"redirect": owner.deny(begun.Authorize, "Strict").String()})
			client.Next(&begun)
			if begun.Denied != "access_denied" {
				t.Errorf("the client heard %q, want access_denied", begun.Denied)
			}
			client.Send(map[string]any{"redirect": owner.allow(begun.Authorize, "Strict").String()})

			var a struct {
				Client        registration
				First, Second issued
				Claims        struct {
					Iss, Sub string
					Aud      []string
					Client   string `json:"client_id"`
				}
				Called, Without, Refused called
			}
			client.Next(&a)
			if (a.Client.Secret == "") != (method == "none") || a.Client.Method != method {
				t.Errorf("registered %+v, want method %s", a.Client, method)
			}
			a.First.check(t, "mcp")
			agent := a.Claims.Sub
			checkClaims := func() {
				t.Helper()
				if c := a.Claims; c.Iss != kit.URL || !slices.Equal(c.Aud, []string{kit.URL + "/mcp"}) || c.Client != a.Client.ID || c.Sub != agent {
					t.Errorf("claims = %+v", c)
				}
			}
			checkClaims()
			if id, err := store.ParseID[store.AgentKind](agent); err != nil || agentOf(t, kit, id).Name == "" {
				t.Errorf("sub = %q, want the agent's id: %v", agent, err)
			}
			if a.Called.Status != http.StatusOK {
				t.Errorf("the first call = %+v", a.Called)
			}
			client.Next(&a)
			a.Second.check(t, "mcp")
			if a.Second.Access == a.First.Access || a.Second.Refresh == a.First.Refresh {
				t.Error("the refresh gave what was there already")
			}
			checkClaims()
			if a.Called.Status != http.StatusOK {
				t.Errorf("the call after the refresh = %+v", a.Called)
			}
			without := called{http.StatusUnauthorized, "bearer", "invalid_token", kit.URL + "/.well-known/oauth-protected-resource/mcp"}
			client.Next(&a)
			if a.Without != without || a.Called.Status != http.StatusOK {
				t.Errorf("with the token that was revoked: %+v, with the other: %+v; want %+v and 200", a.Without, a.Called, without)
			}
			a.Without = called{}
			client.Next(&a)
			if want := (called{Status: http.StatusBadRequest, Error: "invalid_grant"}); a.Without != without || a.Refused != want {
				t.Errorf("after the grant: a call %+v, a refresh %+v; want %+v and %+v", a.Without, a.Refused, without, want)
			}
		})
	}
}

// TestOpenIDClient has the client that most Node programs use go the whole way, with a secret as its default is.
func TestOpenIDClient(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	owner := newPerson(t, kit)
	client := e2e.NewProgram(t, e2e.Client(t, "openid-client.mjs")).Start(kit.URL + "/mcp")
	var begun struct{ Authorize string }
	client.Next(&begun)
	client.Send(map[string]any{"redirect": owner.allow(begun.Authorize, "Relying").String()})
	var a struct {
		Client          registration
		First, Second   issued
		Called, Refused called
	}
	client.Next(&a)
	if a.Client.Secret == "" || a.Client.Method != "client_secret_post" {
		t.Errorf("registered %+v, want a secret for the body", a.Client)
	}
	a.First.check(t, "mcp")
	if a.Called.Status != http.StatusOK {
		t.Errorf("the first call = %+v", a.Called)
	}
	client.Next(&a)
	a.Second.check(t, "mcp")
	if a.Called.Status != http.StatusOK || a.Second.Access == a.First.Access || a.Second.Refresh == a.First.Refresh {
		t.Errorf("the call after the refresh = %+v, with %+v", a.Called, a.Second)
	}
	client.Next(&a)
	if want := (called{Status: http.StatusBadRequest, Error: "invalid_grant"}); a.Refused != want {
		t.Errorf("a refresh after the revocation = %+v, want %+v", a.Refused, want)
	}
}

// agentOf reads an agent of the kit's owner.
func agentOf(t *testing.T, kit *servertest.Kit, id store.AgentID) (a store.Agent) {
	t.Helper()
	err := kit.DB.As(t.Context(), kit.Owner, func(tx *store.Tx) (err error) {
		a, err = tx.Agent(t.Context(), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
