package egress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func TestAnswerIsReturnedWhole(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Line", r.Method+" "+r.RequestURI+" "+r.Proto)
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append(body, "\x89PNG\x00\xff"...))
	})
	for _, r := range []struct{ method, path, body, line string }{
		{"", "", "", "GET / HTTP/2.0"},
		{"GET", "/v1/files/a%2Fb/raw?q=a+b&c=%C3%BC", "", "GET /v1/files/a%2Fb/raw?q=a+b&c=%C3%BC HTTP/2.0"},
		{"PATCH", "/%252e%252e%252f/../x?#f", "{}", "PATCH /%252e%252e%252f/../x? HTTP/2.0"},
		{"DELETE", "/?q=a b&c=ü", "", "DELETE /?q=a%20b&c=%C3%BC HTTP/2.0"},
		{"POST", "/", strings.Repeat("x", 1<<20), "POST / HTTP/2.0"},
	} {
		resp, err := c.Do(t.Context(), egress.Request{Method: r.method, URL: base + r.path, Body: []byte(r.body), Hosts: hostsOf(t, base)})
		if err != nil {
			t.Errorf("%s: %v", r.line, err)
			continue
		}
		got := []string{fmt.Sprint(resp.Status), strings.Replace(resp.Header.Get("X-Line"), "HTTP/1.1", "HTTP/2.0", 1), resp.Header.Get("X-Length"), string(resp.Body)}
		want := []string{"418", r.line, fmt.Sprint(len(r.body)), r.body + "\x89PNG\x00\xff"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
	}
}

func TestRedirectIsReturnedAndNotFollowed(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s %s with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
			t.Errorf("the vendor got %s", r.URL)
		}
		w.Header().Set("Location", other.URL+"/x")
		w.WriteHeader(status)
	})
	for _, status := range []int{301, 302, 303, 307, 308} {
		resp, err := c.Do(t.Context(), egress.Request{
			Method: "POST", URL: fmt.Sprintf("%s/%d", base, status), Body: []byte("x"),
			Hosts: hostsOf(t, base, other.URL), Inject: []egress.Injection{bearer(t, canary)},
		})
		if err != nil || resp.Status != status || resp.Header.Get("Location") != other.URL+"/x" {
			t.Errorf("Do = %+v, %v, want %d with its Location", resp, err, status)
		}
	}
}

func TestBodiesAreTakenUpToTheCap(t *testing.T) {
	t.Parallel()
	const limit = 1000
	var got atomic.Int64
	c, base := startVendor(t, egress.Limits{RequestBody: limit, ResponseBody: limit}, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		got.Add(n)
		var size int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &size)
		if r.URL.RawQuery == "chunked" {
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	})
	for _, query := range []string{"", "?chunked"} {
		resp, err := get(t, c, base, fmt.Sprintf("/%d%s", limit, query))
		if err != nil || len(resp.Body) != limit {
			t.Errorf("answer of %d bytes: %v", limit, err)
		}
		_, err = get(t, c, base, fmt.Sprintf("/%d%s", limit+1, query))
		assertRefused(t, fmt.Sprintf("answer of %d bytes", limit+1), err, reason.TooLarge)
	}
	req := egress.Request{Method: "POST", URL: base + "/0", Hosts: hostsOf(t, base), Body: make([]byte, limit)}
	if _, err := c.Do(t.Context(), req); err != nil || got.Load() != limit {
		t.Errorf("request of %d bytes: %v, the vendor got %d", limit, err, got.Load())
	}
	req.Body = make([]byte, limit+1)
	_, err := c.Do(t.Context(), req)
	assertRefused(t, fmt.Sprintf("request of %d bytes", limit+1), err, reason.TooLarge)
	if got.Load() != limit {
		t.Errorf("the vendor got %d bytes of what was refused", got.Load()-limit)
	}
}

func TestLargeAnswerOfHeadIsNoBody(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{ResponseBody: 10}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
	})
	resp, err := c.Do(t.Context(), egress.Request{Method: "HEAD", URL: base, Hosts: hostsOf(t, base)})
	if err != nil || len(resp.Body) != 0 || resp.Header.Get("Content-Length") != "1000000" {
		t.Errorf("HEAD = %+v, %v, want the length and no body", resp, err)
	}
}

