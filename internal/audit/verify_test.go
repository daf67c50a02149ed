package audit_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// want holds that Verify names exactly this fault first.
func (h *house) want(t *testing.T, after, fault string) {
	t.Helper()
	r := h.verify(t)
	if len(r.Faults) == 0 || !strings.Contains(r.Faults[0].String(), fault) {
		t.Errorf("Verify() after %s = %s, want %q first", after, r, fault)
	}
}

// columns are those of audit_entry, each with another value than any entry has.
var columns = map[string]string{
	"org_id": `(SELECT id FROM organisation WHERE id <> e.org_id LIMIT 1)`, "writer": `gen_random_uuid()`, "seq": `e.seq + 1000`,
	"heads": `'\x00'`, "hash": `sha256('x')`, "run_id": `gen_random_uuid()`, "kind": `'decision'`, "at": `e.at + interval '1 microsecond'`,
	"via": `'cli'`, "agent_id": `NULL`, "user_id": `gen_random_uuid()`, "tool": `'other'`, "version": `e.version + 1`, "source": `'other'`,
	"connection_id": `NULL`, "digest": `''`, "outcome": `'error'`, "took": `e.took + 1`, "line": `e.line || '.'`,
}

func TestEveryAlteredColumnIsReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c, other := storetest.Organisation(t, h.db), storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, c.Org, 5)
	commit(t, w, other.Org, 1)
	if n := storetest.Tamper(t, h.dsn, `SELECT FROM pg_attribute WHERE attrelid = 'audit_entry'::regclass AND attnum > 0 AND NOT attisdropped`); int(n) != len(columns) {
		t.Errorf("audit_entry has %d columns and %d are tried", n, len(columns))
	}
	h.well(t, 6, 2)
	storetest.Tamper(t, h.dsn, `CREATE TABLE kept AS SELECT * FROM audit_entry`)
	for column, value := range columns {
		storetest.Tamper(t, h.dsn, `UPDATE audit_entry e SET `+column+` = `+value+` WHERE tool = 'notes__add_2'`)
		r := h.verify(t)
		if len(r.Faults) == 0 {
			t.Errorf("Verify() after %s was altered = %s, want faults", column, r)
		} else if moved := column == "org_id" || column == "writer" || column == "seq"; !moved && (r.Faults[0].Seq != 3 || r.Faults[0].What != "was altered") {
			t.Errorf("Verify() after %s was altered = %s, want entry 3", column, r)
		}
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry`)
		storetest.Tamper(t, h.dsn, `INSERT INTO audit_entry SELECT * FROM kept`)
	}
	h.well(t, 6, 2)
}

// TestWhatIsCutOutIsReported plants one fault at a time, with checkpoints and without.
func TestWhatIsCutOutIsReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, stop := h.writer(t)
	commit(t, w, c.Org, 6)
	h.checkpoint(t)
	stop()
	commit(t, func() *audit.Writer { w, _ := h.writer(t); return w }(), c.Org, 6)
	h.well(t, 12, 2)
	storetest.Tamper(t, h.dsn, `CREATE TABLE kept AS SELECT * FROM audit_entry`)
	first := `writer = (SELECT min(writer::text)::uuid FROM kept)`
	second := `writer = (SELECT max(writer::text)::uuid FROM kept)`
	for _, tt := range []struct{ name, sql, want string }{
		{"a deleted row", `DELETE FROM audit_entry WHERE seq = 3 AND ` + second, "entry 3 is missing"},
		{"several", `DELETE FROM audit_entry WHERE seq IN (3, 4) AND ` + first, "entry 3 is missing, with all up to 4"},
		{"the first", `DELETE FROM audit_entry WHERE seq = 1 AND ` + first, "entry 1 is missing"},
		{"a cut tail", `DELETE FROM audit_entry WHERE seq > 4 AND ` + first, "entry 5 is missing, with all up to 6: "},
		{"a whole chain", `DELETE FROM audit_entry WHERE ` + first, "entry 1 is missing, with all up to 6: "},
		{
			"a swapped pair", `UPDATE audit_entry SET seq = CASE WHEN e.seq = 3 THEN 4 ELSE 3 END, line = line FROM (SELECT seq, hash AS was FROM kept) e
			WHERE hash = was AND audit_entry.seq IN (3, 4) AND ` + second, "entry 3 was altered",
		},
		{
			"a pair whose contents were swapped", `UPDATE audit_entry a SET tool = o.tool, line = o.line, run_id = o.run_id, hash = o.hash, version = o.version
			FROM kept o WHERE a.writer = o.writer AND a.seq + o.seq = 7 AND a.seq IN (3, 4) AND a.` + second, "entry 3 was altered",
		},
	} {
		// At once, as an update of a key would collide with itself.
		storetest.Tamper(t, h.dsn, `ALTER TABLE audit_entry DROP CONSTRAINT IF EXISTS audit_entry_pkey`)
		if n := storetest.Tamper(t, h.dsn, tt.sql); n == 0 {
			t.Errorf("%s: nothing was touched", tt.name)
		}
		h.want(t, tt.name, tt.want)
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry`)
		storetest.Tamper(t, h.dsn, `INSERT INTO audit_entry SELECT * FROM kept`)
	}
	h.well(t, 12, 2)
}

func TestWhatBecomesOfCheckpointsIsReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	// Two days with a daily checkpoint each, and three more on the third.
	for _, jump := range []time.Duration{0, day, day, 0, 0, 0} {
		h.now.move(jump)
		h.commit(t, w, c.Org, 2)
		h.checkpoint(t)
	}
	r := h.verify(t)
	if len(r.Faults) > 0 || r.Checkpoints != 6 || r.Last != 6 || len(r.LastHash) != 64 {
		t.Fatalf("Verify() = %+v, want ok with 6 checkpoints", r)
	}
	storetest.Tamper(t, h.dsn, `CREATE TABLE kept AS SELECT * FROM audit_checkpoint`)
	forged, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, sql, want string
		args            []any
	}{
		{"another time", `UPDATE audit_checkpoint SET at = at + interval '1 s' WHERE number = 4`, "checkpoint 4 was altered", nil},
		{"another head", `UPDATE audit_checkpoint SET seqs[1] = seqs[1] - 1 WHERE number = 4`, "checkpoint 4 was altered", nil},
		{"no heads", `UPDATE audit_checkpoint SET orgs = '{}', writers = '{}', seqs = '{}', hashes = '{}' WHERE number = 4`, "checkpoint 4 was altered", nil},
		{"fewer heads", `UPDATE audit_checkpoint SET orgs = '{}' WHERE number = 4`, "checkpoint 4 was altered", nil},
		{"another signature", `UPDATE audit_checkpoint SET signature = decode(repeat('00', 64), 'hex') WHERE number = 5`, "checkpoint 5 was altered: its signature does not hold", nil},
		{"not daily", `UPDATE audit_checkpoint SET daily = false WHERE number = 2`, "checkpoint 2 was altered", nil},
		{"one removed", `DELETE FROM audit_checkpoint WHERE number = 5`, "checkpoint 5 is missing", nil},
		{"a daily one removed", `DELETE FROM audit_checkpoint WHERE number = 2`, "checkpoint 2 or a later one before 3 is missing", nil},
		{"the first removed", `DELETE FROM audit_checkpoint WHERE number = 1`, "checkpoint 1 is missing, with all before it", nil},
		{"another key", `UPDATE signing_key SET public = $1`, "its key cannot be trusted", []any{[]byte(forged)}},
	} {
		h.keys = signing.New(h.db, h.master) // one that has proven a key does not ask again
		if n := storetest.Tamper(t, h.dsn, tt.sql, tt.args...); n != 1 {
			t.Errorf("%s: %d rows were touched, want 1", tt.name, n)
		}
		h.want(t, tt.name, tt.want)
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint`)
		storetest.Tamper(t, h.dsn, `INSERT INTO audit_checkpoint SELECT * FROM kept`)
	}
}

// TestACheckpointGoesOnMissingWhatWasCut: the next one does not take what is left for the whole.
func TestACheckpointGoesOnMissingWhatWasCut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, stop := h.writer(t)
	commit(t, w, c.Org, 6)
	stop()
	h.checkpoint(t)
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry WHERE seq > 4`)
	for range 5 {
		h.now.move(day)
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
		h.want(t, "a cut tail", "entry 5 is missing, with all up to 6")
	}
}

