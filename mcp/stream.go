package mcp

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// get opens the stream on which the gateway speaks first (MCP 2025-11-25, Transports, Listening for Messages).
func (h *Handler) get(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	if !accepts(r.Header, typeEvent) {
		return h.refuse(w, r, rpc.ID{}, reason.Refuse(reason.NotAcceptable, "This path answers GET with text/event-stream only."))
	}
	s, err := h.session(r, c)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.usage.saw(c, s.id, h.now())
	return h.serveStream(w, r, rpc.ID{}, newStream(c, s.id, listChangedMessage), []byte(": open\n\n"))
}

var listChangedMessage = []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)

// serveStream keeps a stream open until the client leaves, its session or agent ends, or the gateway stops. id is of
// the request that opened it.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, id rpc.ID, st *stream, first []byte) error {
	st.token = http.Header{"Authorization": r.Header["Authorization"]}
	if err := h.streams.add(st); err != nil {
		return h.refuse(w, r, id, err)
	}
	defer h.streams.remove(st)
	h.noteList(r.Context(), st)
	out := http.NewResponseController(w)
	streamHeaders(w)
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(h.c.KeepAlive)
	defer tick.Stop()
	next := first
	for {
		if next != nil {
			if err := writeWithin(out, w, next); err != nil {
				return nil // the client left
			}
		}
		next = nil
		select {
		case <-r.Context().Done():
			return nil
		case <-h.c.Stop:
			if st.last != nil {
				_ = writeWithin(out, w, st.last) // it ends either way
			}
			return nil
		case <-st.ended:
			return nil
		case <-st.doubted:
			if !h.goesOn(r.Context(), st) {
				return nil
			}
		case next = <-st.out:
			h.noteList(r.Context(), st)
		case <-tick.C:
			if !h.c.Bus.Healthy() && !h.goesOn(r.Context(), st) {
				return nil
			}
			if !st.session.IsZero() {
				h.usage.saw(st.caller, st.session, h.now())
			}
			next = []byte(": keep-alive\n\n")
		}
	}
}

// writeTimeout is how long one write on a stream may take before the client counts as gone.
const writeTimeout = 10 * time.Second

func writeWithin(out *http.ResponseController, w http.ResponseWriter, b []byte) error {
	if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return out.Flush()
}

// goesOn asks whether the stream's token, agent and session still stand, and makes up for a list_changed that was not
// heard. A database that cannot answer ends no stream: nothing is sent on one but "read again", and reading asks for
// itself.
func (h *Handler) goesOn(ctx context.Context, st *stream) bool {
	if _, err := h.c.Verify(ctx, st.token); err != nil {
		return reason.Of(err).Word != reason.TokenUnknown
	}
	v, err := h.view(ctx, st.caller)
	if err != nil {
		return !store.IsAbsent(err)
	}
	if st.list != nil && !bytes.Equal(st.list, v.list) {
		h.streams.listChanged(st.caller.Agent)
	}
	st.list = v.list
	return st.session.IsZero() || !v.sessionEnded(st.session)
}

// noteList notes which list the stream's client is told of.
func (h *Handler) noteList(ctx context.Context, st *stream) {
	if v, err := h.view(ctx, st.caller); err == nil {
		st.list = v.list
	}
}

// A stream is one open GET or subscriptions/listen.
type stream struct {
	caller  store.Caller
	token   http.Header     // the Authorization it was opened with, to ask about again
	session store.SessionID // zero for subscriptions/listen
	last    []byte          // the event that says the gateway stops; nil: the end of the stream says it
	changed []byte          // the event that says the list moved; nil where the client did not ask for it
	list    []byte          // digest of the list that the client was last told of; only its own goroutine looks at it
	out     chan []byte     // events, whole
	ended   chan struct{}   // closed when session or agent ends
	doubted chan struct{}   // holds one where the stream has to ask whether it goes on
	over    bool            // ended is closed; guarded by streams.mu
}

// streamBuffer is how many events wait for a slow reader. One that lets them pile up misses the rest: every event says
// "read again", so none of them carries state.
const streamBuffer = 16

func newStream(c store.Caller, session store.SessionID, changed []byte) *stream {
	st := &stream{caller: c, session: session, out: make(chan []byte, streamBuffer), ended: make(chan struct{}), doubted: make(chan struct{}, 1)}
	st.doubted <- struct{}{} // what ended between the bearer's check and now was not told to this stream
	if changed != nil {
		st.changed = rpc.AppendEvent(nil, changed)
	}
	return st
}

