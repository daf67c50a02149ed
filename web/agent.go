package web

import (
	"fmt"
	"slices"
	"time"
)

// Agent is what lists and heads say of one agent.
type Agent struct {
	Name      string
	URL       string    // of its page; its acts are below it
	SignIn    string    // how it signs in: "Static token", "Connected apps"
	MadeBy    string    // who made it: "you", or a name
	MadeAt    time.Time // UTC or any zone
	LastUsed  time.Time // its last call; zero: never
	Streams   int       // open now
	RevokedAt time.Time // zero: it is not
	RevokedBy string
}

// Revoked says whether the agent has been stopped for good.
func (a Agent) Revoked() bool { return !a.RevokedAt.IsZero() }

// quiet is how long an agent may be unused before its mark says so.
const quiet = 7 * day

// dot is the class of the agent's mark.
func (a Agent) dot(now time.Time) string {
	switch {
	case a.Revoked():
		return "bad"
	case a.Streams > 0:
		return "live"
	case now.Sub(a.LastUsed) < quiet:
		return "ok"
	}
	return "off"
}

// state is the word of the agent's mark, for a list in which the row says more.
func (a Agent) state(now time.Time) string {
	return map[string]string{"bad": "revoked", "live": "connected", "ok": "in use", "off": "quiet"}[a.dot(now)]
}

// AgentList is the organisation's agents, or those that a person looks for.
type AgentList struct {
	Now   time.Time
	Live  string // the stream that keeps the list fresh
	Query string // what was looked for; "" is nothing
	Rows  []Agent
	Total int  // of the organisation, before looking
	Make  bool // the person may make one
}

// rows is the list with the revoked ones at the end, else in its order.
func (l AgentList) rows() []Agent {
	rows := slices.Clone(l.Rows)
	slices.SortStableFunc(rows, func(a, b Agent) int {
		switch {
		case a.Revoked() == b.Revoked():
			return 0
		case b.Revoked():
			return -1
		}
		return 1
	})
	return rows
}

// count is the sentence under the list.
func (l AgentList) count() string {
	switch {
	case l.Query != "":
		return fmt.Sprintf("%d of %s found.", len(l.Rows), plural(l.Total, "agent"))
	case len(l.Rows) < l.Total:
		return fmt.Sprintf("%d of %s shown.", len(l.Rows), plural(l.Total, "agent"))
	}
	open := 0
	for _, a := range l.Rows {
		if a.Streams > 0 && !a.Revoked() {
			open++
		}
	}
	all := plural(l.Total, "agent") + "."
	switch open {
	case 0:
		return all
	case 1:
		return all + " 1 has an open stream now."
	}
	return fmt.Sprintf("%s %d have an open stream now.", all, open)
}

// alone is who did something, where the word stands by itself.
func alone(who string) string {
	if who == "you" {
		return "You"
	}
	return shown(who)
}

// plural is a count with its word: "1 agent", "6 agents".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Agents is the page of all agents.
type Agents struct {
	Shell Shell
	List  AgentList
}

// AgentNew is the form that makes an agent.
type AgentNew struct {
	Shell Shell
	Name  Field
	Error string // of the whole form
}

// AgentDetail is the page of one agent.
type AgentDetail struct {
	Shell       Shell
	Now         time.Time
	Live        string // the stream that keeps the page fresh
	Agent       Agent
	Token       string    // the token just made; it is on no later page
	TokenMade   time.Time // when the present token was made; zero: it has none
	FirstCall   time.Time // the first call with that token; zero: none yet
	Gateway     string    // the address clients are given: https://graft.example.org/mcp
	Connect     []Connect
	Sessions    []Session
	Tools       []WorkingTool
	Answers     []Answer
	ScopeAll    bool // it may use all connections
	Connections int  // that it may use, where that is not all
	IdleDays    int  // a tool that was not used for longer leaves
	ToolCap     int  // above it, tools never used leave
	Promote     Field
	Others      []string     // tools that could be promoted, to choose from
	History     []ToolChange // of the working set, the last first
	Apps        []App        // the connected ones first
	Change      bool         // the person may make tokens for it and revoke it
}

// Session is one session that a client of the agent holds.
type Session struct {
	Client   string // the name and version it gave: "Hermes 0.9"
	OpenedAt time.Time
	SeenAt   time.Time // its last message
	Streams  int       // open now
}

