package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
)

// raw sends text as it is and returns what comes back until the connection ends.
func raw(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%.30q: the connection is held: %v", text, err)
	}
	return string(b)
}

// Whoever announces a body and does not send it gets no connection, or goroutine, for good.
func TestABodyHasToArrive(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1, BodyTime: 100 * time.Millisecond})
	_, token := k.Agent(t)
	replica, host := k.Replicas()[0].URL, strings.TrimPrefix(k.URL, "http://")
	json := "Content-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n"
	for name, c := range map[string]struct{ line, headers, body, want string }{
		"without a bearer":      {"POST /mcp", "Content-Length: 10\r\n", "", "401"},
		"half of it":            {"POST /mcp", json + "Content-Length: 10\r\n", "{", "400"},
		"a chunk that stops":    {"POST /mcp", json + "Transfer-Encoding: chunked\r\n", "5\r\n{", "400"},
		"a form":                {"POST /signin", "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n", "a", "400"},
		"a path that is not":    {"POST /nowhere", "Content-Length: 10\r\n", "", "404"},
		"a probe":               {"GET /healthz", "Content-Length: 10\r\n", "", "200"},
		"no path at all":        {"OPTIONS *", "Content-Length: 10\r\n", "", "404"},
		"a stream with a body":  {"GET /mcp", "Content-Length: 10\r\n", "", "401"},
		"more than it is asked": {"DELETE /mcp", "Content-Length: 100000\r\n", "", "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := raw(t, replica, c.line+" HTTP/1.1\r\nHost: "+host+"\r\n"+c.headers+"\r\n"+c.body)
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.want) {
				t.Errorf("answer = %.200q, want %s", got, c.want)
			}
		})
	}
}

// The time of the body is not the call's: a call may take longer.
func TestACallOutlivesTheTimeOfItsBody(t *testing.T) {
	t.Parallel()
	const bodyTime = 50 * time.Millisecond
	tool := slow{make(chan struct{}, 1), make(chan struct{})}
	k := servertest.Start(t, servertest.Options{Replicas: 1, BodyTime: bodyTime, Sources: []catalog.Source{tool}})
	_, token := k.Agent(t)
	headers := []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
	opened := ask(t, bare, "POST", k.URL+"/mcp", initialize, headers...)
	headers = append(headers, "Mcp-Session-Id: "+opened.header.Get("Mcp-Session-Id"), "Host: "+strings.TrimPrefix(k.URL, "http://"))
	called := make(chan string, 1)
	go func() {
		a, err := try(context.WithoutCancel(t.Context()), bare, "POST", k.Replicas()[0].URL+"/mcp",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow__wait"}}`, headers...)
		called <- fmt.Sprint(a.status, a.body, err)
	}()
	<-tool.started
	<-time.After(4 * bodyTime) // the time passes, which is what is looked at
	close(tool.release)
	if got := <-called; !strings.HasPrefix(got, fmt.Sprint(http.StatusOK)) || !strings.Contains(got, "done") {
		t.Errorf("the call = %s, want it finished", got)
	}
}
