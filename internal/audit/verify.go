package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
)

// A Fault is one place where the log is not as it was written.
type Fault struct {
	Org        store.OrgID    `json:"org,omitzero"`
	Writer     store.WriterID `json:"writer,omitzero"` // the chain; zero where it is a checkpoint
	Seq        int64          `json:"seq,omitzero"`
	Checkpoint int64          `json:"checkpoint,omitzero"`
	What       string         `json:"what"`
}

// String is the place and what is wrong there.
func (f Fault) String() string {
	if f.Writer.IsZero() {
		return fmt.Sprintf("checkpoint %d %s", f.Checkpoint, f.What)
	}
	return fmt.Sprintf("%s chain %s entry %d %s", f.Org, f.Writer, f.Seq, f.What)
}

// A Report is what Verify found.
type Report struct {
	Entries     int     `json:"entries"`
	Chains      int     `json:"chains"`
	Checkpoints int     `json:"checkpoints"`
	Last        int64   `json:"lastCheckpoint,omitzero"`     // number of the newest checkpoint
	LastHash    string  `json:"lastCheckpointHash,omitzero"` // kept elsewhere, it shows whether the newest were removed
	Faults      []Fault `json:"faults"`
}

// faultsAtMost is how many faults a report names.
const faultsAtMost = 100

// Verify walks every chain of an organisation, or of all where org is zero, from the oldest checkpoint kept. The error
// is of the walk; what is wrong with the log is in the report.
func Verify(ctx context.Context, db *store.DB, keys *signing.Keys, org store.OrgID) (Report, error) {
	v := &verifier{keys: keys, report: Report{Faults: []Fault{}}, exists: map[store.OrgID]bool{}, named: map[chainID]mark{}, now: db.Now()}
	err := db.System().WalkAudit(ctx, org, func(w *store.AuditWalk) error {
		for _, o := range w.Orgs {
			v.exists[o] = true
		}
		if err := v.checkpoints(ctx, w); err != nil {
			return err
		}
		for _, o := range w.Orgs {
			if err := v.organisation(ctx, w, o); err != nil {
				return err
			}
		}
		v.vanished(v.named, false)
		return nil
	})
	return v.report, err
}

// A mark is an entry that something outside its chain names.
type mark struct {
	spot
	by   string
	seen bool // its chain has entries
}

type verifier struct {
	keys   *signing.Keys
	report Report
	exists map[store.OrgID]bool

	now     time.Time
	starts  map[chainID]spot // where chains begin because retention dropped what was before; nil where it never ran
	named   map[chainID]mark // by checkpoints: the last entry of each chain
	by      map[chainID]mark // by the first entries of an organisation's chains
	scratch []byte
}

func (v *verifier) fault(f Fault, format string, args ...any) {
	if len(v.report.Faults) < faultsAtMost {
		f.What = fmt.Sprintf(format, args...)
		v.report.Faults = append(v.report.Faults, f)
	}
}

// checkpoints walks the checkpoints and notes what they name.
func (v *verifier) checkpoints(ctx context.Context, w *store.AuditWalk) error {
	var last, daily store.AuditCheckpoint
	err := w.Checkpoints(ctx, func(c store.AuditCheckpoint) error {
		if err := v.checkpoint(ctx, c, last, daily); err != nil {
			return err
		}
		if v.report.Checkpoints++; v.report.Checkpoints == 1 && c.Number > 1 {
			v.starts = heads(c)
		}
		by := fmt.Sprintf("checkpoint %d", c.Number)
		for id, s := range heads(c) {
			if v.exists[id.org] && s.seq >= v.named[id].seq {
				v.named[id] = mark{spot: s, by: by}
			}
		}
		if last = c; c.Daily {
			daily = c
		}
		return nil
	})
	v.report.Last, v.report.LastHash = last.Number, fmt.Sprintf("%x", last.Hash)
	return err
}

// checkpoint holds one checkpoint to its signature and to those before it.
func (v *verifier) checkpoint(ctx context.Context, c, last, daily store.AuditCheckpoint) error {
	at := Fault{Checkpoint: c.Number}
	if len(c.Orgs) != len(c.Writers) || len(c.Seqs) != len(c.Writers) || len(c.Hashes) != len(c.Writers) {
		v.fault(at, "was altered: its lists are of different lengths")
		return nil
	}
	if sum := checkpointHash(c); !bytes.Equal(sum[:], c.Hash) {
		v.fault(at, "was altered: its hash is another")
	} else if public, err := v.keys.Public(ctx, signing.Audit, c.Kid); err != nil {
		if store.IsUnavailable(err) {
			return err
		}
		v.fault(at, "was altered: its key cannot be trusted (%v)", err)
	} else if !ed25519.Verify(public, c.Hash, c.Signature) {
		v.fault(at, "was altered: its signature does not hold")
	}
	switch first := last.Number == 0; {
	case first && c.Number > 1 && (!c.Daily || c.At.After(v.now.Add(-MinKeep))):
		v.fault(Fault{Checkpoint: c.Number - 1}, "is missing, with all before it")
	case first && c.Number > 1:
	case c.Number == last.Number+1:
		if !bytes.Equal(c.Previous, orZero(last.Hash)) {
			v.fault(at, "does not follow checkpoint %d as it is: one of the two was exchanged", last.Number)
		}
	case !c.Daily:
		v.fault(Fault{Checkpoint: c.Number - 1}, "is missing")
	case !bytes.Equal(c.Base, orZero(daily.Hash)):
		v.fault(Fault{Checkpoint: last.Number + 1}, "or a later one before %d is missing", c.Number)
	case !last.Daily: // what is thinned goes whole
		v.fault(Fault{Checkpoint: last.Number + 1}, "is missing")
	}
	return nil
}

