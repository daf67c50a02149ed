package console

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// entriesShown is how many entries a page of the activity has.
const entriesShown = 50

// The choices of the filters, but agents.
var (
	activityKinds = []web.Choice{
		{Value: "", Label: "Everything"},
		{Value: string(audit.Call), Label: "Calls"},
		{Value: string(audit.Decision), Label: "Decisions"},
		{Value: string(audit.Change), Label: "Changes"},
	}
	activityOutcomes = outcomeChoices(
		reason.AwaitingApproval, reason.ToolDenied, reason.ApprovalDeclined, reason.InputInvalid, reason.ToolNotFound, reason.Forbidden,
		reason.UpstreamUnavailable, reason.UpstreamUnauthorized, reason.Timeout, reason.Cancelled, reason.RateLimited, reason.Internal,
	)
	activitySinces = []web.Choice{
		{Value: "", Label: "All time"},
		{Value: "1h", Label: "Last hour"},
		{Value: "24h", Label: "Last 24 hours"},
		{Value: "168h", Label: "Last 7 days"},
		{Value: "720h", Label: "Last 30 days"},
	}
)

func outcomeChoices(words ...reason.Word) []web.Choice {
	list := []web.Choice{
		{Value: "", Label: "Any outcome"},
		{Value: audit.OK, Label: "Went well"},
		{Value: audit.Failed, Label: "The tool failed"},
		{Value: outcomeAllowed, Label: "Allowed"},
		{Value: outcomeDenied, Label: "Denied"},
	}
	for _, w := range words {
		list = append(list, web.Choice{Value: string(w), Label: capital(spaced(string(w)))})
	}
	return list
}

// The outcomes of a decision.
const (
	outcomeAllowed = "allowed"
	outcomeDenied  = "denied"
)

// spaced is a reason word as people read it.
func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }

// Activity is GET /activity: every call, decision and change that the viewer may see, newest first.
func (h *Handler) Activity(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	page := web.Activity{
		Now: h.c.Now(), Kinds: activityKinds, Outcomes: activityOutcomes, Sinces: activitySinces,
		Filters: web.Filters{
			Kind: choice(activityKinds, q.Get("kind")), Agent: q.Get("agent"), Tool: plainTool(q.Get("tool")),
			Outcome: choice(activityOutcomes, q.Get("outcome")), Since: choice(activitySinces, q.Get("since")),
		},
	}
	filter, paged := h.auditFilter(&page.Filters, q.Get("before"))
	found, err := h.entries(ctx, filter)
	if err != nil {
		return err
	}
	page.Agents = []web.Choice{{Value: "", Label: "Any agent"}}
	for _, a := range found.names.agents {
		page.Agents = append(page.Agents, web.Choice{Value: a.ID.String(), Label: a.Name})
	}
	if choice(page.Agents, page.Filters.Agent) == "" {
		page.Filters.Agent = ""
	}
	for _, l := range found.links {
		page.Rows = append(page.Rows, found.names.row(l))
	}
	if found.last != nil {
		page.Older = activityURL(page.Filters, writeCursor(*found.last))
	}
	if paged {
		page.Newest = activityURL(page.Filters, "")
	}
	if page.Shell, err = h.shell(ctx, atActivity); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// choice is value where it is one of list, else "".
func choice(list []web.Choice, value string) string {
	for _, c := range list {
		if c.Value == value {
			return value
		}
	}
	return ""
}

// plainTool is a tool's name as it may have been typed: no name is longer, and the database takes no other.
func plainTool(s string) string {
	s = s[:min(len(s), 128)] // before it is made valid: it may end within a letter
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""))
}

// auditFilter is what the filters ask the log for. An agent's id that is none is dropped.
func (h *Handler) auditFilter(f *web.Filters, before string) (filter store.AuditFilter, paged bool) {
	filter = store.AuditFilter{Kind: store.AuditKind(f.Kind), Tool: f.Tool, Outcome: f.Outcome, Limit: entriesShown + 1}
	if id, err := store.ParseID[store.AgentKind](f.Agent); err == nil {
		filter.Agent = id
	}
	if since, err := time.ParseDuration(f.Since); err == nil {
		filter.From = h.c.Now().Add(-since)
	}
	filter.Before, paged = readCursor(before)
	return filter, paged
}

