package store_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// openSingle is a database with a pool of one connection, so that the next transaction gets the last one's.
func openSingle(t *testing.T, dsn string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: dsn, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// leftovers is what the pool's one connection carries between transactions.
func leftovers(t *testing.T, db *store.DB) (role, org string) {
	t.Helper()
	err := db.Pool().QueryRow(t.Context(), `SELECT current_user::text, coalesce(current_setting('graft.org', true), '')`).Scan(&role, &org)
	if err != nil {
		t.Fatal(err)
	}
	return role, org
}

// TestDBHasNoOtherWayIn: an exported pool, field or method that takes SQL would be a way around the locks.
func TestDBHasNoOtherWayIn(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[*store.DB]()
	var methods, fields []string
	for i := range typ.NumMethod() {
		methods = append(methods, typ.Method(i).Name)
	}
	for _, of := range []reflect.Type{typ.Elem(), reflect.TypeFor[store.Tx](), reflect.TypeFor[store.System]()} {
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				fields = append(fields, of.Name()+"."+of.Field(i).Name)
			}
		}
	}
	methods = slices.DeleteFunc(methods, func(name string) bool { return name == "Pool" }) // of export_test.go
	if diff := cmp.Diff([]string{"As", "Close", "Diagnose", "InsertJobsWith", "Now", "Ping", "ProveTenancy", "RotateToken", "System"}, methods); diff != "" {
		t.Errorf("methods of *DB (-want +got):\n%s", diff)
	}
	if len(fields) > 0 {
		t.Errorf("exported fields = %v, want none", fields)
	}
}

func TestNothingOfATransactionStaysOnItsConnection(t *testing.T) {
	t.Parallel()
	for name, login := range logins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := login(t, storetest.PrivateURL(t))
			db := openSingle(t, dsn)
			a, b := storetest.Organisation(t, db), storetest.Organisation(t, db)
			worker := plant(t, db, a)
			self, _ := leftovers(t, db)
			pid := db.Pool().Stat().NewConnsCount()
			boom := errors.New("boom")
			for _, tt := range []struct {
				name string
				fn   func(tx *store.Tx) error
				want error
				code string // SQLSTATE, in place of want
			}{
				{"commit", func(tx *store.Tx) error { _, err := tx.Members(t.Context()); return err }, nil, ""},
				{"rollback", func(*store.Tx) error { return boom }, boom, ""},
				{"a statement that fails", func(tx *store.Tx) error {
					_, err := tx.Sessions(t.Context(), worker.ID, -1) // LIMIT must not be negative
					return err
				}, errNone, "2201W"},
				{"a failed statement that fn passes over", func(tx *store.Tx) error {
					_, _ = tx.Sessions(t.Context(), worker.ID, -1)
					return nil
				}, pgx.ErrTxCommitRollback, ""},
				{"panic", func(*store.Tx) error { panic(boom) }, boom, ""},
				{"panic in an aborted transaction", func(tx *store.Tx) error {
					_, _ = tx.Sessions(t.Context(), worker.ID, -1)
					panic(boom)
				}, boom, ""},
			} {
				err := recovered(func() error { return db.As(t.Context(), a, tt.fn) })
				if !errors.Is(err, tt.want) && (tt.code == "" || sqlstate(err) != tt.code) {
					t.Errorf("after %s: As() = %v, want %v %s", tt.name, err, tt.want, tt.code)
				}
				if role, org := leftovers(t, db); role != self || org != "" {
					t.Errorf("after %s the connection has role %q and organisation %q, want %q and none", tt.name, role, org, self)
				}
				if agents := must(t, db, b, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }); len(agents) > 0 {
					t.Errorf("after %s another organisation sees %v, want none", tt.name, agents)
				}
			}
			if got := db.Pool().Stat().NewConnsCount(); got != pid {
				t.Errorf("connections opened = %d, want %d: this was not about one connection", got, pid)
			}
		})
	}
}

// errNone is no error of anybody's.
var errNone = errors.New("none")

// recovered is fn's error, or what it panicked with.
func recovered(fn func() error) (err error) {
	defer func() {
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	return fn()
}

func TestATransactionCommitsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	boom := errors.New("boom")
	count := func() int {
		return len(must(t, db, c, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) }))
	}
	create := func(then error) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			if _, _, err := tx.CreateAgent(t.Context(), "Half", c.User); err != nil {
				return err
			}
			return then
		}
	}
	if err := db.As(t.Context(), c, create(boom)); !errors.Is(err, boom) || count() != 0 {
		t.Errorf("As() = %v with %d agents, want %v with none", err, count(), boom)
	}
	if err := db.As(t.Context(), c, create(nil)); err != nil || count() != 1 {
		t.Errorf("As() = %v with %d agents, want nil with one", err, count())
	}
}

