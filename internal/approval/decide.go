package approval

import "github.com/getgraft/graft/internal/store"

// A Verdict is what is decided about a call.
type Verdict string

// The verdicts.
const (
	Pass     Verdict = "pass"
	Denied   Verdict = "denied"
	Ask      Verdict = "ask"       // the answer stands for later calls
	AskEvery Verdict = "ask every" // the answer is for this call alone
)

// A Subject is the tool that a call wants to run.
type Subject struct {
	Tool       string // wire name
	Version    int
	Connection store.ConnectionID
	ReadOnly   bool
}

// Standing is an agent's standing answers by the tool's wire name.
type Standing map[string][]store.Approval

// NewStanding sorts a list of answers.
func NewStanding(list []store.Approval) Standing {
	s := make(Standing, len(list))
	for _, a := range list {
		s[a.Tool] = append(s[a.Tool], a)
	}
	return s
}

// Decide says what happens to a call. The order is the contract's: read-only, deny, every call, no yes, pass.
func Decide(s Subject, standing Standing) Verdict {
	if s.ReadOnly {
		return Pass
	}
	verdict := Ask
	for _, a := range standing[s.Tool] {
		switch {
		case a.Decision == store.Deny:
			return Denied
		case a.ConnectionID != s.Connection:
		case a.Decision == store.AskEvery:
			verdict = AskEvery
		case a.Decision == store.Allow && a.Version == s.Version:
			verdict = Pass
		}
	}
	return verdict
}
