package web_test

import (
	"strings"
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
			{Items: []web.NavItem{
				{Label: "Home", URL: "/", Icon: "home", Current: current == "home"},
				{Label: "Asks", URL: "/asks", Icon: "ask", Current: current == "asks"},
				{Label: "Activity", URL: "/activity", Icon: "activity", Current: current == "activity"},
			}},
			{Label: "Access", Items: []web.NavItem{
				{Label: "Agents", URL: "/agents", Icon: "agent", Current: current == "agents"},
				{Label: "Upstreams", URL: "/upstreams", Icon: "upstream", Current: current == "upstreams"},
			}},
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
		Answers: []web.Answer{
			{Tool: "linear__create_issue", Says: "allowed, version 2", Dot: "ok", SetBy: "you", SetAt: now.Add(-26 * time.Hour)},
			{Tool: "github__delete_branch", Says: "denied", Dot: "bad", SetBy: "Ana Ferreira", SetAt: now.Add(-time.Hour)},
		},
		Tools: []web.WorkingTool{
			{Name: "builtin__reshape", Effects: web.Reads, PromotedAt: now.Add(-7 * time.Minute), LastUsed: now.Add(-time.Minute), Cause: "promoted by the agent"},
			{Name: "linear__create_issue", Effects: web.Writes, PromotedAt: now.Add(-26 * time.Hour), Cause: "promoted by the agent"},
			{Name: "github__delete_branch", Effects: web.Destroys, PromotedAt: now.Add(-40 * 24 * time.Hour), Cause: "promoted by Ana Ferreira"},
		},
		Apps:     apps(),
		IdleDays: 21, ToolCap: 20, Others: []string{"linear__list_issues", "github__search"},
		History: []web.ToolChange{
			{Tool: "builtin__reshape", What: "promoted by the agent", At: now.Add(-7 * time.Minute)},
			{Tool: "linear__list_issues", What: "left: not used for longer than 21 days", At: now.Add(-3 * 24 * time.Hour)},
		},
	}
}

func upstreams() []web.Upstream {
	added := now.Add(-20 * 24 * time.Hour)
	return []web.Upstream{
		{Name: "linear", URL: "/upstreams/ups_1", Address: "https://mcp.linear.app/mcp", Health: web.Healthy, Tools: 23, LeftOut: 1, ListedAt: now.Add(-4 * time.Minute), AddedBy: "you", AddedAt: added},
		{
			Name: "warehouse", URL: "/upstreams/ups_2", Address: "https://mcp.warehouse.northfield.example/v2/tenants/northfield-production/mcp", Health: web.Failing, Tools: 7,
			ListedAt: now.Add(-26 * time.Hour), Error: "It refused the credential (401).", Next: "Save the secret WAREHOUSE_KEY anew, then test.", AddedBy: "Ana Ferreira", AddedAt: added,
		},
		{Name: "notes", URL: "/upstreams/ups_3", Address: "https://notes.example/mcp", Health: web.NotTried, AddedBy: "Ana Ferreira", AddedAt: now.Add(-time.Second)},
	}
}

func secrets() web.Secrets {
	return web.Secrets{Rows: []web.OrgSecret{
		{Name: "LINEAR_KEY", URL: "/secrets/sec_1", UsedBy: []string{"linear"}, SetBy: "Ana Ferreira", SetAt: now.Add(-3 * 24 * time.Hour)},
		{Name: "WAREHOUSE_KEY", URL: "/secrets/sec_2", SetBy: "you", SetAt: now.Add(-40 * time.Minute)},
	}}
}

func upstreamDetail() web.UpstreamDetail {
	return web.UpstreamDetail{
		Shell: shell("upstreams", ""), Now: now, Upstream: upstreams()[0], Headers: []string{"Authorization", "X-Team"}, Uses: []string{"LINEAR_KEY"},
		TrustHints: true, Include: nil, Exclude: []string{"delete_workspace"}, Listed: web.ListedNone, Change: true,
		Tools: []web.UpstreamTool{
			{Name: "linear__create_issue", Original: "create_issue", Summary: "Creates an issue in a team.", Effects: web.Destroys, Version: 2},
			{Name: "linear__get_issue", Original: "get_issue", Summary: "Returns one issue with its comments.", Effects: web.Reads, Version: 1},
			{Name: "linear__list_issues", Original: "list_issues", Effects: web.Writes, Version: 1},
			{Name: "linear__delete_workspace", Original: "delete_workspace", LeftOut: "It is on the list of tools to leave out."},
			{Name: "linear__odd", Original: "odd", LeftOut: "Its input schema is not an object."},
		},
	}
}

