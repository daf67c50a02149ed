package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AuditKind is what an entry of the audit log tells of.
type AuditKind string

// The kinds of entry.
const (
	AuditIntent   AuditKind = "intent"   // a call with effects is about to be sent
	AuditCall     AuditKind = "call"     // how a call ended
	AuditDecision AuditKind = "decision" // whether a call may go on, and who said so
	AuditChange   AuditKind = "change"   // somebody changed what is set up
)

// An AuditEntry is one thing that was done, or is about to be.
type AuditEntry struct {
	Org        OrgID
	Run        RunID // the call it belongs to; zero for a change
	Kind       AuditKind
	At         time.Time
	Via        Via
	Agent      AgentID // zero for people
	User       UserID  // who did it, or who made the agent
	Tool       string  // the wire name
	Version    int
	Source     string
	Connection ConnectionID
	Digest     []byte // SHA-256 of the canonical arguments; nil for changes
	Outcome    string // "" of an intent; "ok", "error" (the tool's own failure), or a reason word
	Took       time.Duration
	Line       string // one redacted sentence, at most 500 characters
}

// A WriterID names one hash chain of an organisation: what one replica wrote.
type WriterID = ID[WriterKind]

// WriterKind is of a WriterID.
type WriterKind struct{}

func (WriterKind) prefix() string { return "wrt_" }

// An AuditLink is an entry in its place in a chain.
type AuditLink struct {
	AuditEntry
	Writer WriterID
	Seq    int64
	Heads  []byte // of a chain's first entry: where the organisation's other chains stood
	Hash   []byte
}

// An AuditCursor is the entry after which a page goes on.
type AuditCursor struct {
	At     time.Time
	Writer WriterID
	Seq    int64
}

// Cursor is where a page after l begins.
func (l AuditLink) Cursor() AuditCursor { return AuditCursor{l.At, l.Writer, l.Seq} }

// An AuditFilter says which entries a page shows. Zero fields do not narrow.
type AuditFilter struct {
	Agent    AgentID
	Tool     string
	Outcome  string
	Kind     AuditKind
	From, To time.Time   // From <= At < To
	Before   AuditCursor // the last entry of the page before
	Limit    int         // 0 means 50, and 500 is the most
}

// AuditEntries lists entries, newest first: to a member or an agent those of their own user.
func (tx *Tx) AuditEntries(ctx context.Context, f AuditFilter) ([]AuditLink, error) {
	limit := min(f.Limit, 500)
	if limit <= 0 {
		limit = 50
	}
	// Each condition stands alone, so that the planner drops those that do not narrow.
	return all[AuditLink](ctx, tx.tx, `
		SELECT org_id AS org, writer, seq, heads, hash, run_id AS run, kind, at, via, agent_id AS agent, user_id AS user, tool, version,
		       source, connection_id AS connection, digest, outcome, took * interval '1 microsecond' AS took, line
		FROM audit_entry
		WHERE (@sees_all OR user_id = @user)
		  AND (@agent::uuid IS NULL OR agent_id = @agent)
		  AND (@tool = '' OR tool = @tool)
		  AND (@outcome = '' OR outcome = @outcome)
		  AND (@kind = '' OR kind = @kind)
		  AND at >= coalesce(@from::timestamptz, '-infinity') AND at < coalesce(@to::timestamptz, 'infinity')
		  AND (at, writer, seq) < (coalesce(@before_at::timestamptz, 'infinity'), coalesce(@before_writer::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), @before_seq::bigint)
		ORDER BY at DESC, writer DESC, seq DESC LIMIT @limit`,
		pgx.StrictNamedArgs{
			"sees_all": tx.caller.seesAll(), "user": tx.caller.User, "agent": f.Agent, "tool": f.Tool, "outcome": f.Outcome, "kind": f.Kind,
			"from": orNull(f.From), "to": orNull(f.To), "limit": limit,
			"before_at": orNull(f.Before.At), "before_writer": f.Before.Writer, "before_seq": f.Before.Seq,
		})
}

// AuditCall lists what is written of one call, in order: intent, decisions, outcome. Of one that the caller may not
// see, or that is not known, it is reason.NotFound.
func (tx *Tx) AuditCall(ctx context.Context, run RunID) ([]AuditLink, error) {
	links, err := all[AuditLink](ctx, tx.tx, `
		SELECT org_id AS org, writer, seq, heads, hash, run_id AS run, kind, at, via, agent_id AS agent, user_id AS user, tool, version,
		       source, connection_id AS connection, digest, outcome, took * interval '1 microsecond' AS took, line
		FROM audit_entry
		WHERE run_id = @run AND (@sees_all OR user_id = @user)
		ORDER BY at, writer, seq`,
		pgx.StrictNamedArgs{"run": run, "sees_all": tx.caller.seesAll(), "user": tx.caller.User})
	if err == nil && len(links) == 0 {
		err = pgx.ErrNoRows
	}
	return links, absent(err)
}

// orNull is nil for the zero time.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
