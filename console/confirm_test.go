package console_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// What destroys something wants somebody who signed in, or confirmed who they are, within 15 minutes.
func TestWhatDestroysWantsAPersonWhoIsFresh(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	now := s.clock.now().Truncate(time.Second)
	s.clock.stop(now)
	owner := storetest.Organisation(t, s.db)
	b, device := s.signedIn(t, owner), s.authenticator(t)
	b.addPasskey(device, "Laptop")
	other := s.browser(t)
	wantRedirect(t, other.post("/signin", "email", s.email(t, owner), "password", goodPassword), "/")
	session := sessionIn.FindString(b.get("/settings").body)
	a, _ := storetest.Agent(t, s.db, owner, "hermes")
	var up store.Upstream
	s.as(t, owner, func(tx *store.Tx) (err error) {
		up, err = tx.CreateUpstream(t.Context(), "mail", "https://mcp.mail.example/mcp", store.UpstreamSettings{ConnectSeconds: 1, CallSeconds: 1}, nil)
		return err
	})
	wantRedirect(t, b.post("/secrets", "name", "KEY", "secret", canary), "/upstreams")
	passkey := "/settings/passkeys/" + s.theirs(t, owner)[0].ID.String()

	both := []string{"/agents/" + a.ID.String() + "/revoke", "/upstreams/" + up.ID.String() + "/remove", secretAt(t, b), "/settings/password", passkey + "/remove", session + "/end", "/settings/sessions/end"}
	s.clock.stop(now.Add(14*time.Minute + 59*time.Second))
	for _, path := range both {
		wantStatus(t, b.get(path), http.StatusOK)
	}
	wantStatus(t, b.get("/settings/passkeys/new"), http.StatusOK)
	now = now.Add(15*time.Minute + time.Second)
	s.clock.stop(now)
	for _, path := range both {
		to := "/confirm?" + url.Values{"next": {path}}.Encode()
		wantRedirect(t, b.get(path), to)
		wantRedirect(t, b.post(path, "password", "eleven blue ladders lean"), to)
	}
	for _, p := range []page{b.get("/settings/passkeys/new"), b.post("/settings/passkeys/options"), b.post("/settings/passkeys")} {
		wantRedirect(t, p, "/confirm?next=%2Fsettings%2Fpasskeys%2Fnew")
	}
	// Nothing has happened to any of them.
	wantStatus(t, other.get("/"), http.StatusOK)
	wantText(t, b.get("/agents/"+a.ID.String()), "Revoke hermes")
	wantText(t, b.get("/settings"), ">Laptop<")
	for _, path := range []string{"/", "/agents", "/settings", passkey} {
		wantStatus(t, b.get(path), http.StatusOK)
	}

	wantRedirect(t, b.post("/confirm", "next", both[0], "password", goodPassword), both[0])
	for _, path := range both {
		wantStatus(t, b.get(path), http.StatusOK)
	}
	s.clock.stop(now.Add(14*time.Minute + 59*time.Second))
	for path, to := range map[string]string{both[0]: "/agents", both[1]: "/upstreams", both[2]: "/upstreams", passkey + "/remove": "/settings", session + "/end": "/settings"} {
		wantRedirect(t, b.post(path), to)
	}
	wantText(t, b.get("/agents"), "Revoked")
	wantText(t, b.get("/settings"), "None yet.")
	wantRedirect(t, other.get("/"), "/signin")
	s.loggedLines(t, owner, "Confirmed who they are", "Revoked agent hermes", "Removed passkey Laptop")
}

func TestTheFifteenMinutesAreCountedToTheSecond(t *testing.T) {
	t.Parallel()
	for after, fresh := range map[time.Duration]bool{14*time.Minute + 59*time.Second: true, 15*time.Minute + time.Second: false} {
		s := start(t)
		now := time.Now().Truncate(time.Second)
		s.clock.stop(now)
		b := s.signedIn(t, storetest.Organisation(t, s.db))
		s.clock.stop(now.Add(after))
		want := http.StatusSeeOther
		if fresh {
			want = http.StatusOK
		}
		if p := b.get("/settings/password"); p.status != want {
			t.Errorf("%v after signing in: %d, want %d", after, p.status, want)
		}
		if fresh {
			continue
		}
		wantRedirect(t, b.post("/confirm", "next", "/settings/password", "password", goodPassword), "/settings/password")
		s.clock.stop(now.Add(after + 14*time.Minute + 59*time.Second))
		wantStatus(t, b.get("/settings/password"), http.StatusOK)
		s.clock.stop(now.Add(after + 15*time.Minute + time.Second))
		wantStatus(t, b.get("/settings/password"), http.StatusSeeOther)
	}
}

