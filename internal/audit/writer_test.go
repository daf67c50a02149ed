package audit_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

var unavailable = &reason.Refusal{Word: reason.Unavailable}

func TestManyOrganisationsAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const writers, orgs, each = 3, 8, 40
	var callers []store.Caller
	for range orgs {
		callers = append(callers, storetest.Organisation(t, h.db))
	}
	var all sync.WaitGroup
	for range writers {
		w, _ := h.writer(t)
		for _, c := range callers {
			all.Go(func() {
				for n := range each {
					var err error
					if n%2 == 0 {
						err = w.Record(entry(c.Org, n))
					} else {
						err = w.Commit(t.Context(), entry(c.Org, n))
					}
					if err != nil {
						t.Errorf("entry %d: %v", n, err)
					}
				}
			})
		}
		all.Go(func() { h.checkpoint(t) })
	}
	all.Wait()
	h.checkpoint(t)
	h.well(t, writers*orgs*each, writers*orgs)
	// What one caller sent one after the other stands in that order.
	for _, c := range callers {
		next := map[string]int{}
		for _, r := range h.export(t, c.Org) {
			if want := fmt.Sprintf("notes__add_%d", next[r.Writer]); r.Tool != want || r.Seq != int64(next[r.Writer])+1 {
				t.Fatalf("entry %d of %s = %s, want %s", r.Seq, r.Writer, r.Tool, want)
			}
			next[r.Writer]++
		}
	}
}

func TestRecordedEntriesAreDurableSoon(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, c.Org, 1) // the chain is begun, the connection made
	took := []time.Duration{}
	for n := range 10 {
		e := entry(c.Org, n)
		began := time.Now()
		if err := w.Record(e); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the entry", func() bool {
			err := h.db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.AuditCall(t.Context(), e.Run); return err })
			return err == nil
		})
		took = append(took, time.Since(began))
	}
	// The median: a machine that does other things too may be late now and then.
	late := 0
	for _, d := range took {
		if d > 50*time.Millisecond {
			late++
		}
	}
	if late > 5 {
		t.Errorf("entries were durable after %v, want 50 ms", took)
	}
}