func TestATxIsOfNoUseAfterItsTransaction(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	var kept *store.Tx
	do(t, db, c, func(tx *store.Tx) error {
		kept = tx
		return nil
	})
	if _, err := kept.Members(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Members() after the transaction = %v, want %v", err, pgx.ErrTxClosed)
	}
}

func TestAsRefusesACallerThatIsNotWhole(t *testing.T) {
	t.Parallel()
	db := openSingle(t, storetest.URL(t))
	whole := storetest.Organisation(t, db)
	agent := store.NewID[store.AgentKind](time.Now())
	db.Close() // so that whoever is let through gets another error than the refused
	for _, tt := range []struct {
		name   string
		caller store.Caller
		want   string // "": let through
	}{
		{"zero", store.Caller{}, "store: caller has no organisation"},
		{"none in the context", store.CallerFrom(t.Context()), "store: caller has no organisation"},
		{"no organisation", store.Caller{User: whole.User, Role: store.RoleOwner, Via: store.ViaSession}, "store: caller has no organisation"},
		{"no way", store.Caller{Org: whole.Org, User: whole.User, Role: store.RoleOwner}, `store: caller came by ""`},
		{"another way", store.Caller{Org: whole.Org, User: whole.User, Role: store.RoleOwner, Via: "post"}, `store: caller came by "post"`},
		{"bearer without agent", store.Caller{Org: whole.Org, User: whole.User, Role: store.RoleOwner, Via: store.ViaBearer}, "store: caller by bearer has no agent"},
		{"session without user", store.Caller{Org: whole.Org, Role: store.RoleOwner, Via: store.ViaSession}, "store: caller by web session has no user or role"},
		{"session without role", store.Caller{Org: whole.Org, User: whole.User, Via: store.ViaSession}, "store: caller by web session has no user or role"},
		{"session", whole, ""},
		{"bearer", store.Caller{Org: whole.Org, User: whole.User, Agent: agent, Role: store.RoleOwner, Via: store.ViaBearer}, ""},
		{"CLI", store.Caller{Org: whole.Org, Role: store.RoleOwner, Via: store.ViaCLI}, ""},
		{"job", store.Caller{Org: whole.Org, Via: store.ViaJob}, ""},
	} {
		err := db.As(t.Context(), tt.caller, func(*store.Tx) error {
			t.Errorf("%s: fn ran", tt.name)
			return nil
		})
		if tt.want == "" && errors.Is(err, errClosed(t, db)) {
			continue
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: As() = %v, want %q", tt.name, err, tt.want)
		}
	}
}

// errClosed is the error of a closed pool.
func errClosed(t *testing.T, db *store.DB) error {
	t.Helper()
	_, err := db.Pool().Acquire(t.Context())
	return err
}

func TestACancelledTransactionLeavesThePoolWhole(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	db := openSingle(t, dsn)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Held")
	holder := connect(t, storetest.Superuser(t, dsn))
	run(t, holder, `BEGIN`, `UPDATE agent SET last_used_at = now()`)

	ctx, cancel := context.WithCancel(t.Context())
	watcher := connect(t, dsn)
	var ended sync.WaitGroup
	ended.Go(func() {
		eventually(t, "a statement that waits for the lock", func() bool {
			return number(t, watcher, `SELECT count(*) FROM pg_locks WHERE NOT granted`) > 0
		})
		cancel()
	})
	err := db.As(ctx, c, func(tx *store.Tx) error { return tx.TouchAgents(ctx, map[store.AgentID]time.Time{a.ID: db.Now()}) })
	ended.Wait()
	if !errors.Is(err, context.Canceled) || errors.Is(err, unavailable) {
		t.Errorf("As() = %v, want %v and not %v", err, context.Canceled, unavailable)
	}
	run(t, holder, `ROLLBACK`)
	do(t, db, c, func(tx *store.Tx) error {
		return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: db.Now()})
	})
	if err := db.As(ctx, c, func(*store.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("As() with a context that has ended = %v, want %v", err, context.Canceled)
	}
}

// unavailable is what a database that is not there is.
var unavailable = &reason.Refusal{Word: reason.Unavailable}