// organisation walks the chains of one organisation.
func (v *verifier) organisation(ctx context.Context, w *store.AuditWalk, org store.OrgID) error {
	v.by = map[chainID]mark{}
	err := w.Begins(ctx, org, func(l store.AuditLink) error {
		list, ok := places(l.Heads)
		if !ok {
			return nil // its hash is wrong too
		}
		for _, p := range list {
			id := chainID{org, p.writer}
			if p.seq > v.by[id].seq && p.seq > v.starts[id].seq {
				v.by[id] = mark{spot: spot{p.seq, p.hash[:]}, by: "the first entry of chain " + l.Writer.String()}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var c walked
	err = w.Links(ctx, org, func(l store.AuditLink) error {
		if id := (chainID{org, l.Writer}); id != c.id {
			v.leave(c)
			c = v.enter(id)
		}
		v.link(&c, l)
		return nil
	})
	v.leave(c)
	v.vanished(v.by, v.starts != nil) // what retention dropped may be named still
	return err
}

// walked is where a walk along a chain is.
type walked struct {
	id chainID
	spot
	unknown bool // the hash before is not known: that entry is missing
}

func (v *verifier) enter(id chainID) walked {
	v.report.Chains++
	for _, marks := range []map[chainID]mark{v.named, v.by} {
		if m, ok := marks[id]; ok {
			m.seen = true
			marks[id] = m
		}
	}
	return walked{id: id, spot: v.starts[id]}
}

// link holds one entry to the one before it and to what is said of it elsewhere.
func (v *verifier) link(c *walked, l store.AuditLink) {
	v.report.Entries++
	at := Fault{Org: l.Org, Writer: l.Writer, Seq: l.Seq}
	switch {
	case l.Seq <= c.seq:
		v.fault(at, "is there, though retention dropped it: checkpoints were removed")
		return
	case l.Seq == c.seq+2:
		v.fault(Fault{Org: l.Org, Writer: l.Writer, Seq: c.seq + 1}, "is missing")
		c.unknown = true
	case l.Seq > c.seq+1:
		v.fault(Fault{Org: l.Org, Writer: l.Writer, Seq: c.seq + 1}, "is missing, with all up to %d", l.Seq-1)
		c.unknown = true
	}
	if !c.unknown {
		sum, scratch := hash(v.scratch, c.hash, &l)
		if v.scratch = scratch; !bytes.Equal(sum[:], l.Hash) {
			v.fault(at, "was altered")
		}
	}
	for _, marks := range []map[chainID]mark{v.named, v.by} {
		if m := marks[c.id]; m.seq == l.Seq && !bytes.Equal(m.hash, l.Hash) {
			v.fault(at, "is not the one that %s names", m.by)
		}
	}
	c.seq, c.hash, c.unknown = l.Seq, l.Hash, false
}

// leave looks for what is cut off the end of a chain.
func (v *verifier) leave(c walked) {
	for _, marks := range []map[chainID]mark{v.named, v.by} {
		if m := marks[c.id]; m.seq > c.seq && !c.id.writer.IsZero() {
			v.missing(c.id, c.seq+1, m)
			return
		}
	}
}

// vanished looks for chains of which nothing is left.
func (v *verifier) vanished(marks map[chainID]mark, mayBeDropped bool) {
	for id, m := range marks {
		start := v.starts[id].seq
		if m.seen || m.seq <= start || mayBeDropped && start == 0 {
			continue
		}
		v.missing(id, start+1, m)
	}
}

// missing says that a chain has no entry from a place on up to the one that a mark names.
func (v *verifier) missing(id chainID, from int64, m mark) {
	at := Fault{Org: id.org, Writer: id.writer, Seq: from}
	if from == m.seq {
		v.fault(at, "is missing: %s names it", m.by)
		return
	}
	v.fault(at, "is missing, with all up to %d: %s names that", m.seq, m.by)
}

// String is what a person reads: a line for each fault, or that there is none.
func (r Report) String() string {
	if len(r.Faults) == 0 {
		return fmt.Sprintf("ok: %d entries, %d chains", r.Entries, r.Chains)
	}
	lines := make([]string, len(r.Faults))
	for i, f := range r.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}
