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
	byAgent index[store.AgentID] // of known, for who hears that something ended
	byOrg   index[store.OrgID]
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
	v := &verified{healthy: healthy, now: now, byAgent: index[store.AgentID]{}, byOrg: index[store.OrgID]{}}
	var err error
	if v.known, err = simplelru.NewLRU(maxVerified, v.dropped); err != nil {
		return nil, err
	}
	v.unknown, err = simplelru.NewLRU[store.TokenHash, struct{}](maxUnknown, nil)
	return v, err
}

// dropped is called when a token leaves known, for whatever reason.
func (v *verified) dropped(hash store.TokenHash, p proven) {
	v.byAgent.remove(p.Agent, hash)
	v.byOrg.remove(p.Org, hash)
}

// An index has the tokens of each id.
type index[K comparable] map[K]map[store.TokenHash]struct{}

func (x index[K]) add(id K, hash store.TokenHash) {
	if x[id] == nil {
		x[id] = map[store.TokenHash]struct{}{}
	}
	x[id][hash] = struct{}{}
}

func (x index[K]) remove(id K, hash store.TokenHash) {
	delete(x[id], hash)
	if len(x[id]) == 0 {
		delete(x, id)
	}
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
	key := string(hash[:]) + strconv.FormatUint(moved, 10)
	found, err, _ := v.flight.Do(key, func() (any, error) {
		if p, _, err := v.get(hash); err != nil || !p.Agent.IsZero() { // of a look-up that has just ended
			return p, err
		}
		p, err := ask(context.WithoutCancel(ctx)) // it is everybody's: it outlives the request that began it
		v.keep(hash, p, err, moved)               // before it ends, so that nobody falls between the two
		return p, err
	})
	p, _ = found.(proven)
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
		v.known.Remove(hash) // which was found twice at once: the index is of whom it is now
		v.known.Add(hash, p)
		v.byAgent.add(p.Agent, hash)
		v.byOrg.add(p.Org, hash)
	}
}

// Hear implements bus.Listener.
func (v *verified) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Credential, bus.Revoked:
		id, err := store.ParseID[store.AgentKind](e.ID)
		forget(v, v.byAgent, id, err)
	case bus.Member:
		id, err := store.ParseID[store.OrgKind](e.ID)
		forget(v, v.byOrg, id, err)
	}
}

// Reset implements bus.Listener.
func (v *verified) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.moved++
	v.known.Purge()
}

// forget drops the tokens of what ended, and looks at no others: anybody may end their own tokens, as often as they like. An id
// that is none is of nothing that is known.
func forget[K comparable](v *verified, in index[K], id K, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.moved++
	if err != nil {
		return
	}
	for hash := range in[id] {
		v.known.Remove(hash)
	}
}
