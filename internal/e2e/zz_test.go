package e2e_test

import (
	"testing"
	"os"
	"strings"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
"net/http"
"io"
"fmt"
"time"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/server"
)

type tee struct { io.ReadCloser; m, ct string }
var teeLog, _ = os.Create("/tmp/zz.tee")
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	fmt.Fprintf(teeLog, "%s %s %s %q %v\n", time.Now().Format("05.000000"), t.m, t.ct, p[:n], err)
	return n, err
}

func TestZZ(t *testing.T) {
	var gateway *url.URL
	var token string
	proxy := httptest.NewUnstartedServer(servertest.WithoutLoss(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(gateway)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error { r.Body = &tee{r.Body, r.Request.Method, r.Header.Get("Content-Type")}; return nil },
	}))
	t.Cleanup(proxy.Close)
	_, port, _ := strings.Cut(proxy.Listener.Addr().String(), ":")
	origin := "http://localhost:" + port
	kit, _, token := startFixture(t, servertest.Options{Configure: func(c *server.Config) { c.Origin = origin }})
	gateway, _ = url.Parse(kit.URL)
	proxy.Start()
	tool := e2e.NewProgram(t, e2e.Module(t, "conformance-0.2/dist/index.js"))
	for i := range 150 {
		stdout, stderr, code := tool.Run("server", "--url", origin+"/mcp", "--scenario", os.Getenv("SC"), "--spec-version", "2025-11-25", "--timeout", "4000")
		if code != 0 {
			os.WriteFile("/tmp/zz.log", []byte(kit.Log.String()), 0o600)
			t.Fatalf("run %d: %s %s", i, stdout, stderr)
		}
	}
}
