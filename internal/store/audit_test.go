package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// link is an entry with something in every field. What its hash is does not matter here.
func link(db *store.DB, org store.OrgID, writer store.WriterID, seq int64) store.AuditLink {
	now := db.Now()
	hash := sha256.Sum256([]byte(fmt.Sprint(writer, seq)))
	digest := sha256.Sum256(nil)
	l := store.AuditLink{
		AuditEntry: store.AuditEntry{
			Org: org, Run: store.NewID[store.RunKind](now), Kind: store.AuditCall, At: now, Via: store.ViaBearer, Agent: store.NewID[store.AgentKind](now),
			User: store.NewID[store.UserKind](now), Tool: "notes__add", Version: 3, Source: "notes", Connection: store.NewID[store.ConnectionKind](now),
			Digest: digest[:], Outcome: "ok", Took: 1500 * time.Microsecond, Line: "added a note",
		},
		Writer: writer, Seq: seq, Hash: hash[:],
	}
	if seq == 1 {
		l.Heads = []byte{}
	}
	return l
}

// appended writes links that must be taken.
func appended(t *testing.T, db *store.DB, links ...store.AuditLink) {
	t.Helper()
	if err := db.System().AppendAudit(t.Context(), links); err != nil {
		t.Fatalf("AppendAudit() = %v", err)
	}
}

// sameLink compares links; the database answers in a zone of its own.
var sameLink = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b store.RunID) bool { return a == b }),
	cmp.Comparer(func(a, b store.OrgID) bool { return a == b }),
	cmp.Comparer(func(a, b store.AgentID) bool { return a == b }),
	cmp.Comparer(func(a, b store.UserID) bool { return a == b }),
	cmp.Comparer(func(a, b store.ConnectionID) bool { return a == b }),
	cmp.Comparer(func(a, b store.WriterID) bool { return a == b }),
}

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	writer := store.NewID[store.WriterKind](db.Now())
	full := link(db, c.Org, writer, 1)
	bare := store.AuditLink{
		AuditEntry: store.AuditEntry{Org: c.Org, Kind: store.AuditChange, At: db.Now().Add(time.Second)},
		Writer:     writer, Seq: 2, Hash: full.Hash,
	}
	appended(t, db, full, bare)
	got := must(t, db, c, func(tx *store.Tx) ([]store.AuditLink, error) {
		return tx.AuditEntries(t.Context(), store.AuditFilter{})
	})
	if diff := cmp.Diff([]store.AuditLink{bare, full}, got, sameLink); diff != "" {
		t.Errorf("AuditEntries() (-want +got):\n%s", diff)
	}
}

func TestAppendingAgainDoesNothingAndAnotherEntryIsAFork(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys, writer := db.System(), store.NewID[store.WriterKind](db.Now())
	links := []store.AuditLink{link(db, c.Org, writer, 1), link(db, c.Org, writer, 2)}
	for range 3 {
		appended(t, db, links...)
	}
	appended(t, db)
	other := link(db, c.Org, writer, 2)
	other.Hash = links[0].Hash
	if err := sys.AppendAudit(t.Context(), []store.AuditLink{other}); !errors.Is(err, store.ErrAuditFork) {
		t.Errorf("AppendAudit() of another entry in a taken place = %v, want %v", err, store.ErrAuditFork)
	}
	gone := link(db, store.NewID[store.OrgKind](db.Now()), writer, 1)
	if err := sys.AppendAudit(t.Context(), []store.AuditLink{link(db, c.Org, writer, 3), gone}); !errors.Is(err, reason.NotFound) {
		t.Errorf("AppendAudit() of an organisation that is gone = %v, want %v", err, reason.NotFound)
	}
	heads, err := sys.AuditHeads(t.Context(), []store.OrgID{c.Org, gone.Org})
	if err != nil || len(heads) != 1 || heads[0].Seq != 2 || !bytes.Equal(heads[0].Hash, links[1].Hash) || heads[0].Begins == nil {
		t.Errorf("AuditHeads() = %+v, %v, want the second entry", heads, err)
	}
	there, err := sys.Organisations(t.Context(), []store.OrgID{c.Org, gone.Org})
	if err != nil || !slices.Equal(there, []store.OrgID{c.Org}) {
		t.Errorf("Organisations() = %v, %v, want %v", there, err, c.Org)
	}
}

