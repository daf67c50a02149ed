package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// Known faults of mcp-go that touch this part, each shown not to be ours.

// A probe is a source of tools that misbehave on purpose.
type probe struct {
	started chan struct{} // wait says here that it runs
	release chan struct{} // and waits for this
}

func newProbe() *probe {
	return &probe{started: make(chan struct{}, 16), release: make(chan struct{})}
}

func (p *probe) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for _, name := range []string{"wait", "fail", "panic", "refuse", "foreign", "write"} {
		list = append(list, catalog.Tool{
			Vendor: "probe", Name: name, Title: name, Description: "A tool for tests.", ReadOnly: name != "write",
			InputSchema: jsontext.Value(`{"type":"object"}`),
		})
	}
	return list, nil
}

func (p *probe) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	switch r.Tool.Name {
	case "wait":
		p.started <- struct{}{}
		select {
		case <-p.release:
			return catalog.Output{Value: jsontext.Value(`"done"`)}, nil
		case <-ctx.Done():
			return catalog.Output{}, ctx.Err()
		}
	case "fail":
		return catalog.Output{}, errors.New("dial tcp 10.1.2.3:5432: password=hunter2")
	case "panic":
		panic("hunter2")
	case "refuse":
		return catalog.Output{}, reason.Refuse(reason.Timeout, "The vendor took its time.").With("after", 30)
	case "foreign":
		return catalog.Output{}, reason.NotFound
	}
	return catalog.Output{Value: jsontext.Value(`null`)}, nil
}

// mcp-go keys calls under way by request id alone where there is no session in memory: another tenant's
// notifications/cancelled ends them.
func TestFaultCancellationAcrossTenants(t *testing.T) {
	t.Parallel()
	p := newProbe()
	opts := servertest.Options{Sources: []catalog.Source{p}}
	k := servertest.Start(t, opts)
	victim := connect(t, k, "2025-06-18")
	attackers := []*client{connect(t, k, "2025-06-18"), connect(t, servertest.Start(t, opts), "2025-06-18")}
	attackers[1].url = victim.url // another organisation's agent, at the same gateway
	done := make(chan answer, 1)
	go func() {
		done <- victim.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe__wait"}}`)
	}()
	<-p.started
	for _, a := range attackers {
		for _, id := range []string{"7", `"7"`} {
			for range 2 { // each replica
				got := a.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
				if got.status != http.StatusAccepted {
					t.Errorf("cancelled = %d %s, want 202", got.status, got.body)
				}
			}
		}
	}
	close(p.release)
	if got := resultOf(t, <-done); got.IsError || got.text() != `"done"` {
		t.Errorf("the call = %s, want it to finish", got.text())
	}
}

// mcp-go answers with the text of a handler's error or panic.
func TestFaultErrorTextIsWithheld(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newProbe()}})
	c := connect(t, k, "2025-06-18")
	for _, tool := range []string{"fail", "panic"} {
		for _, call := range []string{
			`{"name":"probe__` + tool + `"}`, `{"name":"run_tool","arguments":{"vendor":"probe","name":"` + tool + `"}}`,
		} {
			a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + call + `}`)
			got := resultOf(t, a)
			if !got.IsError || !strings.Contains(got.text(), `"error":"internal","reason":"internal","requestId":"`+a.header.Get("X-Request-Id")+`"`) {
				t.Errorf("%s = %s, want internal with the request id %s", call, got.text(), a.header.Get("X-Request-Id"))
			}
			for _, leak := range []string{"hunter2", "10.1.2.3", "goroutine", ".go:"} {
				if strings.Contains(a.body, leak) {
					t.Errorf("%s answers with %q", call, leak)
				}
			}
			if !strings.Contains(k.Log.String(), a.header.Get("X-Request-Id")) {
				t.Errorf("%s: the log does not have the request id", call)
			}
		}
	}
	if a := c.post(ping); a.status != http.StatusOK {
		t.Errorf("ping after a panic = %d", a.status)
	}
	got := c.call("probe__refuse", `{}`)
	if want := `{"error":"refused","reason":"timeout","message":"The vendor took its time.","after":30}`; !got.IsError || got.text() != want {
		t.Errorf("a refusal = %s, want %s", got.text(), want)
	}
}

