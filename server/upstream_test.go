package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// An upstream that is added beside the gateway serves on both replicas at once, and is gone from both when it is
// revoked. C11: what a client sends of its own never reaches it.
func TestAnUpstreamServesOnEveryReplicaAndHearsNothingOfTheClient(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{Bearer: "theirs"})
	k := servertest.Start(t, servertest.Options{})
	_, token := k.Agent(t)
	host := "Host: " + strings.TrimPrefix(k.URL, "http://")
	headers := []string{host, "Authorization: Bearer " + token, "Content-Type: application/json", "Accept: application/json, text/event-stream"}
	hello := ask(t, bare, "POST", k.Replicas()[0].URL+"/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers...)
	session := hello.header.Get("Mcp-Session-Id")
	if hello.status != http.StatusOK || session == "" {
		t.Fatalf("initialize = %d %s", hello.status, hello.body)
	}
	headers = append(headers, "Mcp-Session-Id: "+session, "Cookie: a=client-cookie", "X-Api-Key: client-key")
	call := func(r *servertest.Replica, n int) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_tool","arguments":{"vendor":"demo","name":"echo","input":{"n":%d}}}}`, n, n)
		return ask(t, bare, "POST", r.URL+"/mcp", body, headers...).body
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !holds(); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within 10 s", what)
			}
		}
	}

	u := k.Upstream(t, upstream.Addition{
		Name: "demo", URL: srv.URL, Headers: []upstream.Header{{Name: "Authorization", Value: "Bearer theirs"}},
		Settings: store.UpstreamSettings{TrustHints: true},
	})
	if u.State != store.UpstreamOK {
		t.Fatalf("Add() = %s: %s", u.State, u.LastError)
	}
	for n, r := range k.Replicas() {
		until("the upstream's tool on "+r.URL, func() bool { return strings.Contains(call(r, n+1), fmt.Sprintf(`"structuredContent":{"n":%d}`, n+1)) })
	}
	wire := srv.Wire()
	for _, foreign := range []string{token, session, "client-cookie", "client-key", "Mcp-Session-Id: " + session} {
		if strings.Contains(wire, foreign) {
			t.Errorf("the upstream was sent %q of the client's", foreign)
		}
	}
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) }); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	for _, r := range k.Replicas() {
		until("the upstream to be gone from "+r.URL, func() bool { return strings.Contains(call(r, 9), "tool_not_found") })
	}
	if took := time.Since(since); took > within {
		t.Errorf("a revoked upstream served for %v, want at most %v", took, within)
	}
	until("its sessions to end", func() bool { return srv.Sessions() == 0 })
	k.StopAll()
	if warnings := k.Log.Warnings(); strings.Contains(warnings, "theirs") {
		t.Errorf("the log holds the header:\n%s", warnings)
	}
}
