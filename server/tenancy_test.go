package server_test

import (
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

// routeTable is every route of the gateway as "METHOD pattern".
func routeTable(t *testing.T) []string {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Config{
		Database: server.Database{DatabaseConns: 2, Log: "text"}, Address: server.Address{Listen: "127.0.0.1:0"}, RateMCP: "off", RateSignIn: "off", RateAPI: "off",
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

// Every route that takes an id is asked with an id of another organisation, with one that does not exist, with one of
// another kind and with nonsense. The answers are one answer, for an owner as for an auditor, and nothing changes.
func TestForeignIDsAnswerAsMissingOnes(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	theirs := storetest.Organisation(t, k.DB)
	foreign, _ := storetest.Agent(t, k.DB, theirs, "theirs")
	mine, _ := k.Agent(t)
	missing := store.NewID[store.AgentKind](time.Now())
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
		for who, browser := range viewers {
			var want answer
			for i, id := range []string{missing.String(), foreign.ID.String(), theirs.Org.String(), "agt_short", "%2e%2e", strings.ToUpper(missing.String())} {
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
	err := k.DB.As(t.Context(), theirs, func(tx *store.Tx) error {
		a, err := tx.Agent(t.Context(), foreign.ID)
		if a.RevokedAt != nil {
			t.Error("the foreign agent was revoked")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// The probes can tell: the caller's own id answers otherwise.
	if a := ask(t, viewers["owner"], http.MethodGet, k.URL+"/agents/"+mine.ID.String(), ""); a.status != http.StatusOK {
		t.Errorf("an own agent's page = %d", a.status)
	}
}

var requestID = regexp.MustCompile(`[a-z2-7]{16}`)

// Everything without a session or a bearer leads to a sign-in or a 401, whichever route it is; the few open ones are
// listed.
func TestEveryRouteWantsToKnowWhoAsks(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	open := []string{"GET /healthz", "GET /readyz", "GET /favicon.ico", "GET /signin", "POST /signin", "GET /setup/{token}", "POST /setup/{token}"}
	seen := 0
	for _, route := range routeTable(t) {
		method, pattern, _ := strings.Cut(route, " ")
		if strings.HasPrefix(pattern, "/static/") || slices.Contains(open, route) || method == http.MethodOptions {
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