func TestOnlyTheViewerConfirmsWhoTheyAre(t *testing.T) {
	t.Parallel()
	s := startNamed(t)
	owner, eve := storetest.Organisation(t, s.db), storetest.Organisation(t, s.db)
	hers, herDevice := s.signedIn(t, eve), s.authenticator(t)
	hers.addPasskey(herDevice, "Phone")
	b, device := s.signedIn(t, owner), s.authenticator(t)
	b.addPasskey(device, "Laptop")
	if o := b.asked("/confirm/passkey"); len(o.Get.Allow) != 1 || o.Get.Allow[0].ID != b64(device.keys[0].id) {
		t.Errorf("asked for %+v, want the viewer's own passkey", o.Get)
	}
	wantRedirect(t, b.get("/confirm?next=/agents"), "/agents") // is fresh
	copied := s.browser(t)
	copied.plant(b.cookie())
	s.clock.advance(15*time.Minute + time.Second)
	p := b.get("/confirm?next=/agents")
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, `name="next" value="/agents"`, s.email(t, owner))
	for _, far := range []string{"https://evil.example/", "//evil.example", `/\evil.example`} {
		wantNoText(t, b.get("/confirm?"+url.Values{"next": {far}}.Encode()), "evil")
	}

	for what, p := range map[string]page{
		"a wrong password":    b.post("/confirm", "next", "/agents", "password", "another password"),
		"no password":         b.post("/confirm", "next", "/agents"),
		"another's passkey":   b.post("/confirm", "next", "/agents", "passkey", herDevice.get(b.asked("/signin/passkey"))),
		"one that is refused": b.post("/confirm", "next", "/agents", "passkey", herDevice.get(b.asked("/confirm/passkey"))),
	} {
		if p.status != http.StatusUnauthorized {
			t.Errorf("%s = %d, want 401", what, p.status)
		}
		wantText(t, p, `role="alert"`, `name="next" value="/agents"`)
	}
	wantStatus(t, b.get("/settings/password"), http.StatusSeeOther)

	before := b.cookie()
	wantRedirect(t, b.post("/confirm", "next", "//evil.example", "passkey", device.get(b.asked("/confirm/passkey"))), "/")
	if b.cookie() == before {
		t.Error("confirming kept the cookie, and whoever has a copy is confirmed too")
	}
	wantRedirect(t, copied.get("/"), "/signin")
	wantStatus(t, b.get("/settings/password"), http.StatusOK)
	wantRedirect(t, s.browser(t).get("/confirm?next=/agents"), "/signin?next=%2Fconfirm%3Fnext%3D%2Fagents")
}

// The month is counted from signing in, however often somebody confirms who they are.
func TestConfirmingMakesNoSessionLonger(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t, storetest.Organisation(t, s.db))
	for range 29 {
		s.clock.advance(24 * time.Hour)
		wantRedirect(t, b.post("/confirm", "next", "/agents", "password", goodPassword), "/agents")
	}
	s.clock.advance(24 * time.Hour)
	wantRedirect(t, b.get("/"), "/signin")
}

func TestAllowingWhatDestroysWantsAPersonWhoIsFresh(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	q := s.asks(t, owner, "hermes")
	ask := func(args string, destructive bool) (bare string) {
		c := q.call(store.ConnectionID{}, args)
		c.Tool, c.Shown.Destructive = "mail__"+args[2:6], destructive
		_, bare = q.link(c)
		return bare
	}
	at, writes := ask(`{"send":1}`, true), ask(`{"save":1}`, false)
	s.clock.advance(15*time.Minute + time.Second)
	wantStatus(t, b.get(at), http.StatusOK)
	to := "/confirm?" + url.Values{"next": {at + "?every=yes"}}.Encode()
	wantRedirect(t, b.post(at, "answer", "allow", "every", "yes"), to)
	p := b.get(at + "?every=yes")
	wantText(t, p, "Allow", "checked")
	wantRedirect(t, b.post(writes, "answer", "allow"), writes)
	wantRedirect(t, b.post("/confirm", "next", at+"?every=yes", "password", goodPassword), at+"?every=yes")
	wantRedirect(t, b.post(at, "answer", "allow", "every", "yes"), at)
	wantText(t, b.get(at), "llowed")

	denied := ask(`{"drop":1}`, true)
	s.clock.advance(15*time.Minute + time.Second)
	wantRedirect(t, b.post(denied, "answer", "deny"), denied)
}
