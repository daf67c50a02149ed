package upstream_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
)

// listener is a client that wants to hear everything.
type listener struct{ catalog.Nobody }

func (listener) Progress(catalog.Progress)          {}
func (listener) Log(string, string, jsontext.Value) {}

// Of twenty upstreams one hangs and one floods; the others' calls take as long as when all is quiet. A busy machine
// slows one round or another, so the best of some counts.
func TestOneThatHangsAndOneThatFloodsSlowNobody(t *testing.T) {
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
	r.add("hung", upstreamtest.Start(t, upstreamtest.Options{Forgetful: true, Tools: []upstreamtest.Tool{hang}}).URL)
	r.add("flood", upstreamtest.Start(t, upstreamtest.Options{Forgetful: true, Tools: []upstreamtest.Tool{flood}}).URL)
	tools, a := r.tools(), r.agent()
	median := func() time.Duration {
		var took []time.Duration
		for range 5 {
			for _, name := range wire {
				began := time.Now()
				if _, err := r.Run(t.Context(), catalog.Run{Caller: a, Tool: tools[name], Client: catalog.Nobody{}}); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	median() // sessions open
	var best float64
	for range 6 {
		quiet := median()
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
		beside := median()
		cancel()
		loud.Wait()
		if ratio := float64(beside) / float64(quiet); best == 0 || ratio < best {
			best = ratio
		}
		t.Logf("median of a call: quiet %v, beside one that hangs and one that floods %v", quiet, beside)
		if best <= 1.2 {
			return
		}
	}
	if best > 1.5 {
		t.Errorf("the others' calls took %.2f times as long as when all was quiet, want at most 1.2, and 1.5 on a busy machine", best)
	}
}