func TestOneDeadlineCoversTheWholeCall(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{Call: 100 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte("the beginning"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	for _, path := range []string{"/header", "/body"} {
		start := time.Now()
		_, err := get(t, c, base, path)
		assertRefused(t, path, err, reason.Timeout)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v is not DeadlineExceeded", path, err)
		}
		if took := time.Since(start); took < 100*time.Millisecond || took > 10*time.Second {
			t.Errorf("%s took %v, want the limit of 100ms", path, took)
		}
	}
}

func TestSilentListenerHitsTheDeadline(t *testing.T) {
	t.Parallel()
	// It listens and never accepts: the kernel connects, and the TLS handshake gets no answer.
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := newClient(t, egress.Config{Allow: loopback, Limits: egress.Limits{Call: 50 * time.Millisecond}})
	_, err = get(t, c, "https://"+l.Addr().String(), "/")
	assertRefused(t, "Do", err, reason.Timeout)
}

func TestCallersCancelEndsTheCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("the agent went away"))
		<-r.Context().Done()
	})
	_, err := c.Do(ctx, egress.Request{URL: base, Hosts: hostsOf(t, base)})
	assertRefused(t, "Do", err, reason.Cancelled)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v, want it to be context.Canceled", err)
	}
}

func TestHeaderFloodIsRefused(t *testing.T) {
	t.Parallel()
	handler := func(w http.ResponseWriter, r *http.Request) {
		var lines, size int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/%d", &lines, &size); err != nil {
			t.Error(err)
		}
		w.Header()["Date"] = nil
		w.Header()["Content-Length"] = []string{"0"}
		for i := range lines - 1 {
			w.Header().Add(fmt.Sprintf("X-%d", i/2), strings.Repeat("x", size))
		}
	}
	for _, http2 := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(handler))
		srv.EnableHTTP2 = http2
		srv.StartTLS()
		t.Cleanup(srv.Close)
		c := newClient(t, egress.Config{Allow: loopback, RootCAs: trust(srv)})
		if resp, err := get(t, c, srv.URL, "/256/10"); err != nil {
			t.Errorf("256 headers, HTTP/2 %v: %+v, %v", http2, resp, err)
		}
		_, err := get(t, c, srv.URL, "/257/10")
		assertRefused(t, fmt.Sprintf("257 headers, HTTP/2 %v", http2), err, reason.TooLarge)
		_, err = get(t, c, srv.URL, "/100/1000")
		assertRefused(t, fmt.Sprintf("100 kB of headers, HTTP/2 %v", http2), err, reason.UpstreamUnavailable)
	}
}

func TestEndlessHeaderIsCutOff(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"X-A: b\r\n", "x", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"} {
		base, sent := serveRaw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for { // until the client has had enough
				if _, err := io.WriteString(conn, strings.Repeat(piece, 100)); err != nil {
					return
				}
			}
		})
		c := newClient(t, egress.Config{Allow: loopback})
		_, err := get(t, c, base, "/")
		assertRefused(t, fmt.Sprintf("endless %q", piece), err, reason.UpstreamUnavailable)
		<-sent
	}
}

// serveRaw answers each connection on loopback with serve, once a request has begun to arrive. The channel gets a
// value when one has been served.
func serveRaw(t testing.TB, serve func(net.Conn)) (base string, served <-chan struct{}) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	each, done := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			serve(conn)
			_ = conn.Close()
			each <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String(), each
}

