package job_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/job"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// run runs a client until the test ends, or stop is called.
func run(t *testing.T, c job.Config) (client *job.Client, stop func()) {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	client, err := job.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		client.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		client.Close()
	})
	t.Cleanup(stop)
	return client, stop
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing came for a minute")
	}
	return v
}

// worked is a job as its handler saw it.
type worked struct {
	org  store.OrgID
	body string
}

func TestAJobIsWorkedIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	a, b := storetest.Organisation(t, db), storetest.Organisation(t, db)
	done := make(chan worked, 10)
	handlers := map[string]job.Handler{"greet": func(_ context.Context, org store.OrgID, body json.RawMessage) error {
		done <- worked{org, string(body)}
		return nil
	}}
	client, _ := run(t, job.Config{URL: dsn, Handlers: handlers})
	run(t, job.Config{URL: dsn, Handlers: handlers})
	db.InsertJobsWith(client.Insert)
	changed := errors.New("changed my mind")
	insert := func(c store.Caller, name, word string, end error) error {
		return db.As(t.Context(), c, func(tx *store.Tx) error {
			if err := tx.InsertJob(t.Context(), name, word); err != nil {
				return err
			}
			return end
		})
	}
	if err := insert(a, "greet", "never", changed); !errors.Is(err, changed) {
		t.Fatal(err)
	}
	if err := insert(a, "of a newer release", "later", nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []store.Caller{a, b} {
		if err := insert(c, "greet", "hello", nil); err != nil {
			t.Fatal(err)
		}
	}
	got := map[worked]bool{receive(t, done): true, receive(t, done): true}
	if !got[worked{a.Org, `"hello"`}] || !got[worked{b.Org, `"hello"`}] || len(done) > 0 {
		t.Errorf("worked %v, want one of each organisation", got)
	}
}

