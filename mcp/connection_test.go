package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	connections "github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// asked is what a tool answers that a person has to settle something for.
type asked struct {
	Error, Reason, AskID, URL, ExpiresAt, Message, ConnectionID, Field string
}

func (c *client) asks(tool, args string) (a asked) {
	c.t.Helper()
	got := c.call(tool, args)
	if !got.IsError {
		c.t.Fatalf("%s = %s, want a refusal", tool, got.text())
	}
	if err := json.Unmarshal([]byte(got.text()), &a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

const acme = `{"vendor":"acme","primaryHost":"https://API.acme.example/v1/","scheme":"api_key_header","schemeConfig":{"headerName":"X-Key"},"hosts":["files.acme.example"]}`

// An agent asks for a connection, a person makes it, and the same call then says so: each state has its own word.
func TestAnAgentAsksForAConnection(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	desk := k.Connections(t)

	first := c.asks("request_connection", acme)
	if first.Error != "awaiting_connection" || first.Reason != "awaiting_connection" || !strings.HasPrefix(first.URL, k.URL+"/asks/"+first.AskID+"?t=") || first.ExpiresAt == "" {
		t.Fatalf("request_connection = %+v, want an ask with its link", first)
	}
	for name, args := range map[string]string{
		"again":             acme,
		"spelled otherwise": `{"hosts":["Files.acme.example."],"scheme":"api_key_header","schemeConfig":{"headerName":" X-Key "},"primaryHost":"https://api.acme.example/v1","vendor":"acme","displayName":"Ours"}`,
	} {
		if again := c.asks("request_connection", args); again.AskID != first.AskID {
			t.Errorf("%s it is another ask", name)
		}
	}
	if other := c.asks("request_connection", strings.Replace(acme, "files.", "more.", 1)); other.AskID == first.AskID {
		t.Error("for another host it is the same ask")
	}

	id, err := store.ParseID[store.AskKind](first.AskID)
	if err != nil {
		t.Fatal(err)
	}
	entry := connections.Entry{
		Proposal: connections.Proposal{Vendor: "acme", Scheme: "api_key_header", Config: map[string]string{"headerName": "X-Key"}, PrimaryHost: "https://api.acme.example/v1", Hosts: []string{"files.acme.example"}},
		Fields:   map[string]string{"apiKey": "CANARY-acme-key"}, Ask: id,
	}
	made, err := desk.Make(t.Context(), k.Owner, entry)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Status, ConnectionID, Vendor, DisplayName string }
	eventually(t, "it is connected on each replica", onEachReplica(func() bool {
		answer := c.call("request_connection", acme)
		unmarshal(t, answer.text(), &got)
		return !answer.IsError
	}))
	if got.Status != "connected" || got.ConnectionID != made.ID.String() || got.Vendor != "acme" || got.DisplayName != "acme" {
		t.Errorf("once it is connected = %+v", got)
	}
	listed := func() string {
		var found struct{ Connections []json.RawMessage }
		unmarshal(t, c.call("find_tool", `{"query":"acme"}`).text(), &found)
		out := ""
		for _, line := range found.Connections {
			out += string(line)
		}
		return out
	}
	if want := `{"connectionId":"` + made.ID.String() + `","vendor":"acme","displayName":"acme","status":"connected"}`; listed() != want {
		t.Errorf("find_tool lists %s, want %s", listed(), want)
	}

	// Out of scope it is asked for; a no is told once.
	do := func(fn func(*store.Tx) error) {
		t.Helper()
		if err := k.DB.As(t.Context(), k.Owner, fn); err != nil {
			t.Fatal(err)
		}
	}
	do(func(tx *store.Tx) error { return tx.SetScope(t.Context(), agent.ID, store.Scope{}) })
	scope := c.asks("request_connection", acme)
	if scope.Error != "awaiting_scope" {
		t.Fatalf("out of scope = %+v, want awaiting_scope", scope)
	}
	if id, err = store.ParseID[store.AskKind](scope.AskID); err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Decline(t.Context(), k.Owner, id); err != nil {
		t.Fatal(err)
	}
	if a := c.asks("request_connection", acme); a.Error != "refused" || a.Reason != "scope_declined" {
		t.Errorf("after a no = %+v, want scope_declined", a)
	}
	again := c.asks("request_connection", acme)
	if again.Error != "awaiting_scope" || again.AskID == scope.AskID {
		t.Errorf("asked once more = %+v, want a new ask", again)
	}
	if a := c.asks("request_credential", `{"connectionId":"`+made.ID.String()+`"}`); a.Reason != "connection_not_in_scope" {
		t.Errorf("request_credential out of scope = %+v", a)
	}
	if id, err = store.ParseID[store.AskKind](again.AskID); err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Allow(t.Context(), k.Owner, id); err != nil {
		t.Fatal(err)
	}
	if a := c.call("request_connection", acme); a.IsError {
		t.Errorf("after a yes = %s, want connected", a.text())
	}

	// Revoked, it exists, and its credential brings it back.
	do(func(tx *store.Tx) error { _, err := tx.RevokeConnection(t.Context(), made.ID); return err })
	if a := c.asks("request_connection", acme); a.Reason != "connection_exists" || a.ConnectionID != made.ID.String() || !strings.Contains(a.Message, "revoked") {
		t.Errorf("once it is revoked = %+v, want connection_exists", a)
	}
	cred := c.asks("request_credential", `{"connectionId":"`+made.ID.String()+`","reason":"It was revoked."}`)
	if cred.Error != "awaiting_credential" {
		t.Fatalf("request_credential = %+v", cred)
	}
	if id, err = store.ParseID[store.AskKind](cred.AskID); err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Enter(t.Context(), k.Owner, made.ID, map[string]string{"apiKey": "CANARY-acme-key-2"}, id); err != nil {
		t.Fatal(err)
	}
	if a := c.call("request_connection", acme); a.IsError {
		t.Errorf("once it is back = %s, want connected", a.text())
	}
}

// What is wrong with a proposal is said by field, and asks nobody.
func TestAProposalIsChecked(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1})
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	for field, args := range map[string]string{
		"vendor":                  strings.Replace(acme, `"acme"`, `"builtin"`, 1),
		"primaryHost":             strings.Replace(acme, "https://API.acme.example/v1/", "https://user:pw@acme.example", 1),
		"hosts":                   strings.Replace(acme, "files.acme.example", "http//x", 1),
		"schemeConfig.headerName": strings.Replace(acme, "X-Key", "Cookie", 1),
		"schemeConfig":            strings.Replace(acme, `"headerName"`, `"headername"`, 1),
		"docsUrl":                 strings.Replace(acme, `"vendor"`, `"docsUrl":"javascript:alert(1)","vendor"`, 1),
	} {
		if a := c.asks("request_connection", args); a.Reason != "input_invalid" || a.Field != field {
			t.Errorf("%s: %+v, want input_invalid of it", field, a)
		}
	}
	if a := c.asks("request_credential", `{"connectionId":"con_00000000000000000000000000"}`); a.Reason != "connection_not_found" {
		t.Errorf("request_credential of none = %+v", a)
	}
}
