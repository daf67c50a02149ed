package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/vault"
)

// A house is a database of the test's own with what the audit log needs.
type house struct {
	dsn    string
	db     *store.DB
	master *vault.MasterKeys
	keys   *signing.Keys
	now    *clock
	scope  audit.Scope // of verify
}

const day = 24 * time.Hour

// A clock is a time that goes on by itself, and jumps when it is told to.
type clock struct {
	mu   sync.Mutex
	jump time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.jump)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jump += d
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{dsn: storetest.PrivateURL(t), now: &clock{}, scope: audit.Scope{Keep: 400 * day}}
	h.db = storetest.Open(t, h.dsn, h.now.Now)
	m, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	h.master, h.keys = m, signing.New(h.db, m)
	return h
}

// writer is a running writer that stops with the test, or before by stop.
func (h *house) writer(t testing.TB) (w *audit.Writer, stop func()) {
	t.Helper()
	return start(t, h.db)
}

func start(t testing.TB, db *store.DB) (w *audit.Writer, stop func()) {
	t.Helper()
	w = audit.New(audit.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return w, stop
}

// entry is one with something in every field; n tells it from others.
func entry(org store.OrgID, n int) audit.Entry {
	now := time.Now()
	digest := sha256.Sum256([]byte{byte(n)})
	return audit.Entry{
		Org: org, Run: store.NewID[store.RunKind](now), Kind: audit.Call, At: now, Via: store.ViaBearer,
		Agent: store.NewID[store.AgentKind](now), User: store.NewID[store.UserKind](now), Tool: fmt.Sprintf("notes__add_%d", n), Version: n,
		Source: "notes", Connection: store.NewID[store.ConnectionKind](now), Digest: digest[:], Outcome: "ok",
		Took: time.Duration(n) * time.Microsecond, Line: fmt.Sprintf("added note %d", n),
	}
}

// commit commits n entries of an organisation, one after the other.
func commit(t testing.TB, w *audit.Writer, org store.OrgID, n int) {
	t.Helper()
	for i := range n {
		if err := w.Commit(t.Context(), entry(org, i)); err != nil {
			t.Fatalf("Commit() = %v", err)
		}
	}
}

// commit commits n entries of the house's own time.
func (h *house) commit(t testing.TB, w *audit.Writer, org store.OrgID, n int) {
	t.Helper()
	for i := range n {
		e := entry(org, i)
		e.At = h.now.Now()
		if err := w.Commit(t.Context(), e); err != nil {
			t.Fatalf("Commit() = %v", err)
		}
	}
}

// chain commits n entries into a chain that ends with them.
func (h *house) chain(t testing.TB, org store.OrgID, n int) {
	t.Helper()
	w, stop := h.writer(t)
	h.commit(t, w, org, n)
	stop()
}

// signer is one that has signed nothing yet, as of a gateway that was just started.
func (h *house) signer() *audit.Signer {
	return audit.NewSigner(h.db, h.keys, slog.New(slog.DiscardHandler))
}

func (h *house) checkpoint(t testing.TB) {
	t.Helper()
	if err := h.signer().Checkpoint(t.Context()); err != nil {
		t.Fatalf("Checkpoint() = %v", err)
	}
}

func (h *house) verify(t testing.TB) audit.Report {
	t.Helper()
	r, err := audit.Verify(t.Context(), h.db, h.keys, h.scope)
	if err != nil {
		t.Fatalf("Verify() = %v", err)
	}
	return r
}

// well holds that the log verifies and has so many entries in so many chains.
func (h *house) well(t testing.TB, entries, chains int) {
	t.Helper()
	if r := h.verify(t); r.String() != fmt.Sprintf("ok: %d entries, %d chains", entries, chains) {
		t.Errorf("Verify() = %s, want ok with %d entries in %d chains", r, entries, chains)
	}
}

// A row is what Export says of an entry.
type row struct {
	Org, Writer, Tool, Line, Heads, Hash, Outcome, Run string
	Seq                                                int64
}

func (h *house) export(t testing.TB, org store.OrgID) (rows []row) {
	t.Helper()
	var b bytes.Buffer
	if err := audit.Export(t.Context(), h.db, org, &b); err != nil {
		t.Fatalf("Export() = %v", err)
	}
	for dec := json.NewDecoder(&b); dec.More(); {
		var r row
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// eventually waits until done says so.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for giveUp := time.After(30 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatalf("waited 30 s for: %s", what)
		}
	}
}
