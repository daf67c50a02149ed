package web

import (
	"fmt"
	"time"
)

// Choice is one entry of a select.
type Choice struct {
	Value string
	Label string
}

// Filters is what of the activity is shown. A zero field filters nothing.
type Filters struct {
	Kind    string
	Agent   string // its id
	Tool    string // its whole name
	Outcome string
	Since   string
}

// Any says whether there is a filter at all.
func (f Filters) Any() bool { return f != Filters{} }

// Activity is the page of every call, decision and change.
type Activity struct {
	Shell    Shell
	Now      time.Time
	Filters  Filters
	Kinds    []Choice // to choose from
	Agents   []Choice
	Outcomes []Choice
	Sinces   []Choice
	Rows     []Entry
	Older    string // where the ones before go on; "" where there are none
	Newest   string // back to the start; "" at the start
}

// Entry is one row: a call with what came of it, a decision or a change.
type Entry struct {
	URL     string // of its detail; "" where it has none
	At      time.Time
	Tool    string // the tool's name; "" where Line says what it was
	Line    string // one sentence: "Made agent hermes-prod"
	Who     string // the agent, or the person
	Outcome Outcome
	Took    time.Duration // 0: not known
}

// rest is what a small row says after the time.
func (e Entry) rest() string {
	rest := ", " + shown(e.Who)
	if t := took(e.Took); t != "" {
		rest += ", " + t
	}
	return rest
}

// Outcome is what came of something, as a mark and its word.
type Outcome struct {
	Dot  string // a class of .dot: "ok", "bad", "wait", "live" or none
	Word string
}

// Step is one thing that happened in a run, in order.
type Step struct {
	Dot   string // as in Outcome
	What  string
	More  string        // what else there is to say; "" nothing
	URL   string        // where More leads; "" nowhere
	After time.Duration // since the first
	Todo  bool          // it has not happened yet
}

// Run is the page of one call, decision or change: what it was, step by step.
type Run struct {
	Shell      Shell
	Now        time.Time
	ID         string
	Tool       string // "" where Line says what it was
	Line       string
	Outcome    Outcome
	At         time.Time
	Took       time.Duration
	Steps      []Step
	Agent      string
	AgentURL   string // "" where it has no page
	User       string
	Via        string // how it came in, in words
	Version    int    // of the tool; 0: none
	Source     string // "upstream linear"
	Connection string
	Digest     string // of the canonical arguments, as hex; "": there were none
	Place      string // where it stands in its chain
}

func (v Run) title() string {
	if v.Tool != "" {
		return shown(v.Tool)
	}
	return shown(v.Line)
}

// took is a duration as tables show it: "2 ms", "1.4 s", "3 min".
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}

// after is how long after the start a step came: "+12 ms".
func (s Step) after() string {
	switch {
	case s.Todo || s.After <= 0:
		return ""
	case s.After < time.Millisecond:
		return "+0 ms"
	}
	return "+" + took(s.After)
}

// Verify is the page that says how the log is verified and exported.
type Verify struct {
	Shell Shell
	Org   string // the organisation's name, for the commands
}
