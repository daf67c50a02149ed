package web_test

import (
	"time"

	"github.com/a-h/templ"

	"github.com/getgraft/graft/web"
)

// sample is one page or fragment in one state.
type sample struct {
	name string
	view templ.Component
}

var now = time.Date(2026, 11, 30, 9, 42, 17, 0, time.UTC)

const gateway = "https://graft.northfield.example/mcp"

func shell(current, flash string) web.Shell {
	return web.Shell{
		Org: "Northfield", User: "rowan@northfield.example", Flash: flash,
		Nav: []web.NavGroup{
			{Items: []web.NavItem{{Label: "Home", URL: "/", Icon: "home", Current: current == "home"}}},
			{Label: "Access", Items: []web.NavItem{{Label: "Agents", URL: "/agents", Icon: "agent", Current: current == "agents"}}},
		},
	}
}

func focus() web.Focus { return web.Focus{Host: "graft.northfield.example"} }

func agents() []web.Agent {
	made := now.Add(-90 * 24 * time.Hour)
	return []web.Agent{
		{Name: "cursor-old", URL: "/agents/agt_5", SignIn: "Static token", MadeBy: "you", MadeAt: made, LastUsed: now.Add(-11 * 24 * time.Hour), RevokedAt: now.Add(-9 * 24 * time.Hour), RevokedBy: "you"},
		{Name: "hermes-prod", URL: "/agents/agt_1", SignIn: "Static token", MadeBy: "you", MadeAt: now.Add(-12 * time.Minute), LastUsed: now.Add(-12 * time.Second), Streams: 2},
		{Name: "codex-laptop", URL: "/agents/agt_2", SignIn: "Static token", MadeBy: "Ana Ferreira", MadeAt: made, LastUsed: now.Add(-5 * time.Hour)},
		{Name: "openclaw-lab", URL: "/agents/agt_3", SignIn: "Static token", MadeBy: "Ana Ferreira", MadeAt: made, LastUsed: now.Add(-9 * 24 * time.Hour)},
		{Name: "nightly", URL: "/agents/agt_4", SignIn: "Static token", MadeBy: "you", MadeAt: made},
	}
}

func list() web.AgentList {
	return web.AgentList{Now: now, Live: "/live/agents", Rows: agents(), Total: 5, Make: true}
}

func detail() web.AgentDetail {
	a := agents()[1]
	return web.AgentDetail{
		Shell: shell("agents", ""), Now: now, Live: "/live/agents/agt_1", Agent: a, TokenMade: a.MadeAt, FirstCall: now.Add(-11 * time.Minute),
		Gateway: gateway, Connect: web.ConnectBlocks(gateway, "graft"), Change: true,
		Sessions: []web.Session{
			{Client: "Hermes 0.9", OpenedAt: now.Add(-11 * time.Minute), SeenAt: now.Add(-12 * time.Second), Streams: 1},
			{Client: "Hermes 0.9", OpenedAt: now.Add(-3 * time.Hour), SeenAt: now.Add(-40 * time.Minute)},
		},
		Tools: []web.WorkingTool{
			{Name: "builtin__reshape", Effects: web.Reads, PromotedAt: now.Add(-7 * time.Minute), LastUsed: now.Add(-time.Minute), Cause: "promoted by the agent"},
			{Name: "linear__create_issue", Effects: web.Writes, PromotedAt: now.Add(-26 * time.Hour), Cause: "promoted by the agent"},
			{Name: "github__delete_branch", Effects: web.Destroys, PromotedAt: now.Add(-40 * 24 * time.Hour), Cause: "promoted by Ana Ferreira"},
		},
		IdleDays: 21, ToolCap: 20, Others: []string{"linear__list_issues", "github__search"},
		History: []web.ToolChange{
			{Tool: "builtin__reshape", What: "promoted by the agent", At: now.Add(-7 * time.Minute)},
			{Tool: "linear__list_issues", What: "left: not used for longer than 21 days", At: now.Add(-3 * 24 * time.Hour)},
		},
	}
}

