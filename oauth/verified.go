package oauth

import (
	"context"
	"strconv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// maxVerified bounds the tokens a replica remembers; the least used are asked about again.
	maxVerified = 100_000
	// maxUnknown bounds the tokens it remembers to be nobody's. A client that goes on with an ended token, over and
	// over, then costs no look-up: what is nobody's stays nobody's, because tokens are drawn at random.
	maxUnknown = 10_000
)

// verified remembers which tokens resolved to whom. It is a bus listener: what may have ended is forgotten, and while
// the bus cannot be relied on nothing is remembered at all.
type verified struct {
	healthy func() bool
	flight  singleflight.Group

	mu      sync.Mutex
	known   *simplelru.LRU[store.TokenHash, store.Caller]
	unknown *simplelru.LRU[store.TokenHash, struct{}]
	moved   uint64 // counts what was heard: what was looked up before the last of it is not kept
}

func newVerified(healthy func() bool) (*verified, error) {
	known, err := simplelru.NewLRU[store.TokenHash, store.Caller](maxVerified, nil)
	if err != nil {
		return nil, err
	}
	unknown, err := simplelru.NewLRU[store.TokenHash, struct{}](maxUnknown, nil)
	return &verified{healthy: healthy, known: known, unknown: unknown}, err
}

// resolve answers from memory, else asks once for all who want to know the same at the same time, which is until
// something moves: who comes after an event never joins a look-up that began before it.
func (v *verified) resolve(ctx context.Context, hash store.TokenHash, ask func(context.Context) (store.Caller, error)) (store.Caller, error) {
	if !v.healthy() {
		return ask(ctx)
	}
	c, moved, err := v.get(hash)
	if err != nil || !c.Agent.IsZero() {
		return c, err
	}
	// The look-up is everybody's: it outlives the request that began it.
	key := string(hash[:]) + strconv.FormatUint(moved, 10)
	found, err, _ := v.flight.Do(key, func() (any, error) { return ask(context.WithoutCancel(ctx)) })
	c, _ = found.(store.Caller)
	v.keep(hash, c, err, moved)
	return c, err
}

// get is what is remembered: a Caller, reason.NotFound, or neither.
func (v *verified) get(hash store.TokenHash) (c store.Caller, moved uint64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c, ok := v.known.Get(hash); ok {
		return c, v.moved, nil
	}
	if _, ok := v.unknown.Get(hash); ok {
		return store.Caller{}, v.moved, reason.NotFound
	}
	return store.Caller{}, v.moved, nil
}

// keep remembers what a look-up found that began when moved was what it says.
func (v *verified) keep(hash store.TokenHash, c store.Caller, err error, moved uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case store.IsAbsent(err):
		v.unknown.Add(hash, struct{}{})
	case err == nil && v.moved == moved:
		v.known.Add(hash, c)
	}
}

// Hear implements bus.Listener.
func (v *verified) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Credential, bus.Revoked:
		v.forget(func(c store.Caller) bool { return c.Agent.String() == e.ID })
	case bus.Member:
		v.forget(func(c store.Caller) bool { return c.Org.String() == e.ID })
	}
}

// Reset implements bus.Listener.
func (v *verified) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.moved++
	v.known.Purge()
}

// forget drops what ended. It looks at everything remembered, which is in proportion: something ends now and then,
// and is asked about on every request.
func (v *verified) forget(ended func(store.Caller) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.moved++
	for _, hash := range v.known.Keys() {
		if c, ok := v.known.Peek(hash); ok && ended(c) {
			v.known.Remove(hash)
		}
	}
}
