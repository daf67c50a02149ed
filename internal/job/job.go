package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/getgraft/graft/internal/store"
)

const (
	// conns is what a replica holds of connections for this at most, beside those of the store.
	conns = 8
	// workers is how many jobs a replica works at a time.
	workers = 8
	// jobTime is how long a job may take; then its context ends.
	jobTime = 10 * time.Minute
	// stopTime is how long a running job has to finish when the replica stops; then its context ends.
	stopTime = 10 * time.Second
	// pollEvery is how often the queue is looked at unasked. A new job is told of, but not each of several at once.
	pollEvery = time.Second
	// startPause is the pause before a start is tried again, when the database was not there.
	startPause = time.Second
	// unknownPause is when a job is looked at again whose name this replica does not know: in a rolling update another
	// does.
	unknownPause = time.Minute
)

// A Handler works jobs of one name. Org is zero for jobs of no organisation.
type Handler func(ctx context.Context, org store.OrgID, body json.RawMessage) error

// Periodic is work that is due again and again, on one replica at a time.
type Periodic struct {
	Name  string
	Every time.Duration
	// AtOnce does it also as soon as a leader is there, who may not live until it is due.
	AtOnce bool
	Do     func(context.Context) error
}

// Config is what a Client needs.
type Config struct {
	// URL is a direct connection to the database, as the bus needs one.
	URL      string
	Handlers map[string]Handler
	Periodic []Periodic
	Log      *slog.Logger
}

// A Client works jobs and puts them in.
type Client struct {
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
	log   *slog.Logger
}

// Open makes a client, which reaches the database only when it is run. Close it.
func Open(ctx context.Context, c Config) (*Client, error) {
	cfg, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("read database url: %w", err)
	}
	cfg.MaxConns = conns
	cfg.ConnConfig.RuntimeParams["application_name"] = "graft jobs"
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SET ROLE graft_system`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open job queue: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), c.river(pool))
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("make job client: %w", err)
	}
	return &Client{pool: pool, river: client, log: c.Log}, nil
}

func (c Config) river(pool *pgxpool.Pool) *river.Config {
	w := &worker{handlers: map[string]Handler{}}
	for name, h := range c.Handlers {
		w.handlers[name] = h
	}
	var periodic []*river.PeriodicJob
	for _, p := range c.Periodic {
		w.handlers[p.Name] = func(ctx context.Context, _ store.OrgID, _ json.RawMessage) error { return alone(ctx, pool, p) }
		due := func() (river.JobArgs, *river.InsertOpts) { return args{Name: p.Name}, onceEvery(p.Every) }
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(p.Every), due, &river.PeriodicJobOpts{RunOnStart: p.AtOnce}))
	}
	all := river.NewWorkers()
	river.AddWorker(all, w)
	return &river.Config{
		Logger:               slog.New(quiet{c.Log.Handler()}),
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:              all,
		PeriodicJobs:         periodic,
		FetchPollInterval:    pollEvery,
		JobTimeout:           jobTime,
		RescueStuckJobsAfter: 2 * jobTime,
		SoftStopTimeout:      stopTime,
		ReindexerIndexNames:  []string{}, // only their owner may
		ErrorHandler:         failures{c.Log},
		// What is done is of no interest a day later: runs and audit entries say more.
		CompletedJobRetentionPeriod: time.Hour,
	}
}

// onceEvery is how a periodic job is put in: once in its time, whoever leads, and without a second try, since it is due
// again. It is not held back by one that has not ended: that one's replica may have died, which river notices late.
func onceEvery(d time.Duration) *river.InsertOpts {
	return &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: max(d, time.Second)}}
}

// alone does periodic work unless a replica is at it already. The lock is its connection's, so it ends with a replica
// that dies.
func alone(ctx context.Context, pool *pgxpool.Pool, p Periodic) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtext('graft job'), hashtext($1))`, p.Name).Scan(&locked); err != nil || !locked {
		return err
	}
	defer func() {
		late := context.WithoutCancel(ctx)
		if _, err := conn.Exec(late, `SELECT pg_advisory_unlock(hashtext('graft job'), hashtext($1))`, p.Name); err != nil {
			_ = conn.Conn().Close(late)
		}
	}()
	return p.Do(ctx)
}

// args are of every job: who works it is found by its name.
type args struct {
	Name string          `json:"name"`
	Org  store.OrgID     `json:"org,omitzero"`
	Body json.RawMessage `json:"body,omitzero"`
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "graft" }

type worker struct {
	river.WorkerDefaults[args]
	handlers map[string]Handler
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	do, ok := w.handlers[job.Args.Name]
	if !ok {
		return river.JobSnooze(unknownPause)
	}
	return do(ctx, job.Args.Org, job.Args.Body)
}

// Insert is a store.JobInserter: it puts a job into the queue in the transaction it is given.
func (c *Client) Insert(ctx context.Context, tx pgx.Tx, org store.OrgID, name string, body json.RawMessage) error {
	// Whose it is stands in the metadata too, which row-level security holds the transaction to.
	id := org.Bytes()
	whose := fmt.Appendf(nil, `{"org":"%x-%x-%x-%x-%x"}`, id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	_, err := c.river.InsertTx(ctx, tx, args{Name: name, Org: org, Body: body}, &river.InsertOpts{Metadata: whose})
	return err
}

// Run works jobs until ctx ends, and returns when what runs has ended too.
func (c *Client) Run(ctx context.Context) {
	// Of its own: a context that ends would cut jobs off, where Stop lets them finish.
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if !c.start(ctx, working) {
		return
	}
	<-ctx.Done()
	late, stop := context.WithTimeout(working, 2*stopTime)
	defer stop()
	if err := c.river.Stop(late); err != nil {
		c.log.WarnContext(ctx, "jobs not handed back", slog.Any("err", err))
	}
}

// start starts river once the database is there; false where ctx ended first.
func (c *Client) start(ctx, working context.Context) bool {
	for told := false; ctx.Err() == nil; told = true {
		err := c.river.Start(working)
		if err == nil {
			return true
		}
		if !told {
			c.log.WarnContext(ctx, "jobs not started, trying again", slog.Any("err", err))
		}
		timer := time.NewTimer(startPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// Close closes the connections. Run has returned.
func (c *Client) Close() { c.pool.Close() }

// failures logs what a job failed of.
type failures struct{ log *slog.Logger }

// HandleError implements river.ErrorHandler.
func (f failures) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	if !errors.Is(err, context.Canceled) { // the replica stops
		f.log.WarnContext(ctx, "job failed", slog.String("job", nameOf(job)), slog.Any("err", err))
	}
	return nil
}

// HandlePanic implements river.ErrorHandler.
func (f failures) HandlePanic(ctx context.Context, job *rivertype.JobRow, v any, trace string) *river.ErrorHandlerResult {
	f.log.ErrorContext(ctx, "job panicked", slog.String("job", nameOf(job)), slog.Any("panic", v), slog.String("trace", trace))
	return nil
}

func nameOf(job *rivertype.JobRow) string {
	var a args
	_ = json.Unmarshal(job.EncodedArgs, &a) // river decoded it before
	return a.Name
}

// quiet passes on river's log at debug: what an operator has to know is said by failures, and by readiness.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
