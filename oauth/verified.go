package oauth

import (
	"context"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
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
	known   *lru.Cache[store.TokenHash, store.Caller]
	unknown *lru.Cache[store.TokenHash, struct{}]
	flight  singleflight.Group
	moved   atomic.Uint64 // counts what was heard, so that a look-up under way meanwhile is not kept
}

func newVerified(healthy func() bool) (*verified, error) {
	known, err := lru.New[store.TokenHash, store.Caller](maxVerified)
	if err != nil {
		return nil, err
	}
	unknown, err := lru.New[store.TokenHash, struct{}](maxUnknown)
	return &verified{healthy: healthy, known: known, unknown: unknown}, err
}

// resolve answers from memory, else asks once for all who want to know the same.
func (v *verified) resolve(ctx context.Context, hash store.TokenHash, ask func(context.Context) (store.Caller, error)) (store.Caller, error) {
	if !v.healthy() {
		return ask(ctx)
	}
	if c, ok := v.known.Get(hash); ok {
		return c, nil
	}
	if _, ok := v.unknown.Get(hash); ok {
		return store.Caller{}, reason.NotFound
	}
	before := v.moved.Load()
	// The look-up is everybody's: it outlives the request that began it.
	found, err, _ := v.flight.Do(string(hash[:]), func() (any, error) { return ask(context.WithoutCancel(ctx)) })
	if store.IsAbsent(err) {
		v.unknown.Add(hash, struct{}{})
	}
	if err != nil {
		return store.Caller{}, err
	}
	c := found.(store.Caller)
	if v.moved.Load() == before {
		v.known.Add(hash, c)
		if v.moved.Load() != before { // heard between the two: it may have been about this one
			v.known.Remove(hash)
		}
	}
	return c, nil
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
	v.moved.Add(1)
	v.known.Purge()
}

// forget drops what ended. It looks at everything remembered, which is in proportion: something ends now and then,
// and is asked about on every request.
func (v *verified) forget(ended func(store.Caller) bool) {
	v.moved.Add(1)
	for _, hash := range v.known.Keys() {
		if c, ok := v.known.Peek(hash); ok && ended(c) {
			v.known.Remove(hash)
		}
	}
}
