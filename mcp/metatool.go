package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// A metaTool is a fixed tool of the gateway. Its arguments fit its schema when run is called.
type metaTool struct {
	catalog.Tool // Vendor is empty
	run          func(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error)
	schema       *catalog.Schema
}

// call validates the arguments, runs the tool and writes down that it did; what comes back is a CallToolResult.
func (t metaTool) call(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	if err := t.schema.Check(args); err != nil {
		return nil, err
	}
	began := q.h.now()
	result, err := t.run(ctx, q, args)
	if t.Name == runToolTool.Name {
		return result, err // the tool that it ran is written down on its own way
	}
	if full := q.h.c.Audit.Record(t.line(q, args, began, err)); err == nil {
		err = full
	}
	return result, err
}

// line is what the audit says of a call of a meta-tool.
func (t metaTool) line(q *request, args jsontext.Value, began time.Time, failed error) audit.Entry {
	now := q.h.now()
	e := audit.Entry{
		Org: q.caller.Org, Run: store.NewID[store.RunKind](began), Kind: audit.Call, At: now, Via: q.caller.Via, Agent: q.caller.Agent, User: q.caller.User,
		Tool: t.Name, Source: "graft", Digest: rpc.Digest(args), Outcome: audit.OK, Took: now.Sub(began),
	}
	if failed != nil {
		e.Outcome = string(invoke.Refusal(failed).Word)
	}
	if !t.ReadOnly {
		var in struct {
			Vendor string `json:"vendor"`
			Name   string `json:"name"`
		}
		_ = json.Unmarshal(args, &in) // what does not name a tool changed none
		of := in.Vendor
		if in.Name != "" {
			of = catalog.Tool{Vendor: in.Vendor, Name: in.Name}.Wire()
		}
		e.Kind, e.Line = audit.Change, strings.TrimSuffix(t.Title+": "+of, ": ")
	}
	return e
}

// metaTools returns them in the order they are listed in. Their descriptions state what a tool does, when it is called and what
// its answers mean; rules of conduct live in the instructions alone, because some clients flag them here.
func metaTools() []metaTool {
	return []metaTool{
		{run: findTool, Tool: catalog.Tool{
			Name: "find_tool", Title: "Find a tool", ReadOnly: true,
			Description: "Called first when a task has no fitting tool in the list. Searches every tool this agent can reach by the words of query and " +
				"answers {tools, connections, more, cursor, note}, the best match first: each tool with its vendor, name, description, inputSchema, effects and " +
				"whether it is promoted; connections with their ids; more is how many matches come after these, and cursor, given again with the " +
				"same query, goes on there. A word of what the tool does and one of what it is about find most; a vendor's name narrows. A match can be run at once with run_tool, or promoted into the list.",
			InputSchema: jsontext.Value(`{"type":"object","properties":{` +
				`"query":{"type":"string","minLength":1,"maxLength":1000,"description":"What the tool should do, in a few words."},` +
				`"limit":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many matches to return."},` +
				`"cursor":{"type":"string","minLength":1,"maxLength":1000,"description":"From the last answer to the same query, to see the matches after it."}},` +
				`"required":["query"],"additionalProperties":false}`),
		}},
		runToolTool, runStatusTool, readResultTool,
		{run: func(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
			return setPromoted(ctx, q, args, true)
		}, Tool: catalog.Tool{
			Name: "promote", Title: "Promote a tool",
			Description: "Adds a tool that find_tool found to this agent's working set, so that it stands in the tool list from then on. Called when a tool " +
				"will be needed again. Answers {tool, promoted, changed, workingSetSize}; changed is false when it was in the list already. " +
				"A client that reads the list once per conversation reaches the tool with run_tool until then.",
			InputSchema: jsontext.Value(`{"type":"object","properties":{` + vendorAndName + `},"required":["vendor","name"],"additionalProperties":false}`),
		}},
		{run: func(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
			return setPromoted(ctx, q, args, false)
		}, Tool: catalog.Tool{
			Name: "demote", Title: "Demote a tool",
			Description: "Takes a tool out of this agent's working set, so that it leaves the tool list. Called when a promoted tool is no longer needed. " +
				"The tool itself stays, and find_tool still finds it. Answers {tool, promoted, changed, workingSetSize}.",
			InputSchema: jsontext.Value(`{"type":"object","properties":{` + vendorAndName + `},"required":["vendor","name"],"additionalProperties":false}`),
		}},
		requestConnectionTool, requestCredentialTool,
	}
}

const vendorAndName = `"vendor":{"type":"string","minLength":1,"maxLength":64,"description":"The tool's vendor, as find_tool gives it."},` +
	`"name":{"type":"string","minLength":1,"maxLength":128,"description":"The tool's name, as find_tool gives it."}`

func compileMetaTools() ([]metaTool, error) {
	list := metaTools()
	for i, t := range list {
		s, err := catalog.CompileSchema(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("meta-tool %s: %w", t.Name, err)
		}
		list[i].schema = s
	}
	return list, nil
}

// foundTool is one match of find_tool.
type foundTool struct {
	Vendor      string               `json:"vendor"`
	Name        string               `json:"name"`
	Tool        string               `json:"tool"` // wire name
	Source      string               `json:"source"`
	Description string               `json:"description"`
	Promoted    bool                 `json:"promoted"`
	InputSchema jsontext.Value       `json:"inputSchema"`
	Annotations mcpgo.ToolAnnotation `json:"annotations"`
}

