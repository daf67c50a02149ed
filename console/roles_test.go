package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	const ok, back, no, missing = http.StatusOK, http.StatusSeeOther, http.StatusForbidden, http.StatusNotFound
	for _, want := range []struct {
		role        store.Role
		make        int // GET /agents/new and POST /agents
		page        int // an agent that another member made
		ask, change int // the questions about it, and their answers
		revoke      int
		list        bool // whether it is in the list
	}{
		{store.RoleOwner, ok, ok, ok, ok, back, true},
		{store.RoleAdmin, ok, ok, ok, ok, back, true},
		{store.RoleMember, ok, missing, missing, missing, missing, false},
		{store.RoleAuditor, no, ok, no, no, no, true},
	} {
		t.Run(string(want.role), func(t *testing.T) {
			t.Parallel()
			other := storetest.Member(t, s.db, owner, store.RoleMember)
			a, _ := storetest.Agent(t, s.db, other, "of another for "+string(want.role))
			at := "/agents/" + a.ID.String()
			who := owner
			if want.role != store.RoleOwner {
				who = storetest.Member(t, s.db, owner, want.role)
			}
			b := s.signedIn(t, who)
			list := b.get("/agents")
			for _, got := range []struct {
				what string
				page page
				want int
			}{
				{"GET /agents", list, ok},
				{"GET /agents/new", b.get("/agents/new"), want.make},
				{"POST /agents", b.post("/agents", "name", "mine "+string(want.role)), want.make},
				{"GET the agent", b.get(at), want.page},
				{"GET its token", b.get(at + "/token"), want.ask},
				{"GET its end", b.get(at + "/revoke"), want.ask},
				{"POST a tool in", b.post(at+"/promote", "promote", "builtin__reshape"), want.revoke},
				{"POST a tool out", b.post(at+"/demote", "tool", "builtin__reshape"), want.revoke},
				{"POST its token", b.post(at + "/token"), want.change},
				{"POST its end", b.post(at + "/revoke"), want.revoke},
			} {
				if got.page.status != got.want {
					t.Errorf("%s = %d, want %d: %s", got.what, got.page.status, got.want, got.page.main())
				}
			}
			if in := strings.Contains(list.body, at); in != want.list {
				t.Errorf("the list has another's agent: %v, want %v", in, want.list)
			}
			if offers := strings.Contains(b.get("/agents").body, `href="/agents/new"`); offers != (want.make == ok) {
				t.Errorf("the list offers to make one: %v, want %v", offers, want.make == ok)
			}
			if want.role == store.RoleAuditor {
				for _, p := range []page{b.get("/"), list, b.get(at)} {
					wantNoText(t, p, "/agents/new", at+"/revoke", at+"/token", at+"/promote", at+"/demote", "Make a")
				}
			}
		})
	}
}

func TestForeignAndMissingAgentsAreOnePage(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	stranger, _ := storetest.Agent(t, s.db, storetest.Organisation(t, s.db), "theirs")
	colleagues, _ := storetest.Agent(t, s.db, owner, "of the owner")
	b := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleMember))
	missing := store.NewID[store.AgentKind](time.Now()).String()
	nowhere := b.get("/nowhere")
	wantStatus(t, nowhere, http.StatusNotFound)
	for _, path := range []string{"/agents/%s", "/agents/%s/token", "/agents/%s/revoke", "/live/agents/%s"} {
		for _, id := range []string{missing, stranger.ID.String(), colleagues.ID.String(), "agt_", "usr_" + missing[4:], strings.ToUpper(missing), "%00"} {
			p := fmt.Sprintf(path, id)
			got := []page{b.get(p)}
			if strings.HasSuffix(p, "/token") || strings.HasSuffix(p, "/revoke") {
				got = append(got, b.post(p))
			}
			for _, g := range got {
				if g.status != http.StatusNotFound || g.body != nowhere.body {
					t.Errorf("%s: %d and\n%s\nwant 404 and\n%s", p, g.status, g.main(), nowhere.main())
				}
			}
		}
	}
}