func activity() web.Activity {
	return web.Activity{
		Shell: shell("activity", ""), Now: now,
		Kinds:    []web.Choice{{"", "Everything"}, {"call", "Calls"}},
		Agents:   []web.Choice{{"", "Any agent"}, {"agt_1", "hermes-prod"}},
		Outcomes: []web.Choice{{"", "Any outcome"}, {"ok", "Went well"}, {"refused", "Refused"}},
		Sinces:   []web.Choice{{"", "All time"}, {"24h", "Last 24 hours"}},
		Older:    "/activity?before=1",
		Rows: []web.Entry{
			{URL: "/activity/run_5", At: now.Add(-12 * time.Second), Tool: "linear__create_issue", Who: "hermes-prod", Outcome: web.Outcome{Dot: "wait", Word: "awaiting_approval"}, Took: 2 * time.Millisecond},
			{URL: "/activity/run_4", At: now.Add(-time.Minute), Tool: "linear__list_issues", Who: "hermes-prod", Outcome: web.Outcome{Dot: "ok", Word: "ok"}, Took: 214 * time.Millisecond},
			{URL: "/activity/run_3", At: now.Add(-2 * time.Minute), Line: "Allowed linear__comment to hermes-prod", Who: "you", Outcome: web.Outcome{Word: "decision"}},
			{URL: "/activity/run_2", At: now.Add(-time.Hour), Tool: "warehouse__drop_a_table_with_a_rather_long_name", Who: "codex-laptop", Outcome: web.Outcome{Dot: "bad", Word: "upstream_unauthorized"}, Took: 1400 * time.Millisecond},
			{At: now.Add(-26 * time.Hour), Line: "Added upstream linear", Who: "Ana Ferreira", Outcome: web.Outcome{Word: "change"}},
		},
	}
}

func run() web.Run {
	return web.Run{
		Shell: shell("activity", ""), Now: now, ID: "run_068p5k0000000000000000000", Tool: "linear__create_issue", Outcome: web.Outcome{Dot: "ok", Word: "ok"},
		At: now.Add(-12 * time.Second), Took: 214 * time.Millisecond, Agent: "hermes-prod", AgentURL: "/agents/agt_1", Via: "an agent’s token", Version: 2,
		Source: "upstream linear", Connection: "con_068p5k", Digest: "b7e104c952fd8a30b7e104c952fd8a30b7e104c952fd8a30b7e104c952fd8a30", Place: "entry 48,211 of writer 3",
		Steps: []web.Step{
			{Dot: "ok", What: "Asked by hermes-prod"},
			{Dot: "ok", What: "Allowed by Ana Ferreira", More: "3 days ago, for version 2", URL: "/asks/ask_1"},
			{Dot: "ok", What: "Intent recorded", More: "before anything left", After: 3 * time.Millisecond},
			{Dot: "ok", What: "Sent to linear"},
			{Dot: "ok", What: "Answered: ok", After: 214 * time.Millisecond},
			{What: "Read by nobody yet", Todo: true},
		},
	}
}

func consent() web.Consent {
	return web.Consent{
		Focus: web.Focus{Host: "graft.northfield.example", User: "rowan@northfield.example", Back: "/consent/grftq_1"}, Now: now, URL: "/consent/grftq_1", Form: "t0ken", App: "Claude",
		Document: web.Place{Before: "https://", Host: "claude.ai", After: "/oauth/mcp-client.json"}, Answer: web.Place{Before: "https://", Host: "claude.ai", After: "/api/mcp/callback"},
		ExpiresAt: now.Add(9 * time.Minute), Orgs: []web.Choice{{Value: "org_1", Label: "Northfield"}}, Org: "org_1", Name: web.Field{Value: "Claude"},
		Agents: []web.Choice{{Value: "agt_1", Label: "codex-laptop"}, {Value: "agt_2", Label: "openclaw-lab, made by Ana Ferreira"}},
	}
}

