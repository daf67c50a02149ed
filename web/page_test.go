package web_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/getgraft/graft/web"
)

func TestEveryPageHasOneMainHeadingAndTitle(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		doc := render(t, p.view)
		if got := attr(one(t, p, doc, "html"), "lang"); got != "en" {
			t.Errorf("%s: lang = %q, want en", p.name, got)
		}
		if got := text(one(t, p, doc, "title")); !strings.HasSuffix(got, " · Graft") || strings.HasPrefix(got, " ") {
			t.Errorf("%s: title = %q, want words, then · Graft", p.name, got)
		}
		if got := text(one(t, p, doc, "h1")); got == "" {
			t.Errorf("%s: h1 is empty", p.name)
		}
		primary := 0
		for _, n := range elements(one(t, p, doc, "main")) {
			if classes(n)["btn"] && classes(n)["primary"] {
				primary++
			}
		}
		if primary > 1 {
			t.Errorf("%s: %d primary buttons in main, want at most 1", p.name, primary)
		}
	}
}

func TestNoPageHoldsInlineCodeOrFetchesFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		for _, n := range elements(render(t, p.view)) {
			if n.DataAtom == atom.Style || n.DataAtom == atom.Base || n.DataAtom == atom.Iframe {
				t.Errorf("%s: <%s>, want none", p.name, n.Data)
			}
			if n.DataAtom == atom.Script && (n.FirstChild != nil || attr(n, "src") != web.Asset("graft.js")) {
				t.Errorf("%s: script src = %q, want ours and empty", p.name, attr(n, "src"))
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s>, want no such attribute", p.name, n.Data, a.Key)
				}
				if onward := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-onward" }); onward {
					continue // the way on to an app, which follows an answer
				}
				if slices.Contains([]string{"href", "src", "action", "data-live"}, a.Key) && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("%s: <%s %s=%q>, want a path of ours", p.name, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

func TestEveryReferenceToAnIdResolves(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		all := elements(render(t, p.view))
		ids := map[string]bool{}
		for _, n := range all {
			id := attr(n, "id")
			if id != "" && ids[id] {
				t.Errorf("%s: id %q is there twice", p.name, id)
			}
			ids[id] = true
		}
		for _, n := range all {
			for _, key := range []string{"for", "aria-describedby", "aria-labelledby", "aria-controls", "commandfor", "popovertarget", "data-reveal", "data-swap"} {
				for _, id := range strings.Fields(attr(n, key)) {
					if !ids[strings.TrimPrefix(id, "#")] {
						t.Errorf("%s: <%s %s=%q> names no element", p.name, n.Data, key, id)
					}
				}
			}
			if href := attr(n, "href"); strings.HasPrefix(href, "#") && !ids[href[1:]] {
				t.Errorf("%s: link to %q goes nowhere", p.name, href)
			}
		}
	}
}

func TestEveryControlHasAName(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		doc := render(t, p.view)
		labelled := map[string]bool{}
		for _, n := range elements(doc) {
			if n.DataAtom == atom.Label && text(n) != "" {
				labelled[attr(n, "for")] = true
			}
		}
		for _, n := range elements(doc) {
			named := attr(n, "aria-label") != ""
			switch n.DataAtom {
			case atom.Input, atom.Select, atom.Textarea:
				if attr(n, "type") != "hidden" && !named && !labelled[attr(n, "id")] {
					t.Errorf("%s: %s %q has no label", p.name, n.Data, attr(n, "name"))
				}
			case atom.Button, atom.A, atom.Summary:
				if !named && text(n) == "" {
					t.Errorf("%s: a <%s> has no words", p.name, n.Data)
				}
			case atom.Svg:
				if attr(n, "aria-hidden") != "true" {
					t.Errorf("%s: an svg is neither hidden nor named", p.name)
				}
			}
		}
	}
}

func TestEveryDrawingExists(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		for _, n := range elements(render(t, p.view)) {
			if n.DataAtom == atom.Svg && len(elements(n)) < 2 {
				t.Errorf("%s: the svg in <%s> is empty: no icon or art has that name", p.name, n.Parent.Data)
			}
		}
	}
}

