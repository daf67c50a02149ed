package egress_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func TestStreamIsReadAsItComes(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	c, base := startVendor(t, egress.Limits{Call: time.Nanosecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Keep-Alive", "timeout=5")
		if got := r.Header.Get("Authorization"); got != "Bearer "+canary {
			t.Errorf("Authorization = %q", got)
		}
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "line %d\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	s, err := c.Stream(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}, Timeout: -1, Silence: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if s.Status != 200 || s.Header.Get("Content-Type") != "text/event-stream" || s.Header.Get("Keep-Alive") != "" {
		t.Errorf("answer = %d %v", s.Status, s.Header)
	}
	lines := bufio.NewReader(s)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("line %d\n", i) {
			t.Errorf("line %d = %q, %v", i, line, err)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v, want io.EOF", err)
	}
}

func TestStreamIsPinnedAndFollowsNothing(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://other.test/", http.StatusTemporaryRedirect)
	})
	s, err := c.Stream(t.Context(), egress.Request{Method: "POST", Body: []byte("x"), URL: base, Hosts: hostsOf(t, base)})
	if err != nil || s.Status != http.StatusTemporaryRedirect {
		t.Fatalf("Stream = %+v, %v, want the redirect", s, err)
	}
	_ = s.Close()
	_, err = c.Stream(t.Context(), egress.Request{URL: "https://169.254.169.254/", Hosts: hostsOf(t, "169.254.169.254")})
	assertRefused(t, "metadata", err, reason.HostNotPublic)
	_, err = c.Stream(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, "other.test")})
	assertRefused(t, "a host that is not in the set", err, reason.HostNotInSet)
}

func TestStreamEndsAtItsBounds(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{Call: time.Minute, ResponseBody: 10}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			return
		}
		for r.URL.Path == "/dribble" && r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	for _, bound := range []struct {
		path string
		req  egress.Request
		want reason.Word
	}{
		{"/", egress.Request{}, reason.TooLarge},
		{"/", egress.Request{AnswerLimit: 99}, reason.TooLarge},
		{"/", egress.Request{AnswerLimit: 100}, ""},
		{"/dribble", egress.Request{AnswerLimit: 200}, reason.TooLarge},
		{"/dribble", egress.Request{AnswerLimit: 1600, Silence: time.Second}, reason.TooLarge}, // after a second and a half
		{"/hang", egress.Request{AnswerLimit: 1000, Timeout: 50 * time.Millisecond}, reason.Timeout},
		{"/hang", egress.Request{AnswerLimit: 1000, Silence: 50 * time.Millisecond}, reason.Timeout},
		{"/dribble", egress.Request{AnswerLimit: 1 << 20, Timeout: 100 * time.Millisecond, Silence: 50 * time.Millisecond}, reason.Timeout},
	} {
		bound.req.URL, bound.req.Hosts = base+bound.path+"?key="+canary, hostsOf(t, base)
		what := fmt.Sprintf("%s within %d bytes, %s, silent for %s", bound.path, bound.req.AnswerLimit, bound.req.Timeout, bound.req.Silence)
		s, err := c.Stream(t.Context(), bound.req)
		if err != nil { // a busy machine takes its time over the header, too
			assertRefused(t, what, err, bound.want)
			continue
		}
		n, err := io.Copy(io.Discard, s)
		if bound.want == "" {
			if err != nil || n != 100 {
				t.Errorf("%s: %d bytes, %v, want all", what, n, err)
			}
		} else {
			assertRefused(t, what, err, bound.want)
			assertNoCanary(t, err)
		}
		if _, again := s.Read(make([]byte, 1)); err != nil && !errors.Is(again, err) {
			t.Errorf("%s: the next Read is %v, want %v again", what, again, err)
		}
		if limit := bound.req.AnswerLimit; limit > 0 && n > limit {
			t.Errorf("%s: %d bytes were given", what, n)
		}
		_ = s.Close()
	}
}

func TestSilenceCoversTheHeaderToo(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := c.Stream(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Silence: 50 * time.Millisecond})
	assertRefused(t, "Stream", err, reason.Timeout)
}

func TestErrorSaysWhetherTheRequestMayHaveBeenCarriedOut(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	c, base := startVendor(t, egress.Limits{Call: 5 * time.Second}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1)
		panic(http.ErrAbortHandler)
	})
	req := egress.Request{Method: "POST", URL: base, Hosts: hostsOf(t, base), Body: []byte("x")}
	if _, err := c.Do(t.Context(), req); !errors.Is(err, egress.ErrSent) || got.Load() != 1 {
		t.Errorf("closed after the request: %v, %d requests, want ErrSent and 1", err, got.Load())
	}
	req.Body = make([]byte, 11<<20)
	if _, err := c.Do(t.Context(), req); err == nil || errors.Is(err, egress.ErrSent) {
		t.Errorf("too large to send: %v, want not ErrSent", err)
	}
	req.Body, req.URL, req.Hosts = []byte("x"), "http://127.0.0.1:1", hostsOf(t, "http://127.0.0.1:1")
	if _, err := c.Do(t.Context(), req); err == nil || errors.Is(err, egress.ErrSent) {
		t.Errorf("refused connection: %v, want not ErrSent", err)
	}
}

func TestManyCallersReuseTheirConnections(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	var conns atomic.Int32
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c := newClient(t, egress.Config{Allow: loopback})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				resp, err := c.Do(t.Context(), egress.Request{Method: "POST", URL: srv.URL, Hosts: hostsOf(t, srv.URL), Body: []byte("hello")})
				if err != nil || string(resp.Body) != "hello" {
					t.Errorf("Do = %+v, %v", resp, err)
				}
			}
		})
	}
	wg.Wait()
	if n := conns.Load(); n > 128 {
		t.Errorf("%d connections for 1280 requests of 64 callers", n)
	}
}
