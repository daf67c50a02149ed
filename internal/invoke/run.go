package invoke

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

const (
	// seeEvery is how often the replica of a run says that it goes on, and writes its progress down.
	seeEvery = 5 * time.Second
	// seeCut is how often it does so while the bus is cut: nobody else says then that the run is to end.
	seeCut = 300 * time.Millisecond
	// writeTime bounds what is written down of a run whose context is over.
	writeTime = 5 * time.Second
	// keepTrying is how long the end of a run is tried to be written down, should the database be away.
	keepTrying = 5 * time.Minute
	// cutTime is how long a call that was cancelled because the gateway stops may take to end.
	cutTime = 15 * time.Second
)

// runs are the calls under way on this replica. Some are runs, which have a row.
type runs struct {
	mu      sync.Mutex
	of      map[store.RunID]*attempt
	waiting map[store.RunID]map[chan struct{}]bool // who wants to know that a run moved
	ended   bool                                   // no more are taken
	cut     chan struct{}                          // closed when what is under way is cut off
	all     sync.WaitGroup
}

func newRuns() *runs {
	return &runs{of: map[store.RunID]*attempt{}, waiting: map[store.RunID]map[chan struct{}]bool{}, cut: make(chan struct{})}
}

// add notes a call, unless this replica is about to stop.
func (r *runs) add(a *attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.of[a.run] = a
	r.all.Add(1)
	return true
}

func (r *runs) remove(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, a.run)
	r.all.Done()
}

// moved tells who waits for a run, and the run itself, that its row changed.
func (r *runs) moved(id store.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.of[id]; a != nil {
		signal(a.look)
	}
	for c := range r.waiting[id] {
		signal(c)
	}
}

// movedAll does so for all of them: something may have been missed.
func (r *runs) movedAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.of {
		signal(a.look)
	}
	for _, waiting := range r.waiting {
		for c := range waiting {
			signal(c)
		}
	}
}

// wait returns a channel that holds one whenever the run moved, until done is called.
func (r *runs) wait(id store.RunID) (moved chan struct{}, done func()) {
	moved = make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] == nil {
		r.waiting[id] = map[chan struct{}]bool{}
	}
	r.waiting[id][moved] = true
	return moved, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.waiting[id], moved); len(r.waiting[id]) == 0 {
			delete(r.waiting, id)
		}
	}
}

var (
	errRevoked = reason.Refuse(reason.Cancelled, "The agent was revoked while this ran.")
	errStopped = reason.Refuse(reason.Unavailable, "The gateway stopped before this ended. Whether it took effect is not known.")
)

// endAgent cancels what runs here for an agent that ended.
func (r *runs) endAgent(id store.AgentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.of {
		if a.call.Caller.Agent == id {
			a.cancel(errRevoked)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

// stop takes no more calls and waits for those under way; when ctx ends they are cancelled, and have cutTime to obey. It
// reports how many did not.
func (r *runs) stop(ctx context.Context) (left int) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	over := make(chan struct{})
	go func() { r.all.Wait(); close(over) }()
	select {
	case <-over:
		return 0
	case <-ctx.Done():
	}
	close(r.cut)
	r.mu.Lock()
	for _, a := range r.of {
		a.cancel(errStopped)
	}
	r.mu.Unlock()
	select {
	case <-over:
	case <-time.After(cutTime):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of)
}

// Stop takes no more calls and lets those under way finish, detached ones too; when ctx ends they are cancelled. It is
// called once.
func (i *Invoker) Stop(ctx context.Context) {
	if left := i.runs.stop(ctx); left > 0 {
		i.c.Log.WarnContext(ctx, "calls cut off", slog.Int("calls", left))
	}
}

// Detach begins a call that nobody waits for, and returns its id once the call has been let through. How it goes is
// asked for with Status.
func (i *Invoker) Detach(ctx context.Context, call Call) (store.RunID, error) {
	a := i.attempt(call)
	k := newKept(a, nil, false)
	life, end, err := a.begin(context.WithoutCancel(ctx))
	if err == nil {
		err = a.admit(ctx)
	}
	if err == nil {
		err = a.start(ctx)
	}
	if err != nil {
		end()
		_, err = a.record(nil, err)
		return store.RunID{}, err
	}
	k.offer()
	k.settle(true)
	go func() {
		defer end()
		a.follow(life, k)
	}()
	return a.run, nil
}

// DoWithin carries a call out as Do does, unless it takes longer than patience: then it becomes a run, which goes on
// without ctx, and whose id is returned. asks says that its client answers what a run asks.
func (i *Invoker) DoWithin(ctx context.Context, call Call, patience time.Duration, asks bool) (Done, store.RunID, error) {
	a := i.attempt(call)
	k := newKept(a, a.call.Client, asks)
	life, end, err := a.begin(context.WithoutCancel(ctx))
	if err == nil {
		err = a.admit(ctx)
	}
	if err != nil {
		end()
		_, err = a.record(nil, err)
		return Done{nil, a}, store.RunID{}, err
	}
	left := context.AfterFunc(ctx, func() { a.cancel(nil) })
	defer left()
	ended := make(chan outcome, 1)
	go func() {
		defer end()
		if o := a.follow(life, k); o != nil {
			ended <- *o
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case o := <-ended:
			return Done{o.result, a}, store.RunID{}, o.err
		case <-timer.C:
		}
		if k.offer() {
			err := a.start(ctx)
			if err == nil {
				left()
			}
			if k.settle(err == nil); err == nil {
				return Done{nil, a}, a.run, nil
			}
		}
		timer.Reset(patience) // it goes on as it was, and may become one later
	}
}

// outcome is how a call ended.
type outcome struct {
	result jsontext.Value
	err    error
}

// start keeps the run's row.
func (a *attempt) start(ctx context.Context) error {
	return a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) error { return tx.StartRun(ctx, a.row()) })
}

