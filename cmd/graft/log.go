package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// logger writes to stderr in the form asked for, each line at once.
func (p *program) logger(form string) *slog.Logger { return slog.New(logHandler(form, p.stderr)) }

// quiet logs only what is wrong: commands other than serve speak for themselves.
func (p *program) quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// busyLogger is a logger for one who logs every request: lines are gathered for logDelay, because writing each by itself
// costs a call more than making it. One that warns is written at once, with all before it. end writes the rest, and from
// then on each line is written as it comes.
func (p *program) busyLogger(form string) (log *slog.Logger, end func()) {
	out := newGathered(p.stderr)
	return slog.New(promptly{logHandler(form, out), out}), out.Close
}

func logHandler(form string, out io.Writer) slog.Handler {
	if form == "json" {
		return slog.NewJSONHandler(out, nil)
	}
	return slog.NewTextHandler(out, nil)
}

const (
	// logDelay is how late a line may be written.
	logDelay = 100 * time.Millisecond
	// logBuffer is how many bytes of lines wait at most.
	logBuffer = 32 << 10
)

// gathered is a writer that gathers what is written for logDelay. It is safe for concurrent use.
type gathered struct {
	mu     sync.Mutex
	out    *bufio.Writer
	due    *time.Timer
	closed bool
}

func newGathered(out io.Writer) *gathered {
	g := &gathered{out: bufio.NewWriterSize(out, logBuffer)}
	g.due = time.AfterFunc(logDelay, g.Flush)
	g.due.Stop()
	return g
}

// Write implements io.Writer. A line is never cut in two by the end of the buffer.
func (g *gathered) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(line) > g.out.Available() && g.out.Buffered() > 0 {
		_ = g.out.Flush() // a failure stays with the writer, and the write tells it
	}
	if g.out.Buffered() == 0 && !g.closed {
		g.due.Reset(logDelay)
	}
	n, err := g.out.Write(line)
	if err == nil && g.closed {
		err = g.out.Flush()
	}
	return n, err
}

// Flush writes what was gathered.
func (g *gathered) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.out.Flush() // there is nobody left to tell
}

// Close writes what was gathered, and gathers no more.
func (g *gathered) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.due.Stop()
	g.Flush()
}

// promptly is a handler that has what warns written at once.
type promptly struct {
	slog.Handler
	out *gathered
}

// Handle implements slog.Handler.
func (h promptly) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.out.Flush()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h promptly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return promptly{h.Handler.WithAttrs(attrs), h.out}
}

// WithGroup implements slog.Handler.
func (h promptly) WithGroup(name string) slog.Handler {
	return promptly{h.Handler.WithGroup(name), h.out}
}
