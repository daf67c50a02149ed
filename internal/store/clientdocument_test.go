package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestClientDocumentsAreKeptAndReplaced(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.URL(t), newClock().now)
	const url = "https://kept.example/client.json"
	if d, err := db.System().ClientDocument(t.Context(), url); !store.IsAbsent(err) {
		t.Fatalf("ClientDocument before it is saved = %+v, %v, want not_found", d, err)
	}
	now := db.Now()
	first := store.ClientDocument{URL: url, Document: []byte(`{"client_name": "One"}`), FetchedAt: now, FreshUntil: now.Add(time.Hour)}
	second := store.ClientDocument{URL: url, Document: []byte(`{"client_name": "Two"}`), FetchedAt: now.Add(time.Minute), FreshUntil: now.Add(2 * time.Hour)}
	for _, step := range []struct {
		what       string
		save, want store.ClientDocument
	}{
		{"the first", first, first},
		{"one that was read later", second, second},
		{"one that was read before it", first, second},
	} {
		if err := db.System().SaveClientDocument(t.Context(), step.save); err != nil {
			t.Fatal(err)
		}
		got, err := db.System().ClientDocument(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.what, diff)
		}
	}
}

func TestReapedAreOldClientDocumentsWithoutAGrant(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, newClock().now)
	c := storetest.Organisation(t, db)
	agent, _ := storetest.Agent(t, db, c, "Worker")
	super := connect(t, storetest.Superuser(t, dsn))
	now := db.Now()
	left := map[string]bool{
		"https://old.example/":     false,
		"https://ended.example/":   false,
		"https://granted.example/": true,
		"https://new.example/":     true,
	}
	for url := range left {
		read := now.Add(-48 * time.Hour)
		if url == "https://new.example/" {
			read = now
		}
		if err := db.System().SaveClientDocument(t.Context(), store.ClientDocument{URL: url, Document: []byte(`{}`), FetchedAt: read, FreshUntil: read}); err != nil {
			t.Fatal(err)
		}
	}
	for url, ended := range map[string]*time.Time{"https://granted.example/": nil, "https://ended.example/": &now} {
		if _, err := super.Exec(t.Context(), `
			INSERT INTO oauth_grant (org_id, id, agent_id, user_id, client_id, client_name, redirect_uri, scope, created_at, ended_at, cause)
			VALUES ($1, gen_random_uuid(), $2, $3, $4, 'App', 'https://app.example/', 'mcp', $5, $6, CASE WHEN $6::timestamptz IS NULL THEN NULL ELSE 'person' END)`,
			c.Org, agent.ID, c.User, url, now, ended); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := db.System().ReapClientDocuments(t.Context(), now.Add(-24*time.Hour)); err != nil || n != 2 {
		t.Errorf("ReapClientDocuments = %d, %v, want 2", n, err)
	}
	for url, want := range left {
		_, err := db.System().ClientDocument(t.Context(), url)
		if got := err == nil; got != want || err != nil && !store.IsAbsent(err) {
			t.Errorf("%s is left: %t (%v), want %t", url, got, err, want)
		}
	}
}
