package web

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// AskState is what has become of an ask.
type AskState string

// The states there are.
const (
	AskWaits     AskState = "waits"
	AskAllowed   AskState = "allowed"
	AskDenied    AskState = "denied"
	AskExpired   AskState = "expired"
	AskWithdrawn AskState = "withdrawn"
)

// Ask is the question whether an agent's call may run, on a page of its own.
type Ask struct {
	Focus Focus
	Now   time.Time
	Live  string // the stream that closes the page when it is answered elsewhere
	URL   string // where the answer is posted
	Mark  string // what the link to the page was signed with; "" where it came from the inbox
	State AskState
	AskSummary
	AgentURL   string
	MadeBy     string // who made the agent
	Effects    Effects
	Claimed    bool      // the effects are the upstream's own hint, which a person chose to trust
	Said       string    // the tool's own words
	Upstream   *AskRoute // where the call goes; nil for a tool of the gateway itself
	Version    int
	Connection string
	Arguments  []Argument
	JSON       string // the arguments as they were sent, laid out
	Cut        bool   // JSON is their beginning alone
	Digest     string // of tool, connection and arguments; shown in groups
	Every      bool   // the answer is for this one call: the tool asks every time
	Tick       bool   // "Ask every time" was ticked in an answer that was not taken
	AnsweredBy string // "you", or a name
	AnsweredAt time.Time
	Used       bool   // the call that the answer was for has come
	Error      string // why an answer was not taken, and what to do
}

// AskSummary is what the inbox says of an ask.
type AskSummary struct {
	Page      string // its address in the inbox: /asks/ask_…
	Agent     string
	Wants     string // "wants to use", and the like
	Tool      string // as agents call it, or the vendor
	AskedAt   time.Time
	ExpiresAt time.Time
}

// AskRoute is the way of a call to an upstream.
type AskRoute struct {
	Name    string // the upstream's
	Address string // its URL without the host
	Scheme  string // "https://"
	Host    string
	Tool    string // as the upstream calls it
}

// Argument is one argument of the call.
type Argument struct {
	Name  string
	Value string // as it is read; JSON where it is more than a word
	JSON  bool   // Value is JSON, for a machine
	Cut   int    // how many characters more there are, in the JSON below
}

func (v Ask) question() string {
	return "Let " + shown(v.Agent) + " use " + shown(v.Tool) + "?"
}

func (v Ask) heading() string {
	switch v.State {
	case AskAllowed:
		return shown(v.Agent) + " may use " + shown(v.Tool)
	case AskDenied:
		return shown(v.Agent) + " may not use " + shown(v.Tool)
	case AskExpired:
		return "Nobody answered in time"
	case AskWithdrawn:
		return "This ask was withdrawn"
	}
	return v.question()
}

// came is what came of it, in a sentence, for an ask that waits no more.
func (v Ask) came() string {
	switch v.State {
	case AskAllowed:
		if v.Used {
			return "The call came and went on its way. Activity says what came of it."
		}
		return "The call can run now. Tell the agent to go on: it calls again with the same arguments."
	case AskDenied:
		return "The call was refused and does not run."
	case AskExpired:
		return "The call did not run. When " + shown(v.Agent) + " calls the tool again, there is a new ask."
	}
	return "The call did not run, and there is nothing to answer any more."
}

// holds is what an answer means for later calls, as the rest of a sentence.
func (v Ask) holds(standing string) string {
	switch {
	case v.Every && v.Used:
		return ". It was for one call, which has come: the tool asks every time."
	case v.Every:
		return ". It holds for this one call: the tool asks every time."
	}
	return ". " + standing
}

func (v Ask) dot() string {
	return map[AskState]string{AskWaits: "wait", AskAllowed: "ok", AskDenied: "bad"}[v.State]
}

func (v Ask) word() string {
	switch v.State {
	case AskAllowed:
		return "Allowed"
	case AskDenied:
		return "Denied"
	case AskExpired:
		return "Expired"
	case AskWithdrawn:
		return "Withdrawn"
	}
	return "Waiting for you"
}

// more is how many characters an argument has beyond what is shown.
func (a Argument) more() string {
	return fmt.Sprintf("%s more, in full below", plural(a.Cut, "character"))
}

// meaning is what allowing it now would mean.
func (v Ask) meaning() string {
	if v.Every {
		return "If you allow it, exactly this call runs, once. It cannot change after you answer."
	}
	return "If you allow it, " + shown(v.Agent) + " may use " + versionOf(v.Version) + " of this tool from now on, with these arguments and with others. Tick “Ask every time” to allow exactly this call."
}

func (v Ask) code() Code {
	label := "Arguments as JSON"
	if v.Cut {
		label = "Beginning of the arguments"
	}
	return Code{Label: label, Tokens: []Token{{Text: shownText(v.JSON)}}, Wrap: true}
}

// grouped is a fingerprint in groups of four, which can be compared by eye.
func grouped(hex string) string {
	out := ""
	for i := 0; i < len(hex); i += 4 {
		if i > 0 {
			out += " "
		}
		out += hex[i:min(i+4, len(hex))]
	}
	return out
}

// MaxArgument is how many characters of one argument are shown at once.
const MaxArgument = 600

// CutArgument is s as an Argument's Value, with how many characters it lost.
func CutArgument(s string) (value string, cut int) {
	runes := 0
	for i := range s {
		if runes++; runes > MaxArgument {
			return s[:i], utf8.RuneCountInString(s[i:])
		}
	}
	return s, 0
}

// Asks is the inbox: what waits for an answer of the person.
type Asks struct {
	Shell Shell
	List  AskList
}

// AskList is what waits.
type AskList struct {
	Now  time.Time
	Live string
	Rows []AskSummary
}

// AskLinkDead is what a link to an ask opens when its mark is not the one that
// it was signed with.
type AskLinkDead struct {
	Focus Focus
}

// versionOf is a tool's version in a sentence.
func versionOf(n int) string { return fmt.Sprintf("version %d", n) }