func apps() []web.App {
	a := web.App{
		Name: "Claude", Document: consent().Document, Answer: consent().Answer, By: "you", At: now.Add(-26 * time.Hour), RefreshedAt: now.Add(-12 * time.Minute),
		Dot: "ok", Agent: "hermes-prod", AgentURL: "/agents/agt_1", EndURL: "/agents/agt_1/apps/grt_1/end",
	}
	own := a
	own.Name, own.Document, own.Answer, own.By, own.RefreshedAt = "Cursor", web.Place{}, web.Place{Kind: web.AtScheme, Host: "cursor:", After: "//anysphere.cursor-mcp/oauth/callback"}, "Ana Ferreira", time.Time{}
	own.EndURL = ""
	gone := a
	gone.EndURL, gone.Dot, gone.EndedAt = "", "bad", now.Add(-time.Hour)
	gone.Ended = "Its sign-in code was used twice, so it was ended: somebody may have copied it."
	return []web.App{a, own, gone}
}

func ask() web.Ask {
	long, cut := web.CutArgument(strings.Repeat("The export job stops at the first empty region. ", 40))
	return web.Ask{
		Focus: web.Focus{Host: "graft.northfield.example", User: "rowan@northfield.example"}, Now: now, Live: "/live/asks/ask_1", URL: "/asks/ask_1", Mark: "m4rk", State: web.AskWaits,
		AskSummary: asks()[0], AgentURL: "/agents/agt_1", MadeBy: "you", Effects: web.Destroys, Said: "Creates an issue in a team.",
		Upstream: &web.AskRoute{Name: "linear", Scheme: "https://", Host: "mcp.linear.app", Address: "/mcp", Tool: "create_issue"}, Version: 2, Connection: "linear, Northfield",
		Arguments: []web.Argument{
			{Name: "team", Value: "Platform"},
			{Name: "title", Value: "Nightly export fails when a region returns no rows"},
			{Name: "description", Value: "Seen on 28, 29 and 30 November.\n\nSuggested: skip empty regions."},
			{Name: "log", Value: long, Cut: cut},
			{Name: "labels", Value: `["bug","export"]`, JSON: true},
			{Name: "priority", Value: "2", JSON: true},
		},
		JSON:   "{\n  \"team\": \"Platform\"\n}",
		Digest: "b7e104c952fd8a30",
	}
}

func asks() []web.AskSummary {
	return []web.AskSummary{
		{Page: "/asks/ask_1", Agent: "hermes-prod", Tool: "linear__create_issue", AskedAt: now.Add(-12 * time.Second), ExpiresAt: now.Add(14 * time.Minute)},
		{Page: "/asks/ask_2", Agent: "codex-laptop", Tool: "warehouse__drop_a_table_with_a_rather_long_name", AskedAt: now.Add(-5 * time.Hour), ExpiresAt: now.Add(19 * time.Hour)},
	}
}

func settings() web.Settings {
	return web.Settings{
		Shell: shell("settings", "Your name is saved."), Now: now, Name: web.Field{Value: "Rowan"}, Email: "rowan@northfield.example", HasPassword: true, CanAdd: true,
		Passkeys: []web.Passkey{
			{Name: "MacBook", URL: "/settings/passkeys/pky_1", MadeAt: now.Add(-40 * 24 * time.Hour), UsedAt: now.Add(-3 * time.Hour)},
			{Name: "Security key in the drawer of the desk at home", URL: "/settings/passkeys/pky_2", MadeAt: now.Add(-time.Minute)},
		},
		Sessions: []web.BrowserSession{
			{URL: "/settings/sessions/1", Browser: "Firefox on Linux", Address: "203.0.113.7", BeganAt: now.Add(-time.Hour), SeenAt: now.Add(-time.Hour), This: true},
			{URL: "/settings/sessions/2", Browser: "A browser", BeganAt: now.Add(-9 * 24 * time.Hour), SeenAt: now.Add(-26 * time.Hour)},
		},
	}
}

// waiting is the frame while that many asks wait.
func waiting(n int) web.Shell {
	s := shell("asks", "")
	s.Nav[0].Items[1].Waiting = n
	return s
}

