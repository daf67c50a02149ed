package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// newRun is a run of the asker's agent.
func (k *asker) newRun() store.Run {
	return store.Run{ID: store.NewID[store.RunKind](k.clock.now()), AgentID: k.agent.ID, Tool: "mail__send", Version: 1, StartedAt: k.db.Now()}
}

func (k *asker) start() store.Run {
	k.t.Helper()
	r := k.newRun()
	do(k.t, k.db, k.self, func(tx *store.Tx) error { return tx.StartRun(k.t.Context(), r) })
	return r
}

func (k *asker) run(id store.RunID) store.Run {
	k.t.Helper()
	return must(k.t, k.db, k.self, func(tx *store.Tx) (store.Run, error) { return tx.Run(k.t.Context(), k.agent.ID, id) })
}

func (k *asker) see(id store.RunID, lines ...string) bool {
	k.t.Helper()
	return must(k.t, k.db, k.self, func(tx *store.Tx) (store.Seen, error) { return tx.SeeRun(k.t.Context(), k.agent.ID, id, lines) }).Wanted
}

func TestARunIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	if got := k.run(r.ID); got.Status != store.RunRunning || !got.StartedAt.Equal(r.StartedAt) {
		t.Errorf("Run() = %+v, want it running as it was started", got)
	}
	for n := range 150 {
		if !k.see(r.ID, fmt.Sprint("line ", 2*n), fmt.Sprint("line ", 2*n+1)) {
			t.Fatal("SeeRun() = false, want the run to go on")
		}
	}
	if got := k.run(r.ID).Progress; len(got) != 200 || got[0] != "line 100" || got[199] != "line 299" {
		t.Errorf("of 300 lines of progress %d are kept, %q to %q, want the last 200", len(got), got[0], got[len(got)-1])
	}
	r.Status, r.Result = store.RunSucceeded, []byte("sealed too")
	do(t, k.db, k.self, func(tx *store.Tx) error { return tx.EndRun(t.Context(), r) })
	if got := k.run(r.ID); got.Status != store.RunSucceeded || string(got.Result) != "sealed too" || got.EndedAt == nil {
		t.Errorf("Run() = %+v, want it ended with its result", got)
	}
	if ok := must(t, k.db, k.self, func(tx *store.Tx) (bool, error) { return tx.CancelRun(t.Context(), k.agent.ID, r.ID) }); ok {
		t.Error("CancelRun() of one that has ended = true")
	}
}

func TestARunIsCancelledFromAnywhere(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	if ok := must(t, k.db, k.owner, func(tx *store.Tx) (bool, error) { return tx.CancelRun(t.Context(), k.agent.ID, r.ID) }); !ok {
		t.Error("CancelRun() = false, want true")
	}
	if k.see(r.ID) {
		t.Error("SeeRun() of one that is to end = true, want false")
	}
}

func TestARunWhoseReplicaSaysNothingIsLost(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	k.clock.pass(store.RunSilence)
	k.see(r.ID)
	k.clock.pass(store.RunSilence)
	if got := k.run(r.ID).Status; got != store.RunRunning {
		t.Errorf("Status = %s, want running", got)
	}
	k.clock.pass(time.Second)
	if got := k.run(r.ID).Status; got != store.RunLost {
		t.Errorf("Status = %s, want lost", got)
	}
}

func TestRunsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	var err error
	for range 30 {
		if err = k.db.As(t.Context(), k.self, func(tx *store.Tx) error { return tx.StartRun(t.Context(), k.newRun()) }); err != nil {
			break
		}
	}
	if !errors.Is(err, &reason.Refusal{Word: reason.RateLimited}) {
		t.Errorf("30 runs at once: %v, want rate_limited", err)
	}
	k.clock.pass(store.RunSilence + time.Second)
	k.start() // lost ones do not count
	if list := must(t, k.db, k.self, func(tx *store.Tx) ([]store.Run, error) { return tx.Runs(t.Context(), k.agent.ID, 10) }); len(list) != 10 {
		t.Errorf("Runs() = %d, want the last ten", len(list))
	}
}

func TestRunsThatStartAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	var started atomic.Int64
	var beside sync.WaitGroup
	for range 40 {
		beside.Go(func() {
			err := k.db.As(t.Context(), k.self, func(tx *store.Tx) error { return tx.StartRun(t.Context(), k.newRun()) })
			if err == nil {
				started.Add(1)
			} else if !errors.Is(err, &reason.Refusal{Word: reason.RateLimited}) {
				t.Errorf("StartRun() = %v", err)
			}
		})
	}
	beside.Wait()
	if got := started.Load(); got != 20 {
		t.Errorf("%d of 40 runs at once started, want 20", got)
	}
}

func TestARunOfARevokedAgentIsNotWanted(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	do(t, k.db, k.owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), k.agent.ID) })
	if k.see(r.ID) {
		t.Error("SeeRun() of a revoked agent's run = true, want false")
	}
	err := k.db.As(t.Context(), k.self, func(tx *store.Tx) error { return tx.StartRun(t.Context(), k.newRun()) })
	if !store.IsAbsent(err) {
		t.Errorf("StartRun() of a revoked agent = %v, want not_found", err)
	}
}

