package server_test

import (
	"net/http"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// Pages that take the database long are put together a few at a time for each user: its connections are everybody's.
func TestPagesOfOneUserAreFewAtATime(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Private: true, Replicas: 1})
	k.Owner = organisation(t, k)
	browser := k.SignIn(t, k.Owner)
	other := k.SignIn(t, storetest.Member(t, k.DB, k.Owner, store.RoleMember))
	unlock := storetest.Lock(t, k.DSN, "audit_entry")
	const requests = 10
	answers := make(chan answer, requests)
	for range requests {
		go func() {
			a, err := try(t.Context(), browser, http.MethodGet, k.URL+"/activity", "")
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	for n := range requests - 4 {
		if a := <-answers; a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "2" {
			t.Errorf("page %d = %d, Retry-After %q; want 429 and 2 seconds", n, a.status, a.header.Get("Retry-After"))
		}
	}
	if a := ask(t, other, http.MethodGet, k.URL+"/agents", ""); a.status != http.StatusOK {
		t.Errorf("a page of another user meanwhile = %d, want 200", a.status)
	}
	unlock()
	for range 4 {
		if a := <-answers; a.status != http.StatusOK {
			t.Errorf("one of the pages under way = %d, want 200", a.status)
		}
	}
	if a := ask(t, browser, http.MethodGet, k.URL+"/activity", ""); a.status != http.StatusOK {
		t.Errorf("a page after that = %d, want 200", a.status)
	}
}

// Anybody may ask whether a replica is ready, as often as they like.
func TestReadinessIsRemembered(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Private: true, Replicas: 1})
	idle := transactionsPerSecond(t, k, func() {})
	busy := transactionsPerSecond(t, k, func() {
		for range 1000 {
			if a := ask(t, bare, http.MethodGet, k.URL+"/readyz", ""); a.status != http.StatusOK {
				t.Fatalf("/readyz = %d %s", a.status, a.body)
			}
		}
	})
	if busy > idle+30 {
		t.Errorf("%.0f transactions a second while readiness is asked for, %.0f idle; want some four more", busy, idle)
	}
}
