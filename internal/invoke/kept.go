package invoke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// A kept is the catalog.Client of a call that is a run, or may become one while it goes on. Until then the tool talks to
// the client that called; from then on what it tells is kept, and what it asks waits in the run's row.
type kept struct {
	a    *attempt
	asks bool          // somebody answers what a run asks
	run  chan struct{} // closed once the call is a run

	mu       sync.Mutex
	client   catalog.Client // who called; nil where nobody waits
	deciding chan struct{}  // not nil while it is decided whether it becomes a run, closed when it was
	bound    int            // what keeps it from becoming one: a question to the client that called, or its end
	progress []string       // not written down yet
	asked    map[string]chan catalog.Answer
	used     map[string]int // how often the tool used a key
	heard    int            // how many answers were heard

	writing sync.Mutex // held while questions are written down, so that the last are the last
}

func newKept(a *attempt, client catalog.Client, asks bool) *kept {
	return &kept{a: a, client: client, asks: asks, run: make(chan struct{}), asked: map[string]chan catalog.Answer{}, used: map[string]int{}}
}

// offer begins to make the call a run, unless it cannot become one now. settle says how it went.
func (k *kept) offer() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bound > 0 {
		return false
	}
	k.deciding = make(chan struct{})
	return true
}

func (k *kept) settle(isRun bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if isRun {
		k.client = nil
		close(k.run)
	}
	close(k.deciding)
	k.deciding = nil
}

// bind reports whether the call is a run. It waits while that is decided; one that is none does not become one until
// unbind.
func (k *kept) bind() (isRun bool) {
	for {
		k.mu.Lock()
		deciding := k.deciding
		if deciding == nil {
			defer k.mu.Unlock()
			select {
			case <-k.run:
				return true
			default:
				k.bound++
				return false
			}
		}
		k.mu.Unlock()
		<-deciding
	}
}

func (k *kept) unbind() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bound--
}

// over says that the call has ended, and reports whether it ended as a run.
func (k *kept) over() (isRun bool) { return k.bind() }

// maxProgress is how many lines wait to be written down at most; the oldest go. No more are kept of a run.
const maxProgress = 200

// Progress implements catalog.Client.
func (k *kept) Progress(p catalog.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		k.client.Progress(p)
	}
	k.progress = last(append(k.progress, progressLine(p)))
}

// last bounds lines without moving them at each one more.
func last(lines []string) []string {
	if len(lines) < 2*maxProgress {
		return lines
	}
	return append([]string(nil), lines[len(lines)-maxProgress:]...)
}

func (k *kept) takeProgress() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines := k.progress
	k.progress = nil
	return lines[max(0, len(lines)-maxProgress):]
}

func (k *kept) putBack(lines []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.progress = last(append(lines[:len(lines):len(lines)], k.progress...))
}

// Log implements catalog.Client.
func (k *kept) Log(level, logger string, data jsontext.Value) {
	k.mu.Lock()
	client := k.client
	k.mu.Unlock()
	if client != nil {
		client.Log(level, logger, data)
	}
}

// Ask implements catalog.Client.
func (k *kept) Ask(ctx context.Context, q catalog.Question) (catalog.Answer, error) {
	if k.bind() {
		return k.askInRun(ctx, q)
	}
	k.mu.Lock()
	client := k.client
	k.mu.Unlock()
	if client == nil {
		return catalog.Answer{}, catalog.ErrCannotAsk
	}
	answer, err := client.Ask(ctx, q)
	var needs *catalog.NeedInput
	if !errors.As(err, &needs) { // the call ends with what it needs, and is made again
		k.unbind()
	}
	return answer, err
}

// askInRun keeps a question with the run, and waits for its answer, which may reach any replica.
func (k *kept) askInRun(ctx context.Context, q catalog.Question) (catalog.Answer, error) {
	if !k.asks {
		return catalog.Answer{}, catalog.ErrCannotAsk
	}
	answer := make(chan catalog.Answer, 1)
	k.mu.Lock()
	k.used[q.Key]++
	if n := k.used[q.Key]; n > 1 { // a key is of one question for as long as the run lives
		q.Key += "-" + strconv.Itoa(n)
	}
	k.asked[q.Key] = answer
	k.mu.Unlock()
	if err := k.write(ctx, func(open []catalog.Question) []catalog.Question { return append(open, q) }); err != nil {
		return catalog.Answer{}, fmt.Errorf("keep question of %s: %w", k.a.run, err)
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return catalog.Answer{}, ctx.Err()
	}
}