func activityURL(f web.Filters, before string) string {
	v := url.Values{}
	for key, value := range map[string]string{"kind": f.Kind, "agent": f.Agent, "tool": f.Tool, "outcome": f.Outcome, "since": f.Since, "before": before} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if len(v) == 0 {
		return "/activity"
	}
	return "/activity?" + v.Encode()
}

// A cursor stands in an address as microseconds, writer and place.
func writeCursor(c store.AuditCursor) string {
	return fmt.Sprintf("%d.%s.%d", c.At.UnixMicro(), c.Writer, c.Seq)
}

func readCursor(s string) (c store.AuditCursor, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return c, false
	}
	micros, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || micros < 0 || micros > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		return c, false
	}
	writer, err := store.ParseID[store.WriterKind](parts[1])
	if err != nil {
		return c, false
	}
	seq, err := strconv.ParseInt(parts[2], 10, 64)
	return store.AuditCursor{At: time.UnixMicro(micros).UTC(), Writer: writer, Seq: seq}, err == nil
}

// A pageOfLog is what one page of the activity is made of.
type pageOfLog struct {
	links []store.AuditLink
	last  *store.AuditCursor // the last one looked at, where there are more
	names names
}

// entries reads a page of the log. Of a call with effects the intent stands only where nothing is known of its end: its
// outcome, which is newer, stands for both.
func (h *Handler) entries(ctx context.Context, f store.AuditFilter) (p pageOfLog, err error) {
	v := viewerOf(ctx)
	var links []store.AuditLink
	ended := map[store.RunID]bool{}
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		if p.names, err = readNames(ctx, tx, v); err != nil {
			return err
		}
		if links, err = tx.AuditEntries(ctx, f); err != nil {
			return err
		}
		if err := p.names.learn(ctx, tx, links); err != nil {
			return err
		}
		for _, l := range links {
			if l.Kind == audit.Call {
				ended[l.Run] = true
			}
		}
		for _, l := range links {
			if l.Kind != audit.Intent || ended[l.Run] {
				continue
			}
			all, err := tx.AuditCall(ctx, l.Run) // its end may be on the page before, or be filtered out
			if err != nil {
				return err
			}
			for _, other := range all {
				ended[l.Run] = ended[l.Run] || other.Kind == audit.Call
			}
		}
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("load activity: %w", err)
	}
	if len(links) == f.Limit {
		links = links[:f.Limit-1]
		last := links[len(links)-1].Cursor()
		p.last = &last
	}
	for _, l := range links {
		if l.Kind != audit.Intent || !ended[l.Run] {
			p.links = append(p.links, l)
		}
	}
	return p, nil
}

// names are what the log's ids are called.
type names struct {
	viewer viewer
	agents []store.Agent
	agent  map[store.AgentID]string
	user   map[store.UserID]string
}

func readNames(ctx context.Context, tx *store.Tx, v viewer) (n names, err error) {
	if n.agents, err = tx.Agents(ctx, store.AgentFilter{}); err != nil {
		return n, err
	}
	members, err := tx.Members(ctx)
	if err != nil {
		return n, err
	}
	n.viewer, n.agent, n.user = v, map[store.AgentID]string{}, map[store.UserID]string{}
	n.add(n.agents)
	for _, m := range members {
		if n.user[m.UserID] = m.Name; m.Name == "" {
			n.user[m.UserID] = m.Email
		}
	}
	return n, nil
}

func (n names) add(agents []store.Agent) {
	for _, a := range agents {
		n.agent[a.ID] = a.Name
		n.user[a.UserID] = a.UserName // also of those who are members no more
	}
}

