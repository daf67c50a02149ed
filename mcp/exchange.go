package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/rpc"
)

// patience is how long a request may take before its answer turns into a stream, so that the client and every proxy on
// the way see that it goes on.
const patience = time.Second

// An exchange is one POST being answered. It begins as one JSON answer and turns into an event stream when there is
// something to say before the result, or when the result takes longer than patience; a client that takes JSON alone
// waits. Safe for concurrent use.
type exchange struct {
	keepAlive time.Duration
	takesSSE  bool
	onlySSE   bool // takes nothing else

	mu    sync.Mutex
	w     http.ResponseWriter
	out   *http.ResponseController
	timer *time.Timer
	open  bool // an event stream has begun
	over  bool // the answer was sent, or cannot be
	left  chan struct{}
}

// exchange begins to answer. finish answers; close must be called when the handler returns, whatever happened.
func (h *Handler) exchange(w http.ResponseWriter, header http.Header) *exchange {
	x := &exchange{
		keepAlive: h.c.KeepAlive, takesSSE: accepts(header, typeEvent), w: w, out: http.NewResponseController(w), left: make(chan struct{}),
	}
	x.onlySSE = x.takesSSE && !accepts(header, typeJSON)
	if x.takesSSE {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.timer = time.AfterFunc(patience, x.tick)
	}
	return x
}

// close makes sure that nothing is written any more.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.timer != nil {
		x.timer.Stop()
	}
}

// tick opens the stream, and from then on keeps it alive.
func (x *exchange) tick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	x.write([]byte(": keep-alive\n\n"))
	x.timer.Reset(x.keepAlive)
}

// send puts one message before the answer. It reports whether the client can be told anything before the answer.
func (x *exchange) send(message []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || !x.takesSSE {
		return false
	}
	x.write(rpc.AppendEvent(nil, message))
	return !x.over
}

// write writes to the stream, which it begins where it has not. It is called under mu.
func (x *exchange) write(b []byte) {
	if !x.open {
		x.open = true
		streamHeaders(x.w)
		x.w.WriteHeader(http.StatusOK)
	}
	if err := writeWithin(x.out, x.w, b); err != nil {
		x.leave()
	}
}

// leave notes that the client has gone.
func (x *exchange) leave() {
	if !x.over {
		x.over = true
		close(x.left)
	}
}

// finish sends the answer. Everything sent before stands before it. status is the answer's where it is JSON; a stream
// has begun with 200.
func (x *exchange) finish(status int, answer []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.over {
		return
	}
	x.over = true
	if x.open || x.onlySSE && status == http.StatusOK {
		x.write(rpc.AppendEvent(nil, answer))
		return
	}
	writeJSON(x.w, status, answer)
}

// lives returns the context a request runs under. In the sessions era a closed connection does not cancel: only a
// notification does. At 2026-07-28 closing the response is how a client cancels.
func lives(r *http.Request, e era) (context.Context, context.CancelFunc) {
	if e == sessions {
		return context.WithCancel(context.WithoutCancel(r.Context()))
	}
	return context.WithCancel(r.Context())
}