// TestRetentionDropsBeginnings: what is left verifies, is held to the same rules, and is dropped in its turn.
func TestRetentionDropsBeginnings(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.now.move(-60 * day)
	c, other := storetest.Organisation(t, h.db), storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	entries := 0
	for day := range 60 { // a chain that goes on, and one that ends on the tenth day
		h.commit(t, w, c.Org, 2)
		entries += 2
		if day == 10 {
			h.commit(t, w, other.Org, 3)
			entries += 3
		}
		h.checkpoint(t)
		h.now.move(12 * time.Hour)
		h.commit(t, w, c.Org, 1)
		entries++
		h.checkpoint(t)
		h.now.move(12 * time.Hour)
	}
	h.well(t, entries, 2)
	if n, err := audit.Drop(t.Context(), h.db, h.keys, 400*day); n != 0 || err != nil {
		t.Errorf("Drop() of what is older than 400 days = %d, %v, want none", n, err)
	}
	dropped, err := audit.Drop(t.Context(), h.db, h.keys, 30*day)
	if err != nil || dropped < 85 || dropped > 96 { // of each of 30 days three, and those of the other chain
		t.Errorf("Drop() of what is older than 30 days = %d, %v, want about 90", dropped, err)
	}
	h.want(t, "a drop of what is to be kept for 400 days", "is missing, with all before it, though the log is kept for 400 days")
	h.scope.Keep = 30 * day
	h.well(t, entries-int(dropped), 1)
	if r := h.verify(t); r.Checkpoints > 35 {
		t.Errorf("%d checkpoints are left, want the daily ones of 30 days", r.Checkpoints)
	}
	if n, err := audit.Drop(t.Context(), h.db, h.keys, 30*day); n != 0 || err != nil {
		t.Errorf("Drop() again = %d, %v, want none", n, err)
	}
	h.commit(t, w, c.Org, 1)
	h.checkpoint(t)
	entries++
	// A keep that is too short is a week.
	h.scope.Keep = 7 * day
	more, err := audit.Drop(t.Context(), h.db, h.keys, 0)
	if err != nil || more < 60 || more > 75 {
		t.Errorf("Drop() of everything = %d, %v, want all but a week", more, err)
	}
	h.well(t, entries-int(dropped+more), 1)
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry WHERE seq = (SELECT min(seq) FROM audit_entry)`)
	h.want(t, "one more was dropped by hand", "is missing")
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry`)
	h.want(t, "all were dropped by hand", "is missing, with all up to")
}

