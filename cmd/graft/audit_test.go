package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// logged writes entries of an organisation as a gateway does, and returns when they are durable.
func logged(t *testing.T, dsn, org string, n int) {
	t.Helper()
	db := storetest.Open(t, dsn, nil)
	o, err := db.System().OrganisationByName(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	w := audit.New(audit.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	for range n {
		if err := w.Record(audit.Entry{Org: o.ID, Kind: audit.Change, At: time.Now(), Via: store.ViaCLI, Line: "changed <something>"}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
}

func TestTheAuditLogIsVerifiedAndExportedWhileServing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dsn := storetest.EmptyURL(t)
	env := h.own(dsn)
	graft := func(args ...string) outcome {
		t.Helper()
		return h.run(append(append([]string{}, env...), args...)...)
	}
	ok := func(args ...string) string {
		t.Helper()
		o := graft(args...)
		if o.code != 0 {
			t.Fatalf("graft %v = %+v", args, o)
		}
		return o.out
	}
	ok("migrate")
	if got := ok("audit", "verify"); got != "ok: 0 entries, 0 chains\n" {
		t.Errorf("verify of an empty log = %q", got)
	}
	for _, org := range []string{"Acme", "Bolt"} { // each with an entry, in a chain of that command
		ok("user", "add", "--email", "ana@example.com", "--org", org)
	}
	logged(t, dsn, "Acme", 5)
	logged(t, dsn, "Bolt", 2)
	s := h.serve(env...) // its first act is a checkpoint
	db := storetest.Open(t, dsn, nil)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		last, _, err := db.System().LastAuditCheckpoints(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no checkpoint was made: %v\n%s", err, s.errout)
		}
		if last.Number > 0 {
			break
		}
	}
	if got := ok("audit", "verify"); got != "ok: 9 entries, 4 chains\n" {
		t.Errorf("verify = %q, want ok with 9 entries in 4 chains", got)
	}
	var report audit.Report
	if err := json.Unmarshal([]byte(ok("audit", "verify", "--org", "bolt", "--json")), &report); err != nil || report.Entries != 3 || report.Chains != 2 || report.Last != 1 {
		t.Errorf("verify --org bolt --json = %+v, %v, want 3 entries in 2 chains behind checkpoint 1", report, err)
	}
	first := fmt.Sprintf("%d:%s", report.Last, report.LastHash)
	if got := ok("audit", "verify", "--known", first); got != "ok: 9 entries, 4 chains\n" {
		t.Errorf("verify --known %s = %q, want ok", first, got)
	}
	if got := graft("audit", "verify", "--known", "2"+first[1:]); got.code != 1 || !strings.HasPrefix(got.out, "checkpoint 2 is not there") {
		t.Errorf("verify --known of one that is not there = %+v, want exit 1 and its number", got)
	}
	for _, args := range [][]string{{"--known", "1"}, {"--known", "1:abc"}, {"--audit-keep", "3"}} {
		if got := graft(append([]string{"audit", "verify"}, args...)...); got.code != 2 || got.out != "" {
			t.Errorf("verify %v = %+v, want exit 2", args, got)
		}
	}
	lines := strings.Split(strings.TrimSpace(ok("audit", "export", "--org", "Acme")), "\n")
	if len(lines) != 6 || !strings.Contains(lines[0], `"line":"Made a sign-in link for `) || strings.Count(lines[5], `"line":"changed <something>"`) != 1 ||
		len(strings.Split(ok("audit", "export", "--json"), "\n")) != 10 {
		t.Errorf("export = %v, want 6 lines of Acme and 9 of both", lines)
	}
	if got := graft("audit", "export", "--org", "nobody"); got.code != 1 || got.out != "" {
		t.Errorf("export of no organisation = %+v, want exit 1", got)
	}
	if got := ok("doctor"); !strings.Contains(got, "opens the 2 keys sealed under it") {
		t.Errorf("doctor says nothing of the key that signing keys are sealed under:\n%s", got)
	}

	storetest.Tamper(t, dsn, `DELETE FROM audit_entry WHERE seq = 5`)
	got := graft("audit", "verify")
	if got.code != 1 || got.errout != "" || !strings.HasPrefix(got.out, "org_") || !strings.Contains(got.out, " entry 5 is missing: checkpoint 1 names it\n") {
		t.Errorf("verify of a log whose tail was cut = %+v, want exit 1 and the place", got)
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("serve: %v\n%s", err, s.errout)
	}
	if said := s.errout.String(); !strings.Contains(said, "audit checkpoint of the day") || !strings.Contains(said, report.LastHash) {
		t.Errorf("serve says nothing of checkpoint %s:\n%s", first, said)
	}
	if got := graft("audit", "verify", "--json"); got.code != 1 || !strings.Contains(got.out, `"what":"is missing`) {
		t.Errorf("verify --json of it = %+v, want exit 1 and the place", got)
	}
}