// TestActivityIsFilteredAndPaged: newest first, every filter, pages that neither repeat nor leave out.
func TestActivityIsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	writer, other := store.NewID[store.WriterKind](db.Now()), store.NewID[store.WriterKind](db.Now())
	begin := db.Now()
	var links []store.AuditLink
	for n := range int64(9) {
		for _, w := range []store.WriterID{writer, other} { // pairs of one time
			l := link(db, c.Org, w, n+1)
			l.At = begin.Add(time.Duration(n) * time.Minute)
			l.Line = fmt.Sprint(n)
			links = append(links, l)
		}
	}
	links[4].Tool, links[6].Outcome, links[8].Kind = "mail__send", "timeout", store.AuditDecision
	appended(t, db, links...)
	list := func(f store.AuditFilter) []store.AuditLink {
		t.Helper()
		return must(t, db, c, func(tx *store.Tx) ([]store.AuditLink, error) { return tx.AuditEntries(t.Context(), f) })
	}
	for name, tt := range map[string]struct {
		filter store.AuditFilter
		want   int
		line   string // of the first
	}{
		"everything": {store.AuditFilter{}, 18, "8"},
		"an agent":   {store.AuditFilter{Agent: links[3].Agent}, 1, "1"},
		"a tool":     {store.AuditFilter{Tool: "mail__send"}, 1, "2"},
		"an outcome": {store.AuditFilter{Outcome: "timeout"}, 1, "3"},
		"a kind":     {store.AuditFilter{Kind: store.AuditDecision}, 1, "4"},
		"from":       {store.AuditFilter{From: begin.Add(6 * time.Minute)}, 6, "8"},
		"to":         {store.AuditFilter{To: begin.Add(6 * time.Minute)}, 12, "5"},
		"a limit":    {store.AuditFilter{Limit: 3}, 3, "8"},
	} {
		if got := list(tt.filter); len(got) != tt.want || got[0].Line != tt.line {
			t.Errorf("%s: %d entries, want %d beginning with %s", name, len(got), tt.want, tt.line)
		}
	}
	var paged []store.AuditLink
	for f := (store.AuditFilter{Limit: 5}); ; f.Before = paged[len(paged)-1].Cursor() {
		page := list(f)
		if paged = append(paged, page...); len(page) < 5 {
			break
		}
	}
	if diff := cmp.Diff(list(store.AuditFilter{}), paged, sameLink); diff != "" {
		t.Errorf("pages together (-want +got):\n%s", diff)
	}
}

func TestActivityIsOnesOwnUnlessOneReadsAll(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	member, auditor := storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleAuditor)
	stranger := storetest.Organisation(t, db)
	writer := store.NewID[store.WriterKind](db.Now())
	a, b := link(db, owner.Org, writer, 1), link(db, owner.Org, writer, 2)
	a.User, b.User = member.User, owner.User
	step := link(db, owner.Org, writer, 3)
	step.Run, step.User, step.Kind = a.Run, member.User, store.AuditDecision
	step.At = a.At.Add(time.Second)
	appended(t, db, a, b, step)
	for name, tt := range map[string]struct {
		c            store.Caller
		all, ofA, oB int
	}{
		"owner": {owner, 3, 2, 1}, "auditor": {auditor, 3, 2, 1}, "member": {member, 2, 2, 0}, "stranger": {stranger, 0, 0, 0},
		"the CLI": {store.Caller{Org: owner.Org, Role: store.RoleOwner, Via: store.ViaCLI}, 3, 2, 1},
	} {
		entries := must(t, db, tt.c, func(tx *store.Tx) ([]store.AuditLink, error) {
			return tx.AuditEntries(t.Context(), store.AuditFilter{})
		})
		if len(entries) != tt.all {
			t.Errorf("%s: AuditEntries() = %d, want %d", name, len(entries), tt.all)
		}
		for run, want := range map[store.RunID]int{a.Run: tt.ofA, b.Run: tt.oB} {
			steps, err := in(t, db, tt.c, func(tx *store.Tx) ([]store.AuditLink, error) { return tx.AuditCall(t.Context(), run) })
			if len(steps) != want || store.IsAbsent(err) != (want == 0) {
				t.Errorf("%s: AuditCall() = %d entries, %v, want %d", name, len(steps), err, want)
			}
			if want == 2 && (steps[0].Kind != store.AuditCall || steps[1].Kind != store.AuditDecision) {
				t.Errorf("%s: AuditCall() is not in order", name)
			}
		}
	}
}

