package e2e_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
)

// A front is a proxy of ours before a gateway's own: it counts what pages hold open, and can keep answers back.
type front struct {
	url   string
	live  atomic.Int64                  // live streams that are open
	posts atomic.Int64                  // forms that came
	wait  atomic.Pointer[chan struct{}] // forms wait for it
	busy  atomic.Bool                   // a page said so, at /busy
	cut   atomic.Bool                   // forms are cut off
}

func startFront(t *testing.T, kit *servertest.Kit) *front {
	t.Helper()
	to, err := url.Parse(kit.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // pages leave their streams
	}
	f := &front{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/busy":
			f.busy.Store(true)
			w.WriteHeader(http.StatusNoContent)
			return
		case strings.HasPrefix(r.URL.Path, "/live/"):
			f.live.Add(1)
			defer f.live.Add(-1)
		case r.Method == http.MethodPost:
			f.posts.Add(1)
			if wait := f.wait.Load(); wait != nil {
				select {
				case <-*wait:
				case <-r.Context().Done():
				}
			}
			if f.cut.Load() {
				panic(http.ErrAbortHandler)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return f
}

// hold keeps back the answers to forms until it is released.
func (f *front) hold(t *testing.T) (release func()) {
	wait := make(chan struct{})
	f.wait.Store(&wait)
	release = sync.OnceFunc(func() {
		f.wait.Store(nil)
		close(wait)
	})
	t.Cleanup(release)
	return release
}