// follow carries a call out. Of one that is a run by then it says meanwhile that it goes on, and keeps how it ended; of
// any other it returns that.
func (a *attempt) follow(ctx context.Context, k *kept) *outcome {
	a.call.Client = k
	ended := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { a.watch(ctx, k, ended) })
	result, err := a.finish(ctx)
	result, err = a.record(result, err)
	isRun := k.over()
	close(ended)
	beside.Wait()
	if !isRun {
		return &outcome{result, err}
	}
	a.end(ctx, k, result, err)
	return nil
}

// watch writes down every few seconds that a run goes on, and looks whether somebody wants it to end.
func (a *attempt) watch(ctx context.Context, k *kept, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-k.run:
	}
	tick := time.NewTicker(seeCut / 3)
	defer tick.Stop()
	seen := time.Now()
	for {
		select {
		case <-ended:
			return
		case <-a.look:
		case <-tick.C:
			pause := seeEvery
			if !a.c.Healthy() {
				pause = seeCut
			}
			if time.Since(seen) < pause {
				continue
			}
		}
		a.see(ctx, k)
		seen = time.Now()
	}
}

func (a *attempt) see(ctx context.Context, k *kept) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	lines := k.takeProgress()
	var seen store.Seen
	err := a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) (err error) {
		seen, err = tx.SeeRun(ctx, a.call.Caller.Agent, a.run, lines)
		return err
	})
	switch {
	case store.IsAbsent(err): // deleted, with the organisation it is of
		a.cancel(errRevoked)
	case err != nil:
		k.putBack(lines)
	case !seen.Wanted:
		a.cancel(nil)
	}
	if err == nil {
		k.hear(ctx, seen.Answers)
	}
}

// end keeps the run's result, however long the database takes to come back. The context of the run may be over.
func (a *attempt) end(ctx context.Context, k *kept, result jsontext.Value, failed error) {
	ctx = context.WithoutCancel(ctx)
	a.logFailure(ctx, failed)
	lines := k.takeProgress()
	late := time.After(keepTrying)
	for try := 1; ; try++ {
		err := a.tryEnd(ctx, lines, result, failed)
		if err == nil {
			a.runs.moved(a.run)
			return
		}
		if try == 1 {
			a.c.Log.WarnContext(ctx, "end of a run not kept yet", slog.Any("err", err), slog.String("run", a.run.String()))
		}
		select {
		case <-time.After(time.Second):
			continue
		case <-late:
		case <-a.runs.cut:
		}
		a.c.Log.ErrorContext(ctx, "end of a run not kept", slog.Any("err", err), slog.String("run", a.run.String()))
		return
	}
}

func (a *attempt) tryEnd(ctx context.Context, lines []string, result jsontext.Value, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	row, err := a.ended(ctx, result, failed)
	if err != nil {
		return err
	}
	return a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) error {
		if _, err := tx.SeeRun(ctx, a.call.Caller.Agent, a.run, lines); err != nil && !store.IsAbsent(err) {
			return err
		}
		return tx.EndRun(ctx, row)
	})
}

// row is the run as it stands in the database. Its arguments are not: nobody reads them there.
func (a *attempt) row() store.Run {
	return store.Run{
		ID: a.run, AgentID: a.call.Caller.Agent, Tool: a.entry.Wire(), Version: a.entry.Version, ConnectionID: a.entry.Connection,
		Status: store.RunRunning, StartedAt: a.began,
	}
}

// RunMeta is the member of _meta that says which run a result is of.
const RunMeta = "graft/runId"

// ended is the row of a run that is over.
func (a *attempt) ended(ctx context.Context, result jsontext.Value, failed error) (store.Run, error) {
	box, err := a.box(ctx)
	if err != nil {
		return store.Run{}, err
	}
	row := a.row()
	row.Status = store.RunSucceeded
	if a.failed {
		row.Status, row.Reason = store.RunFailed, reason.ToolFailed
	}
	if failed != nil {
		r := Refusal(failed)
		row.Status, row.Reason = store.RunFailed, r.Word
		if r.Word == reason.Cancelled {
			row.Status = store.RunCancelled
		}
		result = rpc.ToolRefusal(r, a.run.String())
	}
	now := a.c.Now()
	result = rpc.WithMeta(result, RunMeta, rpc.AppendString(nil, a.run.String()))
	row.Result, row.EndedAt = box.Seal(runPlace(a.run, "result"), result), &now
	return row, nil
}

// logFailure logs what a result of ours withholds, under the run's id, which the result names.
func (a *attempt) logFailure(ctx context.Context, failed error) {
	if failed != nil && Refusal(failed).Word == reason.Internal {
		a.c.Log.ErrorContext(ctx, "run failed", slog.Any("err", failed), slog.String("run", a.run.String()))
	}
}