// write changes what the run asks. What was answered is passed over by whoever reads it.
func (k *kept) write(ctx context.Context, change func([]catalog.Question) []catalog.Question) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	c, id := k.a.call.Caller, k.a.run
	box, err := k.a.box(ctx)
	if err != nil {
		return err
	}
	return k.a.c.DB.As(ctx, c, func(tx *store.Tx) error {
		row, err := tx.Run(ctx, c.Agent, id)
		if err != nil {
			return err
		}
		open, err := openQuestions(box, row)
		if err != nil {
			return err
		}
		plain, err := json.Marshal(change(open))
		if err != nil {
			return err
		}
		return tx.AskInRun(ctx, c.Agent, id, box.Seal(runPlace(id, "questions"), plain))
	})
}

// hear hands the answers that are new to what waits for them.
func (k *kept) hear(ctx context.Context, sealed [][]byte) {
	if len(sealed) == 0 {
		return
	}
	box, err := k.a.box(ctx)
	if err != nil {
		return // it looks again
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(sealed) <= k.heard {
		return
	}
	for _, s := range sealed[k.heard:] {
		k.heard++
		answers, err := openAnswers(box, k.a.run, s)
		if err != nil {
			k.a.c.Log.WarnContext(ctx, "answer does not open", slog.Any("err", err), slog.String("run", k.a.run.String()))
			continue
		}
		for key, a := range answers {
			if waits := k.asked[key]; waits != nil {
				waits <- a // holds one, and is written to once
				delete(k.asked, key)
			}
		}
	}
}

// openQuestions are those of a run that are not answered yet.
func openQuestions(box *vault.Box, r store.Run) ([]catalog.Question, error) {
	if r.Questions == nil {
		return nil, nil
	}
	plain, err := box.Open(runPlace(r.ID, "questions"), r.Questions)
	var list []catalog.Question
	if err == nil {
		err = json.Unmarshal(plain, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("open questions of %s: %w", r.ID, err)
	}
	answered := map[string]bool{}
	for _, s := range r.Answers {
		answers, err := openAnswers(box, r.ID, s)
		if err != nil {
			return nil, fmt.Errorf("open answers of %s: %w", r.ID, err)
		}
		for key := range answers {
			answered[key] = true
		}
	}
	var open []catalog.Question
	for _, q := range list {
		if !answered[q.Key] {
			open = append(open, q)
		}
	}
	return open, nil
}

func openAnswers(box *vault.Box, id store.RunID, sealed []byte) (answers map[string]catalog.Answer, err error) {
	plain, err := box.Open(runPlace(id, "answers"), sealed)
	if err == nil {
		err = json.Unmarshal(plain, &answers)
	}
	return answers, err
}

// Answer answers what a run of the caller's agent asks, by the keys of its questions; other keys are passed over. A run
// that is not there is reason.RunNotFound.
func (i *Invoker) Answer(ctx context.Context, c store.Caller, id store.RunID, answers map[string]catalog.Answer) error {
	s, err := i.status(ctx, c, id)
	if err != nil {
		return err
	}
	known := map[string]catalog.Answer{}
	for _, q := range s.Asks {
		if a, ok := answers[q.Key]; ok {
			known[q.Key] = a
		}
	}
	if len(known) == 0 {
		return nil
	}
	plain, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("write answers: %w", err)
	}
	box, err := i.c.Keys.Box(ctx, c.Org.String(), runBox)
	if err != nil {
		return err
	}
	sealed := box.Seal(runPlace(id, "answers"), plain)
	err = i.c.DB.As(ctx, c, func(tx *store.Tx) error { return tx.AnswerRun(ctx, c.Agent, id, sealed) })
	if store.IsAbsent(err) {
		return reason.Refuse(reason.RunNotFound, "There is no run %s of this agent.", id)
	}
	return err
}
