package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// pagesAtOnce is how many pages of one user are put together at a time, on each replica: some take the database seconds,
	// and its connections are everybody's.
	pagesAtOnce = 4
	// pagesWaiting is how many more wait for that, as when a browser opens all its tabs again.
	pagesWaiting = 16
	// pagesWait is for how long.
	pagesWait = 2 * time.Second
)

// pages are those under way, by user. The zero value has none.
type pages struct {
	mu sync.Mutex
	of map[store.UserID]*places
}

type places struct {
	taken chan struct{}
	asked int // how many have a place or wait for one
}

// limit is middleware that holds each user to pagesAtOnce. refuse writes the 429; Retry-After is set by then.
func (p *pages) limit(refuse func(http.ResponseWriter, *http.Request, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user := store.CallerFrom(r.Context()).User
			mine := p.ask(user)
			defer p.leave(user)
			if mine == nil || !mine.wait(r) {
				w.Header().Set("Retry-After", strconv.Itoa(int(pagesWait/time.Second)))
				refuse(w, r, reason.Refuse(reason.RateLimited, "%d pages are on their way to you already. Try again shortly.", pagesAtOnce))
				return
			}
			defer func() { <-mine.taken }()
			next.ServeHTTP(w, r)
		})
	}
}

// ask is nil where too many wait. Whoever asks leaves.
func (p *pages) ask(user store.UserID) *places {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.of[user]
	if mine == nil {
		if p.of == nil {
			p.of = map[store.UserID]*places{}
		}
		mine = &places{taken: make(chan struct{}, pagesAtOnce)}
		p.of[user] = mine
	}
	if mine.asked++; mine.asked > pagesAtOnce+pagesWaiting {
		return nil
	}
	return mine
}

func (p *pages) leave(user store.UserID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.of[user]
	if mine.asked--; mine.asked == 0 {
		delete(p.of, user)
	}
}

// wait takes a place, and reports whether there was one in time.
func (m *places) wait(r *http.Request) bool {
	timer := time.NewTimer(pagesWait)
	defer timer.Stop()
	select {
	case m.taken <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}
