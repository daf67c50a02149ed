package vault

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// A Box seals our own data for one purpose: session ids, request state, run bodies. What it seals may be handed
// out and is opened by the package that sealed it. Safe for concurrent use.
type Box struct {
	bound []byte // the purpose, as the beginning of what each message is bound to
	keys  atomic.Pointer[[]*sealKey]
}

// NewBox makes a box for purpose. The first key seals, all of them open. Boxes of different purposes do not open
// each other's messages, also under the same keys.
func NewBox(purpose string, keys ...*DataKey) (*Box, error) {
	if purpose == "" {
		return nil, errors.New("make box: no purpose")
	}
	b := &Box{bound: binding("graft.box.v1", purpose)}
	if err := b.SetKeys(keys...); err != nil {
		return nil, fmt.Errorf("make box for %s: %w", purpose, err)
	}
	return b, nil
}

// SetKeys replaces the keys at once, newest first. Calls under way finish with the keys they began with.
func (b *Box) SetKeys(keys ...*DataKey) error {
	if len(keys) == 0 {
		return errors.New("no keys")
	}
	seal := make([]*sealKey, len(keys))
	for i, k := range keys {
		seal[i] = k.key
	}
	b.keys.Store(&seal)
	return nil
}

// Seal returns plain sealed under the newest key and bound to aad, which Open must be given again.
// The result is Overhead bytes longer than plain.
func (b *Box) Seal(aad, plain []byte) []byte {
	return (*b.keys.Load())[0].seal(b.bind(aad), plain)
}

// Open returns what Seal sealed with the same aad, or an error that wraps ErrSealed.
func (b *Box) Open(aad, sealed []byte) ([]byte, error) {
	return open(*b.keys.Load(), b.bind(aad), sealed)
}

// bind needs no length before aad: it is the last part.
func (b *Box) bind(aad []byte) []byte {
	bound := make([]byte, 0, len(b.bound)+len(aad))
	return append(append(bound, b.bound...), aad...)
}