func TestHeadersOfTheConnectionAndOfTheCallerAreNotForwarded(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		h := r.Header.Clone()
		h.Set("Seen-Host", r.Host)
		got <- h
		for _, name := range []string{"Keep-Alive", "Proxy-Authenticate", "Upgrade", "X-Named", "X-Graft-Redacted", "X-Kept"} {
			w.Header().Set(name, "x")
		}
		w.Header().Set("Connection", "keep-alive, x-named")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
	})
	resp, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Header: http.Header{
		"Connection": {"close, X-Named", "x-named-too"}, "X-Named": {"x"}, "X-Named-Too": {"x"}, "Keep-Alive": {"x"},
		"Proxy-Connection": {"x"}, "TE": {"trailers"}, "Trailer": {"x"}, "Transfer-Encoding": {"chunked"}, "Upgrade": {"websocket"},
		"authorization": {"Bearer mine"}, "Authorization": {"Bearer mine"}, "proxy-authorization": {"x"}, "cookie": {"a=b"}, "Cookie": {"a=b"},
		"X-Forwarded-For": {"10.0.0.1"}, "x-forwarded-host": {"a"}, "Forwarded": {"for=x"}, "Via": {"x"}, "Traceparent": {"x"}, "tracestate": {"x"}, "baggage": {"x"},
		"X-Amzn-Trace-Id": {"x"}, "X-Amz-Cf-Id": {"x"}, "CloudFront-Viewer-Country": {"x"}, "Proxy-Anything": {"x"}, "X-Real-IP": {"x"}, "X-Graft-Token": {"x"},
		"Host": {"evil.test"}, "host": {"evil.test"}, "Content-Length": {"5"}, "Expect": {"100-continue"},
		"x-kept": {"1"}, "X-Kept": {"2"}, "X-Empty": {""},
	}})
	if err != nil {
		t.Fatal(err)
	}
	seen := <-got
	if n := len(seen["X-Kept"]); n != 2 {
		t.Errorf("X-Kept arrived %d times, want 2", n)
	}
	delete(seen, "X-Kept") // their order is a map's
	want := http.Header{
		"Accept-Encoding": {"identity"}, "User-Agent": {"Graft"}, "X-Empty": {""}, "Seen-Host": {strings.TrimPrefix(base, "https://")},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("request headers (-want +got):\n%s", diff)
	}
	resp.Header.Del("Date")
	wantBack := http.Header{"X-Kept": {"x"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Length": {"0"}}
	if diff := cmp.Diff(wantBack, resp.Header); diff != "" {
		t.Errorf("response headers (-want +got):\n%s", diff)
	}
}

func TestCookiesAreNotKept(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if cookies := r.Cookies(); len(cookies) > 0 {
			t.Errorf("the vendor got %v", cookies)
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Secure: true, HttpOnly: true})
	})
	for range 2 {
		if _, err := get(t, c, base, "/"); err != nil {
			t.Error(err)
		}
	}
}

func TestUserAgentOfTheCallerIsKept(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.UserAgent())
	})
	resp, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Header: http.Header{"user-agent": {"mine/1"}}})
	if err != nil || string(resp.Body) != "mine/1" {
		t.Errorf("User-Agent = %+v, %v, want mine/1", resp, err)
	}
}

func TestWhatNoRequestMayHoldIsRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the vendor got %s %v", r.Method, r.Header)
	})
	for _, r := range []struct {
		req   egress.Request
		field string
	}{
		{egress.Request{Method: "CONNECT"}, "method"},
		{egress.Request{Method: "TRACE"}, "method"},
		{egress.Request{Method: "trace"}, "method"},
		{egress.Request{Method: "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"}, "method"},
		{egress.Request{Method: "GÉT"}, "method"},
		{egress.Request{Header: http.Header{"Accept-Language": {canary + "\r\nX-Admin: 1"}}}, "headers"},
		{egress.Request{Header: http.Header{"Accept-Language": {canary + "\nHost: evil"}}}, "headers"},
		{egress.Request{Header: http.Header{"Accept-Language": {canary + "\x00b"}}}, "headers"},
		{egress.Request{Header: http.Header{"Accept: x\r\nX-Admin": {canary}}}, "headers"},
		{egress.Request{Header: http.Header{"": {canary}}}, "headers"},
		{egress.Request{Header: http.Header{"X Y": {canary}}}, "headers"},
	} {
		r.req.URL, r.req.Hosts = base, hostsOf(t, base)
		_, err := c.Do(t.Context(), r.req)
		assertRefused(t, fmt.Sprintf("%+v", r.req), err, reason.InputInvalid)
		if got := reason.Of(err); got.Details["field"] != r.field {
			t.Errorf("%v is about %v, want %s", got, got.Details["field"], r.field)
		}
		assertNoCanary(t, err)
	}
}

