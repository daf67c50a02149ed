package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func addClient(t *testing.T, db *store.DB, c store.OAuthClient) store.OAuthClient {
	t.Helper()
	if c.RedirectURIs == nil {
		c.RedirectURIs = []string{"http://localhost/callback"}
	}
	if c.AuthMethod == "" {
		c.AuthMethod = "none"
	}
	c, err := db.System().AddOAuthClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// addGrant makes a grant of client, as a consent would.
func addGrant(t *testing.T, conn *pgx.Conn, owner store.Caller, agent store.Agent, client string) store.GrantID {
	t.Helper()
	id := store.NewID[store.GrantKind](time.Now())
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO oauth_grant (org_id, id, agent_id, user_id, client_id, client_name, redirect_uri, scope, created_at)
		VALUES ($1, $2, $3, $4, $5, 'Claude', 'http://localhost/callback', 'mcp', now())`,
		owner.Org, id, agent.ID, owner.User, client); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnOAuthClientIsFoundAsItRegistered(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	_, hash := store.NewToken(store.ClientSecretPrefix)
	for _, c := range []store.OAuthClient{
		{Name: "Claude", RedirectURIs: []string{"https://claude.ai/api/mcp/auth_callback"}, AuthMethod: "none"},
		{Name: "", RedirectURIs: []string{"http://localhost/a", "cursor://b/c"}, AuthMethod: "client_secret_post", Secret: hash[:], ApplicationType: "native"},
		{Name: "B\u00fccher", RedirectURIs: []string{"http://localhost/a"}, AuthMethod: "client_secret_basic", Secret: hash[:], ApplicationType: "web"},
	} {
		added := addClient(t, db, c)
		found, err := db.System().OAuthClient(t.Context(), added.ID)
		if err != nil {
			t.Fatal(err)
		}
		found.CreatedAt, found.LastUsedAt = found.CreatedAt.UTC(), found.LastUsedAt.UTC()
		c.ID, c.CreatedAt, c.LastUsedAt = added.ID, clock.now().UTC(), clock.now().UTC()
		for _, got := range []store.OAuthClient{added, found} {
			if diff := cmp.Diff(c, got, cmp.Comparer(func(a, b store.ClientID) bool { return a == b })); diff != "" || got.ID.IsZero() {
				t.Errorf("client (-want +got):\n%s", diff)
			}
		}
	}
	if c, err := db.System().OAuthClient(t.Context(), store.NewID[store.ClientKind](clock.now())); !store.IsAbsent(err) {
		t.Errorf("OAuthClient() of nobody = %v, %v, want not found", c, err)
	}
}

// A secret is there if and only if the method needs one, whoever writes the row.
func TestAnOAuthClientIsWhole(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	_, hash := store.NewToken(store.ClientSecretPrefix)
	for name, c := range map[string]store.OAuthClient{
		"a secret for none":   {AuthMethod: "none", Secret: hash[:], RedirectURIs: []string{"http://localhost/a"}},
		"no secret":           {AuthMethod: "client_secret_post", RedirectURIs: []string{"http://localhost/a"}},
		"no address":          {AuthMethod: "none", RedirectURIs: []string{}},
		"eleven addresses":    {AuthMethod: "none", RedirectURIs: make([]string, 11)},
		"another method":      {AuthMethod: "private_key_jwt", RedirectURIs: []string{"http://localhost/a"}},
		"another application": {AuthMethod: "none", ApplicationType: "desktop", RedirectURIs: []string{"http://localhost/a"}},
	} {
		if _, err := db.System().AddOAuthClient(t.Context(), c); sqlstate(err) != "23514" { // check_violation
			t.Errorf("AddOAuthClient() with %s = %v, want a violated check", name, err)
		}
	}
}

func TestTouchOAuthClientWritesOnceAnHour(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	c := addClient(t, db, store.OAuthClient{})
	other := addClient(t, db, store.OAuthClient{})
	at := clock.now()
	for _, step := range []struct {
		pass time.Duration
		want time.Duration // after at
	}{
		{0, 0},
		{59 * time.Minute, 0},
		{time.Minute, time.Hour},
		{30 * time.Minute, time.Hour},
		{48 * time.Hour, 49*time.Hour + 30*time.Minute},
		{-time.Hour, 49*time.Hour + 30*time.Minute}, // another replica's clock
	} {
		clock.pass(step.pass)
		if err := db.System().TouchOAuthClient(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		got, err := db.System().OAuthClient(t.Context(), c.ID)
		if err != nil || !got.LastUsedAt.Equal(at.Add(step.want)) || !got.CreatedAt.Equal(at) {
			t.Errorf("after %v more: last used %v, %v, want %v", step.pass, got.LastUsedAt, err, at.Add(step.want))
		}
	}
	if got, err := db.System().OAuthClient(t.Context(), other.ID); err != nil || !got.LastUsedAt.Equal(at) {
		t.Errorf("another client was touched: %v, %v", got.LastUsedAt, err)
	}
	if err := db.System().TouchOAuthClient(t.Context(), store.NewID[store.ClientKind](at)); err != nil {
		t.Errorf("TouchOAuthClient() of nobody = %v, want nil", err)
	}
}

func TestReapOAuthClients(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	owner := storetest.Organisation(t, db)
	agent, _ := storetest.Agent(t, db, owner, "one")
	conn := connect(t, storetest.Superuser(t, dsnOf(db)))

	granted, ended, unused := addClient(t, db, store.OAuthClient{}), addClient(t, db, store.OAuthClient{}), addClient(t, db, store.OAuthClient{})
	for range 2 {
		addGrant(t, conn, owner, agent, granted.ID.String())
	}
	over := addGrant(t, conn, owner, agent, ended.ID.String())
	one := addGrant(t, conn, owner, agent, granted.ID.String())
	addGrant(t, conn, owner, agent, "https://claude.ai/oauth/mcp-oauth-client-metadata")
	if _, err := conn.Exec(t.Context(), `UPDATE oauth_grant SET ended_at = now(), cause = 'person' WHERE id IN ($1, $2)`, over, one); err != nil {
		t.Fatal(err)
	}
	clock.pass(48 * time.Hour)
	used := addClient(t, db, store.OAuthClient{})
	before := clock.now().Add(-time.Hour)

	for _, want := range []int64{2, 0} {
		if n, err := db.System().ReapOAuthClients(t.Context(), before); err != nil || n != want {
			t.Errorf("ReapOAuthClients() = %d, %v, want %d", n, err, want)
		}
	}
	for name, tt := range map[string]struct {
		id   store.ClientID
		kept bool
	}{"with a live grant": {granted.ID, true}, "used since": {used.ID, true}, "whose grant has ended": {ended.ID, false}, "nobody used": {unused.ID, false}} {
		if _, err := db.System().OAuthClient(t.Context(), tt.id); store.IsAbsent(err) == tt.kept {
			t.Errorf("the client %s: %v, want kept = %v", name, err, tt.kept)
		}
	}
	// Last used at the moment itself is not before it.
	if n, err := db.System().ReapOAuthClients(t.Context(), used.LastUsedAt); err != nil || n != 0 {
		t.Errorf("ReapOAuthClients() at the moment of use = %d, %v, want none", n, err)
	}
}

// Many are reaped in several transactions, and those that stay are not in the way of those that go.
func TestReapOAuthClientsReachesAll(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	owner := storetest.Organisation(t, db)
	agent, _ := storetest.Agent(t, db, owner, "one")
	conn := connect(t, storetest.Superuser(t, dsnOf(db)))
	kept := addClient(t, db, store.OAuthClient{})
	addGrant(t, conn, owner, agent, kept.ID.String())
	const many = 2*store.ReapAtOnce + 7
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO oauth_client (id, name, redirect_uris, auth_method, created_at, last_used_at)
		SELECT gen_random_uuid(), '', ARRAY['http://localhost/a'], 'none', $1, $1 FROM generate_series(1, $2)`, clock.now(), many); err != nil {
		t.Fatal(err)
	}
	if n, err := db.System().ReapOAuthClients(t.Context(), clock.now().Add(time.Hour)); err != nil || n != many {
		t.Errorf("ReapOAuthClients() = %d, %v, want %d", n, err, many)
	}
	if n := number(t, conn, `SELECT count(*) FROM oauth_client`); n != 1 {
		t.Errorf("%d clients are left, want 1", n)
	}
}

// A client that is used while it is about to be reaped stays.
func TestReapOAuthClientsLooksAgain(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	conn := connect(t, storetest.Superuser(t, dsnOf(db)))
	using := connect(t, storetest.Superuser(t, dsnOf(db)))
	c := addClient(t, db, store.OAuthClient{})
	before := clock.now().Add(time.Hour)

	run(t, using, `BEGIN`)
	if _, err := using.Exec(t.Context(), `UPDATE oauth_client SET last_used_at = $1 WHERE id = $2`, before, c.ID); err != nil {
		t.Fatal(err)
	}
	type result struct {
		n   int64
		err error
	}
	reaped := make(chan result, 1)
	go func() {
		n, err := db.System().ReapOAuthClients(t.Context(), before)
		reaped <- result{n, err}
	}()
	eventually(t, "the reaper waits for the row", func() bool {
		return number(t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	run(t, using, `COMMIT`)
	if got := <-reaped; got != (result{}) {
		t.Errorf("ReapOAuthClients() = %d, %v, want none", got.n, got.err)
	}
	if _, err := db.System().OAuthClient(t.Context(), c.ID); err != nil {
		t.Errorf("the client that was used: %v", err)
	}
}
