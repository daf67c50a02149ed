package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/store"
)

var requestConnectionTool = metaTool{run: requestConnection, Tool: catalog.Tool{
	Name: "request_connection", Title: "Ask for a connection",
	Description: "Called when a task needs an account of a vendor and find_tool lists no connection for it. Asks a person to connect it: they check the " +
		"proposal and enter the credential in Graft's own form, which no agent sees. Answers {status: connected, connectionId, vendor, displayName} where " +
		"there is one already; else a refusal: awaiting_connection or awaiting_scope with a url for the person (the same call later answers connected), " +
		"connection_exists with connectionId where request_credential comes next, connection_declined or scope_declined after a no. " +
		"primaryHost is the API's base address, hosts are others it needs, docsUrl says where the vendor documents its credential. Schemes and their schemeConfig: " + schemeLines(),
	InputSchema: jsontext.Value(`{"type":"object","properties":{` +
		`"vendor":{"type":"string","minLength":1,"maxLength":24,"description":"A short name in kebab case, such as github."},` +
		`"primaryHost":{"type":"string","minLength":1,"maxLength":500,"description":"Where the API is, such as https://api.example.com/v1."},` +
		`"scheme":{"type":"string","enum":[` + schemeNames() + `],"description":"How the vendor wants to be shown the credential."},` +
		`"displayName":{"type":"string","maxLength":120,"description":"What people call it. The vendor's name when absent."},` +
		`"hosts":{"type":"array","maxItems":19,"items":{"type":"string","minLength":1,"maxLength":500},"description":"Other hosts that requests may go to."},` +
		`"schemeConfig":{"type":"object","additionalProperties":{"type":"string","maxLength":2000},"description":"What the scheme needs and is no secret."},` +
		`"docsUrl":{"type":"string","maxLength":2048,"description":"Where the vendor says how to get the credential."}},` +
		`"required":["vendor","primaryHost","scheme"],"additionalProperties":false}`),
}}

var requestCredentialTool = metaTool{run: requestCredential, Tool: catalog.Tool{
	Name: "request_credential", Title: "Ask for a credential",
	Description: "Called when a connection's credential is missing, was revoked, or is refused: the vendor answers 401, or 403 to everything. Asks a person to " +
		"enter it again in Graft's own form, which no agent sees; tools and approvals stay. The refusal awaiting_credential has a url for the person; " +
		"calls go on working once they have answered.",
	InputSchema: jsontext.Value(`{"type":"object","properties":{` +
		`"connectionId":{"type":"string","minLength":1,"maxLength":64,"description":"As find_tool lists it."},` +
		`"reason":{"type":"string","maxLength":500,"description":"For the person: what the vendor said, or what it is needed for."}},` +
		`"required":["connectionId"],"additionalProperties":false}`),
}}

// schemeLines are the schemes with what each needs: name (config; ? where it may be left out).
func schemeLines() string {
	var list []string
	for _, s := range egress.Schemes() {
		line := s.Name
		var config []string
		for _, f := range s.Config {
			name := f.Name
			if f.Optional {
				name += "?"
			}
			config = append(config, name)
		}
		if len(config) > 0 {
			line += " (" + strings.Join(config, ", ") + ")"
		}
		list = append(list, line)
	}
	return strings.Join(list, "; ") + "."
}

func schemeNames() string {
	var list []string
	for _, s := range egress.Schemes() {
		list = append(list, `"`+s.Name+`"`)
	}
	return strings.Join(list, ",")
}

func requestConnection(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	var p connect.Proposal
	if err := json.Unmarshal(args, &p); err != nil {
		return nil, badArguments(err)
	}
	c, err := q.h.c.Connections.Request(ctx, q.caller, p)
	if err != nil {
		return nil, err
	}
	return asResult(struct {
		Status       string `json:"status"`
		ConnectionID string `json:"connectionId"`
		Vendor       string `json:"vendor"`
		DisplayName  string `json:"displayName"`
	}{"connected", c.ID.String(), c.Vendor, c.DisplayName})
}

func requestCredential(ctx context.Context, q *request, args jsontext.Value) (jsontext.Value, error) {
	var in struct {
		ConnectionID string `json:"connectionId"`
		Reason       string `json:"reason"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, badArguments(err)
	}
	id, err := store.ParseID[store.ConnectionKind](in.ConnectionID)
	if err != nil {
		id = store.ConnectionID{} // which nobody has
	}
	return nil, q.h.c.Connections.RequestCredential(ctx, q.caller, id, in.Reason)
}

// foundConnection is a connection that an agent may use, as find_tool lists it.
type foundConnection struct {
	ID          string `json:"connectionId"`
	Vendor      string `json:"vendor"`
	DisplayName string `json:"displayName"`
	Status      string `json:"status"`
}

// connections lists the agent's connections.
func (q *request) connections(ctx context.Context) ([]foundConnection, error) {
	rows, err := q.h.c.Connections.Of(ctx, q.caller)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	list := make([]foundConnection, len(rows))
	for i, c := range rows {
		list[i] = foundConnection{c.ID.String(), c.Vendor, c.DisplayName, c.Status()}
	}
	return list, nil
}
