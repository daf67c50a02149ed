package invoke

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

const (
	// seeEvery is how often the replica of a run says that it goes on, and writes its progress down.
	seeEvery = 5 * time.Second
	// writeTime bounds what is written down of a run whose context is over.
	writeTime = 5 * time.Second
)

// runs are the detached runs of this replica.
type runs struct {
	mu      sync.Mutex
	of      map[store.RunID]*detached
	waiting map[store.RunID]map[chan struct{}]bool // who wants to know that a run moved
	ended   bool                                   // no more are taken
	all     sync.WaitGroup
}

func newRuns() *runs {
	return &runs{of: map[store.RunID]*detached{}, waiting: map[store.RunID]map[chan struct{}]bool{}}
}

// A detached is one run under way here. It is the catalog.Client of its tool: what it is told is kept, and it cannot ask.
type detached struct {
	catalog.Nobody
	agent  store.AgentID
	cancel context.CancelFunc
	look   chan struct{} // holds one where somebody may want the run to end

	mu       sync.Mutex
	progress []string // not written down yet
}

// Progress implements catalog.Client.
func (d *detached) Progress(p catalog.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, progressLine(p))
}

func (d *detached) takeProgress() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.progress
	d.progress = nil
	return lines
}

// add notes a run, unless this replica is about to stop.
func (r *runs) add(id store.RunID, d *detached) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.of[id] = d
	r.all.Add(1)
	return true
}

func (r *runs) remove(id store.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
	r.all.Done()
}

// moved tells who waits for a run, and the run itself, that its row changed.
func (r *runs) moved(id store.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.of[id]; d != nil {
		signal(d.look)
	}
	for c := range r.waiting[id] {
		signal(c)
	}
}

// movedAll does so for all of them: something may have been missed.
func (r *runs) movedAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.of {
		signal(d.look)
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

// endAgent cancels what runs here for an agent that ended.
func (r *runs) endAgent(id store.AgentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.of {
		if d.agent == id {
			d.cancel()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

// stop takes no more runs and waits for those under way; when ctx ends they are cancelled.
func (r *runs) stop(ctx context.Context) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	over := make(chan struct{})
	go func() { r.all.Wait(); close(over) }()
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	r.mu.Lock()
	for _, d := range r.of {
		d.cancel()
	}
	r.mu.Unlock()
	<-over // each has seeEvery and its tool's obedience to wait for
}

// Stop takes no more detached runs and lets those under way finish; when ctx ends they are cancelled.
func (i *Invoker) Stop(ctx context.Context) { i.runs.stop(ctx) }

// Detach begins a call that nobody waits for, and returns its id once the call has been let through. How it goes is
// asked for with Status.
func (i *Invoker) Detach(ctx context.Context, call Call) (store.RunID, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d := &detached{agent: call.Caller.Agent, cancel: cancel, look: make(chan struct{}, 1)}
	call.Client = d
	a := i.attempt(call)
	err := a.admit(ctx)
	if err == nil {
		err = a.start(ctx, d)
	}
	if err != nil {
		cancel()
		_, err = a.record(nil, err)
		return store.RunID{}, err
	}
	go func() {
		defer i.runs.remove(a.run)
		defer cancel()
		a.follow(life, d)
	}()
	return a.run, nil
}

// start keeps the run's row.
func (a *attempt) start(ctx context.Context, d *detached) error {
	row, err := a.row(ctx)
	if err != nil {
		return err
	}
	if !a.runs.add(a.run, d) {
		return reason.Refuse(reason.Unavailable, "This replica is about to stop. Call again.")
	}
	err = a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) error { return tx.StartRun(ctx, row) })
	if err != nil {
		a.runs.remove(a.run)
	}
	return err
}

// follow carries the run out, says meanwhile that it goes on, and keeps how it ended.
func (a *attempt) follow(ctx context.Context, d *detached) {
	ended := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { a.watch(ctx, d, ended) })
	result, err := a.finish(ctx)
	result, err = a.record(result, err)
	close(ended)
	beside.Wait()
	a.end(ctx, d, result, err)
}

// watch writes down every few seconds that the run goes on, and cancels it once somebody wants it to end.
func (a *attempt) watch(ctx context.Context, d *detached, ended <-chan struct{}) {
	tick := time.NewTicker(seeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		case <-d.look:
		}
		if wanted, err := a.see(ctx, d); err == nil && !wanted {
			d.cancel()
			return
		}
	}
}

func (a *attempt) see(ctx context.Context, d *detached) (wanted bool, err error) {
	lines := d.takeProgress()
	err = a.c.DB.As(context.WithoutCancel(ctx), a.call.Caller, func(tx *store.Tx) (err error) {
		wanted, err = tx.SeeRun(ctx, a.call.Caller.Agent, a.run, lines)
		return err
	})
	return wanted, err
}

// end keeps the run's result. The context of the run may be over.
func (a *attempt) end(ctx context.Context, d *detached, result jsontext.Value, failed error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	row, err := a.ended(ctx, result, failed)
	if err == nil {
		err = a.c.DB.As(ctx, a.call.Caller, func(tx *store.Tx) error {
			if _, err := tx.SeeRun(ctx, a.call.Caller.Agent, a.run, d.takeProgress()); err != nil && !store.IsAbsent(err) {
				return err
			}
			return tx.EndRun(ctx, row)
		})
	}
	if err != nil {
		a.c.Log.ErrorContext(ctx, "end of a run not kept", slog.Any("err", err), slog.String("run", a.run.String()))
	}
	a.runs.moved(a.run)
}

// row is the run as it stands in the database, its arguments sealed.
func (a *attempt) row(ctx context.Context) (store.Run, error) {
	box, err := a.box(ctx)
	if err != nil {
		return store.Run{}, err
	}
	return store.Run{
		ID: a.run, AgentID: a.call.Caller.Agent, Tool: a.entry.Wire(), Version: a.entry.Version, ConnectionID: a.entry.Connection,
		Status: store.RunRunning, Args: box.Seal(runPlace(a.run, "args"), a.call.Args), StartedAt: a.began,
	}, nil
}

// ended is the row of a run that is over.
func (a *attempt) ended(ctx context.Context, result jsontext.Value, failed error) (store.Run, error) {
	row, err := a.row(ctx)
	if err != nil {
		return store.Run{}, err
	}
	box, err := a.box(ctx)
	if err != nil {
		return store.Run{}, err
	}
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
		if r.Word == reason.Internal {
			a.c.Log.ErrorContext(ctx, "run failed", slog.Any("err", failed), slog.String("run", a.run.String()))
		}
		result = rpc.ToolRefusal(r, a.run.String())
	}
	now := a.c.Now()
	row.Result, row.EndedAt = box.Seal(runPlace(a.run, "result"), result), &now
	return row, nil
}
