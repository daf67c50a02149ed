package mcp_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
)

// heap is the live heap after everything unreachable is gone.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkIdleSessions opens sessions that stay open and do nothing. The bars are 1.5 KiB of heap a session and 4,000
// opens a second.
func BenchmarkIdleSessions(b *testing.B) {
	k := servertest.Start(b, servertest.Options{Replicas: 1, NoLog: true})
	_, token := k.Agent(b)
	url, host := k.Replicas()[0].URL+"/mcp", strings.TrimPrefix(k.URL, "http://")
	before := heap()
	each(b, 16, func(client *http.Client) {
		rawPost(b, client, url, host, token, "", initialize("2025-06-18"))
	})
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/session")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "opens/s")
}

// BenchmarkOpenStreams opens streams that stay open. The bar is 45 KiB a stream. The client's end is a bare connection,
// which holds next to nothing.
func BenchmarkOpenStreams(b *testing.B) {
	k := servertest.Start(b, servertest.Options{Replicas: 1, NoLog: true})
	address := strings.TrimPrefix(k.Replicas()[0].URL, "http://")
	var agents []*client // an agent has a hundred streams at most
	for range b.N/80 + 1 {
		agents = append(agents, connect(b, k, "2025-06-18"))
	}
	request := func(c *client) string {
		return "GET /mcp HTTP/1.1\r\nHost: " + strings.TrimPrefix(k.URL, "http://") + "\r\nAuthorization: Bearer " + c.token +
			"\r\nMcp-Session-Id: " + c.session + "\r\nAccept: text/event-stream\r\n\r\n"
	}
	before := memory()
	var open []net.Conn
	head := make([]byte, 4096)
	b.ResetTimer()
	for range b.N {
		conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, conn)
		c := agents[len(open)/80%len(agents)]
		if len(open)%4 == 0 { // a session has four streams at most
			c.session = c.post(initialize("2025-06-18"), "Mcp-Session-Id:").header.Get("Mcp-Session-Id")
		}
		if _, err := io.WriteString(conn, request(c)); err != nil {
			b.Fatal(err)
		}
		if n, err := conn.Read(head); err != nil || !strings.HasPrefix(string(head[:n]), "HTTP/1.1 200") {
			b.Fatalf("GET = %q, %v", head[:n], err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(memory()-before)/float64(b.N)/1024, "KiB/stream")
	for _, conn := range open {
		_ = conn.Close()
	}
}

// BenchmarkOpenAndDelete opens sessions and ends each, as a client does that comes and goes. Nothing is to stay.
func BenchmarkOpenAndDelete(b *testing.B) {
	k := servertest.Start(b, servertest.Options{Replicas: 1, NoLog: true})
	_, token := k.Agent(b)
	c := &client{t: b, url: k.URL + "/mcp", token: token}
	before := heap()
	for b.Loop() {
		c.session = ""
		c.session = c.post(initialize("2025-06-18")).header.Get("Mcp-Session-Id")
		if a := c.do(http.MethodDelete, c.url, nil); a.status != http.StatusNoContent {
			b.Fatalf("DELETE = %d", a.status)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/cycle")
}

// memory is heap and stacks after everything unreachable is gone.
func memory() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkCall measures a call of a read-only tool over HTTP, and beside it, in the same run, the least a Go handler
// can do with the same request.
func BenchmarkCall(b *testing.B) {
	k := servertest.Start(b, servertest.Options{Replicas: 1, NoLog: true})
	c := connect(b, k, "2025-06-18")
	url, host := k.Replicas()[0].URL+"/mcp", strings.TrimPrefix(k.URL, "http://")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builtin__reshape","arguments":{"shape":{"n":1}}}}`
	b.Run("graft", func(b *testing.B) {
		b.ReportAllocs()
		each(b, 1, func(client *http.Client) { rawPost(b, client, url, host, c.token, c.session, call) })
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		each(b, 1, func(client *http.Client) {
			rawPost(b, client, url, host, c.token, c.session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		})
	})
	b.Run("health", func(b *testing.B) {
		b.ReportAllocs()
		each(b, 1, func(client *http.Client) {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, k.Replicas()[0].URL+"/healthz", nil)
			if err != nil {
				b.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	})
}

// each runs do b.N times on n connections.
func each(b *testing.B, n int, do func(*http.Client)) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	work := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for range work {
				do(client)
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
	b.StopTimer()
}

func rawPost(b *testing.B, client *http.Client, url, host, token, session, body string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	req.Host = host
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Errorf("POST = %d", resp.StatusCode)
	}
}