func TestWhatPostgresWouldRefuseIsMended(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	e := entry(c.Org, 1)
	e.Tool, e.Outcome, e.Line = "a\x00b", "\xff", strings.Repeat("é", 600)
	if err := w.Commit(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	bare := audit.Entry{Org: c.Org, Kind: audit.Change, At: time.Now()}
	if err := w.Commit(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Entry{{Kind: audit.Call}, {Org: c.Org}, {Org: c.Org, Kind: "other"}} {
		if err := w.Record(e); err == nil {
			t.Errorf("Record(%+v) = nil, want an error", e)
		}
	}
	rows := h.export(t, c.Org)
	if len(rows) != 2 || rows[0].Tool != "a\uFFFDb" || rows[0].Outcome != "\uFFFD" || rows[0].Line != strings.Repeat("é", 499)+"…" {
		t.Errorf("Export() = %+v", rows)
	}
	h.well(t, 2, 1)
}

// A client may call any tool that does not exist, in as many letters as a request holds.
func TestNoTextIsKeptWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	long := strings.Repeat("é", 2<<20)
	var longest audit.Entry
	for n := range 40 {
		longest = entry(c.Org, n)
		longest.Tool, longest.Source, longest.Outcome, longest.Line = long, long, long, long
		if err := w.Record(longest); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context(), entry(storetest.Organisation(t, h.db).Org, 1)); err != nil {
		t.Errorf("Commit() behind others' long entries = %v", err)
	}
	err := h.db.As(t.Context(), c, func(tx *store.Tx) error {
		links, err := tx.AuditCall(t.Context(), longest.Run)
		if err != nil {
			return err
		}
		got := links[0]
		for field, s := range map[string]string{"tool": got.Tool, "source": got.Source, "outcome": got.Outcome} {
			if want := strings.Repeat("é", 199) + "…"; s != want {
				t.Errorf("%s is kept with %d bytes, want 199 characters and an ellipsis", field, len(s))
			}
		}
		if want := strings.Repeat("é", 499) + "…"; got.Line != want {
			t.Errorf("line is kept with %d bytes, want 499 characters and an ellipsis", len(got.Line))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.well(t, 41, 2)
}

func TestADeletedOrganisationHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	gone, stays := storetest.Organisation(t, h.db), storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, gone.Org, 2)
	commit(t, w, stays.Org, 2)
	h.checkpoint(t)
	if err := h.db.System().DeleteOrganisation(t.Context(), gone.Org); err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // in one batch with others
		if err := w.Record(entry(gone.Org, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Record(entry(stays.Org, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context(), entry(gone.Org, 9)); !errors.Is(err, reason.NotFound) {
		t.Errorf("Commit() of an organisation that is gone = %v, want %v", err, reason.NotFound)
	}
	commit(t, w, stays.Org, 1)
	h.checkpoint(t)
	h.well(t, 6, 1)
}

// TestAChainNamesTheHeadsItFound: and only those that no other names yet, so that the list stays short.
func TestAChainNamesTheHeadsItFound(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	for range 3 {
		w, stop := h.writer(t)
		commit(t, w, c.Org, 2)
		stop()
	}
	var last row
	for _, r := range h.export(t, c.Org) {
		if r.Seq == 2 {
			last = r
			continue
		}
		want := ""
		if last.Seq == 2 {
			hexWriter, err := store.ParseID[store.WriterKind](last.Writer)
			if err != nil {
				t.Fatal(err)
			}
			want = fmt.Sprintf("%x%016x%s", hexWriter.Bytes(), 2, last.Hash)
		}
		if r.Heads != want {
			t.Errorf("the first entry of %s names %q, want %q", r.Writer, r.Heads, want)
		}
	}
}

func TestAnIdleChainIsLeft(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, c.Org, 2)
	h.now.move(23 * time.Hour)
	commit(t, w, c.Org, 1)
	h.checkpoint(t)
	h.well(t, 3, 1)
	h.now.move(25 * time.Hour)
	commit(t, w, c.Org, 1)
	h.checkpoint(t)
	h.well(t, 4, 2)
}

func TestAnOutageLosesNothingAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, _ := h.writer(t)
	commit(t, w, c.Org, 1)
	restore := storetest.Outage(t, h.dsn)
	began := time.Now()
	if err := w.Commit(t.Context(), entry(c.Org, 1)); !errors.Is(err, unavailable) {
		t.Errorf("Commit() without a database = %v, want %s", err, reason.Unavailable)
	}
	for n := range 100 {
		if err := w.Commit(t.Context(), entry(c.Org, n)); !errors.Is(err, unavailable) {
			t.Fatalf("Commit() without a database = %v, want %s", err, reason.Unavailable)
		}
		if err := w.Record(entry(c.Org, n)); err != nil {
			t.Fatalf("Record() without a database = %v, want nil", err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("refused after %v", took)
	}
	taken := 100
	for {
		err := w.Record(entry(c.Org, taken))
		if err != nil {
			if !errors.Is(err, unavailable) || taken < 5000 {
				t.Errorf("Record() number %d = %v, want %s after thousands", taken, err, reason.Unavailable)
			}
			break
		}
		taken++
	}
	restore()
	eventually(t, "Commit to work again", func() bool { return w.Commit(t.Context(), entry(c.Org, 1)) == nil })
	// The writer has connections of its own; the others find out by themselves.
	eventually(t, "Export to work again", func() bool { return audit.Export(t.Context(), h.db, c.Org, io.Discard) == nil })
	recorded := 0
	for _, r := range h.export(t, c.Org) {
		if r.Tool == fmt.Sprintf("notes__add_%d", recorded) { // in order; refused intents may stand between
			recorded++
		}
	}
	if recorded < taken {
		t.Errorf("%d of %d recorded entries are in the log, in order", recorded, taken)
	}
	if r := h.verify(t); len(r.Faults) > 0 || r.Chains != 1 {
		t.Errorf("Verify() = %s in %d chains, want ok in 1", r, r.Chains)
	}
}

// TestCutCommitsNeitherForkNorRepeat: the line is cut in any moment of a write, so that nobody knows what was written.
func TestCutCommitsNeitherForkNorRepeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	line := storetest.NewLine(t, h.dsn)
	c := storetest.Organisation(t, h.db)
	w, stop := start(t, storetest.Open(t, line.DSN, nil))
	var all sync.WaitGroup
	var done atomic.Bool
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	for n := range 4 {
		all.Go(func() {
			for i := 0; !done.Load(); i++ {
				e := entry(c.Org, i)
				e.Line = fmt.Sprintf("%d-%d", n, i)
				send := func(e audit.Entry) error { return w.Commit(t.Context(), e) }
				if i%3 == 0 {
					send = w.Record
				}
				if send(e) != nil {
					<-time.After(time.Millisecond) // refused at once: the database is away
					continue
				}
				mu.Lock()
				acknowledged[e.Line] = true
				mu.Unlock()
			}
		})
	}
	so := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for n := range 20 {
		had := so()
		eventually(t, "entries after a cut", func() bool { return so() > had+7+n })
		line.Cut()
	}
	done.Store(true)
	all.Wait()
	stop()
	found := map[string]int{}
	for _, r := range h.export(t, c.Org) {
		found[r.Line]++
	}
	for l := range acknowledged {
		if found[l] == 0 {
			t.Errorf("%s was acknowledged and is not in the log", l)
		}
	}
	for l, n := range found {
		if n > 1 {
			t.Errorf("%s is in the log %d times", l, n)
		}
	}
	if r := h.verify(t); len(r.Faults) > 0 || r.Chains != 1 {
		t.Errorf("Verify() = %s in %d chains, want ok in 1", r, r.Chains)
	}
}

// Whoever takes every connection that pages and calls have does not stop what is written down.
func TestTheWriterHasConnectionsOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	db, err := store.Open(t.Context(), store.Config{URL: h.dsn, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w, _ := start(t, db)
	taken, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.As(t.Context(), c, func(*store.Tx) error {
			close(taken)
			<-release
			return nil
		})
	}()
	<-taken
	if err := w.Commit(t.Context(), entry(c.Org, 1)); err != nil {
		t.Errorf("Commit() without a free connection = %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.well(t, 1, 1)
}

func TestAStallIsRefusedInItsTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	line := storetest.NewLine(t, h.dsn)
	c := storetest.Organisation(t, h.db)
	w, _ := start(t, storetest.Open(t, line.DSN, nil))
	commit(t, w, c.Org, 1)
	line.Stall()
	began := time.Now()
	if err := w.Commit(t.Context(), entry(c.Org, 1)); !errors.Is(err, unavailable) || time.Since(began) > 8*time.Second {
		t.Errorf("Commit() on a stalled line = %v after %v, want %s after about 3 s", err, time.Since(began), reason.Unavailable)
	}
	line.Flow()
	eventually(t, "Commit to work again", func() bool { return w.Commit(t.Context(), entry(c.Org, 2)) == nil })
	if r := h.verify(t); len(r.Faults) > 0 || r.Chains != 1 {
		t.Errorf("Verify() = %s, want ok", r)
	}
}

func TestAStoppedWriterHasWrittenEverythingAndTakesNoMore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	w, stop := h.writer(t)
	const n = 2500 // several batches
	for i := range n {
		if err := w.Record(entry(c.Org, i)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	h.well(t, n, 1)
	if err := w.Record(entry(c.Org, 1)); !errors.Is(err, unavailable) {
		t.Errorf("Record() after the end = %v, want %s", err, reason.Unavailable)
	}
	if err := w.Commit(t.Context(), entry(c.Org, 1)); !errors.Is(err, unavailable) {
		t.Errorf("Commit() after the end = %v, want %s", err, reason.Unavailable)
	}
}