func TestCheckpointsAreKeptThinnedAndDropped(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PrivateURL(t), nil) // the database's own clock guards what is young
	c := storetest.Organisation(t, db)
	sys, writer := db.System(), store.NewID[store.WriterKind](db.Now())
	if last, daily, err := sys.LastAuditCheckpoints(t.Context()); err != nil || last.Number != 0 || daily.Number != 0 {
		t.Errorf("LastAuditCheckpoints() of none = %d, %d, %v", last.Number, daily.Number, err)
	}
	key, err := sys.ActiveSigningKey(t.Context(), "audit", func(store.KeyID) (public, private []byte, err error) {
		return make([]byte, 32), []byte("sealed"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(nil)
	for n := range int64(4) {
		l := link(db, c.Org, writer, n+1)
		l.At = time.Now().Add(-30 * 24 * time.Hour)
		appended(t, db, l)
		cp := store.AuditCheckpoint{
			Number: n + 1, At: time.Now().Add(time.Duration(n-30) * 24 * time.Hour).UTC().Truncate(time.Microsecond), Daily: n != 1, Previous: hash[:], Base: hash[:],
			Orgs: []store.OrgID{c.Org}, Writers: []store.WriterID{writer}, Seqs: []int64{n + 1}, Hashes: [][]byte{l.Hash},
			Hash: hash[:], Kid: key.Kid, Signature: make([]byte, 64),
		}
		if n == 3 {
			cp.Orgs, cp.Writers, cp.Seqs, cp.Hashes = nil, nil, nil, nil
		}
		for _, want := range []bool{true, false} { // the second is not written
			if added, err := sys.AddAuditCheckpoint(t.Context(), cp); added != want || err != nil {
				t.Fatalf("AddAuditCheckpoint() = %t, %v, want %t", added, err, want)
			}
		}
	}
	last, daily, err := sys.LastAuditCheckpoints(t.Context())
	if err != nil || last.Number != 4 || daily.Number != 4 || len(last.Orgs) != 0 {
		t.Errorf("LastAuditCheckpoints() = %+v, %+v, %v", last, daily, err)
	}
	named := store.AuditCheckpoint{Orgs: []store.OrgID{c.Org}, Writers: []store.WriterID{writer}, Seqs: []int64{3}}
	for _, since := range []time.Time{time.Now(), time.Now().Add(-31 * 24 * time.Hour)} { // named only, and begun since too
		moves, err := sys.AuditMoves(t.Context(), named, since)
		if err != nil || len(moves) != 1 || moves[0].Seq != 4 || len(moves[0].Was) != 32 || bytes.Equal(moves[0].Was, moves[0].Hash) {
			t.Errorf("AuditMoves() of a named chain = %+v, %v, want entry 4 and the hash of entry 3", moves, err)
		}
	}
	moves, err := sys.AuditMoves(t.Context(), store.AuditCheckpoint{}, time.Now().Add(-31*24*time.Hour))
	if err != nil || len(moves) != 1 || moves[0].Was != nil {
		t.Errorf("AuditMoves() of what began since = %+v, %v, want one", moves, err)
	}
	for before, want := range map[time.Time]int64{time.Now(): 4, time.Now().Add(-27*24*time.Hour - time.Hour): 3, time.Now().Add(-29 * 24 * time.Hour): 0} {
		if n, err := sys.AuditDropsBehind(t.Context(), before); n != want || err != nil {
			t.Errorf("AuditDropsBehind(%s) = %d, %v, want %d", before, n, err, want)
		}
	}
	if n, err := sys.ThinAudit(t.Context()); n != 1 || err != nil {
		t.Errorf("ThinAudit() = %d, %v, want 1", n, err)
	}
	if n, err := sys.DropAudit(t.Context(), time.Now().Add(-27*24*time.Hour-time.Hour)); n != 3 || err != nil {
		t.Errorf("DropAudit() = %d, %v, want 3", n, err)
	}
	var seen []string
	err = sys.WalkAudit(t.Context(), c.Org, func(w *store.AuditWalk) error {
		if err := w.Checkpoints(t.Context(), 4, func(c store.AuditCheckpoint) error {
			seen = append(seen, fmt.Sprint("checkpoint ", c.Number))
			return nil
		}); err != nil {
			return err
		}
		return w.Links(t.Context(), c.Org, func(l store.AuditLink) error { seen = append(seen, fmt.Sprint("entry ", l.Seq)); return nil })
	})
	if diff := cmp.Diff([]string{"checkpoint 3", "checkpoint 4", "entry 4"}, seen); err != nil || diff != "" {
		t.Errorf("WalkAudit() after that: %v (-want +got):\n%s", err, diff)
	}
}

func TestASigningKeyIsMadeOnceForAPurpose(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	sys := db.System()
	refused := errors.New("no entropy")
	if _, err := sys.ActiveSigningKey(t.Context(), "token", func(store.KeyID) (public, private []byte, err error) { return nil, nil, refused }); !errors.Is(err, refused) {
		t.Errorf("ActiveSigningKey() = %v, want %v", err, refused)
	}
	var made []store.KeyID
	one := func(kid store.KeyID) (public, private []byte, err error) {
		made = append(made, kid)
		return make([]byte, 32), []byte("sealed"), nil
	}
	for range 2 {
		for _, purpose := range []string{"token", "audit"} {
			k, err := sys.ActiveSigningKey(t.Context(), purpose, one)
			if err != nil || k.Purpose != purpose || k.State != "active" || k.Alg != "EdDSA" || string(k.Private) != "sealed" || k.ActiveAt == nil {
				t.Errorf("ActiveSigningKey(%s) = %+v, %v", purpose, k, err)
			}
		}
	}
	keys, err := sys.SigningKeys(t.Context(), "audit")
	if err != nil || len(keys) != 1 || len(made) != 2 || keys[0].Kid != made[1] {
		t.Errorf("SigningKeys() = %+v, %v, want the one that was made", keys, err)
	}
}

func TestAJobIsInsertedInTheTransaction(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	insert := func(tx *store.Tx) error { return tx.InsertJob(t.Context(), "acquire", map[string]int{"n": 1}) }
	if err := db.As(t.Context(), c, insert); err == nil {
		t.Error("InsertJob() = nil before anybody said how")
	}
	type job struct{ org, name, body string }
	var got job
	db.InsertJobsWith(func(ctx context.Context, tx pgx.Tx, org store.OrgID, name string, body json.RawMessage) error {
		got = job{org.String(), name, string(body)}
		return tx.QueryRow(ctx, `SELECT current_org()::text`).Scan(new(string))
	})
	do(t, db, c, insert)
	if want := (job{c.Org.String(), "acquire", `{"n":1}`}); got != want {
		t.Errorf("inserted %+v, want %+v", got, want)
	}
}
