package audit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// linger is how long a recorded entry waits for others; with the write itself it is durable within 50 ms.
	linger = 25 * time.Millisecond
	// queueSize bounds the entries that wait: some 5 MB, and 40 where every text of every entry is as long as it may be.
	queueSize = 10_000
	// batchSize bounds those of one transaction.
	batchSize = 1000
	// writeTime is how long one write may take. Then whoever waits is refused, and it is tried again.
	writeTime = 3 * time.Second
	// retryPause is the pause before a write is tried again.
	retryPause = 100 * time.Millisecond
	// drainTime is how long a writer that stops tries to write what it took.
	drainTime = 5 * time.Second
	// chainIdle is when a chain that nothing was appended to is left. Retention counts on it: what a daily checkpoint
	// says of a chain some days later is final.
	chainIdle = 24 * time.Hour
	// lineSize is how many characters of a line are kept.
	lineSize = 500
	// wordSize is how many are of a tool's name, a source and an outcome. None of ours is longer than catalog.MaxWire; what
	// a client calls a tool that does not exist may be.
	wordSize = 200
)

// Config is what a Writer needs.
type Config struct {
	DB *store.DB
	// Now is the clock by which chains are left; nil is the database handle's.
	Now func() time.Time
	Log *slog.Logger
}

// A Writer appends entries, each organisation's to a chain of its own. Record and Commit may be called from anywhere;
// Run does the writing.
type Writer struct {
	db  *store.DB
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	queue   []queued
	waiting int  // how many of queue somebody waits for
	away    bool // the last write failed
	ended   bool

	wake   chan struct{} // holds one where the queue is not empty
	hurry  chan struct{} // holds one where somebody waits
	author *author
}

// queued is an entry on its way, and who waits for it.
type queued struct {
	entry Entry
	done  chan error // of a Commit; nil of a Record
}

// New makes a Writer. It writes nothing until Run.
func New(c Config) *Writer {
	if c.Now == nil {
		c.Now = c.DB.Now
	}
	return &Writer{
		db: c.DB, now: c.Now, log: c.Log,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		author: &author{sys: c.DB.System(), chains: map[store.OrgID]*chain{}},
	}
}

var errAway = reason.Refuse(reason.Unavailable, "The audit log cannot be written. Try again shortly.")

// Record takes an entry that is durable within 50 ms. It never waits for the database; where too many entries wait for
// it already, or the writer has stopped, it is reason.Unavailable.
func (w *Writer) Record(e Entry) error { return w.take(queued{entry: e}) }

// Commit returns once an entry is durable; many callers share one write. Without a database it is reason.Unavailable,
// and the entry may turn up later all the same: nobody can know whether a commit that was cut off was carried out.
func (w *Writer) Commit(ctx context.Context, e Entry) error {
	done := make(chan error, 1)
	if err := w.take(queued{e, done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Writer) take(q queued) error {
	if err := tidy(&q.entry); err != nil {
		return err
	}
	w.mu.Lock()
	full := len(w.queue) >= queueSize || w.ended || w.away && q.done != nil
	if !full {
		w.queue = append(w.queue, q)
		if q.done != nil {
			w.waiting++
		}
	}
	w.mu.Unlock()
	if full {
		return errAway
	}
	signal(w.wake)
	if q.done != nil {
		signal(w.hurry)
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tidy makes an entry one that Postgres takes as it is, and soon: what it would refuse, or be long about, would hold up
// all others.
func tidy(e *Entry) error {
	if e.Org.IsZero() {
		return errors.New("audit: an entry of no organisation")
	}
	switch e.Kind {
	case Intent, Call, Decision, Change:
	default:
		return errors.New("audit: an entry of no kind")
	}
	e.At = e.At.UTC().Truncate(time.Microsecond)
	e.Took = e.Took.Truncate(time.Microsecond)
	for _, text := range []struct {
		s    *string
		most int
	}{{&e.Tool, wordSize}, {&e.Source, wordSize}, {&e.Outcome, wordSize}, {&e.Line, lineSize}} {
		*text.s = clean(clip(*text.s, text.most))
	}
	return nil
}

// clip cuts s to that many characters, the last of which then says that it was cut.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n, end := 0, 0
	for i := range s {
		if n == most {
			return s[:end] + "…"
		}
		if n++; n == most {
			end = i
		}
	}
	return s
}

// clean is s as text may be in Postgres.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Run writes until ctx ends, and then what was taken before. It is called once.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-w.wake:
			w.gather(ctx)
			w.write(ctx, false)
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	w.write(late, true)
}

// gather waits for others to come, unless somebody is waiting.
func (w *Writer) gather(ctx context.Context) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-w.hurry:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// write writes the queue until nobody waits for any of it, or all of it. A batch that cannot be written is tried again
// until ctx ends, so nothing overtakes it.
func (w *Writer) write(ctx context.Context, all bool) {
	for first := true; ; first = false {
		batch := w.next(all || first)
		if len(batch) == 0 {
			return
		}
		for w.author.begin(batch); ; {
			err := w.try(ctx)
			if err == nil {
				break
			}
			w.refuse(ctx, err)
			if ctx.Err() != nil {
				w.lose(ctx)
				return
			}
			pause(ctx)
		}
	}
}

// try writes the author's batch once.
func (w *Writer) try(ctx context.Context) error {
	// A stop does not cut off a write that has begun; its time does.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	err := w.author.write(bounded, w.now())
	if err == nil {
		w.setAway(false)
	}
	return err
}

func (w *Writer) setAway(away bool) (was bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, w.away = w.away, away
	return was
}

// refuse tells those who wait for a batch that failed, and those who have queued up behind it; from now on whoever
// would have to wait is refused at once.
func (w *Writer) refuse(ctx context.Context, err error) {
	if !w.setAway(true) {
		w.log.ErrorContext(ctx, "audit log not written, trying again", slog.Any("err", err))
	}
	w.author.refuse(errAway)
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.queue[:0]
	for _, q := range w.queue {
		if q.done == nil {
			kept = append(kept, q)
			continue
		}
		q.done <- errAway // never sent: what it announces is not going to happen
	}
	clear(w.queue[len(kept):])
	w.queue, w.waiting = kept, 0
}

// lose says how many entries are lost because the database did not come back before the writer had to stop.
func (w *Writer) lose(ctx context.Context) {
	w.mu.Lock()
	lost := len(w.queue) + len(w.author.links)
	ended := w.ended
	w.mu.Unlock()
	if ended && lost > 0 {
		w.log.ErrorContext(ctx, "audit entries lost", slog.Int("entries", lost))
	}
}

// next takes a batch from the queue, unless one is still to be written. A few that nobody waits for are left to linger
// with others, unless any will do.
func (w *Writer) next(any bool) []queued {
	if batch := w.author.batch; len(batch) > 0 {
		return batch
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !any && w.waiting == 0 && 0 < len(w.queue) && len(w.queue) < batchSize {
		signal(w.wake)
		return nil
	}
	n := min(len(w.queue), batchSize)
	for _, q := range w.queue[:n] {
		if q.done != nil {
			w.waiting--
		}
	}
	batch := append([]queued(nil), w.queue[:n]...)
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	return batch
}

func pause(ctx context.Context) {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
