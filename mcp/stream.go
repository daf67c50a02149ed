package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// get opens the stream on which the gateway speaks first (MCP 2025-11-25, Transports, Listening for Messages). It
// stays open until the client leaves, the session or the agent ends, or the gateway stops.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, c store.Caller) error {
	if !accepts(r.Header, typeEvent) {
		return h.refuse(w, r, rpc.ID{}, reason.Refuse(reason.NotAcceptable, "This path answers GET with text/event-stream only."))
	}
	s, err := h.session(r, c)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	h.usage.saw(c, s.id, h.now())
	st, err := h.streams.open(s)
	if err != nil {
		return h.refuse(w, r, rpc.ID{}, err)
	}
	defer h.streams.close(st)

	out := http.NewResponseController(w)
	streamHeaders(w)
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(h.c.KeepAlive)
	defer tick.Stop()
	next := []byte(": open\n\n")
	for {
		if err := writeWithin(out, w, next); err != nil {
			return nil // the client left
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-h.c.Stop:
			return nil
		case <-st.ended:
			return nil
		case next = <-st.out:
		case <-tick.C:
			if !h.stillThere(r.Context(), c, s) {
				return nil
			}
			h.usage.saw(c, s.id, h.now())
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

// stillThere asks the database whether agent and session go on. A database that cannot answer ends no stream.
func (h *Handler) stillThere(ctx context.Context, c store.Caller, s session) bool {
	there := true
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) error {
		ended, err := tx.SessionEnded(ctx, s.id)
		if err != nil {
			return err
		}
		live, err := tx.AgentLives(ctx, c.Agent)
		there = live && !ended
		return err
	})
	return err != nil || there
}

// A stream is one open GET.
type stream struct {
	session session
	out     chan []byte   // events, whole
	ended   chan struct{} // closed when the session ends, or has newer streams enough
}

// streamBuffer is how many events wait for a slow reader. One that lets them pile up misses the rest: every event we
// send says "read again", so none of them carries state.
const streamBuffer = 16

// streams are the open GETs of this replica.
type streams struct {
	mu   sync.Mutex
	byID map[store.SessionID][]*stream // in the order they were opened
	of   map[store.AgentID]map[store.SessionID]bool
}

func newStreams() *streams {
	return &streams{byID: map[store.SessionID][]*stream{}, of: map[store.AgentID]map[store.SessionID]bool{}}
}

// How many streams may be open on one replica. A session whose client lost one, and opens another before we notice, has
// two for a while.
const (
	maxSessionStreams = 4   // past them the session's oldest ends
	maxAgentStreams   = 100 // past them the next is refused
)

func (ss *streams) open(s session) (*stream, error) {
	st := &stream{session: s, out: make(chan []byte, streamBuffer), ended: make(chan struct{})}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if list := ss.byID[s.id]; len(list) == maxSessionStreams {
		list[0].end()
		ss.byID[s.id] = list[1:]
	} else if ss.countOf(s.agent) >= maxAgentStreams {
		return nil, reason.Refuse(reason.RateLimited, "This agent has %d streams open already. Close one.", maxAgentStreams)
	}
	ss.byID[s.id] = append(ss.byID[s.id], st)
	if ss.of[s.agent] == nil {
		ss.of[s.agent] = map[store.SessionID]bool{}
	}
	ss.of[s.agent][s.id] = true
	return st, nil
}

func (ss *streams) close(st *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, rest := st.session, ss.byID[st.session.id][:0]
	for _, other := range ss.byID[s.id] {
		if other != st {
			rest = append(rest, other)
		}
	}
	if len(rest) > 0 {
		ss.byID[s.id] = rest
		return
	}
	delete(ss.byID, s.id)
	delete(ss.of[s.agent], s.id)
	if len(ss.of[s.agent]) == 0 {
		delete(ss.of, s.agent)
	}
}

// end closes the streams of a session that was ended.
func (ss *streams) end(s session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, st := range ss.byID[s.id] {
		st.end()
	}
}

// end is called under the lock of the streams that st is one of.
func (st *stream) end() {
	select {
	case <-st.ended:
	default:
		close(st.ended)
	}
}

// listChanged tells every session of the agent that has a stream here to read its list again. A message goes out on
// one stream of a session only: the one opened last (Transports, Multiple Connections).
func (ss *streams) listChanged(agent store.AgentID) {
	event := rpc.AppendEvent(nil, []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for id := range ss.of[agent] {
		list := ss.byID[id]
		select {
		case list[len(list)-1].out <- event:
		default:
		}
	}
}

// count is how many streams are open.
func (ss *streams) count() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	n := 0
	for _, list := range ss.byID {
		n += len(list)
	}
	return n
}

// AgentStreams is how many GET streams of one agent are open on this replica.
func (h *Handler) AgentStreams(id store.AgentID) int {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	return h.streams.countOf(id)
}

// countOf is called under the lock.
func (ss *streams) countOf(id store.AgentID) int {
	n := 0
	for s := range ss.of[id] {
		n += len(ss.byID[s])
	}
	return n
}

// Streams is how many GET streams are open on this replica.
func (h *Handler) Streams() int { return h.streams.count() }