func (s Session) dot() string {
	if s.Streams > 0 {
		return "live"
	}
	return "ok"
}

func (s Session) state() string {
	if s.Streams > 0 {
		return "streaming"
	}
	return "idle"
}

// WorkingTool is one tool of the agent's working set.
type WorkingTool struct {
	Name       string
	Effects    Effects
	PromotedAt time.Time
	LastUsed   time.Time // zero: never
	Cause      string    // why it is in the set: "promoted by the agent"
}

// ToolChange is one change of a working set.
type ToolChange struct {
	Tool string
	What string // "promoted by the agent", "left: not used for 21 days"
	At   time.Time
}

// moves reports whether the person may move tools in and out.
func (v AgentDetail) moves() bool { return v.Change && !v.Agent.Revoked() }

func (v AgentDetail) toolColumns() []column {
	columns := []column{{"Tool", ""}, {"Effects", "wide"}, {"Why", "wide"}, {"Last used", "fit"}}
	if v.moves() {
		columns = append(columns, column{"Change", "fit"})
	}
	return columns
}

// rule says when tools leave by themselves.
func (v AgentDetail) rule() string {
	return fmt.Sprintf("A tool that is not used for %s leaves by itself. Above %s, those never used do.", plural(v.IdleDays, "day"), plural(v.ToolCap, "tool"))
}

func (v AgentDetail) promoteInput() input {
	return input{ID: "promote", Label: "Promote a tool", Type: "text", Field: v.Promote, Code: true, Required: true, List: "promotable"}
}

// Answer is what a person once answered for all later calls of a tool.
type Answer struct {
	Tool  string
	Says  string // "allowed, version 2", "denied", "asks every time"
	Dot   string // a class of .dot
	SetBy string
	SetAt time.Time
}

// AgentRevoke is the question before an agent is revoked, as a page.
type AgentRevoke struct {
	Shell    Shell
	Agent    Agent
	HasToken bool
	Apps     int // that are connected
	Sessions int
}

// AgentToken is the question before a new token ends the present one, as a page.
type AgentToken struct {
	Shell Shell
	Agent Agent
}

func (v AgentDetail) revoke() confirm {
	return revokeQuestion(v.Agent, !v.TokenMade.IsZero(), v.Connected(), len(v.Sessions))
}

// Connected is how many apps are connected now.
func (v AgentDetail) Connected() int {
	n := 0
	for _, a := range v.Apps {
		if a.EndedAt.IsZero() {
			n++
		}
	}
	return n
}

// byApps is whether the agent has no token because apps were let in instead: a block to put a token into would mislead.
func (v AgentDetail) byApps() bool { return v.Token == "" && v.TokenMade.IsZero() && len(v.Apps) > 0 }

// appCount is the sentence beside the list of apps.
func (v AgentDetail) appCount() string {
	n := v.Connected()
	if ended := len(v.Apps) - n; ended > 0 {
		return fmt.Sprintf("%d connected, %d ended", n, ended)
	}
	return fmt.Sprintf("%d connected", n)
}

func revokeQuestion(a Agent, hasToken bool, apps, sessions int) confirm {
	var ends []string
	if hasToken {
		ends = append(ends, "1 static token")
	}
	if apps > 0 {
		ends = append(ends, plural(apps, "connected app"))
	}
	if a.Streams > 0 {
		ends = append(ends, plural(a.Streams, "open stream"))
	}
	if sessions > 0 {
		ends = append(ends, plural(sessions, "session"))
	}
	return confirm{
		ID:       "revoke",
		Question: "Revoke " + shown(a.Name) + "?",
		Ends:     append(ends, "The agent itself: it cannot be brought back"),
		Stays:    "Stays: its entry in the list, and who made and who revoked it",
		Action:   a.URL + "/revoke",
		Verb:     "Revoke " + shown(a.Name),
		Keep:     "Keep it",
		Back:     a.URL,
	}
}

func tokenQuestion(a Agent) confirm {
	return confirm{
		ID:       "new-token",
		Question: "Make a new token for " + shown(a.Name) + "?",
		Ends:     []string{"The present token: a client that still sends it is refused"},
		Stays:    "Stays: the agent, its working set and its name",
		Action:   a.URL + "/token",
		Verb:     "Make a new token",
		Keep:     "Keep the present one",
		Back:     a.URL,
	}
}
