package vault

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

// A KeyRow is where the wrapped key of an organisation is kept: it returns the one that is there, else what wrap makes
// after storing it. Of many that ask at once, in whatever process, one makes the key and all get it.
type KeyRow func(ctx context.Context, org string, wrap func() ([]byte, error)) (wrapped []byte, err error)

// A Keyring has the data key of each organisation, made when it is first asked for. Safe for concurrent use.
type Keyring struct {
	master *MasterKeys
	row    KeyRow
	flight singleflight.Group

	mu    sync.Mutex
	keys  *simplelru.LRU[string, *DataKey]
	moved uint64 // counts what was forgotten: what was read before the last of it is not kept
}

// keysKept bounds the keys in memory, about a kilobyte each; the least used are unwrapped again.
const keysKept = 4096

// NewKeyring makes a keyring over the rows of wrapped keys.
func NewKeyring(master *MasterKeys, row KeyRow) (*Keyring, error) {
	keys, err := simplelru.NewLRU[string, *DataKey](keysKept, nil)
	return &Keyring{master: master, row: row, keys: keys}, err
}

// Key is the data key of an organisation, given by its id.
func (r *Keyring) Key(ctx context.Context, org string) (*DataKey, error) {
	r.mu.Lock()
	key, ok := r.keys.Get(org)
	moved := r.moved
	r.mu.Unlock()
	if ok {
		return key, nil
	}
	// The reading is everybody's: it outlives the request that began it.
	found, err, _ := r.flight.Do(fmt.Sprint(org, " ", moved), func() (any, error) { return r.read(context.WithoutCancel(ctx), org) })
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", org, err)
	}
	key = found.(*DataKey)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved == moved {
		r.keys.Add(org, key)
	}
	return key, nil
}

// Box is a box of an organisation's own for one purpose: what it seals is shredded with the organisation.
func (r *Keyring) Box(ctx context.Context, org, purpose string) (*Box, error) {
	key, err := r.Key(ctx, org)
	if err != nil {
		return nil, err
	}
	return NewBox(purpose, key)
}

// Forget drops the key of an organisation from memory, for when the organisation may be gone.
func (r *Keyring) Forget(org string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved++
	r.keys.Remove(org)
}

// Reset drops every key from memory.
func (r *Keyring) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved++
	r.keys.Purge()
}

func (r *Keyring) read(ctx context.Context, org string) (*DataKey, error) {
	owner := Owner{Purpose: "organisation", ID: org}
	wrapped, err := r.row(ctx, org, func() ([]byte, error) {
		_, wrapped, err := r.master.NewDataKey(owner)
		return wrapped, err
	})
	if err != nil {
		return nil, err
	}
	return r.master.Unwrap(owner, wrapped)
}