// learn reads the names of agents that links are of and that were not among the first.
func (n names) learn(ctx context.Context, tx *store.Tx, links []store.AuditLink) error {
	var missing []store.AgentID
	for _, l := range links {
		if n.agent[l.Agent] == "" && !l.Agent.IsZero() && len(n.agents) == store.MaxAgents {
			missing = append(missing, l.Agent)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	agents, err := tx.Agents(ctx, store.AgentFilter{IDs: missing})
	if err == nil {
		n.add(agents)
	}
	return err
}

// person is who did something by their own hand.
func (n names) person(l store.AuditLink) string {
	switch name := n.user[l.User]; {
	case l.Via == store.ViaJob:
		return "the gateway itself"
	case l.User.IsZero():
		return "the operator"
	case l.User == n.viewer.caller.User:
		return "you"
	case name != "":
		return name
	}
	return "a former member"
}

// who is the agent or the person that an entry is of.
func (n names) who(l store.AuditLink) string {
	if l.Agent.IsZero() || l.Via == store.ViaSession {
		return n.person(l)
	}
	return n.agentName(l.Agent)
}

func (n names) agentName(id store.AgentID) string {
	if name := n.agent[id]; name != "" {
		return name
	}
	return "an agent"
}

func (n names) row(l store.AuditLink) web.Entry {
	e := web.Entry{At: l.At, Tool: l.Tool, Line: l.Line, Who: n.who(l), Outcome: outcomeOf(l), Took: l.Took}
	if !l.Run.IsZero() {
		e.URL = "/activity/" + l.Run.String()
	}
	if e.URL == "" && e.Line == "" {
		e.Line = string(l.Kind) + " " + l.Tool
	}
	return e
}

// outcomeOf is what came of an entry, with its mark.
func outcomeOf(l store.AuditLink) web.Outcome {
	switch l.Outcome {
	case audit.OK:
		if l.Kind == audit.Change {
			return web.Outcome{Word: "changed"}
		}
		return web.Outcome{Dot: "ok", Word: "ok"}
	case outcomeAllowed:
		return web.Outcome{Dot: "ok", Word: "allowed"}
	case outcomeDenied:
		return web.Outcome{Dot: "bad", Word: "denied"}
	case "":
		return web.Outcome{Dot: "wait", Word: "no end known"}
	case string(reason.AwaitingApproval), audit.Asked:
		return web.Outcome{Dot: "wait", Word: spaced(l.Outcome)}
	}
	return web.Outcome{Dot: "bad", Word: spaced(l.Outcome)}
}

// ActivityVerify is GET /activity/verify: how the log is verified and exported.
func (h *Handler) ActivityVerify(w http.ResponseWriter, r *http.Request) error {
	shell, err := h.shell(r.Context(), atActivity)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.Verify{Shell: shell, Org: viewerOf(r.Context()).org}.Page())
}

// Run is GET /activity/{run}: one call, decision or change, step by step.
func (h *Handler) Run(w http.ResponseWriter, r *http.Request) error {
	id, err := store.ParseID[store.RunKind](r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx := r.Context()
	told, err := h.loadRun(ctx, id)
	if err != nil {
		return err
	}
	page := told.page()
	page.Now = h.c.Now()
	if page.Shell, err = h.shell(ctx, atActivity); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// A story is all that the log has of one run, and what let it pass.
type story struct {
	names    names
	intent   *store.AuditLink
	end      *store.AuditLink // of a call; else the decision or the change itself
	decision *store.AuditLink // the last one before it about the tool and its agent
	upstream string           // where it went; "" for a tool of the gateway itself
	ask      *store.Ask       // that it waits for
}

func (h *Handler) loadRun(ctx context.Context, id store.RunID) (s story, err error) {
	v := viewerOf(ctx)
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) error {
		links, err := tx.AuditCall(ctx, id)
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Kind == audit.Intent {
				s.intent = &l
			} else {
				s.end = &l
			}
		}
		if s.names, err = readNames(ctx, tx, v); err != nil {
			return err
		}
		if err := s.names.learn(ctx, tx, links); err != nil {
			return err
		}
		return s.circumstances(ctx, tx)
	})
	if err != nil {
		return story{}, fmt.Errorf("load run %s: %w", id, err)
	}
	return s, nil
}

// circumstances reads what the log's own entries of a run do not say.
func (s *story) circumstances(ctx context.Context, tx *store.Tx) error {
	at := s.entry()
	if s.intent != nil {
		decisions, err := tx.AuditEntries(ctx, store.AuditFilter{Agent: at.Agent, Tool: at.Tool, Kind: audit.Decision, To: s.intent.At, Limit: 1})
		if err != nil {
			return err
		}
		if len(decisions) > 0 {
			s.decision = &decisions[0]
		}
	}
	if at.Outcome == string(reason.AwaitingApproval) {
		asks, err := tx.OpenAsks(ctx)
		if err != nil {
			return err
		}
		for _, a := range asks {
			if a.AgentID == at.Agent && a.Tool == at.Tool && a.Version == at.Version && a.ConnectionID == at.Connection {
				s.ask = &a
			}
		}
	}
	if at.Connection.IsZero() {
		return nil
	}
	list, err := tx.Upstreams(ctx)
	for _, u := range list {
		if u.Connection == at.Connection {
			s.upstream = u.Name
		}
	}
	return err
}

