package approval_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/store"
)

var (
	one, other = store.NewID[store.ConnectionKind](time.Now()), store.NewID[store.ConnectionKind](time.Now())
	write      = approval.Subject{Tool: "a__write", Version: 2, Connection: one}
)

func TestDecide(t *testing.T) {
	t.Parallel()
	said := func(d store.Decision, version int, c store.ConnectionID) store.Approval {
		return store.Approval{Tool: "a__write", Version: version, ConnectionID: c, Decision: d}
	}
	read := write
	read.ReadOnly = true
	for name, c := range map[string]struct {
		subject  approval.Subject
		standing []store.Approval
		want     approval.Verdict
	}{
		"nothing was said":                    {write, nil, approval.Ask},
		"a read asks nobody":                  {read, nil, approval.Pass},
		"a read passes a deny":                {read, []store.Approval{said(store.Deny, 2, one)}, approval.Pass},
		"allowed":                             {write, []store.Approval{said(store.Allow, 2, one)}, approval.Pass},
		"another version was allowed":         {write, []store.Approval{said(store.Allow, 1, one)}, approval.Ask},
		"another connection was allowed":      {write, []store.Approval{said(store.Allow, 2, other)}, approval.Ask},
		"denied":                              {write, []store.Approval{said(store.Deny, 2, one)}, approval.Denied},
		"another version was denied":          {write, []store.Approval{said(store.Deny, 1, one)}, approval.Denied},
		"denied on another connection":        {write, []store.Approval{said(store.Allow, 2, one), said(store.Deny, 2, other)}, approval.Denied},
		"every call asks":                     {write, []store.Approval{said(store.AskEvery, 1, one)}, approval.AskEvery},
		"every call of another connection":    {write, []store.Approval{said(store.AskEvery, 2, other)}, approval.Ask},
		"another tool was allowed":            {approval.Subject{Tool: "a__Write", Version: 2, Connection: one}, []store.Approval{said(store.Allow, 2, one)}, approval.Ask},
		"a tool without a connection, denied": {approval.Subject{Tool: "a__write"}, []store.Approval{said(store.Deny, 0, store.ConnectionID{})}, approval.Denied},
	} {
		if got := approval.Decide(c.subject, approval.NewStanding(c.standing)); got != c.want {
			t.Errorf("%s: Decide = %q, want %q", name, got, c.want)
		}
	}
}

// A write passes only where a person allowed this very version on this very connection, and nobody denied the tool.
func TestDecidePassesAWriteOnlyOnAYes(t *testing.T) {
	t.Parallel()
	connections := []store.ConnectionID{{}, one, other}
	rapid.Check(t, func(t *rapid.T) {
		s := approval.Subject{Tool: "t", Version: rapid.IntRange(1, 3).Draw(t, "version"), Connection: rapid.SampledFrom(connections).Draw(t, "connection")}
		var list []store.Approval
		yes, no := false, false
		for range rapid.IntRange(0, 4).Draw(t, "answers") {
			a := store.Approval{
				Tool: rapid.SampledFrom([]string{"t", "T"}).Draw(t, "tool"), Version: rapid.IntRange(1, 3).Draw(t, "of"),
				ConnectionID: rapid.SampledFrom(connections).Draw(t, "on"),
				Decision:     rapid.SampledFrom([]store.Decision{store.Allow, store.Deny, store.AskEvery}).Draw(t, "decision"),
			}
			list = append(list, a)
			yes = yes || a.Tool == "t" && a.Decision == store.Allow && a.Version == s.Version && a.ConnectionID == s.Connection
			no = no || a.Tool == "t" && a.Decision == store.Deny
		}
		got := approval.Decide(s, approval.NewStanding(list))
		if got == approval.Pass && (!yes || no) {
			t.Fatalf("Decide(%+v, %+v) = pass", s, list)
		}
		if no != (got == approval.Denied) {
			t.Fatalf("Decide(%+v, %+v) = %q, denied %v", s, list, got, no)
		}
	})
}
