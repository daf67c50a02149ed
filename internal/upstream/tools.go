package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// What a list may have. More is an error, and what was read before it is kept.
const (
	MaxTools     = 5000
	MaxListBytes = 32 << 20
	maxPages     = 1000
)

// A RemoteTool is a tool as its server lists it.
type RemoteTool struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	InputSchema  jsontext.Value `json:"inputSchema"`
	OutputSchema jsontext.Value `json:"outputSchema"`
	Annotations  jsontext.Value `json:"annotations"`
	Meta         jsontext.Value `json:"_meta"`
	// Fault is why the tool cannot be used: what of it could not be read, or may not be. "" for nearly all.
	Fault string `json:"-"`
}

// Tools lists the server's tools, all pages of them. Where the list is larger than is taken, or does not end, what was read
// is returned beside the error.
func (s *Session) Tools(ctx context.Context) ([]RemoteTool, error) {
	var tools []RemoteTool
	var cursor string
	seen := map[string]bool{"": true}
	left := MaxListBytes
	for {
		if len(seen) > maxPages {
			return tools, s.endless("lists its tools on more than %d pages", maxPages)
		}
		var params []byte
		if cursor != "" {
			params = rpc.AppendString([]byte(`"cursor":`), cursor)
		}
		result, _, err := s.request(ctx, request{method: string(mcpgo.MethodToolsList), params: params, timeout: s.d.ConnectTimeout, limit: left})
		if reason.Of(err).Word == reason.TooLarge {
			err = s.endless("lists tools of more than %d MiB", MaxListBytes>>20)
		}
		var remote *remoteError
		if errors.As(err, &remote) && remote.code == rpc.MethodNotFound && len(tools) == 0 {
			return nil, nil // it has no tools
		}
		if err != nil {
			return tools, s.explain(err)
		}
		if left -= len(result); left <= 0 {
			return tools, s.endless("lists tools of more than %d MiB", MaxListBytes>>20)
		}
		var page struct {
			Tools []jsontext.Value `json:"tools"`
			Next  *string          `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &page, leniently); err != nil {
			return tools, s.unreadable("answered with something else than a list of tools")
		}
		for _, raw := range page.Tools {
			if len(tools) == MaxTools {
				return tools, s.endless("lists more than %d tools", MaxTools)
			}
			tools = append(tools, readTool(raw))
		}
		if page.Next == nil || *page.Next == "" {
			s.keepParams(tools)
			return tools, nil
		}
		if cursor = *page.Next; seen[cursor] {
			return tools, s.endless("lists its tools without an end: a cursor came twice")
		}
		seen[cursor] = true
	}
}

func (s *Session) endless(format string, args ...any) error {
	return reason.Refuse(reason.TooLarge, "%s %s.", s.host(), fmt.Sprintf(format, args...)).With("host", s.host())
}

// readTool reads one tool. One that is wrong does not spoil the others.
func readTool(raw jsontext.Value) RemoteTool {
	var t RemoteTool
	if err := json.Unmarshal(raw, &t); err != nil {
		var named struct {
			Name jsontext.Value `json:"name"`
		}
		_ = json.Unmarshal(raw, &named, leniently)
		var name string
		_ = json.Unmarshal(named.Name, &name) // without a name it is listed as one that has none
		return RemoteTool{Name: name, Fault: "Its definition is malformed: a part has the wrong type, stands twice or is not UTF-8."}
	}
	if t.Name == "" {
		t.Fault = "It has no name."
	} else if err := mcpgo.ValidateParamHeaderAnnotations(asTool(t)); err != nil {
		t.Fault = "Its schema has an x-mcp-header that the specification forbids."
	}
	return t
}

// keepParams remembers the tools with arguments that a call repeats in headers (2026-07-28).
func (s *Session) keepParams(tools []RemoteTool) {
	if !s.modern {
		return
	}
	kept := map[string]*mcpgo.Tool{}
	for _, t := range tools {
		if tool := asTool(t); t.Fault == "" && len(mcpgo.ExtractParamHeaderBindings(tool)) > 0 {
			kept[t.Name] = tool
		}
	}
	s.params.Store(&kept)
}

func asTool(t RemoteTool) *mcpgo.Tool {
	return &mcpgo.Tool{Name: t.Name, RawInputSchema: []byte(t.InputSchema)}
}