// TestTwoTransactionsThatBlockOneAnotherBothCommit: Postgres ends one with 40P01, and As runs it again.
func TestTwoTransactionsThatBlockOneAnotherBothCommit(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	impatient(t, dsn)
	db := storetest.Open(t, dsn, nil)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "A")
	b, _ := storetest.Agent(t, db, c, "B")
	var met, ended sync.WaitGroup
	met.Add(2)
	runs, errs, at := [2]int{}, [2]error{}, db.Now()
	for n, order := range [][]store.AgentID{{a.ID, b.ID}, {b.ID, a.ID}} {
		ended.Go(func() {
			errs[n] = db.As(t.Context(), c, func(tx *store.Tx) error {
				runs[n]++
				when := at.Add(time.Duration(n+1) * time.Hour)
				if err := tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{order[0]: when}); err != nil {
					return err
				}
				if runs[n] == 1 { // each holds its first row before either asks for its second
					met.Done()
					met.Wait()
				}
				return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{order[1]: when})
			})
		})
	}
	ended.Wait()
	if errs[0] != nil || errs[1] != nil || runs[0]+runs[1] < 3 {
		t.Errorf("As() = %v and %v after %v runs, want nil after a run more than one each", errs[0], errs[1], runs)
	}
	for _, id := range []store.AgentID{a.ID, b.ID} {
		got := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), id) })
		if want := at.Add(2 * time.Hour); !got.LastUsedAt.Equal(want) {
			t.Errorf("%s last used = %v, want %v", got.Name, got.LastUsedAt, want)
		}
	}
}

// impatient makes the database look for deadlocks after 20 ms in place of a second.
func impatient(t *testing.T, dsn string) {
	t.Helper()
	name := pgx.Identifier{databaseOf(t, dsn)}.Sanitize()
	run(t, connect(t, storetest.Superuser(t, dsn)), `ALTER DATABASE `+name+` SET deadlock_timeout = '20ms'`)
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Database
}

func TestATransactionThatAlwaysCollidesIsGivenUp(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	impatient(t, dsn)
	db := storetest.Open(t, dsn, nil)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "A")
	b, _ := storetest.Agent(t, db, c, "B")
	rival, watcher := connect(t, storetest.Superuser(t, dsn)), connect(t, dsn)
	run(t, rival, `SET deadlock_timeout = '1h'`) // so that it is never the one that gives way
	const touch = `UPDATE agent SET last_used_at = now() WHERE id = $1`

	runs := 0
	err := db.As(t.Context(), c, func(tx *store.Tx) error {
		runs++
		run(t, rival, `BEGIN`)
		if _, err := rival.Exec(t.Context(), touch, b.ID); err != nil {
			t.Fatal(err)
		}
		if err := tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: db.Now()}); err != nil {
			return err
		}
		crossed := make(chan error, 1)
		go func() {
			_, err := rival.Exec(t.Context(), touch, a.ID)
			crossed <- err
		}()
		eventually(t, "the rival to wait for our row", func() bool {
			return number(t, watcher, `SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1`, rival.PgConn().PID()) > 0
		})
		err := tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{b.ID: db.Now()})
		if err := <-crossed; err != nil {
			t.Errorf("the rival's update = %v, want nil", err)
		}
		run(t, rival, `ROLLBACK`)
		return err
	})
	if sqlstate(err) != "40P01" || runs != store.Tries {
		t.Errorf("As() = %v after %d runs, want a deadlock (40P01) after %d", err, runs, store.Tries)
	}
	do(t, db, c, func(tx *store.Tx) error {
		return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: db.Now()})
	})
}

// TestASerializationFailureIsRunAgain: a database may be set to a stricter isolation than the usual one.
func TestASerializationFailureIsRunAgain(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	name := pgx.Identifier{databaseOf(t, dsn)}.Sanitize()
	run(t, connect(t, dsn), `ALTER DATABASE `+name+` SET default_transaction_isolation = 'repeatable read'`)
	db := storetest.Open(t, dsn, nil)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "A")
	runs := 0
	err := db.As(t.Context(), c, func(tx *store.Tx) error {
		runs++
		if _, err := tx.Agent(t.Context(), a.ID); err != nil { // the snapshot is taken here
			return err
		}
		if runs == 1 {
			do(t, db, c, func(tx *store.Tx) error {
				return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: db.Now()})
			})
		}
		return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: db.Now().Add(time.Hour)})
	})
	if err != nil || runs != 2 {
		t.Errorf("As() = %v after %d runs, want nil after 2", err, runs)
	}
}