// encoding/json folds the case of names, so that policy and dispatch can read different ones (E05).
func TestFaultCaseFoldedNames(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{newProbe()}})
	c := connect(t, k, "2025-06-18")
	for _, params := range []string{
		`{"name":"builtin__reshape","Name":"probe__fail","arguments":{"shape":"kept"}}`,
		`{"NAME":"probe__fail","name":"builtin__reshape","Arguments":{},"arguments":{"shape":"kept"}}`,
	} {
		a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
		if got := resultOf(t, a); got.text() != `"kept"` {
			t.Errorf("%s = %s, want reshape's result", params, got.text())
		}
	}
}

// mcp-go's registration panics on an x-mcp-header that the specification refuses. No schema reaches it: the tool is
// listed and called, and the rest of the catalogue with it.
func TestFaultOddHeaderAnnotations(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{odd{}}})
	agent, token := k.Agent(t)
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		for i := range oddSchemas {
			if _, err := tx.Promote(t.Context(), agent.ID, fmt.Sprintf("odd__t%d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	if got := len(c.tools()); got != 8+len(oddSchemas) {
		t.Errorf("%d tools listed, want %d", got, 8+len(oddSchemas))
	}
	for i := range oddSchemas {
		name := fmt.Sprintf("odd__t%d", i)
		if got := c.call(name, `{"a":"x"}`); got.IsError {
			t.Errorf("%s = %s", name, got.text())
		}
		a := stateless(c).request("tools/call", `"name":"`+name+`","arguments":{"a":"x"}`, "Mcp-Name: "+name)
		if a.status == http.StatusInternalServerError {
			t.Errorf("%s at 2026-07-28 = %d %s", name, a.status, a.body)
		}
	}
}

// What a source makes of a schema from elsewhere can be registered with mcp-go; what cannot is left out.
func TestFaultOddHeaderAnnotationsAreLeftOut(t *testing.T) {
	t.Parallel()
	register := func(schema jsontext.Value) (panicked any) {
		defer func() { panicked = recover() }()
		s := mcpserver.NewMCPServer("probe", "1")
		s.AddTool(mcpgo.NewToolWithRawSchema("t", "T", json.RawMessage(schema)), nil)
		return nil
	}
	bites := 0
	for _, schema := range oddSchemas {
		if register(jsontext.Value(schema)) != nil {
			bites++
		}
		if got, err := catalog.NormalizeInput(jsontext.Value(schema)); err == nil || !strings.Contains(err.Error(), "x-mcp-header") {
			t.Errorf("NormalizeInput(%s) = %s, %v, want it left out for its x-mcp-header", schema, got, err)
		}
	}
	if bites == 0 {
		t.Error("mcp-go registers every odd schema, so this test shows nothing")
	}
	for _, schema := range []string{
		`{"properties":{"a":{"type":["string","integer"],"x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"B"}}}`,
		`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}},{"required":["b"]}]}`, `true`,
		`{"properties":{"x-mcp-header":{"type":"object"}}}`,
	} {
		got, err := catalog.NormalizeInput(jsontext.Value(schema))
		if err != nil {
			t.Errorf("NormalizeInput(%s) = %v", schema, err)
			continue
		}
		if p := register(got); p != nil {
			t.Errorf("mcp-go panics on %s: %v", got, p)
		}
	}
}

var oddSchemas = []string{
	`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a token"}}}`,
	`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":7}}}`,
	`{"type":"object","properties":{"a":{"x-mcp-header":""}}}`,
	`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"string","x-mcp-header":"same"}}}`,
	`{"type":"object","properties":{"b":{"type":"object","x-mcp-header":"Whole"}}}`,
}

type odd struct{}

func (odd) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for i, schema := range oddSchemas {
		list = append(list, catalog.Tool{Vendor: "odd", Name: fmt.Sprintf("t%d", i), Title: "T", Description: "Odd.", ReadOnly: true, InputSchema: jsontext.Value(schema)})
	}
	return list, nil
}

func (odd) Run(context.Context, catalog.Run) (catalog.Output, error) {
	return catalog.Output{Value: jsontext.Value(`"ran"`)}, nil
}