func TestEveryClassIsInTheStylesheet(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.([a-zA-Z][\w-]*)`).FindAllStringSubmatch(readFile(t, "static/graft.css"), -1) {
		known[m[1]] = true
	}
	for _, p := range slices.Concat(pages(), fragments()) {
		for _, n := range elements(render(t, p.view)) {
			for class := range classes(n) {
				if !known[class] {
					t.Errorf("%s: <%s class=%q> is not in graft.css", p.name, n.Data, class)
				}
			}
		}
	}
}

func TestFormsChangeThingsByPostOnly(t *testing.T) {
	t.Parallel()
	for _, p := range pages() {
		for _, n := range elements(render(t, p.view)) {
			if n.DataAtom != atom.Form {
				continue
			}
			if attr(n, "method") != "post" && attr(n, "role") != "search" {
				t.Errorf("%s: form to %s has method %q, want post", p.name, attr(n, "action"), attr(n, "method"))
			}
		}
	}
}

func TestFragmentsReplaceWhatThePageCarries(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, p := range pages() {
		for _, n := range elements(render(t, p.view)) {
			ids[attr(n, "id")] = true
		}
	}
	for _, f := range fragments() {
		roots := renderFragment(t, f.view)
		if len(roots) != 1 || attr(roots[0], "id") != f.name {
			t.Errorf("fragment %s: %d roots, the first with id %q; want one with its name as id", f.name, len(roots), attr(roots[0], "id"))
		}
		if !ids[f.name] {
			t.Errorf("fragment %s: no page carries that id", f.name)
		}
	}
}

func TestSideListShowsOnlyWhatItIsGiven(t *testing.T) {
	t.Parallel()
	doc := render(t, web.Agents{Shell: shell("agents", ""), List: list()}.Page())
	var got []string
	for _, n := range elements(byID(doc, "side")) {
		if n.DataAtom == atom.A {
			got = append(got, attr(n, "href")+" "+text(n)+" "+attr(n, "aria-current"))
		}
	}
	want := []string{"/ Northfield ", "/ Home ", "/asks Asks ", "/activity Activity ", "/agents Agents page", "/upstreams Upstreams "}
	if !slices.Equal(got, want) {
		t.Errorf("links of the side list = %q, want %q", got, want)
	}
}

func TestThemeIsLightDarkOrTheSystems(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "light": "light", "dark": "dark", `x" onload="y`: ""} {
		s := shell("home", "")
		s.Theme = given
		f := focus()
		f.Theme = given
		for _, view := range []templ.Component{web.Home{Shell: s, Agents: list()}.Page(), web.SignIn{Focus: f}.Page()} {
			root := find(render(t, view), "html")[0]
			if got := attr(root, "data-theme"); got != want {
				t.Errorf("Theme %q: data-theme = %q, want %q", given, got, want)
			}
		}
	}
}

func TestRevokedAgentsStandAtTheEnd(t *testing.T) {
	t.Parallel()
	var got []string
	for _, n := range find(render(t, web.Agents{Shell: shell("agents", ""), List: list()}.Page()), "a") {
		if classes(n)["go"] {
			got = append(got, text(n))
		}
	}
	want := []string{"hermes-prod", "codex-laptop", "openclaw-lab", "nightly", "cursor-old"}
	if !slices.Equal(got, want) {
		t.Errorf("rows = %q, want %q", got, want)
	}
}

func TestCountSaysWhatIsShown(t *testing.T) {
	t.Parallel()
	all := list()
	found := list()
	found.Query, found.Rows = "e", found.Rows[:2]
	some := list()
	some.Rows = some.Rows[:3]
	idle := web.AgentList{Rows: all.Rows[2:3], Total: 1}
	for _, tc := range []struct {
		list web.AgentList
		want string
	}{
		{all, "5 agents. 1 has an open stream now."},
		{found, "2 of 5 agents found."},
		{some, "3 of 5 agents shown."},
		{idle, "1 agent."},
	} {
		if got := text(renderFragment(t, tc.list.Count())[0]); got != tc.want {
			t.Errorf("Count() = %q, want %q", got, tc.want)
		}
	}
}

func TestTokenIsShownOnlyWhereItWasJustMade(t *testing.T) {
	t.Parallel()
	v := detail()
	v.Token = "grft_secret-of-this-test"
	if got := text(render(t, v.Page())); strings.Count(got, v.Token) != 1 {
		t.Errorf("the page of a new token shows it %d times, want once", strings.Count(got, v.Token))
	}
	v.Token = ""
	doc := render(t, v.Page())
	if !slices.ContainsFunc(find(doc, "a"), func(n *html.Node) bool { return attr(n, "href") == v.Agent.URL+"/token" }) {
		t.Error("the page of an agent with a token has no way to a new one")
	}
}

func TestOnlyWhoMayChangeAnAgentIsAskedTo(t *testing.T) {
	t.Parallel()
	v := detail()
	v.Change = false
	revoked := detail()
	revoked.Agent = agents()[0]
	for name, view := range map[string]templ.Component{"reads only": v.Page(), "revoked": revoked.Page()} {
		for _, n := range elements(find(render(t, view), "main")[0]) {
			act := strings.HasSuffix(attr(n, "href"), "/token") || strings.HasSuffix(attr(n, "href"), "/revoke")
			if n.DataAtom == atom.Form || attr(n, "commandfor") != "" || act {
				t.Errorf("%s: main holds <%s> to %q, want no act", name, n.Data, attr(n, "action")+attr(n, "commandfor")+attr(n, "href"))
			}
		}
	}
}

func TestTypedAnswersStayOnErrorButSecrets(t *testing.T) {
	t.Parallel()
	doc := render(t, web.Setup{
		Focus: focus(), Action: "/setup/abc", Welcome: true,
		Name: web.Field{Value: "Rowan"}, Email: web.Field{Value: "rowan@"}, Org: web.Field{Value: "Northfield"},
		Password: web.Field{Value: "typed in vain", Error: "Use at least 12 characters."},
	}.Page())
	for id, want := range map[string]string{"name": "Rowan", "email": "rowan@", "organisation": "Northfield", "password": ""} {
		if got := attr(byID(doc, id), "value"); got != want {
			t.Errorf("value of %s = %q, want %q", id, got, want)
		}
	}
	password := byID(doc, "password")
	if attr(password, "aria-invalid") != "true" || attr(password, "aria-describedby") != "password-error password-help" || attr(password, "minlength") != "12" {
		t.Errorf("password field = %v, want invalid, described by its error and help, of 12 characters", password.Attr)
	}
}

func TestHostileWordsStayWords(t *testing.T) {
	t.Parallel()
	const bad = "</title></code>\"><script>alert(1)</script><img src=x onerror='x'>\u202e\u2066evil\x07"
	agent := web.Agent{Name: bad, URL: "javascript:alert(1)", SignIn: "Static token", MadeBy: bad, MadeAt: now, LastUsed: now}
	gone := agent
	gone.RevokedAt, gone.RevokedBy = now, bad
	s := web.Shell{Org: bad, User: bad, Theme: bad, Flash: bad, Nav: shell("home", "").Nav}
	f := web.Focus{Host: "graft.northfield.example", Flash: bad}
	field := web.Field{Value: bad, Error: bad}
	l := web.AgentList{Now: now, Live: "/live/agents", Query: bad, Rows: []web.Agent{agent, gone}, Total: 2}
	nothing := l
	nothing.Rows = nil
	v := web.AgentDetail{
		Shell: s, Now: now, Agent: agent, Token: "grft_x", TokenMade: now, Gateway: gateway, Connect: web.ConnectBlocks(gateway, bad), Change: true,
		Apps:     []web.App{hostileApp(bad)},
		Sessions: []web.Session{{Client: bad, OpenedAt: now, SeenAt: now}}, Tools: []web.WorkingTool{{Name: bad, Effects: web.Reads, PromotedAt: now, Cause: bad}}, Answers: []web.Answer{{Tool: bad, Says: "denied", SetBy: bad, SetAt: now}},
	}
	up := web.Upstream{Name: bad, URL: "/upstreams/ups_1", Address: bad, Tools: 1, Error: bad, Next: bad, AddedBy: bad, AddedAt: now}
	secret := web.OrgSecret{Name: bad, URL: "/secrets/sec_1", UsedBy: []string{bad}, SetBy: bad, SetAt: now}
	entry := web.Entry{URL: "/activity/run_1", At: now, Tool: bad, Who: bad, Outcome: web.Outcome{Word: bad}}
	question := web.Ask{
		Focus: web.Focus{Host: "graft.northfield.example", User: bad}, Now: now, URL: "/asks/ask_1", Mark: "m", State: web.AskWaits, AgentURL: "/agents/agt_1", MadeBy: bad, Said: bad,
		AskSummary: web.AskSummary{Page: "/asks/ask_1", Agent: bad, Tool: bad, AskedAt: now, ExpiresAt: now}, Connection: bad, Digest: "ab", Error: bad, AnsweredBy: bad, AnsweredAt: now,
		Upstream:  &web.AskRoute{Name: bad, Scheme: "https://", Host: bad, Address: bad, Tool: bad},
		Arguments: []web.Argument{{Name: bad, Value: bad}}, JSON: bad,
	}
	answered := question
	answered.State = web.AskDenied
	con := web.Connection{
		Name: bad, Vendor: bad, URL: "/connections/con_1", Status: web.Refused, Note: "The vendor refused its credential.", Scheme: "Bearer token", Hosts: []string{bad, bad}, Whose: bad, SetAt: now, SetBy: bad,
		Docs: "javascript:alert(1)",
	}
	choice := web.SchemeChoice{Name: "bearer", Title: "Bearer token", About: "A token."}
	typed := []web.SchemeField{{ID: "secret_token", Label: "Token", Field: field}, {ID: "secret_key", Label: "Key", Field: field, Long: true, Optional: true}}
	wants := web.ConnectionAsk{
		Focus: web.Focus{Host: "graft.northfield.example", User: bad}, Now: now, URL: "/asks/ask_1", Mark: "m", State: web.AskWaits, MadeBy: bad, Kind: web.AsksConnection,
		AskSummary: web.AskSummary{Page: "/asks/ask_1", Agent: bad, Tool: bad, AskedAt: now, ExpiresAt: now}, Connection: con, Why: bad, Name: field,
		Config: []web.Argument{{Name: "Header", Value: bad}}, Secrets: typed, Share: true, Others: true, AnsweredBy: bad, AnsweredAt: now, Error: bad,
	}
	settled := wants
	settled.State = web.AskAllowed
	for _, p := range []sample{
		{"connections", web.Connections{Shell: s, Now: now, Rows: []web.Connection{con}, Change: true}.Page()},
		{"connect a vendor", web.ConnectionNew{Shell: s, Scheme: choice, Vendor: field, Name: field, Primary: field, Hosts: field, Config: typed[:1], Secrets: typed, Share: true, Error: bad}.Page()},
		{"connection", web.ConnectionDetail{Shell: s, Now: now, Connection: con, Config: []web.Argument{{Name: "Header", Value: bad}}, Secrets: typed, Agents: []string{bad}, Enter: true, End: true, Error: bad}.Page()},
		{"revoke connection", web.ConnectionDetail{Shell: s, Now: now, Connection: con, Agents: []string{bad}, End: true}.RevokePage()},
		{"ask for a connection", wants.Page()},
		{"ask for a connection, answered", settled.Page()},
		{"scope", web.AgentScope{Shell: s, Agent: web.Agent{Name: bad, URL: "/agents/agt_1"}, Choices: []web.ScopeChoice{{ID: "con_1", Connection: con}}, Change: true}.Page()},
		{"upstreams", web.Upstreams{Shell: s, Now: now, Rows: []web.Upstream{up}, Secrets: web.Secrets{Rows: []web.OrgSecret{secret}, Name: field, Secret: field, Error: bad}, Change: true}.Page()},
		{"new upstream", web.UpstreamNew{Shell: s, Name: field, Address: field, Headers: []web.Header{{Name: field, Value: field}}, Secrets: []string{bad}, Include: field, Exclude: field, Error: bad}.Page()},
		{"upstream", web.UpstreamDetail{
			Shell: s, Now: now, Upstream: up, Show: bad, Tools: []web.UpstreamTool{{Name: bad, Original: bad, Summary: bad, Effects: web.Reads}, {Name: bad, LeftOut: bad}},
			Headers: []string{bad}, Uses: []string{bad}, Include: []string{bad}, Exclude: []string{bad}, Change: true,
		}.Page()},
		{"change upstream", web.UpstreamChange{Shell: s, Upstream: up, Headers: []web.Header{{Name: field, Value: field}}, Include: field, Exclude: field, Error: bad, HeadError: bad}.Page()},
		{"remove upstream", web.UpstreamRemove{Shell: s, Upstream: up}.Page()},
		{"remove secret", web.SecretRemove{Shell: s, Secret: secret}.Page()},
		{"activity", web.Activity{Shell: s, Now: now, Filters: web.Filters{Tool: bad}, Agents: []web.Choice{{Value: "a", Label: bad}}, Rows: []web.Entry{entry, {URL: "/activity/run_2", At: now, Line: bad, Who: bad}}}.Page()},
		{"run", web.Run{Shell: s, Now: now, ID: bad, Tool: bad, At: now, Outcome: web.Outcome{Word: bad}, Agent: bad, AgentURL: "/agents/agt_1", User: bad, Source: bad, Connection: bad, Place: bad, Steps: []web.Step{{What: bad, More: bad}}}.Page()},
		{"asks", web.Asks{Shell: s, List: web.AskList{Now: now, Rows: []web.AskSummary{question.AskSummary}}}.Page()},
		{"ask", question.Page()},
		{"ask, answered", answered.Page()},
		{"home", web.Home{Shell: s, Name: bad, Gateway: gateway, Agents: l, Asks: web.AskList{Now: now, Rows: []web.AskSummary{question.AskSummary}}, Waiting: 1, Failing: []web.Upstream{up}}.Page()},
		{"consent", web.Consent{
			Focus: web.Focus{Host: "graft.northfield.example", User: bad, Back: "/consent/1"}, Now: now, URL: "/consent/1", Form: "f", App: bad, Document: web.Place{Host: bad, After: bad}, Answer: web.Place{Host: bad, After: bad},
			Orgs: []web.Choice{{Value: "o", Label: bad}, {Value: "p", Label: bad}}, Org: "o", Name: field, Agents: []web.Choice{{Value: "a", Label: bad}}, Which: web.Field{Error: bad}, Error: bad,
		}.Page()},
		{"onward", web.Onward{Focus: f, App: bad, Org: bad, Agent: bad, AgentURL: "/agents/agt_1", URL: "https://app.example/cb", Host: bad}.Page()},
		{"apps", web.Apps{Shell: s, Now: now, Rows: []web.App{hostileApp(bad)}}.Page()},
		{"end of app", web.AppEnd{Shell: s, Agent: agent, App: hostileApp(bad)}.Page()},
		{"agents", web.Agents{Shell: s, List: l}.Page()},
		{"none found", web.Agents{Shell: s, List: nothing}.Page()},
		{"new agent", web.AgentNew{Shell: s, Name: field, Error: bad}.Page()},
		{"agent", v.Page()},
		{"revoke", web.AgentRevoke{Shell: s, Agent: agent, HasToken: true}.Page()},
		{"token", web.AgentToken{Shell: s, Agent: agent}.Page()},
		{"sign-in", web.SignIn{Focus: f, OrgName: bad, Email: bad, Error: bad, Next: bad}.Page()},
		{"setup", web.Setup{Focus: f, Action: "/setup/a", OrgName: bad, AskName: true, Email: field, Name: field, Password: field, Error: bad}.Page()},
		{"failure", web.Failure{Shell: s, Status: 500, Title: bad, Message: bad, RequestID: bad}.Page()},
		{"failure, signed out", web.Failure{Focus: f, Status: 500, Title: bad, Message: bad, RequestID: bad}.Page()},
	} {
		shown := false
		for _, n := range elements(render(t, p.view)) {
			if n.DataAtom == atom.Img || n.DataAtom == atom.Script && attr(n, "src") != web.Asset("graft.js") {
				t.Errorf("%s: a name became <%s>", p.name, n.Data)
			}
			for _, a := range n.Attr {
				typed := n.DataAtom == atom.Input && a.Key == "value"
				if strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "javascript:") || !typed && strings.ContainsAny(a.Val, "\u202e\u2066\x07") {
					t.Errorf("%s: <%s %s=%q> lets a name act", p.name, n.Data, a.Key, a.Val)
				}
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type == html.TextNode && n.DataAtom != atom.Textarea && strings.ContainsAny(c.Data, "\u202e\u2066\x07") {
					t.Errorf("%s: <%s> shows %q, want no mark that turns the writing", p.name, n.Data, c.Data)
				}
				shown = shown || strings.Contains(c.Data, "<script>alert(1)</script>")
			}
		}
		if !shown {
			t.Errorf("%s: the hostile words are nowhere, so this page proves nothing", p.name)
		}
	}
}

func hostileApp(bad string) web.App {
	return web.App{
		Name: bad, Document: web.Place{Host: bad}, Answer: web.Place{Host: bad}, By: bad, At: now, Ended: bad, Agent: bad, AgentURL: "/agents/agt_1", EndURL: "/agents/agt_1/apps/grt_1/end",
	}
}

// The way on is proven: it stays what it is, also where it is an app's own scheme, and goes there without scripts too.
func TestOnwardLeavesItsAddressAsItIs(t *testing.T) {
	t.Parallel()
	for _, to := range []string{
		"https://app.example/cb?a=%22&code=grftc_x&iss=https%3A%2F%2Fgraft.example.org", "http://localhost:1234/cb?code=x", "cursor://anysphere.cursor-mcp/oauth/callback?code=x&state=y", "com.example.app:/cb?code=x",
	} {
		doc := render(t, web.Onward{Focus: focus(), App: "App", URL: to, Host: "h"}.Page())
		var link string
		for _, n := range find(doc, "a") {
			if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-onward" }) {
				link = attr(n, "href")
			}
		}
		if refresh := text(one(t, sample{name: "onward"}, doc, "noscript")); link != to || !strings.Contains(html.UnescapeString(refresh), `content="0;url=`+to+`"`) {
			t.Errorf("link = %q, without scripts %q, want %q", link, refresh, to)
		}
	}
}

func TestTimesAreRelativeWithTheFullTimeOnHover(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before time.Duration
		want   string
	}{
		{-time.Hour, "now"},
		{0, "now"},
		{12 * time.Second, "12 s ago"},
		{59*time.Minute + 59*time.Second, "59 min ago"},
		{5 * time.Hour, "5 h ago"},
		{29 * 24 * time.Hour, "29 d ago"},
		{40 * 24 * time.Hour, "21 Oct"},
		{400 * 24 * time.Hour, "26 Oct 2025"},
	} {
		used := renderFragment(t, web.Agent{LastUsed: now.Add(-tc.before)}.Used(now))[0]
		if got := text(used); got != tc.want {
			t.Errorf("a time %v before now reads %q, want %q", tc.before, got, tc.want)
		}
	}
	used := renderFragment(t, web.Agent{LastUsed: now}.Used(now))[0]
	stamp := find(used, "time")[0]
	if got, want := attr(stamp, "datetime")+" "+attr(stamp, "title"), "2026-11-30T09:42:17Z 30 Nov 2026, 09:42:17 UTC"; got != want {
		t.Errorf("time element = %q, want %q", got, want)
	}
	if got := text(renderFragment(t, web.Agent{}.Used(now))[0]); got != "never" {
		t.Errorf("no time reads %q, want never", got)
	}
}