// entry is the newest that is known of the run.
func (s *story) entry() store.AuditLink {
	if s.end != nil {
		return *s.end
	}
	return *s.intent
}

func (s *story) page() web.Run {
	l := s.entry()
	w := web.Run{
		ID: l.Run.String(), Tool: l.Tool, Line: l.Line, Outcome: outcomeOf(l), At: l.At.Add(-l.Took), Took: l.Took, Version: l.Version,
		Source: l.Source, Digest: hex.EncodeToString(l.Digest), Place: fmt.Sprintf("entry %d of %s", l.Seq, l.Writer), Via: cameBy(l.Via),
	}
	if l.Line != "" {
		w.Tool = ""
	}
	if !l.Agent.IsZero() {
		w.Agent, w.AgentURL = s.names.agentName(l.Agent), "/agents/"+l.Agent.String()
	}
	if l.Agent.IsZero() || l.Via != store.ViaBearer {
		w.User = s.names.person(l)
	}
	if s.upstream != "" {
		w.Source = "upstream " + s.upstream
	}
	if !l.Connection.IsZero() {
		w.Connection = l.Connection.String()
	}
	w.Steps = s.steps()
	return w
}

func cameBy(via store.Via) string {
	return map[store.Via]string{
		store.ViaBearer: "an agent’s token", store.ViaSession: "the console", store.ViaCLI: "the command line", store.ViaJob: "the gateway itself",
	}[via]
}

// steps are what happened, in order, as far as the log says it.
func (s *story) steps() []web.Step {
	l := s.entry()
	if l.Kind == audit.Change || l.Kind == audit.Decision {
		steps := []web.Step{{Dot: outcomeOf(l).Dot, What: l.Line, More: "by " + s.names.who(l)}}
		if ask, err := store.ParseID[store.AskKind](l.Source); err == nil {
			steps = append(steps, web.Step{What: "Answered an ask", More: "What was asked", URL: "/asks/" + ask.String()})
		}
		return steps
	}
	began := l.At.Add(-l.Took)
	steps := []web.Step{{Dot: "ok", What: "Asked by " + s.names.who(l)}}
	if s.intent != nil {
		steps = append(steps, s.allowed(),
			web.Step{Dot: "ok", What: "Intent recorded", More: "before anything was sent", After: s.intent.At.Sub(began)},
			web.Step{Dot: "ok", What: "Sent to " + s.where()})
	}
	switch {
	case s.end == nil:
		return append(steps, web.Step{Dot: "wait", What: "No end is known", More: "It is under way, or the gateway stopped before it was written down. It may have been carried out."})
	case s.intent == nil && (l.Outcome == audit.OK || l.Outcome == audit.Failed):
		steps = append(steps, web.Step{Dot: "ok", What: "Let through", More: "It only reads, so nobody is asked."}, web.Step{Dot: "ok", What: "Sent to " + s.where()})
	case s.intent == nil:
		refused := web.Step{Dot: outcomeOf(l).Dot, What: "Answered: " + spaced(l.Outcome), More: "Nothing that changes anything was sent.", After: l.Took}
		if s.ask != nil {
			refused.More, refused.URL = "Open the ask that it waits for", "/asks/"+s.ask.ID.String()
		}
		return append(steps, refused)
	}
	return append(steps, web.Step{Dot: outcomeOf(l).Dot, What: "Answered: " + spaced(l.Outcome), After: l.Took})
}

// allowed is who let a call with effects pass.
func (s *story) allowed() web.Step {
	if s.intent.Via == store.ViaSession {
		return web.Step{Dot: "ok", What: "Allowed by " + s.names.person(*s.intent), More: "who made the call"}
	}
	if d := s.decision; d != nil && d.Outcome == outcomeAllowed {
		step := web.Step{Dot: "ok", What: "Allowed by " + s.names.person(*d), More: fmt.Sprintf("for version %d, on %s", d.Version, d.At.UTC().Format("2 Jan 2006, 15:04 UTC"))}
		if !d.Run.IsZero() {
			step.URL = "/activity/" + d.Run.String()
		}
		return step
	}
	return web.Step{Dot: "ok", What: "Allowed", More: "by a person’s answer that you cannot see here"}
}

func (s *story) where() string {
	if s.upstream != "" {
		return s.upstream
	}
	return "the tool, in the gateway itself"
}
