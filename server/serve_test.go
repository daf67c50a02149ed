package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

// A slow tool runs until it is released.
type slow struct{ started, release chan struct{} }

func (s slow) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	return []catalog.Tool{{Vendor: "slow", Name: "wait", Title: "Wait", Description: "Waits.", ReadOnly: true, InputSchema: jsontext.Value(`{"type":"object"}`)}}, nil
}

func (s slow) Run(context.Context, catalog.Run) (catalog.Output, error) {
	s.started <- struct{}{}
	<-s.release
	return catalog.Output{Value: jsontext.Value(`"done"`)}, nil
}

// Stopping lets what runs finish, ends what only listens, and takes the replica out of readiness first.
func TestStopFinishesCallsAndEndsStreams(t *testing.T) {
	t.Parallel()
	tool := slow{make(chan struct{}, 1), make(chan struct{})}
	k := servertest.Start(t, servertest.Options{Replicas: 1, Sources: []catalog.Source{tool}})
	_, token := k.Agent(t)
	headers := []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
	opened := ask(t, bare, "POST", k.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers...)
	headers = append(headers, "Mcp-Session-Id: "+opened.header.Get("Mcp-Session-Id"))
	replica := k.Replicas()[0].URL

	called := make(chan answer, 1)
	go func() {
		a, err := try(context.WithoutCancel(t.Context()), bare, "POST", replica+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow__wait"}}`,
			append(headers, "Host: "+strings.TrimPrefix(k.URL, "http://"))...)
		if err != nil {
			t.Errorf("the call: %v", err)
		}
		called <- a
	}()
	<-tool.started
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		k.StopAll()
	}()
	select {
	case <-stopped:
		t.Error("the gateway stopped under a running call")
	case a := <-called:
		t.Errorf("the call ended early: %d %s", a.status, a.body)
	case <-time.After(200 * time.Millisecond): // nothing happens, which is what is looked for
	}
	close(tool.release)
	if a := <-called; a.status != http.StatusOK || !strings.Contains(a.body, "done") {
		t.Errorf("the call = %d %s, want it finished", a.status, a.body)
	}
	<-stopped
}

func TestMetricsHaveBoundedLabels(t *testing.T) {
	t.Parallel()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	c := fine()
	c.Listen, c.Origin = "127.0.0.1:0", "http://localhost"
	s, err := server.New(t.Context(), c, server.Deps{DB: storetest.Open(t, storetest.PrivateURL(t), nil), Master: master, Log: slog.New(slog.DiscardHandler), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	var l net.ListenConfig
	front, err := l.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := l.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, front, metrics) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	at := "http://" + front.Addr().String()
	ask(t, bare, "GET", at+"/healthz", "")
	ask(t, bare, "BREW", at+"/agents/agt_secret-looking-path", "")
	ask(t, bare, "GET", at+"/no/such/path?token=grft_x", "")
	got := ask(t, bare, "GET", "http://"+metrics.Addr().String()+"/metrics", "").body
	for _, want := range []string{`graft_build_info{version="1.2.3"} 1`, `graft_http_request_duration_seconds_count{method="GET",route="/healthz",status="200"} 1`, "graft_mcp_streams 0", "go_goroutines"} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, leak := range []string{"secret-looking", "no/such", "grft_x", "BREW"} {
		if strings.Contains(got, leak) {
			t.Errorf("metrics hold %q", leak)
		}
	}
	if a := ask(t, bare, "GET", at+"/metrics", ""); a.status == http.StatusOK && strings.Contains(a.body, "graft_build_info") {
		t.Error("metrics are served in front")
	}
}

// One line a request, without bodies, queries, tokens or addresses of people.
func TestRequestsAreLoggedOnceAndSparely(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Configure: func(c *server.Config) {}})
	_, token := k.Agent(t)
	a := ask(t, bare, "POST", k.URL+"/mcp?canary=query-canary", `{"body":"body-canary"}`, "Authorization: Bearer "+token, "Content-Type: application/json", "X-Canary: header-canary")
	k.SignIn(t, k.Owner)
	id := a.header.Get("X-Request-Id")
	k.StopAll()
	var line string
	for s := bufio.NewScanner(strings.NewReader(k.Log.String())); s.Scan(); {
		if strings.Contains(s.Text(), id) {
			if line != "" {
				t.Errorf("two lines of one request:\n%s\n%s", line, s.Text())
			}
			line = s.Text()
		}
	}
	for _, want := range []string{"request_id=" + id, "route=/mcp", "status=400", "reason=request_invalid", "org=org_", "agent=agt_", "ms="} {
		if !strings.Contains(line, want) {
			t.Errorf("the line lacks %s: %s", want, line)
		}
	}
	for _, leak := range []string{"canary", token, "example.com", "correct horse", "grftl_"} {
		if strings.Contains(k.Log.String(), leak) {
			t.Errorf("the log holds %q", leak)
		}
	}
}

func TestNewRefusesAnOlderSchema(t *testing.T) {
	t.Parallel()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	dsn := storetest.PrivateURL(t)
	storetest.Rewind(t, dsn)
	_, err = server.New(t.Context(), fine(), server.Deps{DB: storetest.Open(t, dsn, nil), Master: master, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "graft migrate") {
		t.Errorf("New on an older schema = %v, want it to name graft migrate", err)
	}
}

func TestReadyzTells(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	a := ask(t, bare, "GET", k.URL+"/readyz", "")
	var got struct {
		Ready  bool
		Checks map[string]string
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || !got.Ready || got.Checks["database"] != "ok" || got.Checks["migrations"] != "ok" {
		t.Errorf("/readyz = %d %s", a.status, a.body)
	}
}
