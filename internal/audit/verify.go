package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
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

// skew is how far clocks may be apart.
const skew = time.Hour

// late is how old an entry is when a checkpoint has named it, wherever one could be made: they are made every minute.
const late = 10 * time.Minute

// A Scope is what Verify is to look at, and what it cannot know from the database.
type Scope struct {
	Org  store.OrgID   // zero is all
	Keep time.Duration // how long entries are kept, at least; 0 is for ever
	// Known are hashes of checkpoints, by their numbers, that were noted outside the database.
	Known map[int64]string
}

// Verify walks every chain of an organisation, or of all, from the oldest checkpoint kept. The error is of the walk;
// what is wrong with the log is in the report.
func Verify(ctx context.Context, db *store.DB, keys *signing.Keys, s Scope) (Report, error) {
	v := &verifier{
		keys: keys, scope: s, now: db.Now(), report: Report{Faults: []Fault{}},
		exists: map[store.OrgID]bool{}, named: map[chainID]*marks{}, known: maps.Clone(s.Known),
	}
	err := db.System().WalkAudit(ctx, s.Org, func(w *store.AuditWalk) error {
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
		v.unsigned()
		return nil
	})
	return v.report, err
}

// A mark is an entry that something outside its chain names: a checkpoint, or the first entry of another chain.
type mark struct {
	seq        int64
	hash       [sha256.Size]byte
	checkpoint int64
	chain      store.WriterID // zero where it is a checkpoint
}

func (m mark) by() string {
	if m.chain.IsZero() {
		return fmt.Sprintf("checkpoint %d", m.checkpoint)
	}
	return "the first entry of chain " + m.chain.String()
}

// marks are all that are of one chain. None stands for those before it: somebody who writes a chain anew has only the
// newest signed anew.
type marks struct {
	list []mark
	seen bool // the chain has entries
}

func note(of map[chainID]*marks, id chainID, m mark) {
	all := of[id]
	if all == nil {
		all = &marks{}
		of[id] = all
	}
	if n := len(all.list); n > 0 && all.list[n-1].seq == m.seq && all.list[n-1].hash == m.hash {
		return
	}
	all.list = append(all.list, m)
}

// sorted are the marks in the order of the chain.
func (m *marks) sorted() []mark {
	if m == nil {
		return nil
	}
	slices.SortStableFunc(m.list, func(a, b mark) int { return cmp.Compare(a.seq, b.seq) })
	return m.list
}

type verifier struct {
	keys   *signing.Keys
	scope  Scope
	report Report
	exists map[store.OrgID]bool

	now     time.Time
	first   store.AuditCheckpoint // the oldest kept
	last    store.AuditCheckpoint // the newest
	newest  map[chainID]spot      // what the newest says
	starts  map[chainID]spot      // where chains begin because retention dropped what was before; nil where it never ran
	named   map[chainID]*marks    // by checkpoints
	by      map[chainID]*marks    // by the first entries of an organisation's chains
	known   map[int64]string      // those of the scope that were not met yet
	unnamed int                   // entries that a checkpoint should name by now
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
	var daily store.AuditCheckpoint
	err := w.Checkpoints(ctx, math.MaxInt64, func(c store.AuditCheckpoint) error {
		if err := v.checkpoint(ctx, c, v.last, daily); err != nil {
			return err
		}
		if v.report.Checkpoints++; v.report.Checkpoints == 1 {
			if v.first = c; c.Number > 1 {
				v.starts = heads(c)
			}
		}
		for id, s := range heads(c) {
			if v.exists[id.org] {
				m := mark{seq: s.seq, checkpoint: c.Number}
				copy(m.hash[:], s.hash)
				note(v.named, id, m)
			}
		}
		if v.last = c; c.Daily {
			daily = c
		}
		return nil
	})
	for _, number := range slices.Sorted(maps.Keys(v.known)) {
		v.fault(Fault{Checkpoint: number}, "is not there to be held to the hash that is known of it")
	}
	v.newest = heads(v.last)
	v.report.Last, v.report.LastHash = v.last.Number, hex.EncodeToString(v.last.Hash)
	return err
}

