package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// sessionsKept bounds the sessions of an organisation on a replica. Of more, the least used ends.
	sessionsKept = 1000
	// farewell is how long telling a server that its session ends may take.
	farewell = 3 * time.Second
)

type lineKey struct {
	org      store.OrgID
	upstream store.UpstreamID
}

// A memberKey is whose session it is. One of a person, who has no agent, is the person's.
type memberKey struct {
	org        store.OrgID
	agent      store.AgentID
	user       store.UserID
	connection store.ConnectionID
}

// A member is a session of the pool, or the attempt to open one.
type member struct {
	key    memberKey
	target *target
	line   *line

	ready   chan struct{} // closed once session or err is set
	session *Session
	err     error

	// Of the pool's lock:
	uses    int
	used    time.Time
	dropped bool // no longer in the pool; ends with its last use
	ended   bool

	ctx context.Context // ends with the session, at once where what it is for was revoked
	end context.CancelFunc
}

// A pool has the sessions of a replica: one for each agent and connection, opened when it is first needed, by one for
// all who wait for it.
type pool struct {
	c    Config
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	closed  bool
	members map[memberKey]*member
	count   map[store.OrgID]int
	lines   map[lineKey]*line // of every member, and of what was used lately
	tasks   sync.WaitGroup
}

func newPool(c Config) *pool {
	p := &pool{c: c, members: map[memberKey]*member{}, count: map[store.OrgID]int{}, lines: map[lineKey]*line{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// line is the way to t, for c.
func (p *pool) line(c store.Caller, t *target) *line {
	k := lineKey{c.Org, t.ID}
	p.mu.Lock()
	l := p.lines[k]
	if l == nil {
		l = newLine(c, t)
		p.lines[k] = l
	}
	l.used.Store(time.Now().UnixNano())
	p.mu.Unlock()
	l.of(t)
	return l
}

// begin runs f in a goroutine that close waits for, and reports whether it did.
func (p *pool) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beginLocked(f)
}

func (p *pool) beginLocked(f func()) bool {
	if p.closed {
		return false
	}
	p.tasks.Go(f)
	return true
}

// take returns the caller's session with t, which give is called for when the call has ended.
func (p *pool) take(ctx context.Context, c store.Caller, t *target, l *line) (*member, error) {
	m, err := p.join(c, t, l)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		p.give(m)
		return nil, ctx.Err()
	}
	if m.err != nil {
		p.give(m)
		return nil, m.err
	}
	return m, nil
}

func (p *pool) join(c store.Caller, t *target, l *line) (*member, error) {
	k := memberKey{org: c.Org, agent: c.Agent, connection: t.Connection}
	if c.Agent.IsZero() {
		k.user = c.User
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[k]
	if m != nil && m.target.revision != t.revision {
		p.dropLocked(m)
		m = nil
	}
	if err := l.admit(m == nil); err != nil {
		return nil, err
	}
	if m == nil {
		if !p.roomLocked(c.Org) {
			l.untried()
			return nil, reason.Refuse(reason.UpstreamUnavailable, "All %d sessions with upstreams are in use. Try again shortly.", sessionsKept).With("code", "busy")
		}
		m = &member{key: k, target: t, line: l, ready: make(chan struct{})}
		m.ctx, m.end = context.WithCancel(context.Background())
		if !p.beginLocked(func() { p.open(m) }) {
			m.end()
			return nil, reason.Refuse(reason.Unavailable, "The gateway is stopping. Try again.")
		}
		p.members[k] = m
		p.count[c.Org]++
	}
	m.uses++
	return m, nil
}

// roomLocked makes room for one more session of an organisation, if need be by ending its least used.
func (p *pool) roomLocked(org store.OrgID) bool {
	if p.count[org] < sessionsKept {
		return true
	}
	var oldest *member
	for _, m := range p.members {
		if m.key.org == org && m.uses == 0 && (oldest == nil || m.used.Before(oldest.used)) {
			oldest = m
		}
	}
	if oldest == nil {
		return false
	}
	p.dropLocked(oldest)
	return true
}

// open opens m's session, for everybody who waits for it.
func (p *pool) open(m *member) {
	d := m.target.dial
	d.OnListChanged = m.line.tell
	session, err := Open(p.ctx, d)
	if err != nil {
		err = own(m.target, err)
		if p.ctx.Err() == nil {
			m.line.openFailed(err)
		}
	} else {
		session.keepParams(m.target.tools)
		m.line.well()
	}
	p.mu.Lock()
	m.session, m.err, m.used = session, err, time.Now()
	close(m.ready)
	late := p.closed && session != nil // close has been past here, and waits for this
	m.ended = m.ended || late
	defer func() {
		p.mu.Unlock()
		if late {
			bid(session)
			m.end()
		}
	}()
	switch {
	case err != nil:
		p.dropLocked(m)
		m.end()
	case m.ctx.Err() != nil:
		p.bidLocked(m)
	}
	p.endLocked(m)
}

// give ends one use of m.
func (p *pool) give(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.uses--
	m.used = time.Now()
	p.endLocked(m)
}

// drop takes m out of the pool. Its session ends with the last call that uses it.
func (p *pool) drop(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(m)
}

func (p *pool) dropLocked(m *member) {
	if m.dropped {
		return
	}
	m.dropped = true
	delete(p.members, m.key)
	if p.count[m.key.org]--; p.count[m.key.org] == 0 {
		delete(p.count, m.key.org)
	}
	p.endLocked(m)
}

// endLocked ends the session of a member that was dropped and that nobody uses.
func (p *pool) endLocked(m *member) {
	if m.dropped && m.uses == 0 {
		p.bidLocked(m)
	}
}

// bidLocked closes m's session, if it has one, and tells the server.
func (p *pool) bidLocked(m *member) {
	if m.session == nil || m.ended {
		return
	}
	m.ended = p.beginLocked(func() {
		bid(m.session)
		m.end()
	})
}

func bid(s *Session) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	s.Close(ctx)
}

// dropAgent ends what a revoked agent has, and with it the calls that are under way.
func (p *pool) dropAgent(agent store.AgentID) {
	p.cut(func(m *member) bool { return m.key.agent == agent })
}

// keepOnly ends the sessions of an organisation whose upstream is not in v, calls and all, and lets those run out that
// were opened in another way than v says.
func (p *pool) keepOnly(org store.OrgID, v *view) {
	p.cut(func(m *member) bool { return m.key.org == org && v.byID[m.target.ID] == nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if t := v.byID[m.target.ID]; m.key.org == org && (t == nil || t.revision != m.target.revision) {
			p.dropLocked(m)
		}
	}
	for k, l := range p.lines {
		if k.org != org {
			continue
		}
		t := v.byID[k.upstream]
		if t == nil || !l.isOf(t) {
			l.tell() // whoever watches looks again
		}
		if t == nil {
			delete(p.lines, k)
		}
	}
}

// cut ends sessions at once.
func (p *pool) cut(gone func(*member) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if !gone(m) {
			continue
		}
		p.dropLocked(m)
		m.end()
		p.bidLocked(m)
	}
}

// organisations are those that use upstreams, each with somebody of it who did.
func (p *pool) organisations() map[store.OrgID]store.Caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[store.OrgID]store.Caller{}
	for k, l := range p.lines {
		found[k.org] = l.caller
	}
	return found
}

// reap ends what nobody has used for as long as idle.
func (p *pool) reap(idle time.Duration) {
	before := time.Now().Add(-idle)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.uses == 0 && !m.used.IsZero() && m.used.Before(before) {
			p.dropLocked(m)
		}
	}
	for k, l := range p.lines {
		if l.used.Load() < before.UnixNano() && !l.watched.Load() && len(l.slots) == 0 && p.count[k.org] == 0 {
			delete(p.lines, k)
		}
	}
}

// close ends every session, one that is being opened too, and waits until all is quiet.
func (p *pool) close() {
	p.mu.Lock()
	for _, m := range p.members {
		p.dropLocked(m)
		p.bidLocked(m)
	}
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.tasks.Wait()
}
