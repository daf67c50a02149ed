package web

import (
	"strings"
	"time"
)

// Connection is what lists and heads say of one account of a vendor.
type Connection struct {
	Name     string // as people call it
	Vendor   string
	URL      string // of its page; its acts are below it
	Status   ConnectionStatus
	Note     string // what is wrong with it, and what to do; "" nothing
	Scheme   string // in words: Bearer token
	Hosts    []string
	Whose    string // "shared", "yours", or a name
	SetAt    time.Time
	SetBy    string // "you", a name, or "the operator"
	HealthAt time.Time
	Docs     string // an address
}

// ConnectionStatus is how a connection stands, in the words it is shown with.
type ConnectionStatus string

// The four there are.
const (
	Connected  ConnectionStatus = "connected"
	Incomplete ConnectionStatus = "waits for its credential"
	Refused    ConnectionStatus = "credential refused"
	Revoked    ConnectionStatus = "revoked"
)

func (s ConnectionStatus) dot() string {
	switch s {
	case Connected:
		return "ok"
	case Incomplete:
		return "wait"
	case Refused:
		return "bad"
	}
	return "off"
}

// Connections is the page of all connections.
type Connections struct {
	Shell  Shell
	Now    time.Time
	Rows   []Connection
	Change bool // the person may add one
}

// SchemeChoice is one way to show a credential that a form offers.
type SchemeChoice struct {
	Name  string
	Title string
	About string
}

// SchemeField is one thing that a scheme has to know.
type SchemeField struct {
	ID       string
	Label    string
	Help     string
	Field    Field
	Optional bool
	Long     bool // several lines
}

// ConnectionNew is the form that adds a connection: first how the vendor wants
// to be shown the credential, then the rest.
type ConnectionNew struct {
	Shell   Shell
	Choices []SchemeChoice
	Scheme  SchemeChoice // the one that was chosen; zero: none yet
	Vendor  Field
	Name    Field
	Primary Field
	Hosts   Field // one a line
	Docs    Field
	Config  []SchemeField
	Secrets []SchemeField
	Shared  bool
	Share   bool // the person may share it
	Error   string
}

// ConnectionDetail is the page of one connection.
type ConnectionDetail struct {
	Shell      Shell
	Now        time.Time
	Connection Connection
	Config     []Argument // what the scheme knows that is no secret
	Secrets    []SchemeField
	Agents     []string // that may use it
	Answers    int      // standing answers about it
	Enter      bool     // the person may enter its credential
	End        bool     // and revoke it
	Error      string   // of the credential's form
}

func (v ConnectionDetail) revoke() confirm {
	c := v.Connection
	ends := []string{"Every call through it, from now on"}
	if len(v.Agents) > 0 {
		ends = append(ends, "What "+names(v.Agents)+" can do with it")
	}
	return confirm{
		ID:       "revoke",
		Question: "Revoke " + shown(c.Name) + "?",
		Ends:     append(ends, "Its credential, which is destroyed"),
		Stays:    "Stays: its row, its tools and what was answered about them. It comes back when somebody enters its credential again",
		Action:   c.URL + "/revoke",
		Verb:     "Revoke " + shown(c.Name),
		Keep:     "Keep it",
		Back:     c.URL,
	}
}

// ConnectionAsk is the question for a connection, its credential or its use.
type ConnectionAsk struct {
	Focus Focus
	Now   time.Time
	Live  string
	URL   string
	Mark  string
	State AskState
	AskSummary
	MadeBy     string
	Kind       AskKind
	Connection Connection // as it is, or as it was proposed
	Why        string     // in the agent's words
	Name       Field
	Config     []Argument
	Secrets    []SchemeField
	Shared     bool
	Share      bool // the person may choose
	Others     bool // the agent is another's: what they connect is shared
	AnsweredBy string
	AnsweredAt time.Time
	Error      string
}

// AskKind is what an ask is for.
type AskKind string

// The kinds beside an approval.
const (
	AsksConnection AskKind = "connection"
	AsksCredential AskKind = "credential"
	AsksScope      AskKind = "scope"
)

func (v ConnectionAsk) heading() string {
	agent, vendor := shown(v.Agent), shown(v.Connection.Vendor)
	switch v.State {
	case AskAllowed:
		return agent + " may use " + vendor
	case AskDenied:
		return "You said no to " + agent
	case AskExpired:
		return "Nobody answered in time"
	case AskWithdrawn:
		return "This ask was withdrawn"
	}
	switch v.Kind {
	case AsksCredential:
		return "Enter the credential of " + vendor + " again"
	case AsksScope:
		return "Let " + agent + " use " + shown(v.Connection.Name) + "?"
	}
	return "Connect " + vendor + " for " + agent
}

func (v ConnectionAsk) meaning() string {
	agent, vendor := shown(v.Agent), shown(v.Connection.Vendor)
	switch v.State {
	case AskAllowed:
		return "Tell the agent to go on: it calls again with the same arguments."
	case AskDenied:
		return "Nothing was connected. The agent is told once."
	case AskExpired, AskWithdrawn:
		return "There is nothing to answer any more. When " + agent + " asks again, there is a new ask."
	}
	switch v.Kind {
	case AsksScope:
		return "The connection is there. " + agent + " is not yet among the agents that may use it."
	case AsksCredential:
		return agent + " goes on using the connection, and does not see what you enter."
	}
	if len(v.Secrets) == 0 {
		return agent + " wants to send requests to " + vendor + ", which needs no credential."
	}
	return agent + " wants to use an account of yours at " + vendor + ". It will be able to use what you enter, not see it."
}

func (v ConnectionAsk) dot() string {
	return map[AskState]string{AskWaits: "wait", AskAllowed: "ok", AskDenied: "bad"}[v.State]
}

func (v ConnectionAsk) word() string {
	return Ask{State: v.State}.word()
}

// verb is what the button that says yes does.
func (v ConnectionAsk) verb() string {
	switch {
	case v.Kind == AsksScope:
		return "Allow"
	case len(v.Secrets) == 0:
		return "Connect"
	}
	return "Save"
}

func (c Connection) first() string {
	if len(c.Hosts) == 0 {
		return ""
	}
	return c.Hosts[0]
}

func (c Connection) all() string { return shown(strings.Join(c.Hosts, ", ")) }

func (f SchemeField) label() string {
	if f.Optional {
		return f.Label + " (optional)"
	}
	return f.Label
}

// maker is whose the agent is that asks.
func (v ConnectionAsk) maker() string {
	if v.MadeBy == "you" {
		return shown(v.Agent) + " is your agent."
	}
	return shown(v.Agent) + " is an agent of " + shown(v.MadeBy) + "."
}
