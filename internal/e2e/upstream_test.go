package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/upstream"
)

// remote is a server program and our session with it.
type remote struct {
	*upstream.Session
	t       *testing.T
	p       *e2e.Process
	changed chan struct{}
}

// said is a line of a server program.
type said struct {
	URL              string
	Cancelled, Ended bool
}

func dialServer(t *testing.T, program string) *remote {
	t.Helper()
	r := &remote{t: t, p: e2e.NewProgram(t, e2e.Server(t, program)).Start(), changed: make(chan struct{}, 16)}
	client, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	url := r.next().URL
	hosts, err := egress.ParseHosts(strings.TrimSuffix(url, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	r.Session, err = upstream.Open(t.Context(), upstream.Dial{
		URL: url, Hosts: hosts, Client: client, Version: "1.0.0", ConnectTimeout: 30 * time.Second,
		OnListChanged: func() { r.changed <- struct{}{} },
	})
	if err != nil {
		t.Fatalf("open a session with %s: %v", program, err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func (r *remote) next() (s said) {
	r.t.Helper()
	r.p.Next(&s)
	return s
}

// names lists the server's tools.
func (r *remote) names() []string {
	r.t.Helper()
	tools, err := r.Tools(r.t.Context())
	if err != nil {
		r.t.Fatalf("list tools: %v", err)
	}
	var names []string
	for _, tool := range tools {
		if tool.Fault != "" || tool.InputSchema.Kind() != '{' {
			r.t.Errorf("tool %s: fault %q, schema %s", tool.Name, tool.Fault, tool.InputSchema)
		}
		names = append(names, tool.Name)
	}
	return names
}

func (r *remote) call(tool, args string) string {
	r.t.Helper()
	result, err := r.Call(r.t.Context(), tool, jsontext.Value(args), nil, nil)
	if err != nil {
		r.t.Fatalf("call %s: %v", tool, err)
	}
	return string(result)
}

// TestUpstreamSDK speaks to servers on the official SDK of both eras.
func TestUpstreamSDK(t *testing.T) {
	t.Parallel()
	for program, protocol := range map[string]string{"sdk-v1": "2025-11-25", "sdk-v2": "2026-07-28"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			r := dialServer(t, program+".mjs")
			if got := r.Server(); got.Protocol != protocol || !got.ListChanged || got.Name != program {
				t.Fatalf("server = %+v, want %s at %s", got, program, protocol)
			}
			if diff := cmp.Diff([]string{"echo", "picture", "fail", "work", "wait"}, r.names()); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			for tool, want := range map[string]string{
				"echo":    `{"content":[{"type":"text","text":"héllo"}],"structuredContent":{"message":"héllo"}`,
				"picture": `{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","annotations":{"priority":0.5}},{"type":"text","text":"seen"}]`,
				"fail":    `{"content":[{"type":"text","text":"no"}],"isError":true`,
			} {
				if got := r.call(tool, `{"message":"héllo"}`); !sameMembers(t, got, want+"}") {
					t.Errorf("%s = %s, want %s}", tool, got, want)
				}
			}
			r.worksAndTells()
			r.cancels()
			r.hearsOfChanges()
			if err := r.Ping(t.Context()); err != nil {
				t.Errorf("ping: %v", err)
			}
			if program == "sdk-v1" {
				r.Close(t.Context())
				if !r.next().Ended {
					t.Error("the server was not told that the session ended")
				}
			}
		})
	}
}

// sameMembers reports whether got has want's members, and at most those that 2026-07-28 adds to every result.
func sameMembers(t *testing.T, got, want string) bool {
	t.Helper()
	var g, w map[string]any
	if err := errors.Join(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatal(err)
	}
	delete(g, "resultType")
	delete(g, "_meta")
	return cmp.Equal(g, w)
}

// worksAndTells calls a tool that pings, logs and reports progress before it answers.
func (r *remote) worksAndTells() {
	r.t.Helper()
	var progress []float64
	var logs []string
	result, err := r.Call(r.t.Context(), "work", nil, func(p catalog.Progress) { progress = append(progress, p.Done) },
		func(_, _ string, data jsontext.Value) { logs = append(logs, string(data)) })
	if err != nil || !strings.Contains(string(result), `"done"`) {
		r.t.Errorf("work = %s, %v", result, err)
	}
	if !slices.Equal(progress, []float64{1, 2, 3}) || !slices.Equal(logs, []string{`{"step":"begun"}`}) {
		r.t.Errorf("progress = %v and logs = %q, want 1 to 3 and one message", progress, logs)
	}
}

// cancels ends a call that waits.
func (r *remote) cancels() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	_, err := r.Call(ctx, "wait", nil, nil, func(string, string, jsontext.Value) { cancel() })
	if got := reason.Of(err).Word; got != reason.Cancelled {
		r.t.Errorf("a cancelled call is %v, want %s", err, reason.Cancelled)
	}
	if !r.next().Cancelled {
		r.t.Error("the server's call went on")
	}
}

// hearsOfChanges makes the server say that its tools changed until it is heard: its stream opens beside us.
func (r *remote) hearsOfChanges() {
	r.t.Helper()
	r.Listen()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		r.p.Send("changed")
		select {
		case <-r.changed:
			return
		case <-tick.C:
		case <-deadline:
			r.t.Fatal("a change was not heard")
		}
	}
}

// TestUpstreamEverything speaks to the reference server, whose event streams have ids and whose tools are of every kind.
func TestUpstreamEverything(t *testing.T) {
	t.Parallel()
	r := dialServer(t, "everything.mjs")
	names := r.names()
	for _, name := range []string{"echo", "get-sum", "get-tiny-image", "get-structured-content", "get-annotated-message", "get-resource-links", "trigger-long-running-operation"} {
		if !slices.Contains(names, name) {
			t.Errorf("tools = %q, want %s among them", names, name)
		}
	}
	for _, call := range []struct{ tool, args, want string }{
		{"echo", `{"message":"hi"}`, `{"content":[{"type":"text","text":"Echo: hi"}]}`},
		{"get-sum", `{"a":1,"b":2}`, `{"content":[{"type":"text","text":"The sum of 1 and 2 is 3."}]}`},
		{"get-structured-content", `{"location":"New York"}`, `"structuredContent":{`},
		{"get-tiny-image", `{}`, `"type":"image"`},
		{"get-resource-links", `{"count":2}`, `"type":"resource_link"`},
		{"get-resource-reference", `{"resourceType":"Blob","resourceId":1}`, `"blob":`},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`, `"annotations":{`},
		{"get-sum", `{"a":"no number"}`, `"isError":true`},
		{"absent", `{}`, `"isError":true`},
	} {
		if got := r.call(call.tool, call.args); !strings.Contains(got, call.want) {
			t.Errorf("%s %s = %.300s, want %s", call.tool, call.args, got, call.want)
		}
	}
	var progress []float64
	_, err := r.Call(t.Context(), "trigger-long-running-operation", jsontext.Value(`{"duration":0.2,"steps":4}`),
		func(p catalog.Progress) { progress = append(progress, p.Done) }, nil)
	if err != nil || !slices.Equal(progress, []float64{1, 2, 3, 4}) {
		t.Errorf("progress = %v, %v, want 1 to 4", progress, err)
	}
}
