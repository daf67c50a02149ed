package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// A server that names the credential it was sent as the version it speaks does not get it into our sentences.
func TestAVersionThatIsTheCredentialIsNotRepeated(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	srv.Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if m.Method != "initialize" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
			m.ID, r.Header.Get("Authorization"))
		return true
	})
	r := one(t)
	u := r.tryAdd("echo", srv.URL, upstream.Header{Name: "Authorization", Value: "Bearer canary-7f3a"})
	if strings.Contains(u.LastError, "canary-7f3a") {
		t.Errorf("LastError = %q, want it without the credential", u.LastError)
	}
}

// A tool may be called what another is renamed to because it stands in the list twice.
func TestAListIsKeptWhereANameMeetsThatOfARepeatedTool(t *testing.T) {
	t.Parallel()
	tool := func(name string) upstreamtest.Tool { return upstreamtest.Tool{Name: name} }
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{tool("a (again, 3)"), tool("a"), tool("a")}})
	u, err := one(t).tryAddErr("twice", srv.URL)
	if err != nil || u.State != store.UpstreamOK {
		t.Errorf("Add() = %s, %v, want a list that is kept", u.State, err)
	}
}

func (r *replica) tryAddErr(name, url string) (store.Upstream, error) {
	return r.Add(r.t.Context(), r.owner, upstream.Addition{Name: name, URL: url})
}

// A stream that ends and goes on, again and again, ends with the time that its request has.
func TestAStreamThatGoesOnWithoutEndEndsWithItsTime(t *testing.T) {
	t.Parallel()
	srv := upstreamtest.Start(t, upstreamtest.Options{})
	var gets atomic.Int64
	srv.Script(func(w http.ResponseWriter, r *http.Request, m upstreamtest.Message) bool {
		if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "" || r.Method == http.MethodPost && m.Method != "tools/list" || r.Method == http.MethodDelete {
			return false
		}
		if r.Method == http.MethodGet {
			gets.Add(1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "id: %d\nretry: 50\ndata: {}\n\n", gets.Load()+1)
		return true
	})
	d := dialTo(t, srv.URL)
	d.ConnectTimeout = 500 * time.Millisecond
	s := openTo(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	began := time.Now()
	_, err := s.Tools(ctx)
	if took := time.Since(began); err == nil || took > 4*time.Second {
		t.Errorf("Tools() = %v after %s and %d resumptions, want it over after its 500 ms", err, took, gets.Load())
	}
}
