package web

import (
	"time"

	"github.com/a-h/templ"
)

// Consent is the page that asks whether an app may become an agent.
type Consent struct {
	Focus     Focus
	Now       time.Time
	URL       string // where the answer is posted
	Form      string // what the answer repeats
	App       string // as it calls itself, without what cannot be seen
	Document  Place  // the document that it is identified by; none where it registered itself
	Answer    Place  // where the answer goes
	ExpiresAt time.Time

	Orgs  []Choice // those that the person may choose from; none where their role only reads
	Org   string   // the value of the one chosen
	Name  Field    // of the new agent
	Old   bool     // an existing one is chosen
	Which Field    // the existing agent; its value is one of Agents
	// Agents are those of the organisation that the person may change.
	Agents []Choice
	Error  string // of the whole form
	// Connections are those of the organisation that a new agent may be given.
	Connections []ScopeChoice
}

// A PlaceKind is what is known of who receives what is sent to a Place.
type PlaceKind int

// The kinds.
const (
	AtHost   PlaceKind = iota // whoever holds that host's name
	AtLoop                    // a program on the person's computer
	AtScheme                  // whichever program there has claimed the scheme
)

// A Place is an address of the app's, cut up so that the part to check can stand out.
type Place struct {
	Kind                PlaceKind
	Before, Host, After string // together the address
}

// whole is the address.
func (p Place) whole() string { return p.Before + p.Host + p.After }

// org is the name of the organisation chosen.
func (v Consent) org() string {
	for _, c := range v.Orgs {
		if c.Value == v.Org {
			return c.Label
		}
	}
	return ""
}

func (v Consent) heading() string {
	if org := v.org(); org != "" {
		return "Let " + shown(v.App) + " work in " + shown(org) + "?"
	}
	return shown(v.App) + " asks to be connected"
}

// trust says which part of what is shown can be checked. A document says who may be sent an answer; whoever runs a program on
// the person's computer can take that program's place.
func (v Consent) trust() string {
	says := "Any app can call itself " + shown(v.App) + "."
	switch {
	case v.Answer.Kind != AtHost:
		return says
	case v.Document.Host != "":
		return says + " The addresses above are the part you can trust."
	}
	return says + " The address above is the part you can trust: go on only if you know it."
}

func (v Consent) nameInput() input {
	return input{ID: "name", Type: "text", Field: v.Name, Autocomplete: "off"}
}

// Onward is the page after an answer: it goes on to the app by itself.
type Onward struct {
	Focus    Focus
	App      string
	Org      string // where it works now; "" where nothing was connected
	Agent    string // as which agent
	AgentURL string
	Told     string // what the app is told where nothing was connected
	URL      string // proven to be the app's, with the answer
	Host     string // of URL, or its scheme
}

// link is the address to go on to. It may have a scheme of the app's own, which templ would not let through; that it is
// the app's was proven before anybody was asked.
func (v Onward) link() templ.SafeURL { return templ.SafeURL(v.URL) }

// frame is the page's, which goes on without scripts too.
func (v Onward) frame() Focus {
	f := v.Focus
	f.onward = v.URL
	return f
}

// App is one app that is connected to an agent, or was.
type App struct {
	Name        string // as it calls itself, without what cannot be seen
	Document    Place  // as in Consent
	Answer      Place  // where its answer went
	By          string // who connected it: "you", or a name
	At          time.Time
	RefreshedAt time.Time // zero: never
	EndedAt     time.Time // zero: it is connected
	Ended       string    // why it ended, in a sentence
	Dot         string    // a class of .dot
	Agent       string    // on the page of all apps
	AgentURL    string
	EndURL      string // of the question before its end; "" where the person may not end it
}

// known is how the app is identified, in a row.
func (a App) known() string {
	if a.Document.Host != "" {
		return "identified by " + shown(a.Document.Host)
	}
	return "registered itself, answer to " + shown(a.Answer.Host)
}

// Apps is the page of the apps that are connected.
type Apps struct {
	Shell Shell
	Now   time.Time
	All   bool // of the whole organisation, not of the person alone
	Rows  []App
}

// AppEnd is the question before an app is disconnected, as a page.
type AppEnd struct {
	Shell Shell
	Agent Agent
	App   App
}

func (v AppEnd) question() confirm {
	name := shown(v.App.Name)
	return confirm{
		ID:       "end-app",
		Question: "Disconnect " + name + "?",
		Ends:     []string{"Its way in: what it holds stops working within a second, and it cannot get more"},
		Stays:    "Stays: the agent " + shown(v.Agent.Name) + " with its approvals, its working set, and whatever else is connected to it",
		Action:   v.App.EndURL,
		Verb:     "Disconnect " + name,
		Keep:     "Keep it",
		Back:     v.Agent.URL,
	}
}
