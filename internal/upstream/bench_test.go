package upstream_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/upstream"
)

// The two beside each other say what a session, egress and a credential cost over a bare client. Both share the machine
// with the server, which is a part of each number.

func BenchmarkCall(b *testing.B) {
	for _, sse := range []bool{false, true} {
		b.Run(fmt.Sprintf("events=%v", sse), func(b *testing.B) {
			url := startEcho(b, sse)
			d := dialTo(b, url)
			d.Header = []egress.Injection{bearer(b, "secret")}
			s := openTo(b, d)
			each(b, func() error { return callEcho(b, s) })
		})
	}
}

func BenchmarkBareClient(b *testing.B) {
	url := startEcho(b, false)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	b.Cleanup(c.CloseIdleConnections)
	each(b, func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader([]byte(
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello, world"}}}`)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", "session-1")
		req.Header.Set("Authorization", "Bearer secret")
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.ReadAll(resp.Body)
		return err
	})
}

func callEcho(b *testing.B, s *upstream.Session) error {
	_, err := s.Call(b.Context(), "echo", jsontext.Value(`{"message":"hello, world"}`), nil, nil)
	return err
}

// each runs f from one caller and from 64 at once.
func each(b *testing.B, f func() error) {
	b.Helper()
	b.Run("callers=1", func(b *testing.B) {
		b.ReportAllocs()
		defer reportCPU(b)()
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("callers=64", func(b *testing.B) {
		b.ReportAllocs()
		defer reportCPU(b)()
		b.SetParallelism(max(64/runtime.GOMAXPROCS(0), 1))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := f(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// reportCPU reports the time on the processor, which a busy machine does not make longer as it does the other.
func reportCPU(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// startEcho serves one answer of about a kilobyte to every call, as cheaply as net/http can.
func startEcho(b *testing.B, sse bool) string {
	b.Helper()
	text := bytes.Repeat([]byte("x"), 900)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, _, _ := bytes.Cut(bytes.TrimPrefix(body, []byte(`{"jsonrpc":"2.0","id":`)), []byte(","))
		result := fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}]}`, text)
		switch {
		case bytes.Contains(body, []byte(`"initialize"`)):
			w.Header().Set("Mcp-Session-Id", "session-1")
			result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"echo","version":"1"}}`)
		case bytes.Contains(body, []byte(`"notifications/`)):
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if sse {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, result)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}))
	b.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}