// TestNobodyButRetentionDeletes: whatever the gateway's own roles are made to run.
func TestNobodyButRetentionDeletes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, c.Org, 2)
	h.checkpoint(t)
	for _, role := range []string{"graft_app", "graft_system"} {
		for _, sql := range []string{
			`DELETE FROM audit_entry`, `UPDATE audit_entry SET line = ''`, `TRUNCATE audit_entry`, `DELETE FROM audit_checkpoint`,
			`UPDATE audit_checkpoint SET number = 9`, `UPDATE signing_key SET public = private`,
		} {
			got := storetest.Denied(t, h.dsn, role, sql)
			if !got {
				t.Errorf("%s may %s", role, sql)
			}
		}
	}
	for _, sql := range []string{`SELECT audit_drop(now())`, `SELECT audit_thin()`, `INSERT INTO audit_entry SELECT * FROM audit_entry`, `SELECT FROM audit_checkpoint`, `SELECT FROM signing_key`} {
		if !storetest.Denied(t, h.dsn, "graft_app", sql) {
			t.Errorf("graft_app may %s", sql)
		}
	}
	if n, err := h.db.System().DropAudit(t.Context(), time.Now().Add(1000*time.Hour)); n != 0 || err != nil {
		t.Errorf("DropAudit() in the future = %d, %v, want none", n, err)
	}
	h.well(t, 2, 1)

	// A checkpoint is a row that graft_system may insert; what is younger than a week it may not have gone for that.
	sys, at := h.db.System(), h.db.Now().Add(-8*day)
	last, _, err := sys.LastAuditCheckpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forged := last
	forged.Daily, forged.At, forged.Signature = true, at, make([]byte, 64)
	empty := forged
	empty.Orgs, empty.Writers, empty.Seqs, empty.Hashes = nil, nil, nil, nil
	for i, cp := range []store.AuditCheckpoint{empty, forged} {
		cp.Number = last.Number + 1 + int64(i)
		if added, err := sys.AddAuditCheckpoint(t.Context(), cp); !added || err != nil {
			t.Fatalf("AddAuditCheckpoint() = %t, %v", added, err)
		}
		if n, err := sys.DropAudit(t.Context(), time.Now()); n != 0 || err == nil || !strings.Contains(err.Error(), "younger than a week") {
			t.Errorf("DropAudit() behind a forged checkpoint = %d, %v, want an error", n, err)
		}
		if n := storetest.Tamper(t, h.dsn, `SELECT FROM audit_entry`); n != 2 {
			t.Errorf("%d entries are left, want 2", n)
		}
		if n := storetest.Tamper(t, h.dsn, `SELECT FROM audit_checkpoint WHERE number = 1`); n != 1 {
			t.Error("checkpoint 1 is gone")
		}
	}
	h.want(t, "checkpoints were forged", "checkpoint 2 was altered")
}

// TestNothingIsDroppedBehindAForgedCheckpoint: not even what is old enough.
func TestNothingIsDroppedBehindAForgedCheckpoint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.now.move(-60 * day)
	c := storetest.Organisation(t, h.db)
	for range 3 {
		h.chain(t, c.Org, 1)
		h.checkpoint(t)
		h.now.move(day)
	}
	h.now.move(57 * day)
	last, _, err := h.db.System().LastAuditCheckpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last.Number, last.At = last.Number+1, h.db.Now().Add(-20*day)
	sum := audit.CheckpointHash(last)
	last.Hash = sum[:]
	if _, err := h.db.System().AddAuditCheckpoint(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if n, err := audit.Drop(t.Context(), h.db, h.keys, 15*day); n != 0 || err == nil || !strings.Contains(err.Error(), "checkpoint 4 was altered") {
		t.Errorf("Drop() behind a forged checkpoint = %d, %v, want an error", n, err)
	}
	if n := storetest.Tamper(t, h.dsn, `SELECT FROM audit_entry`); n != 3 {
		t.Errorf("%d entries are left, want 3", n)
	}
	storetest.Tamper(t, h.dsn, `DELETE FROM audit_checkpoint WHERE number = 4`)
	if n, err := audit.Drop(t.Context(), h.db, h.keys, 15*day); n != 3 || err != nil {
		t.Errorf("Drop() = %d, %v, want all three", n, err)
	}
}

func TestTwoCheckpointsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	h.checkpoint(t) // of nothing
	if r := h.verify(t); r.Checkpoints != 0 {
		t.Errorf("%d checkpoints of an empty log, want none", r.Checkpoints)
	}
	for range 5 {
		commit(t, w, c.Org, 1)
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- h.signer().Checkpoint(t.Context()) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("Checkpoint() beside others = %v", err)
			}
		}
	}
	r := h.verify(t)
	if len(r.Faults) > 0 || r.Checkpoints != 5 {
		t.Errorf("Verify() = %s with %d checkpoints, want ok with 5", r, r.Checkpoints)
	}
	h.checkpoint(t) // nothing moved
	if again := h.verify(t); again.Checkpoints != r.Checkpoints {
		t.Errorf("a checkpoint was made though nothing moved: %s", fmt.Sprint(again.Last))
	}
}
