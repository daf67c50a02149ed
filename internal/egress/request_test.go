package egress_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/egress"
)

// A request that is small leaves whole: the other side need not read twice. Two writes in a row look like one as a rule,
// so many are made.
func TestHeadersAndBodyLeaveTogether(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reads := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			reads <- err.Error()
			return
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		for b := make([]byte, 64<<10); ; {
			n, err := conn.Read(b)
			if err != nil {
				return // the client is done
			}
			reads <- string(b[:n])
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	}()
	base := "http://" + l.Addr().String()
	c := newClient(t, egress.Config{Allow: loopback})
	defer func() { _ = l.Close() }()
	for range 500 {
		_, err := c.Do(t.Context(), egress.Request{Method: http.MethodPost, URL: base, Hosts: hostsOf(t, base), Body: []byte(`{"whole":true}`)})
		if got := <-reads; err != nil || !strings.HasSuffix(got, "\r\n\r\n{\"whole\":true}") {
			t.Fatalf("one read got %q (%v), want the headers and the body", got, err)
		}
	}
}
