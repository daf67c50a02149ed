package upstream

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// callsAtOnce bounds the calls of an organisation to one upstream that are under way on a replica: one that hangs
	// holds so many goroutines and connections, and no more.
	callsAtOnce = 64
	// callsWaiting bounds those that wait for one of these to end, and longestWait how long they do.
	callsWaiting = 256
	longestWait  = 5 * time.Second
	// pauses between attempts to reach an upstream that failed: twice as long each time.
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	// noEntry is the pause after it refused our credential, which nobody mends sooner.
	noEntry = 30 * time.Second
	// downAfter is how many failures in a row make it worth telling that an upstream is down.
	downAfter = 3
)

// A line is the way to one upstream of one organisation: how many use it, and whether it works.
type line struct {
	caller  store.Caller // somebody of the organisation; rows are read and written by organisation
	id      store.UpstreamID
	name    string
	slots   chan struct{}
	waiting atomic.Int32
	used    atomic.Int64  // when a call was last made, in nanoseconds
	watched atomic.Bool   // a goroutine listens
	news    chan struct{} // what it lists, or whether it can be reached, may have changed

	mu       sync.Mutex
	revision string // of the target that the rest is about
	fails    int    // in a row
	until    time.Time
	trying   bool // one looks whether it works again
	cut      bool // the network fails, and not opening a session alone
	last     *reason.Refusal
}

func newLine(c store.Caller, t *target) *line {
	return &line{caller: c, id: t.ID, name: t.Name, slots: make(chan struct{}, callsAtOnce), news: make(chan struct{}, 1)}
}

// enter takes a place for one call. leave gives it back.
func (l *line) enter(ctx context.Context) (leave func(), err error) {
	l.used.Store(time.Now().UnixNano())
	leave = func() { <-l.slots }
	select {
	case l.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if l.waiting.Add(1) > callsWaiting {
		l.waiting.Add(-1)
		return nil, l.full()
	}
	defer l.waiting.Add(-1)
	patience := time.NewTimer(longestWait)
	defer patience.Stop()
	select {
	case l.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		return nil, l.full()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *line) full() error {
	return reason.Refuse(reason.UpstreamUnavailable, "%s has %d calls under way and is slow to answer them. Try again shortly.", l.name, callsAtOnce).
		With("upstream", l.name).With("code", "busy")
}

// of makes the line one of that target: what was learnt of another revision does not hold.
func (l *line) of(t *target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revision != t.revision {
		l.revision, l.fails, l.until, l.trying, l.cut, l.last = t.revision, 0, time.Time{}, false, false, nil
	}
}

func (l *line) isOf(t *target) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision == t.revision
}

// admit refuses while the upstream is known not to work. Of those who come when the pause is over one tries, and who
// tries says how it went, with well or openFailed. Calls in sessions that are open pass unless the network is cut.
func (l *line) admit(opening bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails == 0 || !opening && !l.cut {
		return nil
	}
	if wait := time.Until(l.until); wait > 0 || opening && l.trying {
		seconds := int(math.Ceil(max(wait, time.Second).Seconds()))
		r := reason.Refuse(l.last.Word, "%s It is tried again in %d s.", l.last.Message, seconds)
		r.Details = l.last.Details
		return r.With("retryAfterSeconds", seconds)
	}
	l.trying = l.trying || opening
	return nil
}

// well notes that the upstream answers.
func (l *line) well() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails == 0 {
		return
	}
	if l.fails >= downAfter {
		l.tell()
	}
	l.fails, l.trying, l.cut = 0, false, false
}

// untried takes back that somebody was let through to try.
func (l *line) untried() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
}

// openFailed notes that no session could be opened, and why.
func (l *line) openFailed(err error) { l.failed(err, isCut(err)) }

// callFailed notes why a call failed, where that says something of the calls of others: a slow call, or one that the
// upstream answers badly, does not.
func (l *line) callFailed(err error) {
	if isCut(err) || isShut(err) {
		l.failed(err, isCut(err))
	}
}

// isShut reports whether the upstream does not take our credential. That it forbids one call (403) is about that call.
func isShut(err error) bool {
	r := reason.Of(err)
	return r.Word == reason.UpstreamUnauthorized && r.Details["status"] != http.StatusForbidden
}

func (l *line) failed(err error, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails++
	l.trying, l.cut, l.last = false, cut, reason.Of(err)
	pause := min(firstPause<<min(l.fails-1, 20), lastPause)
	if l.last.Word == reason.UpstreamUnauthorized {
		pause = noEntry
	}
	l.until = time.Now().Add(pause + rand.N(pause/4))
	if l.fails == downAfter || l.last.Word == reason.UpstreamUnauthorized && l.fails == 1 {
		l.tell()
	}
}

// isCut reports whether no connection was had.
func isCut(err error) bool {
	switch reason.Of(err).Details["code"] {
	case "dns", "tls", "refused", "unreachable":
		return true
	}
	return false
}

// tell wakes whoever watches.
func (l *line) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// own is a failure to reach an upstream in our own words: what the upstream said stays out, since it may repeat the
// credential it was sent.
func own(t *target, err error) error {
	r := reason.Of(err)
	if r.Word == reason.Internal {
		return err
	}
	message := r.Message
	if code, said := r.Details["code"].(int64); said {
		message = fmt.Sprintf("It answered with error %d.", code)
	}
	if r.Word == reason.HostNotPublic || r.Word == reason.InputInvalid && r.Details["field"] == "url" {
		message += " An operator exempts private networks from this with GRAFT_EGRESS_ALLOW."
	}
	mine := reason.Refuse(r.Word, "%s cannot be reached. %s", t.Name, message)
	mine.Details = r.Details
	return mine.With("upstream", t.Name)
}