func pages() []sample {
	home := web.Home{Shell: shell("home", ""), Name: "Rowan", Gateway: gateway, Agents: list()}
	homeEmpty := web.Home{Shell: shell("home", "You are signed in."), Gateway: gateway, Agents: web.AgentList{Now: now, Live: "/live/agents", Make: true}}

	noneFound := list()
	noneFound.Rows, noneFound.Query = nil, "claude"
	found := list()
	found.Rows, found.Query = found.Rows[:2], "e"
	reading := list()
	reading.Make = false

	fresh := detail()
	fresh.Token, fresh.FirstCall = "grft_EXAMPLE-only-this-is-not-a-real-token", time.Time{}
	fresh.Agent.LastUsed, fresh.Agent.Streams, fresh.Sessions, fresh.Tools = time.Time{}, 0, nil, nil
	unknown := detail()
	unknown.Promote = web.Field{Value: "linear__lost", Error: "There is no tool of this name. Choose one from the list."}
	tokenless := detail()
	tokenless.TokenMade, tokenless.FirstCall = time.Time{}, time.Time{}
	readOnly := detail()
	readOnly.Change = false
	revoked := detail()
	revoked.Agent, revoked.Sessions = agents()[0], nil

	wrong := web.Field{Value: "hermes-prod", Error: "Another live agent has this name. Choose a different one."}
	failure := web.Failure{Status: 503, Title: "The database does not answer", Message: "Nothing was changed. Wait a moment, then load the page again.", RequestID: "01K9ZX3V7Q4T"}
	failureIn := failure
	failureIn.Shell = shell("agents", "")
	failure.Focus = focus()

	return []sample{
		{"home", home.Page()},
		{"home-empty", homeEmpty.Page()},
		{"agents", web.Agents{Shell: shell("agents", "cursor-old is revoked."), List: list()}.Page()},
		{"agents-empty", web.Agents{Shell: shell("agents", ""), List: web.AgentList{Now: now, Live: "/live/agents", Make: true}}.Page()},
		{"agents-found", web.Agents{Shell: shell("agents", ""), List: found}.Page()},
		{"agents-none-found", web.Agents{Shell: shell("agents", ""), List: noneFound}.Page()},
		{"agents-reading", web.Agents{Shell: shell("agents", ""), List: reading}.Page()},
		{"agent-new", web.AgentNew{Shell: shell("agents", "")}.Page()},
		{"agent-new-error", web.AgentNew{Shell: shell("agents", ""), Name: wrong}.Page()},
		{"agent-new-refused", web.AgentNew{Shell: shell("agents", ""), Error: "Your role reads only. Ask an owner for another."}.Page()},
		{"agent", detail().Page()},
		{"agent-fresh", fresh.Page()},
		{"agent-promote-error", unknown.Page()},
		{"agent-tokenless", tokenless.Page()},
		{"agent-reading", readOnly.Page()},
		{"agent-revoked", revoked.Page()},
		{"agent-revoke", web.AgentRevoke{Shell: shell("agents", ""), Agent: agents()[1], HasToken: true, Sessions: 2}.Page()},
		{"agent-token", web.AgentToken{Shell: shell("agents", ""), Agent: agents()[1]}.Page()},
		{"signin", web.SignIn{Focus: focus(), OrgName: "Northfield", Next: "/agents"}.Page()},
		{"signin-error", web.SignIn{Focus: focus(), Email: "rowan@northfield.example", Error: "That email and password do not belong together. Try again, or ask whoever runs Graft for a new link."}.Page()},
		{"setup-welcome", web.Setup{Focus: focus(), Action: "/setup/abc", Welcome: true}.Page()},
		{"setup-welcome-error", web.Setup{
			Focus: focus(), Action: "/setup/abc", Welcome: true, Error: "Nothing was made yet. Two answers need another look.",
			Name: web.Field{Value: "Rowan"}, Email: web.Field{Value: "rowan@", Error: "This is not an email address. It needs a part after the @."},
			Org: web.Field{Value: "Northfield"}, Password: web.Field{Error: "This is 7 characters long. Use at least 12."},
		}.Page()},
		{"setup-link", web.Setup{Focus: focus(), Action: "/setup/abc", OrgName: "Northfield", AskName: true, Email: web.Field{Value: "ana@northfield.example"}}.Page()},
		{"setup-again", web.Setup{Focus: focus(), Action: "/setup/abc", Email: web.Field{Value: "ana@northfield.example"}}.Page()},
		{"link-dead", web.LinkDead{Focus: focus()}.Page()},
		{"failure", failure.Page()},
		{"failure-signed-in", failureIn.Page()},
		{"not-found", web.NotFound{Focus: focus()}.Page()},
		{"not-found-signed-in", web.NotFound{Shell: shell("agents", "")}.Page()},
	}
}

// fragments are what the live streams send, by the id that each replaces.
func fragments() []sample {
	a := agents()[1]
	return []sample{
		{"agents", list().Card()},
		{"agent-rows", list().Body()},
		{"agent-count", list().Count()},
		{"agent-status", a.Status(now)},
		{"agent-used", a.Used(now)},
		{"agent-sessions", web.SessionList(detail().Sessions, now)},
		{"agent-sessions", web.SessionList(nil, now)},
		{"revoke-ends", web.RevokeEnds("revoke-ends", a, true, 2)},
		{"revoke-card-ends", web.RevokeEnds("revoke-card-ends", a, true, 2)},
		{"first-call", web.FirstCall(now.Add(-12*time.Second), now)},
		{"first-call", web.FirstCall(time.Time{}, now)},
	}
}