// checkpoint holds one checkpoint to its signature and to those before it.
func (v *verifier) checkpoint(ctx context.Context, c, last, daily store.AuditCheckpoint) error {
	at := Fault{Checkpoint: c.Number}
	what, err := authentic(ctx, v.keys, c)
	if err != nil {
		return err
	}
	if what != "" {
		v.fault(at, "%s", what)
	}
	if hash, ok := v.known[c.Number]; ok {
		if delete(v.known, c.Number); !strings.EqualFold(hash, hex.EncodeToString(c.Hash)) {
			v.fault(at, "is not the one whose hash is known")
		}
	}
	switch first := last.Number == 0; {
	case first:
		v.begin(c)
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

// begin holds the oldest checkpoint to what may have become of those before it: retention leaves a daily one that is
// as old as entries have to become, and the very first is made when its key is.
func (v *verifier) begin(c store.AuditCheckpoint) {
	keep := max(v.scope.Keep, MinKeep)
	switch {
	case c.Number == 1:
		if made := c.Kid.Time(); c.At.Sub(made) > late {
			v.fault(Fault{Checkpoint: 1}, "is not the first that its key signed: that was made %s before", c.At.Sub(made).Round(time.Second))
		}
	case v.scope.Keep == 0:
		v.fault(Fault{Checkpoint: c.Number - 1}, "is missing, with all before it, though the log is kept for ever")
	case !c.Daily || c.At.After(v.now.Add(skew-keep)):
		v.fault(Fault{Checkpoint: c.Number - 1}, "is missing, with all before it, though the log is kept for %d days", keep/(24*time.Hour))
	}
}

// organisation walks the chains of one organisation.
func (v *verifier) organisation(ctx context.Context, w *store.AuditWalk, org store.OrgID) error {
	v.by = map[chainID]*marks{}
	err := w.Begins(ctx, org, func(l store.AuditLink) error {
		list, ok := places(l.Heads)
		if !ok {
			return nil // its hash is wrong too
		}
		for _, p := range list {
			note(v.by, chainID{org, p.writer}, mark{seq: p.seq, hash: p.hash, chain: l.Writer})
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
			c = v.enter(id, l)
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
	unknown bool      // the hash before is not known: that entry is missing
	began   time.Time // what its first entry says
	latest  time.Time // the latest that an entry said
	ahead   [2][]mark // what is still to come of it, by checkpoints and by first entries
	named   int64     // the last entry that a checkpoint names
	foreign bool      // an entry was found that is not the one that is named
}

func (v *verifier) enter(id chainID, first store.AuditLink) walked {
	v.report.Chains++
	c := walked{id: id, spot: v.starts[id], began: first.At, named: v.starts[id].seq}
	if c.seq > 0 {
		c.latest = v.first.At
	}
	for i, all := range []map[chainID]*marks{v.named, v.by} {
		if m := all[id]; m != nil {
			m.seen = true
			c.ahead[i] = after(m.sorted(), c.seq)
		}
	}
	if n := len(c.ahead[0]); n > 0 {
		c.named = c.ahead[0][n-1].seq
	}
	return c
}

// after is what is left of marks behind an entry.
func after(list []mark, seq int64) []mark {
	for len(list) > 0 && list[0].seq <= seq {
		list = list[1:]
	}
	return list
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
	v.place(c, l)
	switch {
	case l.At.Before(c.latest.Add(-settled)):
		v.fault(at, "was added: it says %s and stands behind one of %s", l.At.UTC().Format(time.DateTime), c.latest.UTC().Format(time.DateTime))
	case l.At.After(c.latest):
		c.latest = l.At
	}
	if l.Seq > c.named && l.At.Before(v.now.Add(-late)) {
		v.unnamed++
	}
	c.seq, c.hash, c.unknown = l.Seq, l.Hash, false
}

// place holds an entry to the marks of its place. Where one is another, so are all after it: the first is named.
func (v *verifier) place(c *walked, l store.AuditLink) {
	for i, list := range c.ahead {
		for _, m := range list {
			if m.seq > l.Seq {
				break
			}
			if m.seq == l.Seq && !c.foreign && !bytes.Equal(m.hash[:], l.Hash) {
				v.fault(Fault{Org: l.Org, Writer: l.Writer, Seq: l.Seq}, "is not the one that %s names", m.by())
				c.foreign = true
			}
		}
		c.ahead[i] = after(list, l.Seq)
	}
}

// leave looks for what is cut off the end of a chain, and for what was put there, or is a chain of somebody's making.
func (v *verifier) leave(c walked) {
	if c.id.writer.IsZero() {
		return
	}
	for _, list := range c.ahead {
		if n := len(list); n > 0 {
			v.missing(c.id, c.seq+1, list[n-1])
			return
		}
	}
	_, goesOn := v.newest[c.id]
	at := Fault{Org: c.id.org, Writer: c.id.writer, Seq: c.named + 1}
	switch {
	case goesOn || v.last.Number == 0:
	case c.named > 0 && c.seq > c.named:
		v.fault(at, "was added: checkpoint %d was made after the chain had ended with %d", v.last.Number, c.named)
	case c.named == 0 && c.began.Before(v.last.At.Add(-settled)):
		v.fault(at, "was added, with its chain: no checkpoint names it, and it says %s", c.began.UTC().Format(time.DateTime))
	}
}

// vanished looks for chains of which nothing is left.
func (v *verifier) vanished(of map[chainID]*marks, mayBeDropped bool) {
	for id, all := range of {
		list, start := all.sorted(), v.starts[id].seq
		m := list[len(list)-1]
		if all.seen || m.seq <= start || mayBeDropped && start == 0 {
			continue
		}
		v.missing(id, start+1, m)
	}
}

// missing says that a chain has no entry from a place on up to the one that a mark names.
func (v *verifier) missing(id chainID, from int64, m mark) {
	at := Fault{Org: id.org, Writer: id.writer, Seq: from}
	if from == m.seq {
		v.fault(at, "is missing: %s names it", m.by())
		return
	}
	v.fault(at, "is missing, with all up to %d: %s names that", m.seq, m.by())
}

// unsigned says that checkpoints are missing at the end: one names what is older than some minutes, where it can be made.
func (v *verifier) unsigned() {
	if v.unnamed > 0 && v.last.At.Before(v.now.Add(-late)) {
		v.fault(Fault{Checkpoint: v.last.Number + 1},
			"is missing: of entries older than %d minutes %d are named by none. It was removed, or no gateway could make it", late/time.Minute, v.unnamed)
	}
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
