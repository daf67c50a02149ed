package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// links are the entries of an organisation, chain after chain.
func (h *house) links(t testing.TB, org store.OrgID) (links []store.AuditLink) {
	t.Helper()
	err := h.db.System().WalkAudit(t.Context(), org, func(w *store.AuditWalk) error {
		return w.Links(t.Context(), org, func(l store.AuditLink) error {
			links = append(links, l)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// rewrite changes the entries of an organisation's first chain from one on, and makes all their hashes right again.
func (h *house) rewrite(t testing.TB, org store.OrgID, seq int64, change func(*store.AuditLink)) {
	t.Helper()
	var previous []byte
	var buf []byte
	links := h.links(t, org)
	for _, l := range links {
		if l.Writer != links[0].Writer {
			break
		}
		if l.Seq >= seq {
			change(&l)
			var sum [32]byte
			sum, buf = audit.Hash(buf, previous, &l)
			l.Hash = sum[:]
			storetest.Tamper(t, h.dsn, `UPDATE audit_entry SET line = $1, at = $2, hash = $3 WHERE org_id = $4 AND writer = $5 AND seq = $6`,
				l.Line, l.At, l.Hash, l.Org.Bytes(), l.Writer.Bytes(), l.Seq)
		}
		previous = l.Hash
	}
}

func another(l *store.AuditLink) { l.Line = "something else" }

// forge adds an entry behind another, or one that begins a chain, whose hash is right.
func (h *house) forge(t testing.TB, behind store.AuditLink, at time.Time) {
	t.Helper()
	l := behind
	l.At, l.Line, l.Seq = at.UTC().Truncate(time.Microsecond), "never happened", behind.Seq+1
	if l.Heads = nil; l.Seq == 1 {
		l.Heads = []byte{}
	}
	sum, _ := audit.Hash(nil, behind.Hash, &l)
	l.Hash = sum[:]
	if err := h.db.System().AppendAudit(t.Context(), []store.AuditLink{l}); err != nil { // what graft_system may do
		t.Fatal(err)
	}
}

// TestAHistoryWrittenAnewIsNotSignedAgain: whatever is written, and however many checkpoints are made afterwards.
func TestAHistoryWrittenAnewIsNotSignedAgain(t *testing.T) {
	t.Parallel()
	for _, longer := range []bool{false, true} {
		h := newHouse(t)
		c := storetest.Organisation(t, h.db)
		h.chain(t, c.Org, 6)
		h.checkpoint(t)
		const want = "entry 6 is not the one that checkpoint 1 names"
		h.rewrite(t, c.Org, 3, another)
		h.want(t, "an entry was rewritten", want)
		if longer {
			links := h.links(t, c.Org)
			h.forge(t, links[len(links)-1], h.now.Now())
		}
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
		h.want(t, "a checkpoint was made of that", want)
		for range 5 { // until only daily ones are left, and the chain has long ended
			h.now.move(day)
			h.chain(t, c.Org, 1)
			h.checkpoint(t)
			h.want(t, "a day", want)
		}
		last, _, err := h.db.System().LastAuditCheckpoints(t.Context())
		if err != nil || len(last.Seqs) == 0 || !slices.Contains(last.Seqs, 6) {
			t.Errorf("the newest checkpoint names %v, %v, want entry 6 among them", last.Seqs, err)
		}
	}
}

// TestAChainThatComesBackIsHeldToWhatWasSignedOfIt: checkpoints had left it, and it says that it has just begun.
func TestAChainThatComesBackIsHeldToWhatWasSignedOfIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	h.chain(t, c.Org, 6)
	h.checkpoint(t)
	for range 5 {
		h.now.move(day)
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
	}
	h.well(t, 11, 6)
	h.rewrite(t, c.Org, 1, func(l *store.AuditLink) { l.At = h.db.Now() })
	h.chain(t, c.Org, 1)
	h.checkpoint(t)
	if last, _, err := h.db.System().LastAuditCheckpoints(t.Context()); err != nil || !slices.Contains(last.Seqs, 6) {
		t.Fatalf("the newest checkpoint names %v, %v, want the chain that came back among them", last.Seqs, err)
	}
	h.want(t, "a chain was put back", "entry 6 is not the one that checkpoint 1 names")
}

// TestAnOrganisationThatComesBackIsHeldToWhatWasSignedOfIt: it was away while a checkpoint was made.
func TestAnOrganisationThatComesBackIsHeldToWhatWasSignedOfIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c, other := storetest.Organisation(t, h.db), storetest.Organisation(t, h.db)
	again := func() {
		h.chain(t, other.Org, 1)
		h.checkpoint(t)
	}
	again() // the daily one
	h.chain(t, c.Org, 6)
	h.checkpoint(t)
	for _, sql := range []string{
		`CREATE TABLE entries AS SELECT * FROM audit_entry WHERE org_id = (SELECT org_id FROM audit_entry WHERE seq = 6)`,
		`CREATE TABLE orgs AS SELECT * FROM organisation WHERE id IN (SELECT org_id FROM entries)`,
		`SET session_replication_role = replica; DELETE FROM audit_entry WHERE org_id IN (SELECT id FROM orgs); DELETE FROM organisation WHERE id IN (SELECT id FROM orgs)`,
	} {
		storetest.Tamper(t, h.dsn, sql)
	}
	again()
	storetest.Tamper(t, h.dsn, `INSERT INTO organisation SELECT * FROM orgs`)
	storetest.Tamper(t, h.dsn, `INSERT INTO audit_entry SELECT * FROM entries`)
	h.rewrite(t, c.Org, 3, another)
	again()
	h.now.move(day)
	again() // now those between are thinned
	h.want(t, "an organisation was put back", "entry 6 is not the one that checkpoint")
}

// TestACheckpointIsMadeBehindOneThatIsAsItWasSigned: never behind another.
func TestACheckpointIsMadeBehindOneThatIsAsItWasSigned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	for range 2 {
		h.chain(t, c.Org, 2)
		h.checkpoint(t)
	}
	h.chain(t, c.Org, 2)
	storetest.Tamper(t, h.dsn, `CREATE TABLE kept AS SELECT * FROM audit_checkpoint`)
	for _, sql := range []string{
		`UPDATE audit_checkpoint SET seqs[1] = 1 WHERE number = 2`,
		`UPDATE audit_checkpoint SET hashes = '{}' WHERE number = 2`,
		`UPDATE audit_checkpoint SET hash = sha256('x') WHERE number = 2`,
		`UPDATE audit_checkpoint SET signature = decode(repeat('00', 64), 'hex') WHERE number = 2`,
		`INSERT INTO audit_checkpoint SELECT 3, at, daily, previous, base, orgs, writers, seqs, hashes, hash, kid, signature FROM kept WHERE number = 2`,
	} {
		storetest.Tamper(t, h.dsn, sql)
		if err := h.signer().Checkpoint(t.Context()); err == nil || !strings.Contains(err.Error(), " was altered: its ") {
			t.Errorf("Checkpoint() after %s = %v, want an error", sql, err)
		}
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint`)
		storetest.Tamper(t, h.dsn, `INSERT INTO audit_checkpoint SELECT * FROM kept`)
	}
	h.checkpoint(t)
	h.well(t, 6, 3)
}

// TestARemovedDayGoesOnMissing: the next day is built on what the newest checkpoint says was the day before.
func TestARemovedDayGoesOnMissing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	for _, jump := range []time.Duration{0, day, 0} {
		h.now.move(jump)
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
	}
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number = 2`)
	for range 3 {
		h.now.move(day)
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
		h.want(t, "a daily checkpoint was removed", "checkpoint 2 or a later one before 4 is missing")
	}
}

// TestASignerRemembersWhatItSigned: while it lives the database cannot be put back behind it.
func TestASignerRemembersWhatItSigned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	var said bytes.Buffer
	s := audit.NewSigner(h.db, h.keys, slog.New(slog.NewTextHandler(&said, nil)))
	sign := func() {
		t.Helper()
		if err := s.Checkpoint(t.Context()); err != nil {
			t.Fatalf("Checkpoint() = %v", err)
		}
	}
	h.chain(t, c.Org, 2)
	sign()
	links := h.links(t, c.Org)
	h.forge(t, links[1], h.now.Now()) // an entry as good as any
	sign()
	r := h.verify(t)
	if len(r.Faults) > 0 || r.Last != 2 || strings.Contains(said.String(), "level=ERROR") || strings.Count(said.String(), "audit checkpoint of the day") != 1 {
		t.Fatalf("Verify() = %s, and it said\n%s", r, &said)
	}
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number = 2`)
	h.rewrite(t, c.Org, 3, another)
	h.chain(t, c.Org, 1)
	sign()
	h.want(t, "the newest checkpoint was removed and what it named rewritten", "checkpoint 2 is missing")
	r = h.verify(t)
	if !strings.Contains(r.String(), "entry 3 is not the one that checkpoint 3 names") {
		t.Errorf("Verify() = %s, want entry 3 too", r)
	}
	for _, want := range []string{"audit checkpoint that was signed here is gone", "audit chain is not as it was signed"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the signer said\n%s\nwant %q", &said, want)
		}
	}
	// Nor is it stopped by what becomes of its own.
	for n, sql := range []string{
		`UPDATE audit_checkpoint SET seqs[1] = 1 WHERE number = 3`,
		`UPDATE audit_checkpoint SET signature = decode(repeat('00', 64), 'hex') WHERE number = 4`,
		`UPDATE audit_checkpoint SET hash = sha256('x') WHERE number = 5`,
	} {
		if storetest.Tamper(t, h.dsn, sql) != 1 {
			t.Fatalf("%s: nothing was touched", sql)
		}
		h.chain(t, c.Org, 1)
		sign()
		if r := h.verify(t); !strings.Contains(r.String(), fmt.Sprintf("checkpoint %d was altered", n+3)) || r.Last != int64(n+4) {
			t.Errorf("Verify() after %s = %s, want it named and %d to be the last", sql, r, n+4)
		}
	}
}

// TestAKeyOfSomebodysOwnSignsNothing: they have inserted it as one whose private half was shredded.
func TestAKeyOfSomebodysOwnSignsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	h.chain(t, c.Org, 6)
	h.checkpoint(t)
	h.rewrite(t, c.Org, 3, another)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	kid := store.NewID[store.KeyKind](h.db.Now())
	storetest.Tamper(t, h.dsn, `ALTER TABLE signing_key DROP CONSTRAINT signing_key_proof`)
	storetest.Tamper(t, h.dsn, `INSERT INTO signing_key (kid, purpose, alg, public, private, state, created_at) VALUES ($1, 'audit', 'EdDSA', $2, NULL, 'retired', now())`,
		kid.Bytes(), []byte(public))
	cp, _, err := h.db.System().LastAuditCheckpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp.Hashes[0] = h.links(t, c.Org)[5].Hash
	sum := audit.CheckpointHash(cp)
	storetest.Tamper(t, h.dsn, `UPDATE audit_checkpoint SET hashes = $1, hash = $2, signature = $3, kid = $4`,
		cp.Hashes, sum[:], ed25519.Sign(private, sum[:]), kid.Bytes())
	h.keys = signing.New(h.db, h.master)
	h.want(t, "a checkpoint was signed with a forged key", "checkpoint 1 was altered: its key cannot be trusted")
}

// TestABeginningIsMissedForAsLongAsItIsKept: what retention would not have dropped yet, somebody did.
func TestABeginningIsMissedForAsLongAsItIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.now.move(-20 * day)
	c := storetest.Organisation(t, h.db)
	for n := range 21 {
		if n > 0 {
			h.now.move(day)
		}
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
	}
	h.well(t, 21, 21)
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry WHERE at < (SELECT at FROM audit_checkpoint WHERE number = 9)`)
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number < 9`) // of 12 days ago
	for keep, want := range map[time.Duration]string{
		400 * day: "checkpoint 8 is missing, with all before it, though the log is kept for 400 days",
		13 * day:  "checkpoint 8 is missing, with all before it, though the log is kept for 13 days",
		0:         "checkpoint 8 is missing, with all before it, though the log is kept for ever",
	} {
		h.scope.Keep = keep
		h.want(t, "a beginning was deleted", want)
	}
	h.scope.Keep = 10 * day
	h.well(t, 12, 12)
}

// TestWhatIsPutInLaterIsReported: with hashes that are right, as only the gateway's own right to insert takes.
func TestWhatIsPutInLaterIsReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.now.move(-60 * day)
	c := storetest.Organisation(t, h.db)
	h.chain(t, c.Org, 3)
	h.checkpoint(t)
	for range 5 {
		h.now.move(day)
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
	}
	h.well(t, 8, 6)
	links := h.links(t, c.Org)
	ended, newest := links[2], links[7]
	begins := ended
	begins.Writer, begins.Seq, begins.Hash = store.NewID[store.WriterKind](h.db.Now()), 0, nil
	for _, tt := range []struct {
		name, want string
		behind     store.AuditLink
		at         time.Time
	}{
		{"a chain of two months ago", "entry 1 was added, with its chain: no checkpoint names it", begins, h.db.Now().Add(-60 * day)},
		{"an entry behind a chain that had ended", "entry 4 was added: checkpoint ", ended, ended.At},
		{"one of now behind a chain that had ended", "entry 4 was added: checkpoint ", ended, h.db.Now()},
		{"an entry of two months ago behind a chain that goes on", "entry 2 was added: it says ", newest, h.db.Now().Add(-60 * day)},
	} {
		h.forge(t, tt.behind, tt.at)
		h.want(t, tt.name, tt.want)
		h.chain(t, c.Org, 1) // and a checkpoint more
		h.checkpoint(t)
		h.want(t, tt.name, tt.want)
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry WHERE line = 'never happened'`)
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry WHERE writer > $1`, newest.Writer.Bytes())
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number > 6`)
		h.well(t, 8, 6)
	}
}