func asked(state web.AskState, by string) web.Ask {
	a := ask()
	a.State, a.AnsweredBy, a.AnsweredAt = state, by, now.Add(-5*time.Second)
	return a
}

func members() web.Members {
	roles := []web.Choice{{"member", "Member"}, {"auditor", "Auditor"}, {"admin", "Admin"}}
	return web.Members{
		Shell: shell("members", ""), Now: now, See: true, Change: true, Roles: roles, Role: web.Field{Value: "member"},
		Rows: []web.Member{
			{Name: "Rowan Hale", Email: "rowan@northfield.example", URL: "/members/usr_1", You: true, Role: "owner", Since: now.Add(-400 * 24 * time.Hour), SignedIn: now.Add(-2 * time.Hour), Agents: 3},
			{Name: "ana@northfield.example", Email: "ana@northfield.example", URL: "/members/usr_2", Role: "auditor", Since: now.Add(-24 * time.Hour)},
		},
		Invites: []web.Invite{
			{Email: "somebody.with.a.long.address@subsidiary.northfield.example", Role: "admin", URL: "/invites/inv_1", MadeBy: "you", MadeAt: now.Add(-time.Hour), ExpiresAt: now.Add(6 * 24 * time.Hour), Change: true},
			{Email: "boss@northfield.example", Role: "owner", URL: "/invites/inv_2", MadeBy: "Ana Ferreira", MadeAt: now.Add(-50 * time.Hour), ExpiresAt: now.Add(time.Hour)},
		},
	}
}

func memberDetail() web.MemberDetail {
	v := members()
	return web.MemberDetail{Shell: v.Shell, Now: now, Org: "Northfield", Member: v.Rows[0], Roles: v.Roles}
}

func join() web.Join {
	return web.Join{Focus: focus(), Action: "/invite/abc", OrgName: "Northfield", MadeBy: "Rowan Hale", Role: "member", Email: web.Field{Value: "ana@northfield.example"}}
}

