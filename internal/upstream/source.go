package upstream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// Config is what a Source needs. The durations are their defaults where they are 0.
type Config struct {
	DB      *store.DB
	Keys    *vault.Keyring
	Client  *egress.Client
	Healthy func() bool // of the bus; nil where nothing is to be remembered
	Version string      // Graft's own
	Log     *slog.Logger

	// IdleAfter is how long a session is kept that nobody uses, and an upstream listened to; 10 min.
	IdleAfter time.Duration
	// ListEvery is how old the list of an upstream in use may become that does not tell when it changes; 10 min.
	ListEvery time.Duration
}

// A Source is the tools of the organisations' upstreams. Keep must run for it to notice anything.
type Source struct {
	c     Config
	views *bus.Cache[store.OrgID, *view]
	pool  *pool

	mu    sync.Mutex
	dirty map[store.OrgID]bool // whose sessions are held against what they are opened with
	all   bool                 // likewise, of all organisations
	wake  chan struct{}
}

// organisations bounds whose views a replica keeps.
const organisations = 1024

// NewSource makes a source.
func NewSource(c Config) (*Source, error) {
	if c.IdleAfter == 0 {
		c.IdleAfter = 10 * time.Minute
	}
	if c.ListEvery == 0 {
		c.ListEvery = 10 * time.Minute
	}
	if c.Healthy == nil {
		c.Healthy = func() bool { return false }
	}
	views, err := bus.NewCache[store.OrgID, *view](organisations, c.Healthy)
	return &Source{c: c, views: views, pool: newPool(c), dirty: map[store.OrgID]bool{}, wake: make(chan struct{}, 1)}, err
}

// Tools implements catalog.Source: what was last listed, never the network.
func (s *Source) Tools(ctx context.Context, c store.Caller) ([]catalog.Tool, error) {
	v, err := s.view(ctx, c)
	if err != nil {
		return nil, err
	}
	return v.tools, nil
}

// Run implements catalog.Source: it calls the tool in the agent's own session.
func (s *Source) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	v, err := s.view(ctx, r.Caller)
	if err != nil {
		return catalog.Output{}, err
	}
	t := v.byConnection[r.Tool.Connection]
	if t == nil {
		return catalog.Output{}, reason.Refuse(reason.ToolNotFound, "The upstream of %s is no longer there.", r.Tool.Wire())
	}
	if t.refusal != nil {
		return catalog.Output{}, t.refusal
	}
	l := s.pool.line(r.Caller, t)
	leave, err := l.enter(ctx)
	if err != nil {
		return catalog.Output{}, err
	}
	defer leave()
	s.watch(l)
	raw, err := s.call(ctx, r, t, l)
	return catalog.Output{Raw: raw}, err
}

// call calls in a session, and once more where the first call cannot have been carried out or is a read.
func (s *Source) call(ctx context.Context, r catalog.Run, t *target, l *line) (jsontext.Value, error) {
	progress, log := r.Client.Progress, r.Client.Log
	if _, nobody := r.Client.(catalog.Nobody); nobody {
		progress, log = nil, nil
	}
	for try := 1; ; try++ {
		m, err := s.pool.take(ctx, r.Caller, t, l)
		if err != nil {
			return nil, err
		}
		raw, err := m.call(ctx, r.Tool.Original, r.Args, progress, log)
		s.pool.give(m)
		if err == nil {
			l.well()
			return raw, nil
		}
		lost := errors.Is(err, ErrSessionLost)
		if lost || isShut(err) {
			s.pool.drop(m)
		}
		if !lost {
			l.callFailed(err)
		}
		if try == 2 || ctx.Err() != nil || !lost && !(r.Tool.ReadOnly && wasCut(err)) {
			return nil, err
		}
	}
}

// call is a call that ends when m does.
func (m *member) call(
	ctx context.Context, name string, args jsontext.Value, progress func(catalog.Progress), log func(level, logger string, data jsontext.Value),
) (jsontext.Value, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	return m.session.Call(ctx, name, args, progress, log)
}

// wasCut reports whether a call failed because the connection was lost while it was under way.
func wasCut(err error) bool {
	refusal := reason.Of(err)
	_, answered := refusal.Details["status"]
	return errors.Is(err, ErrOutcomeUnknown) && refusal.Word == reason.UpstreamUnavailable && !answered
}

// Hear implements bus.Listener.
func (s *Source) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Tools, bus.Member:
		if org, err := store.ParseID[store.OrgKind](e.ID); err == nil {
			s.views.Forget(org)
			s.recheck(org)
		}
	case bus.Revoked:
		if agent, err := store.ParseID[store.AgentKind](e.ID); err == nil {
			s.pool.dropAgent(agent)
		}
	}
}

// Reset implements bus.Listener.
func (s *Source) Reset() {
	s.views.Reset()
	s.mu.Lock()
	s.all = true
	s.mu.Unlock()
	s.poke()
}

func (s *Source) recheck(org store.OrgID) {
	s.mu.Lock()
	s.dirty[org] = true
	s.mu.Unlock()
	s.poke()
}

func (s *Source) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Keep ends sessions that are idle, or that rest on what has moved, until ctx ends. Then it ends all of them, and tells
// their servers.
func (s *Source) Keep(ctx context.Context) {
	defer s.pool.close()
	tick := time.NewTicker(max(s.c.IdleAfter/10, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.pool.reap(s.c.IdleAfter)
		case <-s.wake:
			s.check(ctx)
		}
	}
}

// check ends the sessions whose upstream is gone, or is reached in another way now.
func (s *Source) check(ctx context.Context) {
	s.mu.Lock()
	dirty, all := s.dirty, s.all
	s.dirty, s.all = map[store.OrgID]bool{}, false
	s.mu.Unlock()
	for org, caller := range s.pool.organisations() {
		if !all && !dirty[org] {
			continue
		}
		v, err := s.view(ctx, caller)
		if err != nil {
			if ctx.Err() == nil {
				s.c.Log.WarnContext(ctx, "upstream sessions not checked", slog.String("org", org.String()), slog.Any("err", err))
			}
			continue // each call looks for itself
		}
		s.pool.keepOnly(org, v)
	}
}