func TestFailuresAreNamed(t *testing.T) {
	t.Parallel()
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0) // failed handshakes are the point
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.Config.ErrorLog = quiet
	picky.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12}
	picky.StartTLS()
	t.Cleanup(picky.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	raw := func(answer string) string {
		base, _ := serveRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		return base
	}
	pool := trust(picky)
	c := newClient(t, egress.Config{Allow: loopback, RootCAs: pool, Resolver: serveDNS(t, map[string]zone{"wrong-name.test": always("127.0.0.1")})})
	strict := newClient(t, egress.Config{Allow: loopback})
	for _, f := range []struct {
		name   string
		client *egress.Client
		base   string
		code   string
	}{
		{"no such name", c, "https://nowhere.test", "dns"},
		{"refused", c, refused, "refused"},
		{"certificate not trusted", strict, untrusted.URL, "tls"},
		{"certificate for another name", c, strings.Replace(picky.URL, "127.0.0.1", "wrong-name.test", 1), "tls"},
		{"client certificate wanted", c, picky.URL, "tls"},
		{"plain where TLS is spoken", c, strings.Replace(plain.URL, "http:", "https:", 1), "protocol"},
		{"not HTTP", c, raw("220 smtp.vendor.test ESMTP\r\n"), "protocol"},
		{"nothing", c, raw(""), "closed"},
		{"cut body", c, raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "closed"},
		{"cut chunk", c, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha"), "closed"},
		{"bad chunk", c, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "protocol"},
		{"another protocol", c, raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "protocol"},
	} {
		_, err := get(t, f.client, f.base, "/?key="+canary, bearer(t, canary))
		assertRefused(t, f.name, err, reason.UpstreamUnavailable)
		if got := reason.Of(err).Details["code"]; got != f.code {
			t.Errorf("%s: code = %v in %v, want %s", f.name, got, err, f.code)
		}
		assertNoCanary(t, err)
	}
}

func TestHeaderTraceOfTheCallerIsNotShownTheCredential(t *testing.T) {
	t.Parallel()
	arrived := make(chan string, 1)
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header.Get("Authorization") })
	var connects atomic.Int32
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteHeaderField: func(key string, value []string) { t.Errorf("trace got %s: %q", key, value) },
		ConnectStart:     func(_, _ string) { connects.Add(1) },
	})
	if _, err := c.Do(ctx, egress.Request{URL: base, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}}); err != nil {
		t.Fatal(err)
	}
	if got := <-arrived; got != "Bearer "+canary {
		t.Errorf("Authorization = %q, want the credential to arrive", got)
	}
	if connects.Load() == 0 {
		t.Error("the trace of connections got nothing")
	}
}

func TestHeadersOfARequestAreSentUpToTheCap(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	c, base := startVendor(t, egress.Limits{RequestHeaders: 10, RequestHeaderBytes: 1000}, func(http.ResponseWriter, *http.Request) { got.Add(1) })
	for _, r := range []struct {
		lines, size int
		want        reason.Word
	}{{10, 90, ""}, {11, 10, reason.TooLarge}, {10, 100, reason.TooLarge}} {
		h := http.Header{}
		for range r.lines {
			h.Add("X", strings.Repeat("y", r.size))
		}
		if _, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), Header: h}); r.want != "" {
			assertRefused(t, fmt.Sprintf("%d headers of %d bytes", r.lines, r.size), err, r.want)
		} else if err != nil {
			t.Error(err)
		}
	}
	if got.Load() != 1 {
		t.Errorf("the vendor got %d requests, want 1", got.Load())
	}
}

func TestNegativeLimitIsRefused(t *testing.T) {
	t.Parallel()
	for _, l := range []egress.Limits{{Call: -1}, {RequestBody: -1}, {RequestHeaders: -1}, {RequestHeaderBytes: -1}, {ResponseBody: -1}, {ResponseHeaderBytes: -1}, {ResponseHeaders: -1}} {
		if _, err := egress.New(egress.Config{Limits: l}); err == nil {
			t.Errorf("New with %+v succeeds", l)
		}
	}
}
