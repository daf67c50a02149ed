package mcp

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/getgraft/graft/internal/store"
)

// flushEvery is how late people see that an agent was used.
const flushEvery = time.Second

// maxPending bounds what waits for one flush; beyond it sightings are dropped, never calls.
const maxPending = 20_000

// usage collects who was seen when, and writes it down in batches: one transaction an organisation a second, none
// on the way of a call.
type usage struct {
	db  *store.DB
	log *slog.Logger

	mu      sync.Mutex
	pending map[store.OrgID]*orgUsage
	size    int
	running map[agentTool]*underWay
}

type orgUsage struct {
	caller   store.Caller // any agent's of the organisation; row-level security is by organisation
	agents   map[store.AgentID]time.Time
	sessions map[store.SessionID]time.Time
	opened   []store.MCPSession
	tools    map[agentTool]time.Time
}

// An agentTool is a promoted tool of an agent.
type agentTool struct {
	agent store.AgentID
	tool  string
}

// underWay is how many calls of a tool go on, and when that was last noted.
type underWay struct {
	caller store.Caller
	calls  int
	noted  time.Time
}

// noteEvery is how often a call under way is noted, so that its tool does not count as idle while it runs.
const noteEvery = time.Minute

func newUsage(db *store.DB, log *slog.Logger) *usage {
	return &usage{db: db, log: log, pending: map[store.OrgID]*orgUsage{}, running: map[agentTool]*underWay{}}
}

// saw notes a request of a session.
func (u *usage) saw(c store.Caller, session store.SessionID, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := u.of(c)
	if _, known := o.sessions[session]; known || u.room() {
		o.agents[c.Agent], o.sessions[session] = at, at
	}
}

// sawAgent notes a request that belongs to no session.
func (u *usage) sawAgent(c store.Caller, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := u.of(c)
	if _, known := o.agents[c.Agent]; known || u.room() {
		o.agents[c.Agent] = at
	}
}

// opened notes a session that was just opened.
func (u *usage) opened(c store.Caller, s store.MCPSession) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o := u.of(c); u.room() {
		o.agents[c.Agent] = s.LastSeenAt
		o.opened = append(o.opened, s)
	}
}

// using notes that a call of a promoted tool begins; what it returns notes that it has ended.
func (u *usage) using(c store.Caller, tool string, now func() time.Time) (ended func()) {
	key, at := agentTool{c.Agent, tool}, now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usedAt(c, key, at)
	r := u.running[key]
	if r == nil {
		r = &underWay{caller: c}
		u.running[key] = r
	}
	r.calls++
	r.noted = at
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.usedAt(c, key, now())
		if r.calls--; r.calls == 0 {
			delete(u.running, key)
		}
	}
}

// use notes that a call of a tool begins, where it is one of the agent's working set.
func (q *request) use(ctx context.Context, tool string) (ended func()) {
	v, err := q.h.view(ctx, q.caller)
	if err != nil || !v.promoted[tool] {
		return func() {}
	}
	return q.h.usage.using(q.caller, tool, q.h.now)
}

func (u *usage) usedAt(c store.Caller, key agentTool, at time.Time) {
	o := u.of(c)
	if _, known := o.tools[key]; known || u.room() {
		o.tools[key] = at
	}
}

// stillRunning notes the calls that were under way for long.
func (u *usage) stillRunning(at time.Time) {
	for key, r := range u.running {
		if at.Sub(r.noted) >= noteEvery {
			r.noted = at
			u.usedAt(r.caller, key, at)
		}
	}
}

func (u *usage) of(c store.Caller) *orgUsage {
	o := u.pending[c.Org]
	if o == nil {
		o = &orgUsage{
			caller: c, agents: map[store.AgentID]time.Time{}, sessions: map[store.SessionID]time.Time{}, tools: map[agentTool]time.Time{},
		}
		u.pending[c.Org] = o
	}
	return o
}

// room takes the place of one more entry, if there is one. A session that is seen again takes none, so that nobody's
// traffic crowds out what others did.
func (u *usage) room() bool {
	if u.size >= maxPending {
		return false
	}
	u.size++
	return true
}

// run flushes until ctx ends, and then once more.
func (u *usage) run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			u.flush(last)
			return
		case <-tick.C:
			u.flush(ctx)
		}
	}
}

func (u *usage) flush(ctx context.Context) {
	u.mu.Lock()
	u.stillRunning(u.db.Now())
	batch := u.pending
	u.pending, u.size = map[store.OrgID]*orgUsage{}, 0
	u.mu.Unlock()
	for org, o := range batch {
		if err := u.db.As(ctx, o.caller, func(tx *store.Tx) error { return o.write(ctx, tx) }); err != nil {
			u.log.WarnContext(ctx, "usage not written", slog.String("org", org.String()), slog.Any("err", err))
		}
	}
}

func (o *orgUsage) write(ctx context.Context, tx *store.Tx) error {
	if err := tx.RecordSessions(ctx, o.opened...); err != nil {
		return err
	}
	if err := tx.SeeSessions(ctx, o.sessions); err != nil {
		return err
	}
	if err := tx.TouchAgents(ctx, o.agents); err != nil {
		return err
	}
	uses := make([]store.ToolUse, 0, len(o.tools))
	for key, at := range o.tools {
		uses = append(uses, store.ToolUse{Agent: key.agent, Tool: key.tool, At: at})
	}
	return tx.UseTools(ctx, uses)
}

// printable is a client's own words about itself, cut and cleaned for a page.
func printable(s string) string {
	const most = 64
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > most {
		s = string(r[:most])
	}
	return s
}
