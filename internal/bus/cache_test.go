package bus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/getgraft/graft/internal/bus"
)

// What was being read while something moved is neither kept nor handed to who asks after that.
func TestACacheHoldsNothingOlderThanWhatMoved(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(*bus.Cache[string, *int]){
		"the key moved":            func(c *bus.Cache[string, *int]) { c.Forget("key") },
		"a key may have moved":     func(c *bus.Cache[string, *int]) { c.ForgetIf(func(string, *int) bool { return false }) },
		"something may have moved": (*bus.Cache[string, *int]).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := bus.NewCache[string, *int](10, func() bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				older, newer := new(int), new(int)
				ask := func(read func() *int) *int {
					v, err := c.Get(t.Context(), "key", func(context.Context) (*int, error) { return read(), nil })
					if err != nil {
						t.Error(err)
					}
					return v
				}
				moved := make(chan struct{})
				go ask(func() *int { <-moved; return older })
				synctest.Wait() // it reads
				move(c)
				if got := ask(func() *int { return newer }); got != newer {
					t.Error("who asked after the move was handed what was read before")
				}
				close(moved)
				synctest.Wait() // it has read
				if got := ask(func() *int { return newer }); got != newer {
					t.Error("what was read before the move was kept")
				}
			})
		})
	}
}

// Many who want to know the same at once cause one reading, whenever each of them comes.
func TestOneReadingForAll(t *testing.T) {
	t.Parallel()
	for range 200 {
		c, err := bus.NewCache[string, int](8, func() bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		var read atomic.Int64
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if v, err := c.Get(t.Context(), "a", func(context.Context) (int, error) { return int(read.Add(1)), nil }); v != 1 || err != nil {
					t.Errorf("Get = %d, %v", v, err)
				}
			})
		}
		all.Wait()
		if n := read.Load(); n != 1 {
			t.Fatalf("read %d times, want 1", n)
		}
	}
}
