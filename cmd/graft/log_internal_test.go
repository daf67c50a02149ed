package main

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// written is what has been written, for a reader beside its writer.
type written struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (w *written) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(line)
}

// String implements fmt.Stringer.
func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestLinesAreGathered: a bufio.Writer alone would keep the last ones until somebody stops the gateway.
func TestLinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		log, closeLog := (&program{stderr: &out}).busyLogger("text")
		lines := func(want int) {
			t.Helper()
			if got := strings.Count(out.String(), "\n"); got != want || want > 0 && !strings.HasSuffix(out.String(), "\n") {
				t.Fatalf("%d lines are written, want %d whole ones:\n%s", got, want, out.String())
			}
		}
		log.Info("one")
		log.With("a", 1).WithGroup("g").Info("two", "b", 2)
		lines(0)
		<-time.After(logDelay)
		synctest.Wait()
		lines(2)

		log.Info("three")
		log.With("a", 1).WithGroup("g").Warn("four", "b", 2)
		lines(4)

		log.Info("five", "long", strings.Repeat("x", logBuffer))
		log.Info("six")
		lines(5)
		closeLog()
		lines(6)
		log.Info("seven")
		lines(7)
		synctest.Wait()
	})
}

// TestLinesFillTheBuffer: what does not wait for its time is written when there is no room for it.
func TestLinesFillTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		log, closeLog := (&program{stderr: &out}).busyLogger("json")
		defer closeLog()
		for range 1000 {
			log.Info("line", slog.String("text", strings.Repeat("x", 100)))
		}
		if got := out.String(); len(got) < 1000*100-logBuffer || !strings.HasSuffix(got, "}\n") {
			t.Errorf("%d bytes are written before their time, and end in %.20q", len(got), got[max(0, len(got)-20):])
		}
	})
}
