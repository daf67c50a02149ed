package mcp_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/servertest"
)

// What a large message takes is many times its size: an agent that sends as many at once as its rate lets it would take
// the memory of all.
func TestLargeMessagesOfAnAgentTakeTurns(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, one)
	c := connect(t, k, "2025-06-18")
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 200<<10) + `"}}`
	type outcome struct {
		a   answer
		err error
	}
	// Each of these has sent all but the last bytes.
	var ends []io.WriteCloser
	outcomes := make(chan outcome, 8)
	start := func() {
		pr, pw := io.Pipe()
		ends = append(ends, pw)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, pr)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Authorization": bearer(c.token), "Mcp-Session-Id": c.session,
		} {
			req.Header.Set(name, value)
		}
		go func() {
			resp, err := plain.Do(req)
			if err != nil {
				outcomes <- outcome{err: err}
				return
			}
			defer func() { _ = resp.Body.Close() }()
			b, err := io.ReadAll(resp.Body)
			outcomes <- outcome{answer{resp.StatusCode, resp.Header, string(b)}, err}
		}()
		if _, err := io.Copy(pw, bytes.NewReader([]byte(large[:len(large)-2]))); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		start()
	}
	// Once all of them have been let in, the ninth is not.
	for late := time.After(patience); ; {
		a := c.post(large)
		if slowDown(a) {
			break
		}
		if a.status != http.StatusOK {
			t.Fatalf("the ninth = %d %.200s, want 429 rate_limited", a.status, a.body)
		}
		select {
		case <-late:
			t.Fatal("the ninth large message is let in")
		default:
		}
	}
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("a small message meanwhile = %d %s", a.status, a.body)
	}
	if a := connect(t, k, "2025-06-18").post(large); a.status != http.StatusOK {
		t.Errorf("another agent's large message meanwhile = %d %.200s", a.status, a.body)
	}
	for _, end := range ends {
		if _, err := io.WriteString(end, "}}"); err != nil {
			t.Error(err)
		}
		_ = end.Close()
	}
	for range 8 {
		if o := <-outcomes; o.err != nil || o.a.status != http.StatusOK {
			t.Errorf("a large message = %d %.200s (%v), want 200", o.a.status, o.a.body, o.err)
		}
	}
	if a := c.post(large); a.status != http.StatusOK {
		t.Errorf("a large message afterwards = %d %.200s", a.status, a.body)
	}
}