func TestAgentPageShowsSessionsAndWorkingSet(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	a, _ := storetest.Agent(t, s.db, owner, "hermes")
	s.streams.Store(3)
	s.as(t, owner, func(tx *store.Tx) error {
		for _, tool := range []string{"builtin__reshape", "github__gone"} {
			if _, err := tx.Promote(t.Context(), a.ID, tool); err != nil {
				return err
			}
		}
		now := s.db.Now()
		for i, name := range []string{"Hermes", ""} {
			err := tx.RecordSessions(t.Context(), store.MCPSession{
				ID: store.NewID[store.SessionKind](now), AgentID: a.ID, ClientName: name, ClientVersion: strings.Repeat("0.9", 1-i), Protocol: "2025-11-25", OpenedAt: now, LastSeenAt: now,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	b := s.signedIn(t, owner)
	p := b.get("/agents/" + a.ID.String())
	wantText(t, p, "builtin__<wbr>reshape", "reads", "promoted by a person", "Hermes 0.9", "A client that gave no name", "3 streams")
	wantNoText(t, p, `value="github__gone"`) // a tool that is no longer there
	wantText(t, b.get("/agents/"+a.ID.String()+"/revoke"), "2 sessions", "3 open streams", "1 static token")
}

func TestWhatPeopleAndClientsWriteStaysText(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.PrivateURL(t), false)
	const evil = `"><script>alert(1)</script>`
	token, err := s.db.System().NewWelcomeLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser(t)
	wantRedirect(t, b.post("/setup/"+token, "name", evil, "email", `a'%22b@example.com`, "organisation", evil, "password", goodPassword), "/")
	p := b.post("/agents", "name", "plain")
	at := agentIn.FindString(p.body)
	id, err := store.ParseID[store.AgentKind](at[len("/agents/"):])
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.db.System().Bearer(t.Context(), store.HashToken(tokenIn.FindString(p.body)))
	if err != nil {
		t.Fatal(err)
	}
	owner := store.Caller{Org: found.Org, User: found.User, Role: store.RoleOwner, Via: store.ViaSession}
	s.as(t, owner, func(tx *store.Tx) error {
		now := s.db.Now()
		return tx.RecordSessions(t.Context(), store.MCPSession{ID: store.NewID[store.SessionKind](now), AgentID: id, ClientName: evil, Protocol: "x", OpenedAt: now, LastSeenAt: now})
	})
	pages := []page{
		b.get("/"), b.get("/agents"), b.get("/agents?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"), b.get("/agents/new"), b.get(at), b.get(at + "/revoke"),
		b.get(at + "/token"), b.get("/nowhere"), b.get("/" + evil), b.get("/signin"), b.post("/agents", "name", evil), b.post("/agents", "name", "plain"),
	}
	out := s.browser(t)
	pages = append(pages, out.get("/signin"), out.post("/signin", "email", evil, "password", evil, "next", "/"+evil))
	escaped := 0
	for _, p := range pages {
		wantNoText(t, p, "<script>") // the page's own is of a file, and has an address
		escaped += strings.Count(p.body, "&lt;script&gt;")
	}
	if escaped < 10 {
		t.Errorf("the text was shown %d times, want it on most pages", escaped)
	}
	if _, html := b.mustLive("/live/agents?q=%22%3E%3Cscript%3E").next(); strings.Contains(html, "<script>") {
		t.Errorf("the live list has a script: %s", html)
	}
}

func TestAPersonPromotesAndDemotes(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	a, _ := storetest.Agent(t, s.db, owner, "hermes")
	at := "/agents/" + a.ID.String()
	b := s.signedIn(t, owner)
	empty := b.get(at)
	wantText(t, empty, `<option value="builtin__reshape">`, "Nothing yet.", "not used for 21 days", "Above 20 tools")

	lost := b.post(at+"/promote", "promote", " github__<lost> ")
	wantStatus(t, lost, http.StatusNotFound)
	wantText(t, lost, "There is no tool of this name.", `value="github__&lt;lost&gt;"`)
	for range 2 { // sent twice, it says the same
		wantRedirect(t, b.post(at+"/promote", "promote", "builtin__reshape"), at)
		wantText(t, b.get(at), "builtin__reshape is in the working set.", "promoted by a person", `aria-label="Demote builtin__reshape"`, "promoted by Somebody")
	}
	wantNoText(t, b.get(at), `<option value="builtin__reshape">`)
	s.as(t, owner, func(tx *store.Tx) error {
		return tx.UseTools(t.Context(), []store.ToolUse{{Agent: a.ID, Tool: "builtin__reshape", At: s.db.Now().Add(-3 * time.Hour)}})
	})
	wantText(t, b.get(at), "3 h ago")
	for range 2 {
		wantRedirect(t, b.post(at+"/demote", "tool", "builtin__reshape"), at)
	}
	wantText(t, b.get(at), "builtin__reshape has left the working set.", "demoted by Somebody")

	s.as(t, owner, func(tx *store.Tx) error {
		_, err := tx.PromoteAll(t.Context(), a.ID, []string{"builtin__reshape"})
		return err
	})
	wantText(t, b.get(at), "promoted with all tools of its upstream")
	s.clock.advance(22 * 24 * time.Hour)
	s.as(t, store.Caller{Org: owner.Org, Role: store.RoleOwner, Via: store.ViaJob}, func(tx *store.Tx) error {
		_, err := tx.SweepWorkingSets(t.Context())
		return err
	})
	b = s.signedIn(t, owner)
	wantText(t, b.get(at), "left: not used for too long", "Empty. The agent finds tools")

	gone, _ := storetest.Agent(t, s.db, owner, "gone")
	s.as(t, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), gone.ID) })
	for _, act := range []string{"/promote", "/demote"} {
		wantStatus(t, b.post("/agents/"+gone.ID.String()+act, "promote", "builtin__reshape", "tool", "builtin__reshape"), http.StatusNotFound)
	}
	wantNoText(t, b.get("/agents/"+gone.ID.String()), "/promote", "Demote")
}
