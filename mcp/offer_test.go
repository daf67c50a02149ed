package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// Prompts, resources and completion are answered by mcp-go, through our own envelope and ids.
func TestWhatIsOfferedBesideTools(t *testing.T) {
	t.Parallel()
	var only store.AgentID
	offer := func(_ context.Context, c store.Caller) (*mcpserver.MCPServer, error) {
		if c.Agent != only {
			return nil, nil
		}
		s := mcpserver.NewMCPServer("x", "1", mcpserver.WithPromptCapabilities(true), mcpserver.WithResourceCapabilities(false, true))
		s.AddPrompt(mcpgo.NewPrompt("greet"), func(context.Context, mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
			return mcpgo.NewGetPromptResult("Greets", []mcpgo.PromptMessage{mcpgo.NewPromptMessage(mcpgo.RoleUser, mcpgo.NewTextContent("Hello"))}), nil
		})
		s.AddPrompt(mcpgo.NewPrompt("broken"), func(context.Context, mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
			return nil, errors.New("password=hunter2")
		})
		s.AddResource(mcpgo.NewResource("test://a", "A"), func(context.Context, mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			return []mcpgo.ResourceContents{mcpgo.TextResourceContents{URI: "test://a", Text: "content"}}, nil
		})
		return s, nil
	}
	k := servertest.Start(t, servertest.Options{Offer: offer})
	agent, token := k.Agent(t)
	only = agent.ID
	with := &client{t: t, url: k.URL + "/mcp", token: token}
	with.open("2025-11-25")
	without := connect(t, k, "2025-11-25")

	if a := with.post(initialize("2025-11-25"), "Mcp-Session-Id:"); !strings.Contains(a.body, `"prompts":{"listChanged":true}`) || !strings.Contains(a.body, `"resources":`) {
		t.Errorf("initialize = %.300s, want prompts and resources", a.body)
	}
	if a := without.post(initialize("2025-11-25"), "Mcp-Session-Id:"); strings.Contains(a.body, "prompts") {
		t.Errorf("initialize of an agent without an offer = %.300s", a.body)
	}
	for _, id := range []string{`9007199254740993`, `"a\u00fc"`} {
		a := with.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"prompts/get","params":{"name":"greet"}}`)
		if a.status != http.StatusOK || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":`+id+`,"result":`) || !strings.Contains(a.body, "Hello") {
			t.Errorf("prompts/get with id %s = %s", id, a.body)
		}
	}
	if a := with.post(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://a"}}`); !strings.Contains(a.body, "content") {
		t.Errorf("resources/read = %s", a.body)
	}
	a := with.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"broken"}}`)
	if code, reason := rpcError(a); code != -32603 || reason != "internal" || strings.Contains(a.body, "hunter2") || !strings.Contains(a.body, a.header.Get("X-Request-Id")) {
		t.Errorf("a broken prompt = %s, want internal with the request id and no text", a.body)
	}
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list", "completion/complete"} {
		a := without.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		if code, _ := rpcError(a); code != -32601 {
			t.Errorf("%s without an offer = %s, want -32601", method, a.body)
		}
	}
	m := stateless(with)
	if a := m.request("prompts/list", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"name":"greet"`) || !strings.Contains(a.body, `"resultType":"complete"`) {
		t.Errorf("prompts/list at 2026-07-28 = %d %s", a.status, a.body)
	}
}

// many is a source of more tools than one page holds.
type many int

func (n many) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	list := make([]catalog.Tool, n)
	for i := range list {
		list[i] = catalog.Tool{Vendor: "many", Name: fmt.Sprintf("t%04d", i), Title: "T", Description: "One of many.", ReadOnly: true, InputSchema: jsontext.Value(`{"type":"object"}`)}
	}
	return list, nil
}

func (many) Run(context.Context, catalog.Run) (catalog.Output, error) {
	return catalog.Output{Value: jsontext.Value(`"ran"`)}, nil
}

func TestLongListsArePaged(t *testing.T) {
	t.Parallel()
	const tools = 592 // with the eight meta-tools three whole pages: none is empty at the end
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{many(tools)}})
	agent, token := k.Agent(t)
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		for i := range tools {
			if _, err := tx.Promote(t.Context(), agent.ID, fmt.Sprintf("many__t%04d", i)); err != nil {
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
	m := stateless(c)
	for name, page := range map[string]func(cursor string) answer{
		"sessions": func(cursor string) answer {
			return c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + cursor + `"}}`)
		},
		"stateless": func(cursor string) answer { return m.request("tools/list", `"cursor":"`+cursor+`"`) },
	} {
		seen := map[string]int{}
		pages := 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			var got struct {
				Result struct {
					Tools      []struct{ Name string }
					NextCursor string
				}
			}
			unmarshal(t, page(cursor).body, &got)
			for _, tool := range got.Result.Tools {
				seen[tool.Name]++
			}
			cursor = got.Result.NextCursor
			if pages > 5 {
				t.Fatal("pages without end")
			}
		}
		if len(seen) != tools+8 || pages != 3 {
			t.Errorf("%s: %d tools on %d pages, want %d on 3", name, len(seen), pages, tools+8)
		}
		for tool, n := range seen {
			if n != 1 {
				t.Errorf("%s: %s stands %d times", name, tool, n)
			}
		}
	}
	other := connect(t, k, "2025-11-25")
	var first struct{ Result struct{ NextCursor string } }
	unmarshal(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).body, &first)
	if a := other.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + first.Result.NextCursor + `"}}`); !strings.Contains(a.body, "-32602") {
		t.Errorf("another agent's cursor = %.200s, want -32602", a.body)
	}
}
