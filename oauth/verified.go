package oauth

import (
	"context"
	"strconv"
	"sync"
	"time"

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
	now     func() time.Time
	flight  singleflight.Group

	mu      sync.Mutex
	known   *simplelru.LRU[store.TokenHash, proven]
	unknown *simplelru.LRU[store.TokenHash, struct{}]
	moved   uint64 // counts what was heard: what was looked up before the last of it is not kept
}

// proven is who acts by a token, and until when.
type proven struct {
	store.Caller
	until time.Time // zero: until it is ended
}

// ranOut reports whether it no longer holds at now.
func (p proven) ranOut(now time.Time) bool { return !p.until.IsZero() && !now.Before(p.until) }

func newVerified(healthy func() bool, now func() time.Time) (*verified, error) {
	known, err := simplelru.NewLRU[store.TokenHash, proven](maxVerified, nil)
	if err != nil {
		return nil, err
	}
	unknown, err := simplelru.NewLRU[store.TokenHash, struct{}](maxUnknown, nil)
	return &verified{healthy: healthy, now: now, known: known, unknown: unknown}, err
}

// resolve answers from memory, else asks once for all who want to know the same at the same time, which is until
// something moves: who comes after an event never joins a look-up that began before it. One that ran out is errExpired.
func (v *verified) resolve(ctx context.Context, hash store.TokenHash, ask func(context.Context) (proven, error)) (store.Caller, error) {
	if !v.healthy() {
		p, err := ask(ctx)
		return p.Caller, err
	}
	p, moved, err := v.get(hash)
	if err != nil || !p.Agent.IsZero() {
		return p.Caller, err
	}
	// The look-up is everybody's: it outlives the request that began it.
	key := string(hash[:]) + strconv.FormatUint(moved, 10)
	found, err, _ := v.flight.Do(key, func() (any, error) { return ask(context.WithoutCancel(ctx)) })
	p, _ = found.(proven)
	v.keep(hash, p, err, moved)
	return p.Caller, err
}

// get is what is remembered: somebody, reason.NotFound, errExpired, or nothing.
func (v *verified) get(hash store.TokenHash) (p proven, moved uint64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p, ok := v.known.Get(hash); ok {
		if p.ranOut(v.now()) {
			v.known.Remove(hash)
			return proven{}, v.moved, errExpired
		}
		return p, v.moved, nil
	}
	if _, ok := v.unknown.Get(hash); ok {
		return proven{}, v.moved, reason.NotFound
	}
	return proven{}, v.moved, nil
}

// keep remembers what a look-up found that began when moved was what it says.
func (v *verified) keep(hash store.TokenHash, p proven, err error, moved uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case store.IsAbsent(err):
		v.unknown.Add(hash, struct{}{})
	case err == nil && v.moved == moved:
		v.known.Add(hash, p)
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
		if p, ok := v.known.Peek(hash); ok && ended(p.Caller) {
			v.known.Remove(hash)
		}
	}
}
