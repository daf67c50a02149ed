package mcp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// A view that was being read while something moved is neither kept nor handed to who asks after that.
func TestAViewIsNotOlderThanWhatMoved(t *testing.T) {
	t.Parallel()
	agent := store.NewID[store.AgentKind](time.Now())
	for name, move := range map[string]func(*views){
		"the agent moved":          func(vs *views) { vs.forget(agent) },
		"something may have moved": (*views).reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				vs, err := newViews(func() bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				older, newer := &view{}, &view{}
				ask := func(read func() *view) *view {
					v, err := vs.of(t.Context(), agent, func(context.Context) (*view, error) { return read(), nil })
					if err != nil {
						t.Error(err)
					}
					return v
				}
				moved := make(chan struct{})
				go ask(func() *view { <-moved; return older })
				synctest.Wait() // it reads
				move(vs)
				if got := ask(func() *view { return newer }); got != newer {
					t.Error("who asked after the move was handed what was read before")
				}
				close(moved)
				synctest.Wait() // it has read
				if got := ask(func() *view { return newer }); got != newer {
					t.Error("what was read before the move was kept")
				}
			})
		})
	}
}