func pages() []sample {
	madeInvite := members()
	madeInvite.Made = &web.NewInvite{Email: "ana@northfield.example", Role: "member", Link: "https://graft.northfield.example/invite/abc"}
	wrongInvite := members()
	wrongInvite.Email, wrongInvite.Role = web.Field{Value: "ana", Error: "Enter an email address such as ana@example.com."}, web.Field{Value: "owner", Error: "Only an owner invites an owner."}
	noInvites := members()
	noInvites.Invites = nil
	readsMembers := noInvites
	readsMembers.Change, readsMembers.See = false, false
	auditsMembers := noInvites
	auditsMembers.Change = false
	wrongRole := memberDetail()
	wrongRole.Role = web.Field{Value: "auditor", Error: "An auditor reads only and has no agents. Revoke theirs first: 3 live."}
	readsMember := memberDetail()
	readsMember.Roles, readsMember.Member = nil, members().Rows[1]
	joinWrong := join()
	joinWrong.Name, joinWrong.Password, joinWrong.Error = web.Field{Error: "Enter a name."}, web.Field{Error: "This is 5 characters long. Use at least 12."}, "Nothing was made yet. Two answers need another look."
	joinSignOn := join()
	joinSignOn.SignOn = "login.a-rather-long-name-of-a-company.example"
	joinKnown := join()
	joinKnown.Known, joinKnown.Error = true, "ana@northfield.example has an account already. Enter its password."
	joinIn := join()
	joinIn.As = joinIn.Email.Value
	joinOther := join()
	joinOther.As = "rowan@northfield.example"

	home := web.Home{Shell: shell("home", ""), Name: "Rowan", Gateway: gateway, Agents: list()}
	homeEmpty := web.Home{Shell: shell("home", "You are signed in."), Gateway: gateway, Agents: web.AgentList{Now: now, Live: "/live/agents", Make: true}}

	homeBusy := home
	homeBusy.Shell.Nav = waiting(2).Nav
	homeBusy.Asks, homeBusy.Waiting, homeBusy.Failing = web.AskList{Now: now, Rows: asks()}, 2, upstreams()[1:2]

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
	byApps := tokenless
	tokenless.Apps = nil
	readOnly := detail()
	readOnly.Change = false
	revoked := detail()
	revoked.Agent, revoked.Sessions = agents()[0], nil

	wrong := web.Field{Value: "hermes-prod", Error: "Another live agent has this name. Choose a different one."}
	failure := web.Failure{Status: 503, Title: "The database does not answer", Message: "Nothing was changed. Wait a moment, then load the page again.", RequestID: "01K9ZX3V7Q4T"}
	failureIn := failure
	failureIn.Shell = shell("agents", "")
	failure.Focus = focus()

	noHints := upstreamDetail()
	noHints.TrustHints, noHints.Listed, noHints.Headers, noHints.Uses, noHints.Show = false, web.ListedAll, nil, nil, web.ShowReads
	noHints.Tools = noHints.Tools[2:3]
	leftOut := upstreamDetail()
	leftOut.Show = web.ShowLeftOut
	failing := upstreamDetail()
	failing.Upstream = upstreams()[1]
	untried := upstreamDetail()
	untried.Upstream, untried.Tools, untried.Exclude = upstreams()[2], nil, nil
	readsUpstream := failing
	readsUpstream.Change = false
	newUpstream := web.UpstreamNew{Shell: shell("upstreams", ""), Headers: make([]web.Header, 2)}
	wrongUpstream := web.UpstreamNew{
		Shell: shell("upstreams", ""), Name: web.Field{Value: "Linear!", Error: "Use small letters, digits and hyphens."},
		Address: web.Field{Value: "http://10.0.0.8/mcp", Error: "This address is private. Use one that is reachable from the internet."},
		Headers: []web.Header{{Name: web.Field{Value: "Authorization"}, Value: web.Field{Value: "Bearer ${LINEAR}", Error: "There is no secret LINEAR."}}, {}},
		Secrets: []string{"LINEAR_KEY"}, TrustHints: true, Exclude: web.Field{Value: "delete_workspace"}, Error: "Nothing was added yet.",
	}
	badSecret := secrets()
	badSecret.Name, badSecret.Error = web.Field{Value: "linear key", Error: "Use capitals, digits and underscores."}, "Nothing was saved."
	noneMatch := activity()
	noneMatch.Rows, noneMatch.Older, noneMatch.Filters = nil, "", web.Filters{Tool: "github", Outcome: "refused"}
	noActivity := activity()
	noActivity.Rows, noActivity.Older = nil, ""
	lastPage := activity()
	lastPage.Older, lastPage.Newest, lastPage.Filters = "", "/activity", web.Filters{Agent: "agt_1"}
	change := run()
	change.Tool, change.Line, change.Agent, change.User, change.Digest, change.Took, change.Version = "", "Added upstream linear", "", "you", "", 0, 0
	change.Steps = change.Steps[:1]
	builtin := ask()
	builtin.Upstream, builtin.Effects, builtin.Arguments, builtin.Mark, builtin.Every, builtin.Error = nil, web.Writes, nil, "", true, "The answer did not arrive. Nothing was decided."
	reading2 := ask()
	reading2.Effects, reading2.Claimed = web.Reads, true
	cutShort := ask()
	cutShort.Arguments, cutShort.Cut, cutShort.JSON, cutShort.Every = nil, true, strings.Repeat(`{"body":"x`, 400), true
	allowedOnce := asked(web.AskAllowed, "Ana Ferreira")
	allowedOnce.Every = true

	several := consent()
	several.Orgs = append(several.Orgs, web.Choice{Value: "org_2", Label: "A Rather Long Name of an Organisation That Somebody Chose"})
	several.Name.Error, several.Answer = "Use 1 to 64 letters, digits, spaces, dots, hyphens or underscores, a letter or digit first.", web.Place{Kind: web.AtLoop, Before: "http://", Host: "127.0.0.1:43211", After: "/callback"}
	several.Document = web.Place{}
	existing := consent()
	existing.Old, existing.Which, existing.Answer = true, web.Field{Value: "agt_2", Error: "Choose the agent again: these are the ones of Northfield."}, apps()[1].Answer
	noAgents := consent()
	noAgents.Agents = nil
	auditor := consent()
	auditor.Orgs, auditor.Org, auditor.Agents = nil, "", nil
	onward := web.Onward{
		Focus: focus(), App: "Claude", Org: "Northfield", Agent: "Claude 2", AgentURL: "/agents/agt_1", URL: "https://claude.ai/api/mcp/callback?code=grftc_x&state=y", Host: "claude.ai",
	}
	notConnected := onward
	notConnected.Org, notConnected.Told, notConnected.URL, notConnected.Host = "", "that you did not allow it", "cursor://anysphere.cursor-mcp/oauth/callback?error=access_denied", "cursor"

	passwordless := settings()
	passwordless.HasPassword, passwordless.Name, passwordless.Sessions = false, web.Field{Error: "Enter a name."}, passwordless.Sessions[:1]
	noPasskeys := settings()
	noPasskeys.CanAdd, noPasskeys.Passkeys, noPasskeys.Address = false, nil, "https://graft.northfield.example"
	signOn, noIdentity := settings(), settings()
	signOn.HasPassword, signOn.Passkeys, signOn.SignOn, noIdentity.SignOn = false, nil, "Example ID", "login.a-rather-long-name-of-a-company.example"
	signOn.Identities = []web.Identity{
		{Name: "Work", URL: "/settings/identities/idn_1", MadeAt: now.Add(-40 * 24 * time.Hour), UsedAt: now.Add(-3 * time.Hour)},
		{Name: "The account of the company that we were before", URL: "/settings/identities/idn_2", MadeAt: now.Add(-80 * 24 * time.Hour), Elsewhere: true},
		{Name: "New", URL: "/settings/identities/idn_3", MadeAt: now.Add(-time.Minute)},
	}
	own := shell("settings", "")
	own.Foot = []web.NavItem{{Label: "Settings", URL: "/settings", Icon: "settings", Current: true}}

	return []sample{
		{"consent", consent().Page()},
		{"consent-several", several.Page()},
		{"consent-existing", existing.Page()},
		{"consent-no-agents", noAgents.Page()},
		{"consent-reading", auditor.Page()},
		{"onward", onward.Page()},
		{"onward-denied", notConnected.Page()},
		{"apps", web.Apps{Shell: shell("agents", ""), Now: now, All: true, Rows: apps()[:2]}.Page()},
		{"apps-empty", web.Apps{Shell: shell("agents", ""), Now: now}.Page()},
		{"app-end", web.AppEnd{Shell: shell("agents", ""), Agent: agents()[1], App: apps()[0]}.Page()},
		{"settings", settings().Page()},
		{"settings-passwordless", passwordless.Page()},
		{"settings-no-passkeys", noPasskeys.Page()},
		{"settings-signon", signOn.Page()},
		{"settings-signon-none", noIdentity.Page()},
		{"identity-new", web.IdentityNew{Shell: own, Provider: "Example ID", Name: web.Field{Value: "Example ID"}}.Page()},
		{"identity-rename", web.IdentityRename{Shell: own, Identity: signOn.Identities[0], Name: web.Field{Error: "Enter a name."}}.Page()},
		{"identity-remove", web.IdentityRemove{Shell: own, Provider: "Example ID", Identity: signOn.Identities[1]}.Page()},
		{"identity-remove-only", web.IdentityRemove{Shell: own, Provider: "Example ID", Identity: signOn.Identities[0], Only: true}.Page()},
		{"settings-password", web.SettingsPassword{Shell: own, Password: web.Field{Error: "This is 7 characters long. Use at least 12."}}.Page()},
		{"passkey-new", web.PasskeyNew{Shell: own, Name: web.Field{Value: "Firefox on Linux"}, Works: true, Error: "This passkey is here already."}.Page()},
		{"passkey-new-elsewhere", web.PasskeyNew{Shell: own, Address: "https://graft.northfield.example"}.Page()},
		{"passkey-rename", web.PasskeyRename{Shell: own, Passkey: settings().Passkeys[0], Name: web.Field{Value: "MacBook"}}.Page()},
		{"passkey-remove", web.PasskeyRemove{Shell: own, Passkey: settings().Passkeys[1]}.Page()},
		{"passkey-remove-only", web.PasskeyRemove{Shell: own, Passkey: settings().Passkeys[0], Only: true}.Page()},
		{"session-end", web.SessionEnd{Shell: own, Session: settings().Sessions[0]}.Page()},
		{"sessions-end", web.SessionsEnd{Shell: own, Others: 2}.Page()},
		{"confirm", web.Confirm{Focus: focus(), Email: "rowan@northfield.example", Next: "/agents/agt_1/revoke", Password: true, Passkeys: true, Error: "That is not your password. Try again."}.Page()},
		{"confirm-passwordless", web.Confirm{Focus: focus(), Email: "rowan@northfield.example", Passkeys: true}.Page()},
		{"confirm-signon", web.Confirm{Focus: focus(), Email: "rowan@northfield.example", SignOn: "Example ID"}.Page()},
		{"confirm-neither", web.Confirm{Focus: focus(), Email: "rowan@northfield.example"}.Page()},
		{"upstreams", web.Upstreams{Shell: shell("upstreams", "linear is added."), Now: now, Rows: upstreams(), Secrets: secrets(), Change: true}.Page()},
		{"upstreams-empty", web.Upstreams{Shell: shell("upstreams", ""), Now: now, Change: true}.Page()},
		{"upstreams-empty-reading", web.Upstreams{Shell: shell("upstreams", ""), Now: now}.Page()},
		{"upstreams-reading", web.Upstreams{Shell: shell("upstreams", ""), Now: now, Rows: upstreams(), Secrets: secrets()}.Page()},
		{"upstreams-secret-error", web.Upstreams{Shell: shell("upstreams", ""), Now: now, Rows: upstreams(), Secrets: badSecret, Change: true}.Page()},
		{"upstream-new", newUpstream.Page()},
		{"upstream-new-error", wrongUpstream.Page()},
		{"upstream", upstreamDetail().Page()},
		{"upstream-no-hints", noHints.Page()},
		{"upstream-left-out", leftOut.Page()},
		{"upstream-failing", failing.Page()},
		{"upstream-untried", untried.Page()},
		{"upstream-reading", readsUpstream.Page()},
		{"upstream-remove", web.UpstreamRemove{Shell: shell("upstreams", ""), Upstream: upstreams()[0]}.Page()},
		{"upstream-change", web.UpstreamChange{Shell: shell("upstreams", ""), Upstream: upstreams()[0], Headers: wrongUpstream.Headers, Exclude: web.Field{Value: "delete_workspace"}, HeadError: "Nothing was replaced."}.Page()},
		{"secret-remove", web.SecretRemove{Shell: shell("upstreams", ""), Secret: secrets().Rows[0]}.Page()},
		{"members", members().Page()},
		{"members-made", madeInvite.Page()},
		{"members-error", wrongInvite.Page()},
		{"members-no-invites", noInvites.Page()},
		{"members-reading", readsMembers.Page()},
		{"members-auditing", auditsMembers.Page()},
		{"member", memberDetail().Page()},
		{"member-role-error", wrongRole.Page()},
		{"member-reading", readsMember.Page()},
		{"member-remove", web.MemberRemove{Shell: shell("members", ""), Org: "Northfield", Member: members().Rows[1], Agents: 2, Apps: 1, Invites: 1}.Page()},
		{"member-remove-self", web.MemberRemove{Shell: shell("members", ""), Org: "Northfield", Member: members().Rows[0]}.Page()},
		{"join", join().Page()},
		{"join-signon", joinSignOn.Page()},
		{"join-error", joinWrong.Page()},
		{"join-known", joinKnown.Page()},
		{"join-signed-in", joinIn.Page()},
		{"join-signed-in-as-another", joinOther.Page()},
		{"invite-dead", web.InviteDead{Focus: focus()}.Page()},
		{"activity", activity().Page()},
		{"activity-empty", noActivity.Page()},
		{"activity-none-match", noneMatch.Page()},
		{"activity-last", lastPage.Page()},
		{"run", run().Page()},
		{"run-change", change.Page()},
		{"verify", web.Verify{Shell: shell("activity", ""), Org: "Northfield & Sons"}.Page()},
		{"asks", web.Asks{Shell: waiting(2), List: web.AskList{Now: now, Live: "/live/asks", Rows: asks()}}.Page()},
		{"asks-empty", web.Asks{Shell: waiting(0), List: web.AskList{Now: now, Live: "/live/asks"}}.Page()},
		{"ask", ask().Page()},
		{"ask-builtin-error", builtin.Page()},
		{"ask-reads", reading2.Page()},
		{"ask-cut", cutShort.Page()},
		{"ask-allowed", asked(web.AskAllowed, "you").Page()},
		{"ask-allowed-once", allowedOnce.Page()},
		{"ask-denied", asked(web.AskDenied, "Ana Ferreira").Page()},
		{"ask-expired", asked(web.AskExpired, "").Page()},
		{"ask-withdrawn", asked(web.AskWithdrawn, "").Page()},
		{"ask-link-dead", web.AskLinkDead{Focus: web.Focus{Host: "graft.northfield.example", User: "rowan@northfield.example"}}.Page()},
		{"home", home.Page()},
		{"home-empty", homeEmpty.Page()},
		{"home-busy", homeBusy.Page()},
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
		{"agent-by-apps", byApps.Page()},
		{"agent-reading", readOnly.Page()},
		{"agent-revoked", revoked.Page()},
		{"agent-revoke", web.AgentRevoke{Shell: shell("agents", ""), Agent: agents()[1], HasToken: true, Sessions: 2}.Page()},
		{"agent-token", web.AgentToken{Shell: shell("agents", ""), Agent: agents()[1]}.Page()},
		{"signin", web.SignIn{Focus: focus(), OrgName: "Northfield", Next: "/agents"}.Page()},
		{"signin-passkeys", web.SignIn{Focus: focus(), OrgName: "Northfield", Next: "/agents", Passkeys: true}.Page()},
		{"signin-signon", web.SignIn{Focus: focus(), OrgName: "Northfield", Next: "/agents", Passkeys: true, SignOn: "login.a-rather-long-name-of-a-company.example"}.Page()},
		{"signon-onward", web.SignOnward{Focus: focus(), Provider: "Example ID", URL: "https://login.example.com/authorize?state=abc"}.Page()},
		{"signon-failed", web.SignOnFailed{
			Focus: focus(), Provider: "Example ID", Title: "Nobody was signed in", Message: "It was not allowed at Example ID. Nothing was changed.",
			Words: "You are not a member of the group.", Way: "Back to sign-in", WayURL: "/signin",
		}.Page()},
		{"signin-error", web.SignIn{Focus: focus(), Email: "rowan@northfield.example", Error: "That email and password do not belong together. Try again, or ask whoever runs Graft for a new link."}.Page()},
		{"setup-welcome", web.Setup{Focus: focus(), Action: "/setup/abc", Welcome: true}.Page()},
		{"setup-welcome-error", web.Setup{
			Focus: focus(), Action: "/setup/abc", Welcome: true, Error: "Nothing was made yet. Two answers need another look.",
			Name: web.Field{Value: "Rowan"}, Email: web.Field{Value: "rowan@", Error: "This is not an email address. It needs a part after the @."},
			Org: web.Field{Value: "Northfield"}, Password: web.Field{Error: "This is 7 characters long. Use at least 12."},
		}.Page()},
		{"setup-link", web.Setup{Focus: focus(), Action: "/setup/abc", OrgName: "Northfield", AskName: true, Email: web.Field{Value: "ana@northfield.example"}}.Page()},
		{"setup-again", web.Setup{Focus: focus(), Passkeys: true, Action: "/setup/abc", Email: web.Field{Value: "ana@northfield.example"}}.Page()},
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
		{"asks", web.AskList{Now: now, Live: "/live/asks", Rows: asks()}.Card()},
		{"asks", web.AskList{Now: now, Live: "/live/asks"}.Card()},
		{"ask-head", ask().Head(now)},
		{"ask-decide", ask().Decide(now)},
		{"ask-decide", asked(web.AskDenied, "you").Decide(now)},
		{"agents", list().Card()},
		{"agent-rows", list().Body()},
		{"agent-count", list().Count()},
		{"agent-status", a.Status(now)},
		{"agent-used", a.Used(now)},
		{"agent-sessions", web.SessionList(detail().Sessions, now)},
		{"agent-sessions", web.SessionList(nil, now)},
		{"revoke-ends", web.RevokeEnds("revoke-ends", a, true, 1, 2)},
		{"revoke-card-ends", web.RevokeEnds("revoke-card-ends", a, true, 1, 2)},
		{"first-call", web.FirstCall(now.Add(-12*time.Second), now)},
		{"first-call", web.FirstCall(time.Time{}, now)},
	}
}
