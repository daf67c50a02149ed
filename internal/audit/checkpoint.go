package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
)

const (
	// CheckpointEvery is how often a checkpoint is made: what is younger than the last is held by its chain alone.
	CheckpointEvery = time.Minute
	// settled is how old a chain's last entry is when nothing more can follow: a writer leaves a chain after a day, and
	// what it could not write meanwhile it keeps for as long as it runs.
	settled = 3 * 24 * time.Hour
	// MinKeep is the shortest time that entries are kept.
	MinKeep = 7 * 24 * time.Hour
)

// chainID names a chain.
type chainID struct {
	org    store.OrgID
	writer store.WriterID
}

// spot is an entry of a chain that a checkpoint names.
type spot struct {
	seq  int64
	hash []byte
}

func (s spot) is(other spot) bool { return s.seq == other.seq && bytes.Equal(s.hash, other.hash) }

// heads are what a checkpoint says. Of one whose lists somebody cut it is what is left.
func heads(c store.AuditCheckpoint) map[chainID]spot {
	n := min(len(c.Orgs), len(c.Writers), len(c.Seqs), len(c.Hashes))
	m := make(map[chainID]spot, n)
	for i := range n {
		m[chainID{c.Orgs[i], c.Writers[i]}] = spot{c.Seqs[i], c.Hashes[i]}
	}
	return m
}

// A Signer makes the checkpoints. What it signed it remembers: where the database has it no longer, the next one is
// built on what it remembers, so that a gap stays. Of one database there may be many, one on each replica.
type Signer struct {
	db   *store.DB
	keys *signing.Keys
	log  *slog.Logger

	mu   sync.Mutex
	last store.AuditCheckpoint // the newest that it signed
	told map[chainID]bool      // chains that the log of the gateway has been told of
}

// NewSigner makes a Signer.
func NewSigner(db *store.DB, keys *signing.Keys, log *slog.Logger) *Signer {
	return &Signer{db: db, keys: keys, log: log, told: map[chainID]bool{}}
}

// Checkpoint signs where every chain stands. Where nothing moved since the last there is nothing to sign, but once a
// day; of two that do it at once one is kept. It goes on from a checkpoint only where that is as it was signed.
func (s *Signer) Checkpoint(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sys, now := s.db.System(), s.db.Now()
	last, daily, err := sys.LastAuditCheckpoints(ctx)
	if err != nil {
		return err
	}
	if last, err = s.trusted(ctx, last); err != nil {
		return err
	}
	base := last.Base
	switch {
	case last.Number == 0:
	case daily.Number > last.Number: // made since last was read, and this one would come too late
		return nil
	case last.Daily:
		base, daily = last.Hash, last
	case !genuine(daily, base): // the next names what the last does all the same
		s.log.ErrorContext(ctx, "audit checkpoint of a day is gone or another than was signed", slog.String("hash", hex.EncodeToString(base)))
		daily = store.AuditCheckpoint{}
	}
	since := time.Unix(0, 0)
	if last.Number > 0 {
		since = last.At.Add(-settled)
	}
	moves, err := sys.AuditMoves(ctx, last, since)
	if err != nil {
		return err
	}
	there, err := sys.Organisations(ctx, last.Orgs)
	if err != nil {
		return err
	}
	c := store.AuditCheckpoint{
		Number: last.Number + 1, At: now, Daily: !sameDay(last.At, now), Previous: orZero(last.Hash), Base: orZero(base),
	}
	moved, broken := name(&c, last, daily, moves, there)
	s.tell(ctx, broken)
	if !moved && (last.Number == 0 || !c.Daily) {
		return nil
	}
	sum := checkpointHash(c)
	c.Hash = sum[:]
	if c.Kid, c.Signature, err = s.keys.Sign(ctx, signing.Audit, c.Hash); err != nil {
		return err
	}
	added, err := sys.AddAuditCheckpoint(ctx, c)
	if err != nil || !added {
		return err
	}
	s.last = c
	if !c.Daily {
		return nil
	}
	// Whoever keeps the gateway's log has with it what the database can be held to.
	s.log.InfoContext(ctx, "audit checkpoint of the day", slog.Int64("number", c.Number), slog.String("hash", hex.EncodeToString(c.Hash)))
	_, err = sys.ThinAudit(ctx)
	return err
}

// trusted is the checkpoint to go on from: the newest in the database, or the one that was signed here where the
// database has it no longer as it was. One of others that is not as it was signed is an error.
func (s *Signer) trusted(ctx context.Context, last store.AuditCheckpoint) (store.AuditCheckpoint, error) {
	if last.Number < s.last.Number || last.Number == s.last.Number && last.Number > 0 && !same(last, s.last) {
		s.log.ErrorContext(ctx, "audit checkpoint that was signed here is gone from the database, or another",
			slog.Int64("number", s.last.Number), slog.String("hash", hex.EncodeToString(s.last.Hash)), slog.Int64("found", last.Number))
		return s.last, nil
	}
	if last.Number == 0 {
		return last, nil
	}
	switch what, err := authentic(ctx, s.keys, last); {
	case err != nil:
		return last, err
	case what != "":
		return last, fmt.Errorf("no audit checkpoint is made: checkpoint %d %s", last.Number, what)
	}
	return last, nil
}

// tell logs, once for each, the chains that are no longer as they were signed.
func (s *Signer) tell(ctx context.Context, broken []chainID) {
	for _, id := range broken {
		if !s.told[id] {
			s.told[id] = true
			s.log.ErrorContext(ctx, "audit chain is not as it was signed", slog.Any("org", id.org), slog.Any("chain", id.writer))
		}
	}
}

