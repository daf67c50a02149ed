package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
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

// heads are what a checkpoint says. Of one whose lists somebody cut it is what is left.
func heads(c store.AuditCheckpoint) map[chainID]spot {
	n := min(len(c.Orgs), len(c.Writers), len(c.Seqs), len(c.Hashes))
	m := make(map[chainID]spot, n)
	for i := range n {
		m[chainID{c.Orgs[i], c.Writers[i]}] = spot{c.Seqs[i], c.Hashes[i]}
	}
	return m
}

// Checkpoint signs where every chain stands. Where nothing moved since the last there is nothing to sign, but once a
// day; of two that do it at once one is kept.
func Checkpoint(ctx context.Context, db *store.DB, keys *signing.Keys) error {
	sys, now := db.System(), db.Now()
	last, daily, err := sys.LastAuditCheckpoints(ctx)
	if err != nil {
		return err
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
		Number: last.Number + 1, At: now, Daily: !sameDay(daily.At, now),
		Previous: orZero(last.Hash), Base: orZero(daily.Hash),
	}
	moved := name(&c, last, daily, moves, there)
	if !moved && (last.Number == 0 || !c.Daily) {
		return nil
	}
	sum := checkpointHash(c)
	c.Hash = sum[:]
	if c.Kid, c.Signature, err = keys.Sign(ctx, signing.Audit, c.Hash); err != nil {
		return err
	}
	if err := sys.AddAuditCheckpoint(ctx, c); err != nil || !c.Daily {
		return err
	}
	_, err = sys.ThinAudit(ctx)
	return err
}

// name puts into c where the chains stand, and reports whether one moved. A chain that the last daily checkpoint has
// seen the end of is left out; one whose entries have vanished is not, so that Verify goes on missing them.
func name(c *store.AuditCheckpoint, last, daily store.AuditCheckpoint, moves []store.AuditMove, there []store.OrgID) (moved bool) {
	before, byDaily := heads(last), heads(daily)
	found := make(map[chainID]bool, len(moves))
	add := func(id chainID, s spot) {
		c.Orgs, c.Writers = append(c.Orgs, id.org), append(c.Writers, id.writer)
		c.Seqs, c.Hashes = append(c.Seqs, s.seq), append(c.Hashes, s.hash)
	}
	for _, m := range moves {
		id := chainID{m.Org, m.Writer}
		found[id] = true
		switch old, named := before[id]; {
		case named && m.Seq < old.seq:
			add(id, old)
		case byDaily[id].seq == m.Seq && m.At.Before(c.At.Add(-settled)):
		default:
			add(id, spot{m.Seq, m.Hash})
			moved = moved || !named || old.seq != m.Seq
		}
	}
	exists := make(map[store.OrgID]bool, len(there))
	for _, org := range there {
		exists[org] = true
	}
	for id, s := range before {
		if !found[id] && exists[id.org] {
			add(id, s)
		}
	}
	return moved
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
// never deletes what is younger than MinKeep, and says how many entries went.
func Drop(ctx context.Context, db *store.DB, keep time.Duration) (int64, error) {
	return db.System().DropAudit(ctx, db.Now().Add(-max(keep, MinKeep)))
}
