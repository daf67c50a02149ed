package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A body longer than smallBody is large. To read, check and answer one takes many times its size in memory, so an agent
// has only so many under way on a replica; the next waits for its turn.
const (
	smallBody = 128 << 10
	maxLarge  = 8
	largeWait = 5 * time.Second
)

// readBody reads the whole body. The caller calls done when it is through with it.
func (h *Handler) readBody(r *http.Request, agent store.AgentID) (body []byte, done func(), err error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.LimitReader(r.Body, smallBody)); err != nil {
		return nil, nil, tooLarge(err)
	}
	if b.Len() < smallBody {
		return b.Bytes(), func() {}, nil
	}
	if done, err = h.large.take(r.Context(), agent); err != nil {
		return nil, nil, err
	}
	if _, err := b.ReadFrom(r.Body); err != nil {
		done()
		return nil, nil, tooLarge(err)
	}
	return b.Bytes(), done, nil
}

// turns are the large bodies under way, by agent.
type turns struct {
	mu sync.Mutex
	of map[store.AgentID]*turn
}

// A turn is one agent's.
type turn struct {
	slots chan struct{}
	users int // who has a slot or waits for one; with the last of them the turn goes
}

// take waits for a slot of the agent's. give is called once.
func (t *turns) take(ctx context.Context, agent store.AgentID) (give func(), err error) {
	t.mu.Lock()
	u := t.of[agent]
	if u == nil {
		u = &turn{slots: make(chan struct{}, maxLarge)}
		t.of[agent] = u
	}
	u.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.users--; u.users == 0 {
			delete(t.of, agent)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, largeWait,
		reason.Refuse(reason.RateLimited, "More than %d messages of over %d KiB at once. Send them one after the other.", maxLarge, smallBody>>10))
	defer cancel()
	select {
	case u.slots <- struct{}{}:
		return func() { <-u.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