func findTool(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	in := struct {
		Query  string  `json:"query"`
		Limit  float64 `json:"limit"` // 5, 5.0 and 5e0 are one integer to JSON Schema
		Cursor string  `json:"cursor"`
	}{Limit: 5}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	v, err := q.h.view(ctx, q.caller)
	if err != nil {
		return nil, err
	}
	promoted := v.promoted
	known, err := q.h.c.Catalog.Of(ctx, q.caller)
	if err != nil {
		return nil, err
	}
	hits, err := known.Find(in.Query, promoted)
	if err != nil {
		return nil, err
	}
	first := 0
	if in.Cursor != "" {
		if first, err = q.foundBefore(hits, in.Query, in.Cursor); err != nil {
			return nil, err
		}
	}
	end := min(len(hits), first+int(in.Limit))
	out := struct {
		Tools       []foundTool       `json:"tools"`
		Connections []foundConnection `json:"connections"`
		More        int               `json:"more"`
		Cursor      string            `json:"cursor,omitempty"`
		Note        string            `json:"note"`
	}{Tools: []foundTool{}, More: len(hits) - end}
	if out.Connections, err = q.connections(ctx); err != nil {
		return nil, err
	}
	for _, hit := range hits[first:end] {
		out.Tools = append(out.Tools, foundTool{
			Vendor: hit.Vendor, Name: hit.Name, Tool: hit.Wire(), Source: string(hit.Kind), Description: hit.Description,
			Promoted: promoted[hit.Wire()], InputSchema: hit.InputSchema, Annotations: annotations(hit.Tool),
		})
	}
	if out.More > 0 {
		out.Cursor = q.findCursor(hits, in.Query, end)
	}
	out.Note = findNote(len(out.Tools), first, out.More)
	return asResult(out)
}

// findPlace is where a cursor of find_tool holds: for this agent and this query.
func findPlace(c store.Caller, query string) []byte {
	return []byte("find_tool " + c.Agent.String() + " " + query)
}

// findCursor names the last of the first n hits, and n for when it is gone.
func (q *request) findCursor(hits []catalog.Hit, query string, n int) string {
	return sealText(q.h.c.Sessions, findPlace(q.caller, query), fmt.Appendf(nil, "%d %s", n, hits[n-1].Wire()))
}

// foundBefore is how many hits come before those that a cursor asks for. The tools may have moved since it was given.
func (q *request) foundBefore(hits []catalog.Hit, query, cursor string) (int, error) {
	plain, err := openText(q.h.c.Sessions, findPlace(q.caller, query), cursor)
	if err != nil {
		return 0, reason.Refuse(reason.InputInvalid, "cursor is not one that find_tool gave for this query. Leave it out to begin anew.").Field("cursor")
	}
	var n int
	var last string
	if _, err := fmt.Sscanf(string(plain), "%d %s", &n, &last); err != nil {
		return 0, fmt.Errorf("read our own cursor: %w", err)
	}
	if i := slices.IndexFunc(hits, func(h catalog.Hit) bool { return h.Wire() == last }); i >= 0 {
		return i + 1, nil
	}
	return min(n, len(hits)), nil
}

func findNote(shown, before, more int) string {
	switch {
	case shown == 0 && before == 0:
		return "No tool matches these words. Other words for the same thing may match."
	case more > 0:
		return fmt.Sprintf("%d more match less well. A narrower query, a higher limit, or the cursor shows them.", more)
	}
	return "These are all the matches."
}

func setPromoted(ctx context.Context, q *request, args jsontext.Value, promoted bool) (jsontext.Value, error) {
	var in struct {
		Vendor string `json:"vendor"`
		Name   string `json:"name"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	known, err := q.h.c.Catalog.Of(ctx, q.caller)
	if err != nil {
		return nil, err
	}
	entry, err := known.Named(in.Vendor, in.Name)
	if err != nil {
		return nil, err
	}
	out := struct {
		Tool           string `json:"tool"`
		Promoted       bool   `json:"promoted"`
		Changed        bool   `json:"changed"`
		WorkingSetSize int    `json:"workingSetSize"`
	}{Tool: entry.Wire(), Promoted: promoted}
	err = q.h.c.DB.As(ctx, q.caller, func(tx *store.Tx) (err error) {
		change := tx.Demote
		if promoted {
			change = tx.Promote
		}
		if out.Changed, err = change(ctx, q.caller.Agent, entry.Wire()); err != nil {
			return err
		}
		set, err := tx.WorkingSet(ctx, q.caller.Agent)
		out.WorkingSetSize = len(set)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change working set of %s: %w", q.caller.Agent, err)
	}
	if out.Changed {
		q.h.views.Forget(q.caller.Agent) // here at once, so that this client's next list has it; elsewhere the bus says it
	}
	return asResult(out)
}

func asResult(v any) (jsontext.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	return rpc.ToolResult(b), nil
}

// badArguments is of arguments that the schema let through and Go cannot hold: a fault of the schema, so ours.
func badArguments(err error) error { return fmt.Errorf("read arguments: %w", err) }
