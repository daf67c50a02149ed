package upstream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// listener is a client that wants to hear everything.
type listener struct{ catalog.Nobody }

func (listener) Progress(catalog.Progress)          {}
func (listener) Log(string, string, jsontext.Value) {}

// Of twenty upstreams one hangs and one floods, and the others answer each call meanwhile. How fast is BenchmarkTrouble's
// to say, in cmd/graft.
func TestOneThatHangsAndOneThatFloodsStopNobody(t *testing.T) {
	t.Parallel()
	r := one(t)
	var wire []string
	for n := range 18 {
		srv := upstreamtest.Start(t, upstreamtest.Options{Forgetful: true})
		name := fmt.Sprintf("well-%d", n)
		r.add(name, srv.URL)
		wire = append(wire, name+"__echo")
	}
	hang := upstreamtest.Tool{Name: "hang", Run: func(c *upstreamtest.Call) string { <-c.Done(); return upstreamtest.Text("") }}
	flood := upstreamtest.Tool{Name: "flood", Run: func(c *upstreamtest.Call) string {
		for n := 1.0; c.Err() == nil; n++ {
			c.Progress(n, 0, "more")
		}
		return upstreamtest.Text("")
	}}
	hung := upstreamtest.Start(t, upstreamtest.Options{Forgetful: true, Tools: []upstreamtest.Tool{hang}})
	r.add("hung", hung.URL)
	r.add("flood", upstreamtest.Start(t, upstreamtest.Options{Forgetful: true, Tools: []upstreamtest.Tool{flood}}).URL)
	tools, a := r.tools(), r.agent()
	ctx, cancel := context.WithCancel(t.Context())
	var loud sync.WaitGroup
	for range 100 { // more than may be under way at once
		loud.Go(func() {
			_, err := r.Run(ctx, catalog.Run{Caller: a, Tool: tools["hung__hang"], Client: catalog.Nobody{}})
			if err == nil {
				t.Error("a call that hangs has a result")
			}
		})
	}
	loud.Go(func() {
		if _, err := r.Run(ctx, catalog.Run{Caller: a, Tool: tools["flood__flood"], Client: listener{}}); err == nil {
			t.Error("a call that floods has a result")
		}
	})
	eventually(t, "all places of the one that hangs to be taken", func() bool { return hung.Runs("hang") == 64 })
	for range 20 {
		for _, name := range wire {
			if _, err := r.Run(t.Context(), catalog.Run{Caller: a, Tool: tools[name], Client: catalog.Nobody{}}); err != nil {
				t.Fatalf("%s beside one that hangs and one that floods = %v, want a result", name, err)
			}
		}
	}
	if n := hung.Runs("hang"); n != 64 {
		t.Errorf("%d calls reached the one that hangs, want no more than its 64 places", n)
	}
	cancel()
	loud.Wait()
}
