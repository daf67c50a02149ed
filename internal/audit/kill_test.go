package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// childEnv makes this binary write entries until it is killed: a DSN and an organisation.
const childEnv = "GRAFT_AUDIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(childEnv); ok {
		dsn, org, _ := strings.Cut(what, " ")
		fmt.Fprintln(os.Stderr, child(dsn, org)) // it ends of a fault only
		os.Exit(1)
	}
	storetest.Main(m)
}

// child writes entries from many goroutines and says on stdout, a line each, what was acknowledged: how, since when in
// microseconds, how long that took, and which.
func child(dsn, id string) error {
	ctx := context.Background()
	org, err := store.ParseID[store.OrgKind](id)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Config{URL: dsn, MaxConns: 4})
	if err != nil {
		return err
	}
	w := audit.New(audit.Config{DB: db, Log: slog.Default()})
	go w.Run(ctx)
	failed := make(chan error)
	for n := range 16 {
		go func() {
			for i := 0; ; i++ {
				e := entry(org, i)
				e.Line = fmt.Sprintf("%d-%d-%d", os.Getpid(), n, i)
				how, began := "committed", time.Now()
				var err error
				if n%4 == 0 {
					how, err = "recorded", w.Record(e)
					<-time.After(time.Millisecond)
				} else {
					err = w.Commit(ctx, e)
				}
				if err != nil {
					failed <- err
					return
				}
				_, _ = fmt.Fprintln(os.Stdout, how, began.UnixMicro(), time.Since(began).Microseconds(), e.Line)
			}
		}()
	}
	return <-failed
}

// TestAKilledWriterLosesNothingItCommitted: real processes are killed under load.
func TestAKilledWriterLosesNothingItCommitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := storetest.Organisation(t, h.db)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		how       string
		at, until int64 // microseconds
		line      string
	}
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(cmd.Environ(), childEnv+"="+h.dsn+" "+c.Org.String())
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var all []said
		var killed bool
		var last int64 // when the last of the commits that were acknowledged began
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) != 4 {
				continue // cut off
			}
			at, _ := strconv.ParseInt(f[1], 10, 64)
			took, _ := strconv.ParseInt(f[2], 10, 64)
			if f[0] == "committed" {
				last = max(last, at)
			}
			if all = append(all, said{f[0], at, at + took, f[3]}); len(all) == 500+137*round {
				killed = cmd.Process.Kill() == nil
			}
		}
		_ = cmd.Wait()
		there := map[string]bool{}
		for _, r := range h.export(t, c.Org) {
			there[r.Line] = true
		}
		for _, s := range all {
			if there[s.line] {
				continue
			}
			// Nothing overtakes: what was taken before a commit began is as durable as that. How long an entry may wait
			// where nobody commits, TestRecordedEntriesAreDurableSoon holds.
			switch {
			case s.how == "committed":
				t.Errorf("round %d: %s was committed and is lost", round, s.line)
			case s.until < last:
				t.Errorf("round %d: %s was recorded %d µs before a commit began that was acknowledged, and is lost", round, s.line, last-s.until)
			}
		}
		if !killed || len(all) < 500 {
			t.Errorf("round %d: the writer ended by itself after %d entries", round, len(all))
		}
		h.checkpoint(t)
	}
	if r := h.verify(t); len(r.Faults) > 0 || r.Chains != 4 {
		t.Errorf("Verify() = %s in %d chains, want ok in 4", r, r.Chains)
	}
}
