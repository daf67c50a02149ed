package audit_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// BenchmarkRecord is what a read costs: an entry taken, sealed and sent, all of it in this process.
func BenchmarkRecord(b *testing.B) {
	h := newHouse(b)
	c := storetest.Organisation(b, h.db)
	w, stop := h.writer(b)
	e := entry(c.Org, 1)
	b.ReportAllocs()
	for b.Loop() {
		for w.Record(e) != nil {
			_ = w.Commit(b.Context(), e) // full: the database is slower than nothing at all
		}
	}
	stop()
}

// BenchmarkCommit is what a call with effects waits for, at several numbers of callers.
func BenchmarkCommit(b *testing.B) {
	h := newHouse(b)
	var orgs []store.OrgID
	for range 4 {
		orgs = append(orgs, storetest.Organisation(b, h.db).Org)
	}
	w, _ := h.writer(b)
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var n atomic.Int64
			b.SetParallelism(callers) // times GOMAXPROCS
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				e := entry(orgs[int(n.Add(1))%len(orgs)], 1)
				for pb.Next() {
					if err := w.Commit(b.Context(), e); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
