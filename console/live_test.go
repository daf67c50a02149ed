package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// A liveStream is one open live page.
type liveStream struct {
	t     *testing.T
	lines *bufio.Scanner
	close context.CancelFunc
}

// live opens a live page as a browser's EventSource does. It waits for no event longer than ten seconds.
func (b *browser) live(path string) (*liveStream, page) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.s.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	p := page{status: resp.StatusCode, header: resp.Header}
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			b.t.Fatal(err)
		}
		p.body = string(body)
		return nil, p
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &liveStream{b.t, lines, cancel}, p
}

func (b *browser) mustLive(path string) *liveStream {
	b.t.Helper()
	st, p := b.live(path)
	wantStatus(b.t, p, http.StatusOK)
	return st
}

// next is the next event's element and HTML; a comment is an id of "" and its text. The end of the stream is "end".
func (l *liveStream) next() (id, html string) {
	l.t.Helper()
	event := ""
	for l.lines.Scan() {
		line := l.lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			event = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			if event != "swap" {
				l.t.Fatalf("event %q, want swap", event)
			}
			var swap map[string]string
			if err := json.Unmarshal([]byte(line[len("data: "):]), &swap); err != nil {
				l.t.Fatal(err)
			}
			if len(swap) != 2 || !strings.Contains(swap["html"], ` id="`+swap["id"]+`"`) {
				l.t.Fatalf("swap = %q, want an element that carries its id", swap)
			}
			return swap["id"], swap["html"]
		case strings.HasPrefix(line, ":"):
			return "", line
		}
	}
	if err := l.lines.Err(); err != nil {
		l.t.Fatalf("read live stream: %v", err)
	}
	return "end", ""
}

// ends reads what still comes, and then wants the end of the stream.
func (l *liveStream) ends() {
	l.t.Helper()
	for id := ""; id != "end"; {
		id, _ = l.next()
	}
}

// take reads n events and returns their HTML by id.
func (l *liveStream) take(n int) map[string]string {
	l.t.Helper()
	got := map[string]string{}
	for range n {
		id, html := l.next()
		got[id] = html
	}
	return got
}

func wantIDs(t *testing.T, got map[string]string, want ...string) {
	t.Helper()
	var ids []string
	for id := range got {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, want) {
		t.Fatalf("elements = %q, want %q", ids, want)
	}
}

func TestLiveListSendsWhatChanged(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	live, p := b.live("/live/agents")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := p.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	first := live.take(1)
	wantIDs(t, first, "agents")
	if !strings.Contains(first["agents"], "No agents yet") {
		t.Errorf("first = %s, want an empty list", first["agents"])
	}

	a, _ := storetest.Agent(t, s.db, owner, "hermes") // the list begins
	got := live.take(1)
	wantIDs(t, got, "agents")
	if !strings.Contains(got["agents"], "hermes") || !strings.Contains(got["agents"], `data-live="/live/agents"`) {
		t.Errorf("card = %s, want the agent and the stream's own address", got["agents"])
	}

	storetest.Agent(t, s.db, owner, "codex") // one more row, another count
	got = live.take(2)
	for len(got) < 2 { // rows and count are read one after the other: the new agent may have come in between
		maps.Copy(got, live.take(1))
	}
	wantIDs(t, got, "agent-count", "agent-rows")

	at := s.db.Now().Add(-time.Minute)
	s.as(t, owner, func(tx *store.Tx) error { return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{a.ID: at}) })
	got = live.take(1)
	wantIDs(t, got, "agent-rows") // the count is as it was
	if !strings.Contains(got["agent-rows"], at.Format(time.RFC3339)) {
		t.Errorf("rows = %s, want the time of the use", got["agent-rows"])
	}

	s.streams.Store(2)
	got = live.take(2)
	wantIDs(t, got, "agent-count", "agent-rows")
	if !strings.Contains(got["agent-rows"], "connected") {
		t.Errorf("rows = %s, want them connected", got["agent-rows"])
	}
}

func TestLiveListIsTheOneOfThePage(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "b & c"} {
		storetest.Agent(t, s.db, owner, strings.ReplaceAll(name, "&", "and"))
	}
	b := s.signedIn(t, owner)
	for page, want := range map[string]int{"/": 6, "/agents": 8, "/agents?q=A": 8, "/agents?q=+B+": 1, "/agents?q=%3Ci%3E": 0, "/agents?q=a%ff1": 1} {
		p := b.get(page)
		wantStatus(t, p, http.StatusOK)
		_, rest, _ := strings.Cut(p.body, `data-live="`)
		path, _, _ := strings.Cut(rest, `"`)
		path = strings.ReplaceAll(path, "&amp;", "&")
		id, card := b.mustLive(path).next()
		if id != "agents" || !strings.Contains(p.body, card) {
			t.Errorf("%s has not the list of its stream %s:\n%s", page, path, card)
		}
		if got := strings.Count(card, "/agents/agt_"); got != want {
			t.Errorf("%s shows %d agents, want %d", page, got, want)
		}
		wantNoText(t, p, "<i>")
	}
}