func TestARunAsksAndIsAnswered(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	answer := func(text string) {
		t.Helper()
		do(t, k.db, k.self, func(tx *store.Tx) error { return tx.AnswerRun(t.Context(), k.agent.ID, r.ID, []byte(text)) })
	}
	seen := func() store.Seen {
		t.Helper()
		return must(t, k.db, k.self, func(tx *store.Tx) (store.Seen, error) { return tx.SeeRun(t.Context(), k.agent.ID, r.ID, nil) })
	}
	ask := func(questions []byte) error {
		return k.db.As(t.Context(), k.self, func(tx *store.Tx) error { return tx.AskInRun(t.Context(), k.agent.ID, r.ID, questions) })
	}
	answer("to nothing")
	if got := seen(); len(got.Answers) != 0 {
		t.Errorf("a run that asks nothing has the answers %q", got.Answers)
	}
	if err := ask([]byte("which?")); err != nil {
		t.Fatal(err)
	}
	if got := k.run(r.ID).Questions; string(got) != "which?" {
		t.Errorf("Questions = %q", got)
	}
	answer("one")
	answer("two")
	if got := seen(); len(got.Answers) != 2 || string(got.Answers[0]) != "one" || string(got.Answers[1]) != "two" {
		t.Errorf("Answers = %q, want one and two", got.Answers)
	}
	r.Status = store.RunSucceeded
	do(t, k.db, k.self, func(tx *store.Tx) error { return tx.EndRun(t.Context(), r) })
	if err := ask([]byte("more?")); !store.IsAbsent(err) {
		t.Errorf("AskInRun() of one that has ended = %v, want not_found", err)
	}
	if got := k.run(r.ID).Questions; got != nil {
		t.Errorf("a run that has ended asks %q", got)
	}
}

func TestRunsAndResultsAreTheAgentsOwn(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	r := k.start()
	id := store.NewID[store.ResultKind](k.clock.now())
	do(t, k.db, k.self, func(tx *store.Tx) error { return tx.KeepResult(t.Context(), k.agent.ID, id, []byte("body")) })
	sibling, _ := storetest.Agent(t, k.db, k.owner, "Sibling")
	stranger := newAsker(t)
	for name, c := range map[string]store.Caller{"a sibling": bearer(k.owner, sibling), "a stranger": stranger.self} {
		err := k.db.As(t.Context(), c, func(tx *store.Tx) error {
			_, err := tx.Run(t.Context(), c.Agent, r.ID)
			return err
		})
		if !store.IsAbsent(err) {
			t.Errorf("%s: Run() = %v, want not_found", name, err)
		}
		err = k.db.As(t.Context(), c, func(tx *store.Tx) error {
			_, err := tx.Result(t.Context(), c.Agent, id)
			return err
		})
		if !store.IsAbsent(err) {
			t.Errorf("%s: Result() = %v, want not_found", name, err)
		}
		_, err = in(t, k.db, c, func(tx *store.Tx) (store.Seen, error) { return tx.SeeRun(t.Context(), c.Agent, r.ID, nil) })
		if !store.IsAbsent(err) {
			t.Errorf("%s: SeeRun() = %v, want not_found", name, err)
		}
	}
}

func TestAStoredResultLastsADay(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	id := store.NewID[store.ResultKind](k.clock.now())
	do(t, k.db, k.self, func(tx *store.Tx) error { return tx.KeepResult(t.Context(), k.agent.ID, id, []byte("body")) })
	read := func() ([]byte, error) {
		return in(t, k.db, k.self, func(tx *store.Tx) ([]byte, error) { return tx.Result(t.Context(), k.agent.ID, id) })
	}
	if body, err := read(); err != nil || string(body) != "body" {
		t.Errorf("Result() = %q, %v", body, err)
	}
	k.clock.pass(store.ResultLife)
	if _, err := read(); !store.IsAbsent(err) {
		t.Errorf("Result() a day later = %v, want not_found", err)
	}
	if err := k.db.System().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Whoever calls and hangs up leaves a run each time.
func TestEndedRunsOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	first := k.start()
	do(t, k.db, k.self, func(tx *store.Tx) error {
		for range 1003 {
			k.clock.pass(time.Millisecond)
			r := k.newRun()
			ended := k.clock.now()
			r.Status, r.EndedAt, r.StartedAt = store.RunSucceeded, &ended, ended
			if err := tx.KeepRun(t.Context(), r); err != nil {
				return err
			}
		}
		return nil
	})
	list := must(t, k.db, k.self, func(tx *store.Tx) ([]store.Run, error) { return tx.Runs(t.Context(), k.agent.ID, 2000) })
	if len(list) != 1001 || list[len(list)-1].ID != first.ID {
		t.Errorf("%d runs are kept, want the last 1000 ended and the one under way", len(list))
	}
}

// A detached run that ends at once is never one of many under way.
func TestDetachedRunsThatEndedAreBounded(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	first := k.start()
	do(t, k.db, k.self, func(tx *store.Tx) error {
		for range 1003 {
			k.clock.pass(time.Millisecond)
			r := k.newRun()
			if err := tx.StartRun(t.Context(), r); err != nil {
				return err
			}
			r.Status = store.RunSucceeded
			if err := tx.EndRun(t.Context(), r); err != nil {
				return err
			}
		}
		return nil
	})
	list := must(t, k.db, k.self, func(tx *store.Tx) ([]store.Run, error) { return tx.Runs(t.Context(), k.agent.ID, 2000) })
	if len(list) != 1001 || list[len(list)-1].ID != first.ID {
		t.Errorf("%d runs are kept, want the last 1000 ended and the one under way", len(list))
	}
}