// TestALogWithoutItsCheckpointsIsNotWell: nor is one that was signed anew.
func TestALogWithoutItsCheckpointsIsNotWell(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	h.chain(t, c.Org, 3)
	h.checkpoint(t)
	h.now.move(time.Hour)
	h.well(t, 3, 1)
	h.chain(t, c.Org, 1)
	h.well(t, 4, 2) // younger than a checkpoint must be
	h.checkpoint(t)
	h.now.move(time.Hour)
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number = 2`)
	h.want(t, "the newest was removed", "checkpoint 2 is missing: of entries older than 10 minutes 1 are named by none")
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint`)
	h.want(t, "all were removed", "checkpoint 1 is missing: of entries older than 10 minutes 4 are named by none")
	h.rewrite(t, c.Org, 2, another)
	h.chain(t, c.Org, 1)
	h.checkpoint(t)
	h.want(t, "all were made anew", "checkpoint 1 is not the first that its key signed: that was made 2h")
}

// TestACheckpointNotedElsewhereIsAskedFor: which finds what nothing in the database can.
func TestACheckpointNotedElsewhereIsAskedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	hashes := map[int64]string{}
	for n := range int64(3) {
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
		hashes[n+1] = h.verify(t).LastHash
	}
	h.scope.Known = hashes
	h.well(t, 3, 3)
	h.scope.Known = map[int64]string{2: hashes[3]}
	h.want(t, "another hash was noted", "checkpoint 2 is not the one whose hash is known")
	h.scope.Known = hashes
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number = 3`)
	h.want(t, "the newest was removed", "checkpoint 3 is not there to be held to the hash that is known of it")
	h.chain(t, c.Org, 1)
	h.checkpoint(t)
	h.want(t, "it was made anew", "checkpoint 3 is not the one whose hash is known")
}
