package audit

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// line is an entry as it is exported.
type line struct {
	Org        store.OrgID        `json:"org"`
	Writer     store.WriterID     `json:"writer"`
	Seq        int64              `json:"seq"`
	At         time.Time          `json:"at"`
	Kind       Kind               `json:"kind"`
	Run        store.RunID        `json:"run,omitzero"`
	Via        store.Via          `json:"via"`
	Agent      store.AgentID      `json:"agent,omitzero"`
	User       store.UserID       `json:"user,omitzero"`
	Tool       string             `json:"tool,omitzero"`
	Version    int                `json:"version,omitzero"`
	Source     string             `json:"source,omitzero"`
	Connection store.ConnectionID `json:"connection,omitzero"`
	Digest     string             `json:"digest,omitzero"`
	Outcome    string             `json:"outcome,omitzero"`
	TookMicros int64              `json:"tookMicros"`
	Line       string             `json:"line,omitzero"`
	Heads      string             `json:"heads,omitzero"`
	Hash       string             `json:"hash"`
}

// Export writes the log of an organisation, or of all where org is zero, as it is in one moment: a line of JSON for
// each entry, chain after chain. It holds a page in memory, however long the log is.
func Export(ctx context.Context, db *store.DB, org store.OrgID, to io.Writer) error {
	out := bufio.NewWriter(to)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := db.System().WalkAudit(ctx, org, func(w *store.AuditWalk) error {
		for _, o := range w.Orgs {
			err := w.Links(ctx, o, func(l store.AuditLink) error {
				return enc.Encode(line{
					Org: l.Org, Writer: l.Writer, Seq: l.Seq, At: l.At.UTC(), Kind: l.Kind, Run: l.Run, Via: l.Via, Agent: l.Agent, User: l.User,
					Tool: l.Tool, Version: l.Version, Source: l.Source, Connection: l.Connection, Digest: hex.EncodeToString(l.Digest),
					Outcome: l.Outcome, TookMicros: l.Took.Microseconds(), Line: l.Line, Heads: hex.EncodeToString(l.Heads), Hash: hex.EncodeToString(l.Hash),
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