// TestAnOrganisationSeesItsOwnJobsAlone: the queue is one table for all, so row-level security stands in it too.
func TestAnOrganisationSeesItsOwnJobsAlone(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	a, b := storetest.Organisation(t, db), storetest.Organisation(t, db)
	client, err := job.Open(t.Context(), job.Config{URL: dsn, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := func(c store.Caller) (n int) {
		t.Helper()
		db.InsertJobsWith(func(ctx context.Context, tx pgx.Tx, _ store.OrgID, _ string, _ json.RawMessage) error {
			return tx.QueryRow(ctx, `SELECT count(*) FROM river_job`).Scan(&n)
		})
		if err := db.As(t.Context(), c, func(tx *store.Tx) error { return tx.InsertJob(t.Context(), "", nil) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	db.InsertJobsWith(client.Insert)
	for range 3 {
		if err := db.As(t.Context(), a, func(tx *store.Tx) error { return tx.InsertJob(t.Context(), "greet", "hello") }); err != nil {
			t.Fatal(err)
		}
	}
	if of, other := seen(a), seen(b); of != 3 || other != 0 {
		t.Errorf("its organisation sees %d jobs and another %d, want 3 and 0", of, other)
	}
	db.InsertJobsWith(func(ctx context.Context, tx pgx.Tx, _ store.OrgID, name string, body json.RawMessage) error {
		return client.Insert(ctx, tx, a.Org, name, body)
	})
	if err := db.As(t.Context(), b, func(tx *store.Tx) error { return tx.InsertJob(t.Context(), "greet", "hello") }); err == nil {
		t.Error("a job was put in for another organisation")
	}
}

// TestPeriodicWorkIsDoneOnOneReplica, and goes on at another when that one stops.
func TestPeriodicWorkIsDoneOnOneReplica(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	var running, most atomic.Int64
	did := make(chan struct{}, 100)
	periodic := []job.Periodic{{Name: "sweep", Every: time.Second, AtOnce: true, Do: func(context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-time.After(1100 * time.Millisecond) // longer than until it is due again
		did <- struct{}{}
		return nil
	}}}
	var stops []func()
	for range 3 {
		_, stop := run(t, job.Config{URL: dsn, Periodic: periodic})
		stops = append(stops, stop)
	}
	for _, stop := range stops {
		for range 2 {
			receive(t, did)
		}
		stop()
	}
	if most.Load() != 1 {
		t.Errorf("%d ran at a time, want 1", most.Load())
	}
}

// TestWhatAKilledReplicaLeftHoldsNothingUp: its job looks as if it ran on.
func TestWhatAKilledReplicaLeftHoldsNothingUp(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	did := make(chan struct{}, 100)
	run(t, job.Config{URL: dsn, Periodic: []job.Periodic{{Name: "sweep", Every: time.Second, AtOnce: true, Do: func(context.Context) error {
		did <- struct{}{}
		return nil
	}}}})
	for range 3 {
		receive(t, did)
		storetest.Tamper(t, dsn, `UPDATE river_job SET state = 'running', finalized_at = NULL`)
	}
}

func TestAStopLetsJobsFinish(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	began, finish := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	_, stop := run(t, job.Config{URL: dsn, Periodic: []job.Periodic{{Name: "long", Every: time.Hour, AtOnce: true, Do: func(ctx context.Context) error {
		close(began)
		<-finish
		finished.Store(ctx.Err() == nil)
		return nil
	}}}})
	receive(t, began)
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		t.Error("the client stopped before its job had finished")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	receive(t, stopped)
	if !finished.Load() {
		t.Error("the job was cut off")
	}
}

// An organisation whose sweep fails, as one that is too large does, holds up none of the others.
func TestASweepThatFailsForOneGoesOnToTheNext(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	clock := time.Now()
	db := storetest.Open(t, dsn, func() time.Time { return clock })
	first, second := storetest.Organisation(t, db), storetest.Organisation(t, db)
	if second.Org.Compare(first.Org) < 0 { // made in one millisecond
		first, second = second, first
	}
	agents := map[store.OrgID]store.AgentID{}
	for _, c := range []store.Caller{first, second} {
		a, _ := storetest.Agent(t, db, c, "Worker")
		agents[c.Org] = a.ID
		if err := db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.Promote(t.Context(), a.ID, "builtin__reshape"); return err }); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Tamper(t, dsn, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF OLD.org_id = (SELECT min(id::text)::uuid FROM organisation) THEN RAISE 'too large'; END IF;
			RETURN OLD;
		END $$`)
	storetest.Tamper(t, dsn, `CREATE TRIGGER refuse BEFORE DELETE ON working_set FOR EACH ROW EXECUTE FUNCTION refuse()`)
	clock = clock.Add(100 * 24 * time.Hour)
	if err := job.SweepWorkingSets(db)(t.Context()); err == nil || !strings.Contains(err.Error(), first.Org.String()) {
		t.Errorf("the sweep = %v, want it to name %s", err, first.Org)
	}
	for c, want := range map[store.Caller]int{first: 1, second: 0} {
		err := db.As(t.Context(), c, func(tx *store.Tx) error {
			set, err := tx.WorkingSet(t.Context(), agents[c.Org])
			if len(set) != want {
				t.Errorf("%d idle tools are left to %s, want %d", len(set), c.Org, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestJobsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	restore := storetest.Outage(t, dsn)
	did := make(chan struct{}, 100)
	var log lockedBuffer
	_, stop := run(t, job.Config{URL: dsn, Log: slog.New(slog.NewTextHandler(&log, nil)), Periodic: []job.Periodic{
		{Name: "sweep", Every: time.Second, AtOnce: true, Do: func(context.Context) error {
			did <- struct{}{}
			return nil
		}},
		{Name: "fails", Every: time.Hour, AtOnce: true, Do: func(context.Context) error { return errors.New("for a reason") }},
	}})
	restore()
	receive(t, did)
	storetest.Outage(t, dsn)()
	for range len(did) {
		<-did
	}
	receive(t, did)
	stop()
	if said := log.String(); !bytes.Contains([]byte(said), []byte(`msg="job failed" job=fails err="for a reason"`)) {
		t.Errorf("log = %s, want the failed job", said)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