func TestLiveAgentShowsTheFirstCall(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	p := b.post("/agents", "name", "hermes")
	id, err := store.ParseID[store.AgentKind](agentIn.FindString(p.body)[len("/agents/"):])
	if err != nil {
		t.Fatal(err)
	}
	touch := func(at time.Time) {
		s.as(t, owner, func(tx *store.Tx) error { return tx.TouchAgents(t.Context(), map[store.AgentID]time.Time{id: at}) })
	}
	liveOf := func(p page) *liveStream {
		_, rest, _ := strings.Cut(p.body, `data-live="`)
		path, _, _ := strings.Cut(rest, `"`)
		return b.mustLive(path)
	}
	live := liveOf(p)
	got := live.take(6)
	wantIDs(t, got, "agent-sessions", "agent-status", "agent-used", "first-call", "revoke-card-ends", "revoke-ends")
	if !strings.Contains(got["first-call"], "Waiting") || !strings.Contains(got["agent-status"], "Never used") ||
		!strings.Contains(got["agent-sessions"], "None is open") {
		t.Errorf("a fresh agent: %q", got)
	}
	first := s.db.Now()
	touch(first)
	got = live.take(3)
	wantIDs(t, got, "agent-status", "agent-used", "first-call")
	if !strings.Contains(got["first-call"], first.Format(time.RFC3339)) {
		t.Errorf("after the first call: %q", got)
	}
	touch(first.Add(time.Minute))
	wantIDs(t, live.take(2), "agent-status", "agent-used") // the first call stays the first
	s.as(t, owner, func(tx *store.Tx) error {
		return tx.RecordSessions(t.Context(), store.MCPSession{
			ID: store.NewID[store.SessionKind](first), AgentID: id, Protocol: "2025-11-25", ClientName: "Hermes", OpenedAt: first, LastSeenAt: first,
		})
	})
	got = live.take(3)
	wantIDs(t, got, "agent-sessions", "revoke-card-ends", "revoke-ends")
	if !strings.Contains(got["agent-sessions"], "Hermes") || !strings.Contains(got["revoke-ends"], "1 session") {
		t.Errorf("after a client connected: %q, want its session", got)
	}
	live.close()

	s.clock.advance(2 * time.Minute)
	p = b.post("/agents/" + id.String() + "/token")
	wantText(t, p, "Waiting for the first connection")
	live = liveOf(p)
	if got := live.take(6); !strings.Contains(got["first-call"], "Waiting") {
		t.Errorf("with a new token: %q, want the old one's calls not to count", got)
	}
	touch(s.db.Now())
	if got := live.take(3); !strings.Contains(got["first-call"], "Connected") {
		t.Errorf("after the new token's first call: %q", got)
	}

	s.as(t, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), id) })
	got = live.take(4)
	wantIDs(t, got, "agent-sessions", "agent-status", "revoke-card-ends", "revoke-ends")
	if !strings.Contains(got["agent-status"], "Revoked") || strings.Contains(got["agent-sessions"], "Hermes") {
		t.Errorf("after the end: %q", got)
	}
}

func TestLiveStreamIsKeptAlive(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.handler.SetKeepAlive(30 * time.Millisecond)
	live := s.signedIn(t, storetest.Organisation(t, s.db)).mustLive("/live/agents")
	live.take(1)
	for range 3 {
		if id, line := live.next(); id != "" || line != ": keep-alive" {
			t.Fatalf("next = %q, %q, want a comment", id, line)
		}
	}
}

func TestLiveStreamEnds(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	for what, end := range map[string]func(*testing.T, *house, *browser, store.Caller){
		"with the session":    func(_ *testing.T, _ *house, b *browser, _ store.Caller) { b.post("/signout") },
		"with the membership": func(t *testing.T, s *house, _ *browser, c store.Caller) { s.remove(t, dsn, c) },
		"with the gateway":    func(_ *testing.T, s *house, _ *browser, _ store.Caller) { close(s.stop) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startOn(t, dsn, false)
			member := storetest.Member(t, s.db, storetest.Organisation(t, s.db), store.RoleMember)
			a, _ := storetest.Agent(t, s.db, member, "hermes")
			b := s.signedIn(t, member)
			list, one := b.mustLive("/live/agents"), b.mustLive("/live/agents/"+a.ID.String())
			list.take(1)
			one.take(6)
			end(t, s, b, member)
			for _, live := range []*liveStream{list, one} {
				if id, html := live.next(); id != "end" {
					t.Errorf("next = %q, %q, want the end", id, html)
				}
			}
		})
	}
}

func TestLiveStreamsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	var open []*liveStream
	for range 8 {
		live := b.mustLive("/live/agents")
		live.take(1)
		open = append(open, live)
	}
	_, p := b.live("/live/agents")
	wantStatus(t, p, http.StatusTooManyRequests)
	if p.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	other := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleAuditor))
	other.mustLive("/live/agents").take(1)
	open[0].close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		live, p := b.live("/live/agents")
		if p.status == http.StatusOK {
			live.take(1)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("status after one was closed = %d, want 200", p.status)
		}
	}
}

func TestLiveStreamOfNobodyIsRefusedAsAProgramReadsIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, p := s.browser(t).live("/live/agents")
	wantStatus(t, p, http.StatusUnauthorized)
}
