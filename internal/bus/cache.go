package bus

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

// A Cache remembers what was read until the bus says that it moved. Whoever owns it calls Forget and Reset from its own
// Listener. While the bus cannot be relied on nothing is remembered, and every request reads for itself. Safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	healthy func() bool
	flight  singleflight.Group

	mu    sync.Mutex
	known *simplelru.LRU[K, V]
	moved uint64 // counts what was heard: what was read before the last of it is not kept
}

// NewCache makes a cache of at most size entries; the least used are read again. healthy is a Bus's.
func NewCache[K comparable, V any](size int, healthy func() bool) (*Cache[K, V], error) {
	known, err := simplelru.NewLRU[K, V](size, nil)
	return &Cache[K, V]{healthy: healthy, known: known}, err
}

// Get answers from memory, else reads once for all who ask at the same time, which is until something moves: who comes
// after an event never joins a reading that began before it.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if !c.healthy() {
		return read(ctx)
	}
	v, moved, ok := c.peek(key)
	if ok {
		return v, nil
	}
	found, err, _ := c.flight.Do(fmt.Sprint(key)+" "+strconv.FormatUint(moved, 10), func() (any, error) {
		if v, _, ok := c.peek(key); ok { // of a reading that has just ended
			return v, nil
		}
		v, err := read(context.WithoutCancel(ctx)) // it is everybody's: it outlives the request that began it
		if err == nil {
			c.keep(key, v, moved) // before it ends, so that nobody falls between the two
		}
		return v, err
	})
	if err != nil {
		return v, err
	}
	return found.(V), nil
}

func (c *Cache[K, V]) peek(key K) (v V, moved uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok = c.known.Get(key)
	return v, c.moved, ok
}

func (c *Cache[K, V]) keep(key K, v V, moved uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved == moved {
		c.known.Add(key, v)
	}
}

// Forget drops what is known of keys.
func (c *Cache[K, V]) Forget(keys ...K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved++
	for _, key := range keys {
		c.known.Remove(key)
	}
}

// ForgetIf drops every entry that gone is true of. It looks at all of them.
func (c *Cache[K, V]) ForgetIf(gone func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved++
	for _, key := range c.known.Keys() {
		if v, ok := c.known.Peek(key); ok && gone(key, v) {
			c.known.Remove(key)
		}
	}
}

// Reset drops everything.
func (c *Cache[K, V]) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved++
	c.known.Purge()
}