// streams are the open streams of this replica, by agent: they belong to it and to nothing that is swapped.
type streams struct {
	mu sync.Mutex
	of map[store.AgentID]*agentStreams
	n  int
}

type agentStreams struct {
	list  []*stream // in the order they were opened
	told  time.Time // when list_changed was last sent
	later *time.Timer
}

func newStreams() *streams { return &streams{of: map[store.AgentID]*agentStreams{}} }

// How many streams may be open on one replica. A session whose client lost one, and opens another before we notice, has
// two for a while.
const (
	maxSessionStreams = 4   // past them the session's oldest ends
	maxAgentStreams   = 100 // past them the next is refused
)

func (ss *streams) add(st *stream) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.of[st.caller.Agent]
	if a == nil {
		a = &agentStreams{}
	}
	if oldest, n := a.ofSession(st.session); n >= maxSessionStreams && !st.session.IsZero() {
		oldest.end()
	} else if len(a.list) >= maxAgentStreams {
		return reason.Refuse(reason.RateLimited, "This agent has %d streams open already. Close one.", maxAgentStreams)
	}
	ss.of[st.caller.Agent] = a
	a.list = append(a.list, st)
	ss.n++
	return nil
}

// ofSession is the oldest stream of a session that goes on, and how many do.
func (a *agentStreams) ofSession(id store.SessionID) (oldest *stream, n int) {
	for _, st := range a.list {
		if st.session == id && !st.over {
			if n++; oldest == nil {
				oldest = st
			}
		}
	}
	return oldest, n
}

func (ss *streams) remove(st *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.of[st.caller.Agent]
	for i, other := range a.list {
		if other == st {
			a.list = append(a.list[:i:i], a.list[i+1:]...)
			ss.n--
			break
		}
	}
	if len(a.list) == 0 {
		if a.later != nil {
			a.later.Stop()
		}
		delete(ss.of, st.caller.Agent)
	}
}

func (st *stream) end() {
	if !st.over {
		st.over = true
		close(st.ended)
	}
}

// endSession closes the streams of a session.
func (ss *streams) endSession(id store.SessionID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, a := range ss.of {
		for _, st := range a.list {
			if st.session == id {
				st.end()
			}
		}
	}
}

// endAgent closes the streams of an agent.
func (ss *streams) endAgent(id store.AgentID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if a := ss.of[id]; a != nil {
		for _, st := range a.list {
			st.end()
		}
	}
}

// recheck makes the streams that match ask whether they go on.
func (ss *streams) recheck(match func(*stream) bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, a := range ss.of {
		for _, st := range a.list {
			if match(st) {
				select {
				case st.doubted <- struct{}{}:
				default: // it will ask anyway
				}
			}
		}
	}
}

// listWindow is how long after one list_changed the next waits, and takes along what moved meanwhile.
const listWindow = 2 * time.Second

// listChanged tells an agent's clients to read the list again: at once, and once more at the end of the window if it
// moved again within it.
func (ss *streams) listChanged(agent store.AgentID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	a := ss.of[agent]
	if a == nil || a.later != nil {
		return
	}
	if wait := listWindow - time.Since(a.told); wait > 0 {
		a.later = time.AfterFunc(wait, func() {
			ss.mu.Lock()
			defer ss.mu.Unlock()
			a.later = nil
			a.tell()
		})
		return
	}
	a.tell()
}

// tell sends list_changed. A message goes out on one stream of a session only, the one opened last (Transports,
// Multiple Connections); subscriptions each get their own.
func (a *agentStreams) tell() {
	a.told = time.Now()
	seen := map[store.SessionID]bool{}
	for i := len(a.list) - 1; i >= 0; i-- {
		st := a.list[i]
		if st.changed == nil || seen[st.session] {
			continue
		}
		if !st.session.IsZero() {
			seen[st.session] = true
		}
		select {
		case st.out <- st.changed:
		default:
		}
	}
}

// Streams is how many streams are open on this replica.
func (h *Handler) Streams() int {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	return h.streams.n
}

// AgentStreams is how many streams of one agent are open on this replica.
func (h *Handler) AgentStreams(id store.AgentID) int {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	if a := h.streams.of[id]; a != nil {
		return len(a.list)
	}
	return 0
}
