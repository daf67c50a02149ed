package storetest

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// A Line stands between a client and the database, and can fail the ways networks do.
type Line struct {
	// DSN reaches the database through the line.
	DSN string

	mu      sync.Mutex
	stalled bool
	moved   *sync.Cond // a stall began or ended, or the line closed
	closed  bool
	ends    map[net.Conn]bool
}

// NewLine puts a line before dsn's database. It ends with the test.
func NewLine(t testing.TB, dsn string) *Line {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	through := url.URL{Scheme: "postgres", User: u.User, Host: listener.Addr().String(), Path: u.Path, RawQuery: "sslmode=disable"}
	l := &Line{DSN: through.String(), ends: map[net.Conn]bool{}}
	l.moved = sync.NewCond(&l.mu)
	var running sync.WaitGroup
	running.Go(func() { l.accept(&running, listener, socket) })
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.Cut()
		running.Wait()
	})
	return l
}

func (l *Line) accept(running *sync.WaitGroup, listener net.Listener, socket string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.ends[near], l.ends[far] = true, true
		l.mu.Unlock()
		running.Go(func() { l.carry(near, far) })
		running.Go(func() { l.carry(far, near) })
	}
}

// carry copies from one end to the other, and holds everything back while the line is stalled.
func (l *Line) carry(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, from)
		delete(l.ends, to)
	}()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			l.mu.Lock()
			for l.stalled && !l.closed {
				l.moved.Wait()
			}
			l.mu.Unlock()
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Stall makes the line swallow what is sent, in both directions, without closing anything: what a network does that
// silently drops packets. New connections get through to nothing as well.
func (l *Line) Stall() { l.set(true) }

// Flow lets everything through again, what was held back first.
func (l *Line) Flow() { l.set(false) }

func (l *Line) set(stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = stalled
	l.moved.Broadcast()
}

// Cut closes every connection on the line. New ones are let through.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.ends {
		_ = c.Close()
	}
	l.moved.Broadcast()
}
