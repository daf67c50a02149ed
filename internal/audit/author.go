package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// An author turns entries into links of chains and writes them, one batch at a time. It is the Writer's, and only its
// Run uses it.
type author struct {
	sys    *store.System
	chains map[store.OrgID]*chain
	swept  time.Time // when idle chains were last forgotten
	buf    []byte    // of hash

	batch []queued          // being written; nil between batches
	links []store.AuditLink // of batch, once it is sealed
}

// A chain is what an author knows of one it writes.
type chain struct {
	writer store.WriterID
	seq    int64  // of the last entry that is written
	hash   []byte // likewise
	heads  []byte // what its first entry names, until that is written
	used   time.Time
}

func (a *author) begin(batch []queued) { a.batch = batch }

// write writes the batch. After an error, write again: what was sealed stays as it is, since it may have been written.
func (a *author) write(ctx context.Context, now time.Time) error {
	a.forget(now)
	if a.links == nil {
		if err := a.open(ctx, now); err != nil {
			return err
		}
		a.seal(now)
	}
	switch err := a.sys.AppendAudit(ctx, a.links); {
	case store.IsAbsent(err):
		return a.drop(ctx, err)
	case errors.Is(err, store.ErrAuditFork): // somebody else wrote there: what is not ours to go on with is left
		a.chains, a.links = map[store.OrgID]*chain{}, nil
		return err
	case err != nil:
		return err
	}
	a.advance()
	a.end(nil)
	return nil
}

// open finds where the chains of organisations that are new here stand, and begins another for each.
func (a *author) open(ctx context.Context, now time.Time) error {
	var missing []store.OrgID
	for _, q := range a.batch {
		if a.chains[q.entry.Org] == nil && !slices.Contains(missing, q.entry.Org) {
			missing = append(missing, q.entry.Org)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	heads, err := a.sys.AuditHeads(ctx, missing)
	if err != nil {
		return err
	}
	for _, org := range missing {
		a.chains[org] = &chain{writer: store.NewID[store.WriterKind](now), heads: tips(heads, org)}
	}
	return nil
}

// tips are the heads of an organisation that no chain's first entry names yet: so the list stays short.
func tips(heads []store.AuditHead, org store.OrgID) []byte {
	named := map[place]bool{}
	for _, h := range heads {
		if list, ok := places(h.Begins); ok && h.Org == org {
			for _, p := range list {
				named[p] = true
			}
		}
	}
	tips := []byte{}
	for _, h := range heads {
		if h.Org == org && len(h.Hash) == 32 && !named[place{h.Writer, h.Seq, [32]byte(h.Hash)}] {
			tips = appendPlace(tips, h)
		}
	}
	return tips
}

// seal links the batch's entries, each behind the last of its chain.
func (a *author) seal(now time.Time) {
	type end struct {
		seq  int64
		hash []byte
	}
	ends := make(map[store.OrgID]end, 8)
	hashes := make([]byte, 0, 32*len(a.batch))
	links := make([]store.AuditLink, len(a.batch))
	for i := range a.batch {
		l := &links[i]
		l.AuditEntry = a.batch[i].entry
		c := a.chains[l.Org]
		c.used = now
		last, ok := ends[l.Org]
		if !ok {
			last = end{c.seq, c.hash}
		}
		if l.Writer, l.Seq = c.writer, last.seq+1; l.Seq == 1 {
			l.Heads = c.heads
		}
		var sum [32]byte
		sum, a.buf = hash(a.buf, last.hash, l)
		hashes = append(hashes, sum[:]...)
		l.Hash = hashes[32*i : 32*(i+1) : 32*(i+1)]
		ends[l.Org] = end{l.Seq, l.Hash}
	}
	a.links = links
}

// advance moves the chains to what is written.
func (a *author) advance() {
	for i := range a.links {
		l := &a.links[i]
		c := a.chains[l.Org]
		c.seq, c.hash, c.heads = l.Seq, append(c.hash[:0:0], l.Hash...), nil
	}
}

// end answers those who wait for the batch, and lets go of it.
func (a *author) end(err error) {
	a.refuse(err)
	a.batch, a.links = nil, nil
}

// refuse answers those who wait for the batch.
func (a *author) refuse(err error) {
	for i := range a.batch {
		if done := a.batch[i].done; done != nil {
			done <- err
			a.batch[i].done = nil
		}
	}
}

// drop leaves out the entries of organisations that are deleted, with which their log went. The others stay as they
// are sealed.
func (a *author) drop(ctx context.Context, gone error) error {
	var orgs []store.OrgID
	for _, q := range a.batch {
		if !slices.Contains(orgs, q.entry.Org) {
			orgs = append(orgs, q.entry.Org)
		}
	}
	there, err := a.sys.Organisations(ctx, orgs)
	if err != nil {
		return err
	}
	batch, links := a.batch[:0:0], a.links[:0:0]
	for i, q := range a.batch {
		if slices.Contains(there, q.entry.Org) {
			batch, links = append(batch, q), append(links, a.links[i])
			continue
		}
		delete(a.chains, q.entry.Org)
		if q.done != nil {
			q.done <- gone
		}
	}
	if len(batch) == len(a.batch) { // all are there: it is something else that is missing
		return gone
	}
	if a.batch, a.links = batch, links; len(batch) == 0 {
		a.end(nil)
		return nil
	}
	return a.write(ctx, time.Time{})
}

// forget leaves chains that nothing was appended to for long. Their organisation's next entry begins another.
func (a *author) forget(now time.Time) {
	if len(a.batch) == 0 || a.links != nil || now.Sub(a.swept) < time.Hour {
		return
	}
	a.swept = now
	for org, c := range a.chains {
		if now.Sub(c.used) > chainIdle {
			delete(a.chains, org)
		}
	}
}
