package main_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A start is measured from running the binary to the line that says it serves: cold with no data folder, warm with
// the folder of an earlier run. The bars are 5 s and 1 s; they are reported here, never asserted.
func BenchmarkStart(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			h := newHome(b)
			s := h.serve()
			b.StopTimer()
			if err := s.end(syscall.SIGTERM); err != nil {
				b.Fatal(err)
			}
			h.removeCluster()
			if err := os.RemoveAll(filepath.Dir(h.dir)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("warm", func(b *testing.B) {
		h := newHome(b)
		if err := h.serve().end(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			s := h.serve()
			b.StopTimer()
			if err := s.end(syscall.SIGTERM); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