// authentic says in what way a checkpoint is not as it was signed; "" where it is.
func authentic(ctx context.Context, keys *signing.Keys, c store.AuditCheckpoint) (what string, err error) {
	if len(c.Orgs) != len(c.Writers) || len(c.Seqs) != len(c.Writers) || len(c.Hashes) != len(c.Writers) {
		return "was altered: its lists are of different lengths", nil
	}
	if !genuine(c, c.Hash) {
		return "was altered: its hash is another", nil
	}
	switch public, err := keys.Public(ctx, signing.Audit, c.Kid); {
	case store.IsUnavailable(err):
		return "", err
	case err != nil:
		return fmt.Sprintf("was altered: its key cannot be trusted (%v)", err), nil
	case !ed25519.Verify(public, c.Hash, c.Signature):
		return "was altered: its signature does not hold", nil
	}
	return "", nil
}

// genuine reports whether a checkpoint is the one of a hash.
func genuine(c store.AuditCheckpoint, hash []byte) bool {
	if len(c.Orgs) != len(c.Writers) || len(c.Seqs) != len(c.Writers) || len(c.Hashes) != len(c.Writers) {
		return false
	}
	sum := checkpointHash(c)
	return bytes.Equal(sum[:], hash)
}

// same reports whether a checkpoint is still what it was when it was signed here.
func same(c, signed store.AuditCheckpoint) bool {
	return genuine(c, signed.Hash) && bytes.Equal(c.Hash, signed.Hash) && c.Kid == signed.Kid && bytes.Equal(c.Signature, signed.Signature)
}

// name puts into c where the chains stand, and reports whether one moved. A chain that the last daily checkpoint has
// seen the end of is left out. One whose entry is gone or another than the last checkpoint names is not, and goes on
// being named as it was, so that Verify goes on missing it: those are broken. Likewise one whose organisation is
// deleted, until a daily checkpoint has it, for somebody may put both back.
func name(c *store.AuditCheckpoint, last, daily store.AuditCheckpoint, moves []store.AuditMove, there []store.OrgID) (moved bool, broken []chainID) {
	before, byDaily := heads(last), heads(daily)
	found := make(map[chainID]bool, len(moves))
	add := func(id chainID, s spot) {
		c.Orgs, c.Writers = append(c.Orgs, id.org), append(c.Writers, id.writer)
		c.Seqs, c.Hashes = append(c.Seqs, s.seq), append(c.Hashes, s.hash)
	}
	for _, m := range moves {
		id, now := chainID{m.Org, m.Writer}, spot{m.Seq, m.Hash}
		found[id] = true
		switch old, named := before[id]; {
		case named && (m.Seq < old.seq || !bytes.Equal(m.Was, old.hash)):
			add(id, old)
			broken = append(broken, id)
		case byDaily[id].is(now) && m.At.Before(c.At.Add(-settled)):
		default:
			add(id, now)
			moved = moved || !named || old.seq != m.Seq
		}
	}
	exists := make(map[store.OrgID]bool, len(there))
	for _, org := range there {
		exists[org] = true
	}
	for id, s := range before {
		switch {
		case found[id]:
		case exists[id.org]:
			add(id, s)
			broken = append(broken, id)
		case !byDaily[id].is(s):
			add(id, s)
		}
	}
	return moved, broken
}

func sameDay(a, b time.Time) bool {
	return a.UTC().Format(time.DateOnly) == b.UTC().Format(time.DateOnly)
}

// orZero is what stands where there is no checkpoint before.
func orZero(hash []byte) []byte {
	if hash == nil {
		return make([]byte, sha256.Size)
	}
	return hash
}

// checkpointHash covers all of a checkpoint but its signature, which is of this.
func checkpointHash(c store.AuditCheckpoint) [sha256.Size]byte {
	b := []byte("graft audit checkpoint 1\n")
	b = binary.BigEndian.AppendUint64(b, uint64(c.Number))
	b = binary.BigEndian.AppendUint64(b, uint64(c.At.UnixMicro()))
	if c.Daily {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendBytes(b, c.Previous)
	b = appendBytes(b, c.Base)
	b = binary.BigEndian.AppendUint64(b, uint64(len(c.Writers)))
	for i := range c.Writers {
		b = appendID(b, c.Orgs[i])
		b = appendID(b, c.Writers[i])
		b = binary.BigEndian.AppendUint64(b, uint64(c.Seqs[i]))
		b = appendBytes(b, c.Hashes[i])
	}
	return sha256.Sum256(b)
}

// Drop deletes what is older than keep: whole beginnings of chains, behind the newest daily checkpoint that is. It
// never deletes what is younger than MinKeep, and nothing on the word of a checkpoint that is not as it was signed. It
// says how many entries went.
func Drop(ctx context.Context, db *store.DB, keys *signing.Keys, keep time.Duration) (int64, error) {
	sys, before := db.System(), db.Now().Add(-max(keep, MinKeep))
	last, err := sys.AuditDropsBehind(ctx, before)
	if err != nil || last == 0 {
		return 0, err
	}
	err = sys.WalkAudit(ctx, store.OrgID{}, func(w *store.AuditWalk) error {
		return w.Checkpoints(ctx, last, func(c store.AuditCheckpoint) error {
			what, err := authentic(ctx, keys, c)
			if err == nil && what != "" {
				err = fmt.Errorf("nothing of the audit log is dropped: checkpoint %d %s", c.Number, what)
			}
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return sys.DropAudit(ctx, before)
}
