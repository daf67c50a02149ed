package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// connects lets an app in as a new agent of b's person, c, and returns the agent, the grant, and the code.
func (s *house) connects(t *testing.T, b *browser, c store.Caller, name string) (store.AgentID, store.Grant, string) {
	t.Helper()
	_, q := b.allows(b.asks(with(claude(), "name", name)), "agent", "new", "name", name).goesTo(t)
	var grants []store.Grant
	s.as(t, c, func(tx *store.Tx) error {
		a, err := tx.AgentByName(t.Context(), name)
		if err != nil {
			return err
		}
		grants, err = tx.Grants(t.Context(), a.ID)
		return err
	})
	if len(grants) != 1 {
		t.Fatalf("%d grants, want 1", len(grants))
	}
	return grants[0].AgentID, grants[0], q.Get("code")
}

// app is who acts by what a code is of.
func app(g store.GrantOf) store.Caller {
	return store.Caller{Org: g.Org, User: g.User, Agent: g.Agent, Grant: g.Grant, Role: g.Role, Via: store.ViaBearer}
}

// redeems presents a code as the client does.
func (s *house) redeems(t *testing.T, code string) {
	t.Helper()
	hash := store.HashToken(code)
	g, err := s.db.System().OAuthCode(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	_, refresh := store.NewToken(store.RefreshTokenPrefix)
	s.as(t, app(g), func(tx *store.Tx) error {
		_, err := tx.RedeemCode(t.Context(), store.Redemption{Hash: hash, ClientID: g.ClientID, Verify: func(string) bool { return true }, Refresh: refresh})
		return err
	})
}

func TestAppIsDisconnected(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	agent, grant, _ := s.connects(t, b, owner, "Claude")
	at := "/agents/" + agent.String()
	end := at + "/apps/" + grant.ID.String() + "/end"
	p := b.get(at)
	wantText(t, p, "Connected apps", "Claude", "name not verified", "identified by claude.ai", "connected by you", "last refresh", "never", end, "This agent has no token: what is connected to it signs in for itself.", "1 connected app")
	wantText(t, b.get("/agents"), `href="/apps"`, "Connected apps")
	wantText(t, b.get("/apps"), "Claude", at, end)
	wantText(t, b.get(end), "Disconnect Claude?", "Keep it")
	wantText(t, b.get(at), "1 connected</span>") // the question ended nothing
	wantRedirect(t, b.post(end), at)
	p = b.get(at)
	wantText(t, p, "Claude is disconnected.", "0 connected, 1 ended", "Disconnected here by you.")
	wantNoText(t, p, end)
	wantNoText(t, b.get("/apps"), at)
	wantRedirect(t, b.post(end), at) // sent twice
	wantRedirect(t, b.get(end), at)
	s.wantLine(t, owner, "Disconnected Claude (claude.ai) from agent Claude")
}

func TestAppsSayWhyTheyEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	member := storetest.Member(t, s.db, owner, store.RoleMember)
	b, theirs := s.signedIn(t, owner), s.signedIn(t, member)

	agent, _, code := s.connects(t, b, owner, "twice")
	s.redeems(t, code)
	s.redeems(t, code)
	wantText(t, b.get("/agents/"+agent.String()), "Its sign-in code was used twice, so it was ended: somebody may have copied it.", `class="dot bad"`)

	agent, _, code = s.connects(t, b, owner, "left")
	g, err := s.db.System().OAuthCode(t.Context(), store.HashToken(code))
	if err != nil {
		t.Fatal(err)
	}
	s.as(t, app(g), func(tx *store.Tx) error { return tx.RevokeByClient(t.Context(), g.ClientID) })
	wantText(t, b.get("/agents/"+agent.String()), "The app signed itself out.")

	agent, _, _ = s.connects(t, b, owner, "revoked")
	s.as(t, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent) })
	wantText(t, b.get("/agents/"+agent.String()), "The agent was revoked.")

	agent, grant, _ := s.connects(t, theirs, member, "by another")
	wantText(t, b.get("/agents/"+agent.String()), "connected by Somebody")
	wantRedirect(t, b.post("/agents/"+agent.String()+"/apps/"+grant.ID.String()+"/end"), "/agents/"+agent.String())
	wantText(t, theirs.get("/agents/"+agent.String()), "Disconnected here by Somebody.")

	agent, _, _ = s.connects(t, theirs, member, "of one who left")
	s.as(t, owner, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), member.User) })
	wantText(t, b.get("/agents/"+agent.String()), "is no longer a member.")
}

func TestWhoMayDisconnectAnApp(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	member := storetest.Member(t, s.db, owner, store.RoleMember)
	b := s.signedIn(t, owner)
	agent, grant, _ := s.connects(t, b, owner, "Claude")
	at := "/agents/" + agent.String()
	path := at + "/apps/" + grant.ID.String() + "/end"

	auditor := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleAuditor))
	wantText(t, auditor.get("/apps"), "Claude", at)
	for _, p := range []page{auditor.get("/apps"), auditor.get(at)} {
		wantNoText(t, p, path, "Disconnect")
	}
	wantStatus(t, auditor.get(path), http.StatusForbidden)
	wantStatus(t, auditor.post(path), http.StatusForbidden)

	mine, _ := storetest.Agent(t, s.db, member, "mine")
	nowhere := b.get("/nowhere")
	for name, who := range map[string]*browser{
		"a member": s.signedIn(t, member), "a stranger": s.signedIn(t, storetest.Organisation(t, s.db)),
	} {
		wantNoText(t, who.get("/apps"), at)
		for _, p := range []page{who.get(path), who.post(path), who.post(strings.Replace(path, agent.String(), mine.ID.String(), 1))} {
			if p.status != http.StatusNotFound {
				t.Errorf("%s: %d, want 404", name, p.status)
			}
		}
	}
	missing := store.NewID[store.GrantKind](time.Now()).String()
	for _, wrong := range []string{
		"/agents/" + mine.ID.String() + "/apps/" + grant.ID.String() + "/end", // not this agent's
		at + "/apps/" + missing + "/end", at + "/apps/grt_/end", "/agents/agt_/apps/" + grant.ID.String() + "/end",
	} {
		for _, p := range []page{b.get(wrong), b.post(wrong)} {
			if p.status != http.StatusNotFound || p.body != nowhere.body {
				t.Errorf("%s: %d, want the page of what is not there", wrong, p.status)
			}
		}
	}
	wantText(t, b.get(at), "1 connected</span>")
}

func TestPageOfNoApps(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	wantText(t, b.get("/apps"), "No app is connected")
}
