package server_test

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

// provider is one that nobody asks for anything.
var provider = server.SignOn{OIDCIssuer: "https://login.example.com", OIDCClientID: "graft", OIDCClientSecret: "secret"}

// routeTable is every route of the gateway as "METHOD pattern".
func routeTable(t *testing.T) []string {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Config{
		Database: server.Database{DatabaseConns: 2, Log: "text"}, Address: server.Address{Listen: "127.0.0.1:0"}, RateMCP: "off", RateSignIn: "off", RateAPI: "off", RateOAuth: "off", RateRegister: "off",
		SignOn: provider,
	}, server.Deps{DB: storetest.Open(t, storetest.PrivateURL(t), nil), Master: master, Log: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	err = chi.Walk(s.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		list = append(list, method+" "+route)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// foreigners makes a row of each kind that a route names by an id, for c, who is signed in, and returns their ids by what
// stands before the id in a route, each with one of its kind that does not exist.
func foreigners(t *testing.T, k *servertest.Kit, c store.Caller) map[string][2]string {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	agent, _ := storetest.Agent(t, k.DB, c, "theirs")
	ids := map[string][2]string{"agents": {agent.ID.String(), store.NewID[store.AgentKind](now).String()}}
	as := c
	as.Agent, as.Via = agent.ID, store.ViaBearer
	err := k.DB.As(ctx, as, func(tx *store.Tx) error {
		a, err := tx.OpenAsk(ctx, store.Ask{
			Kind: store.AskApproval, AgentID: agent.ID, Tool: "mail__send", Version: 1, Key: make([]byte, 32), Digest: make([]byte, 32),
		}, func(store.AskID) []byte { return []byte("sealed") })
		ids["asks"] = [2]string{a.ID.String(), store.NewID[store.AskKind](now).String()}
		return err
	})
	if err == nil {
		err = k.DB.As(ctx, c, func(tx *store.Tx) error {
			u, err := tx.CreateUpstream(ctx, "theirs", "https://theirs.example/mcp", store.UpstreamSettings{ConnectSeconds: 10, CallSeconds: 60}, nil)
			if err != nil {
				return err
			}
			invite, _, err := tx.CreateInvite(ctx, "guest@theirs.example", store.RoleMember)
			if err != nil {
				return err
			}
			ids["invites"] = [2]string{invite.ID.String(), store.NewID[store.InviteKind](now).String()}
			ids["members"] = [2]string{c.User.String(), store.NewID[store.UserKind](now).String()}
			ids["upstreams"] = [2]string{u.ID.String(), store.NewID[store.UpstreamKind](now).String()}
			connection, err := tx.CreateConnection(ctx, store.NewConnection{Vendor: "vendor", DisplayName: "Theirs", Shared: true, Scheme: "none", Hosts: []string{"theirs.example"}})
			if err != nil {
				return err
			}
			ids["connections"] = [2]string{connection.ID.String(), store.NewID[store.ConnectionKind](now).String()}
			_, err = tx.SetSecret(ctx, "THEIRS", func(id store.SecretID) ([]byte, error) {
				ids["secrets"] = [2]string{id.String(), store.NewID[store.SecretKind](now).String()}
				return []byte("sealed"), nil
			})
			return err
		})
	}
	if err == nil {
		run := store.NewID[store.RunKind](now)
		ids["activity"] = [2]string{run.String(), store.NewID[store.RunKind](now).String()}
		err = k.DB.System().AppendAudit(ctx, []store.AuditLink{{
			AuditEntry: store.AuditEntry{Org: c.Org, Run: run, Kind: store.AuditCall, At: now, Via: store.ViaBearer, Agent: agent.ID, User: c.User, Tool: "mail__send"},
			Writer:     store.NewID[store.WriterKind](now), Seq: 1, Heads: []byte{}, Hash: make([]byte, 32),
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
	system := k.DB.System()
	key, err := system.AddPasskey(ctx, store.Passkey{UserID: c.User, Credential: make([]byte, 16), Name: "theirs", PublicKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := system.AddIdentity(ctx, store.Identity{UserID: c.User, Issuer: provider.OIDCIssuer, Subject: c.User.String(), Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	ids["settings/identities"] = [2]string{identity.ID.String(), store.NewID[store.IdentityKind](now).String()}
	ids["settings/passkeys"] = [2]string{key.ID.String(), store.NewID[store.PasskeyKind](now).String()}
	sessions, err := system.WebSessions(ctx, c.User)
	if err != nil || len(sessions) != 1 {
		t.Fatalf("sessions = %v, %v, want the one that they signed in with", sessions, err)
	}
	other, none := store.HashToken("theirs"), store.HashToken("nobody's")
	if err := system.BeginPasskeySession(ctx, other, c.User, key.ID, sessions[0].Data, sessions[0].ExpiresAt); err != nil {
		t.Fatal(err)
	}
	ids["settings/sessions"] = [2]string{hex.EncodeToString(other[:]), hex.EncodeToString(none[:])}
	return ids
}

// Every route that takes an id is asked with an id of another organisation, with one that does not exist, with one of
// another kind and with nonsense. The answers are one answer, for an owner as for an auditor, and nothing changes.
func TestForeignIDsAnswerAsMissingOnes(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Private: true, Configure: func(c *server.Config) { c.SignOn = provider }})
	k.Owner = organisation(t, k)
	theirs := organisation(t, k)
	owners := k.SignIn(t, theirs)
	foreign := foreigners(t, k, theirs)
	mine, _ := k.Agent(t)
	viewers := map[string]*http.Client{
		"owner":   k.SignIn(t, k.Owner),
		"member":  k.SignIn(t, storetest.Member(t, k.DB, k.Owner, store.RoleMember)),
		"auditor": k.SignIn(t, storetest.Member(t, k.DB, k.Owner, store.RoleAuditor)),
	}
	probed := 0
	for _, route := range routeTable(t) {
		method, pattern, _ := strings.Cut(route, " ")
		if !strings.Contains(pattern, "{id}") {
			continue
		}
		probed++
		of, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pattern, "/live"), "/"), "/{id}")
		ids, known := foreign[of]
		if !known {
			t.Errorf("%s takes an id of no kind that there is a foreign one of", route)
			continue
		}
		missing := ids[1]
		for who, browser := range viewers {
			var want answer
			for i, id := range []string{missing, ids[0], theirs.Org.String(), missing[:4] + "short", "%2e%2e", strings.ToUpper(missing)} {
				got := ask(t, browser, method, k.URL+strings.ReplaceAll(pattern, "{id}", id), "", form)
				got.body = requestID.ReplaceAllString(got.body, "")
				if i == 0 {
					want = got
					if got.status != http.StatusNotFound {
						t.Errorf("%s %s with a missing id by %s = %d, want 404", method, pattern, who, got.status)
					}
					continue
				}
				if got.status != want.status || got.body != want.body {
					t.Errorf("%s %s with %s by %s = %d, unlike a missing id's %d:\n%s", method, pattern, id, who, got.status, want.status, cmp.Diff(want.body, got.body))
				}
			}
		}
	}
	if probed < 5 {
		t.Errorf("%d routes take an id; the walk missed some", probed)
	}
	// The probes can tell: to those whose they are the ids answer otherwise, and what they name is as it was.
	for of, ids := range foreign {
		page := "/" + of + "/" + ids[0]
		switch of {
		case "secrets":
			page += "/remove"
		case "invites": // which have no page of their own
			continue
		case "settings/sessions":
			page += "/end"
		}
		if a := ask(t, owners, http.MethodGet, k.URL+page, ""); a.status == http.StatusNotFound {
			t.Errorf("%s by its owner = %d, want it found", page, a.status)
		}
	}
	err := k.DB.As(t.Context(), theirs, func(tx *store.Tx) error {
		agents, err := tx.Agents(t.Context(), store.AgentFilter{})
		if err != nil || len(agents) != 1 || agents[0].RevokedAt != nil {
			t.Errorf("foreign agents = %+v, %v, want one that lives", agents, err)
		}
		if open, err := tx.CountOpenAsks(t.Context()); err != nil || open != 1 {
			t.Errorf("foreign open asks = %d, %v, want 1", open, err)
		}
		upstreams, err := tx.Upstreams(t.Context())
		if err != nil || len(upstreams) != 1 || upstreams[0].RevokedAt != nil {
			t.Errorf("foreign upstreams = %+v, %v, want one that lives", upstreams, err)
		}
		secrets, err := tx.Secrets(t.Context())
		if err != nil || len(secrets) != 1 {
			t.Errorf("foreign secrets = %+v, %v, want one", secrets, err)
		}
		invites, err := tx.Invites(t.Context())
		if err != nil || len(invites) != 1 {
			t.Errorf("foreign invites = %+v, %v, want one", invites, err)
		}
		members, err := tx.Members(t.Context())
		if err != nil || len(members) != 1 || members[0].Role != store.RoleOwner {
			t.Errorf("foreign members = %+v, %v, want their owner", members, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if a := ask(t, viewers["owner"], http.MethodGet, k.URL+"/agents/"+mine.ID.String(), ""); a.status != http.StatusOK {
		t.Errorf("an own agent's page = %d", a.status)
	}
}

var requestID = regexp.MustCompile(`[a-z2-7]{16}`)

// Everything without a session or a bearer leads to a sign-in or a 401, whichever route it is; the few open ones are
// listed.
func TestEveryRouteWantsToKnowWhoAsks(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) { c.SignOn = provider }})
	open := []string{
		"GET /healthz", "GET /readyz", "GET /favicon.ico", "GET /signin", "POST /signin", "GET /setup/{token}", "POST /setup/{token}", "GET /invite/{token}", "POST /invite/{token}", "POST /signin/passkey", "POST /setup/{token}/passkey",
		"POST /sign-in/oidc", "GET /sign-in/oidc/callback", "POST /invite/{token}/oidc",
	}
	// The authorization server proves clients itself, and a person later.
	proves := regexp.MustCompile(`^/\.well-known/|^/mcp/\.well-known/|^/mcp/oauth/(register|authorize|token|revoke)$`)
	seen := 0
	for _, route := range routeTable(t) {
		method, pattern, _ := strings.Cut(route, " ")
		if strings.HasPrefix(pattern, "/static/") || slices.Contains(open, route) || method == http.MethodOptions || proves.MatchString(pattern) {
			continue
		}
		seen++
		a := ask(t, bare, method, k.URL+strings.ReplaceAll(pattern, "{id}", "agt_x"), "")
		switch {
		case strings.HasPrefix(pattern, "/mcp"):
			if a.status != http.StatusUnauthorized {
				t.Errorf("%s without a bearer = %d, want 401", route, a.status)
			}
		case a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/signin"):
			t.Errorf("%s signed out = %d %q, want 303 to /signin", route, a.status, a.header.Get("Location"))
		}
	}
	if seen < 15 {
		t.Errorf("%d routes were asked; the walk missed some", seen)
	}
}

// A bearer of one organisation reaches nothing of another through any tool.
func TestToolsStayInTheirOrganisation(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	other := storetest.Organisation(t, k.DB)
	mine, _ := k.Agent(t)
	theirs, _ := storetest.Agent(t, k.DB, other, "theirs")
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		_, err := tx.Promote(t.Context(), mine.ID, "builtin__reshape")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = k.DB.As(t.Context(), other, func(tx *store.Tx) error {
		for _, id := range []store.AgentID{mine.ID, theirs.ID} {
			set, err := tx.WorkingSet(t.Context(), id)
			if len(set) != 0 || id == mine.ID && !store.IsAbsent(err) {
				t.Errorf("working set of %s seen from the other organisation: %v, %v", id, set, err)
			}
		}
		if _, err := tx.Agent(t.Context(), mine.ID); !store.IsAbsent(err) {
			t.Errorf("a foreign agent = %v, want not found", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = k.DB.As(t.Context(), other, func(tx *store.Tx) error {
		_, err := tx.Promote(t.Context(), mine.ID, "builtin__reshape")
		return err
	})
	if err == nil {
		t.Error("a tool was promoted for another organisation's agent")
	}
}
