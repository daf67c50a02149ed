package mcp

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
)

// waiting is what runs or waits on this replica for each session: calls that can be cancelled, and questions to the
// client that want an answer. Keys are session and request, never a request id alone. Messages for it may reach any
// replica; one that is not for here is left as a row, and the bus wakes the replica it is for.
type waiting struct {
	mu    sync.Mutex
	of    map[store.SessionID]*sessionWaiting
	woken map[store.SessionID]bool // sessions that have messages to take
	wakes chan struct{}            // holds one where woken is not empty
}

type sessionWaiting struct {
	caller    store.Caller
	calls     map[string][]*running
	questions map[string]chan rpc.Message
}

// running is one call under way.
type running struct{ cancel context.CancelFunc }

func newWaiting() *waiting {
	return &waiting{of: map[store.SessionID]*sessionWaiting{}, woken: map[store.SessionID]bool{}, wakes: make(chan struct{}, 1)}
}

// enter is called under mu.
func (ws *waiting) enter(c store.Caller, id store.SessionID) *sessionWaiting {
	s := ws.of[id]
	if s == nil {
		s = &sessionWaiting{caller: c, calls: map[string][]*running{}, questions: map[string]chan rpc.Message{}}
		ws.of[id] = s
	}
	return s
}

// leave is called under mu.
func (ws *waiting) leave(id store.SessionID) {
	if s := ws.of[id]; s != nil && len(s.calls) == 0 && len(s.questions) == 0 {
		delete(ws.of, id)
	}
}

// call notes a call that can be cancelled, until done is called.
func (ws *waiting) call(c store.Caller, id store.SessionID, request rpc.ID, cancel context.CancelFunc) (done func()) {
	key := request.String()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.enter(c, id)
	this := &running{cancel}
	s.calls[key] = append(s.calls[key], this)
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		s.calls[key] = slices.DeleteFunc(s.calls[key], func(r *running) bool { return r == this })
		if len(s.calls[key]) == 0 {
			delete(s.calls, key)
		}
		ws.leave(id)
	}
}

// ask notes a question to the client under an id that nobody can guess, until done is called.
func (ws *waiting) ask(c store.Caller, id store.SessionID) (request string, answer <-chan rpc.Message, done func()) {
	request = `"` + rand.Text() + `"`
	ch := make(chan rpc.Message, 1)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.enter(c, id)
	s.questions[request] = ch
	return request, ch, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(s.questions, request)
		ws.leave(id)
	}
}

// cancel cancels the calls of a request, and reports whether there was one here.
func (ws *waiting) cancel(id store.SessionID, request string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.of[id]
	if s == nil || len(s.calls[request]) == 0 {
		return false
	}
	for _, r := range s.calls[request] {
		r.cancel()
	}
	return true
}

// answer hands a client's answer to the question that waits, and reports whether there was one here.
func (ws *waiting) answer(id store.SessionID, m rpc.Message) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.of[id]
	if s == nil || s.questions[m.ID.String()] == nil {
		return false
	}
	select {
	case s.questions[m.ID.String()] <- m:
	default: // answered already; the first answer counts
	}
	return true
}

// wake makes a session that waits here look for messages that reached other replicas.
func (ws *waiting) wake(id store.SessionID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.of[id] != nil {
		ws.woken[id] = true
		ws.signal()
	}
}

func (ws *waiting) wakeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for id := range ws.of {
		ws.woken[id] = true
	}
	ws.signal()
}

func (ws *waiting) signal() {
	select {
	case ws.wakes <- struct{}{}:
	default: // it will look anyway
	}
}

// next takes one woken session and what waits for it; ok is false where none is woken.
func (ws *waiting) next() (id store.SessionID, c store.Caller, requests []string, ok bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for id := range ws.woken {
		delete(ws.woken, id)
		if s := ws.of[id]; s != nil {
			for r := range s.calls {
				requests = append(requests, r)
			}
			for r := range s.questions {
				requests = append(requests, r)
			}
			return id, s.caller, requests, true
		}
	}
	return id, c, nil, false
}

// fetch takes messages for what waits here whenever the bus says that there are some, until ctx ends.
func (h *Handler) fetch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.waiting.wakes:
		}
		for {
			id, c, requests, ok := h.waiting.next()
			if !ok {
				break
			}
			h.takeMessages(ctx, c, id, requests)
		}
	}
}

func (h *Handler) takeMessages(ctx context.Context, c store.Caller, id store.SessionID, requests []string) {
	var list []store.MCPMessage
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		list, err = tx.TakeMessages(ctx, id, requests)
		return err
	})
	if err != nil {
		h.c.Log.Warn("messages not taken", slog.Any("err", err), slog.String("session", id.String()))
		return
	}
	for _, m := range list {
		if m.Kind == store.MessageCancel {
			h.waiting.cancel(id, m.Request)
			continue
		}
		plain, err := h.c.Sessions.Open(messagePlace(id, m.Request), m.Body)
		if err != nil {
			h.c.Log.Warn("message does not open", slog.Any("err", err), slog.String("session", id.String()))
			continue
		}
		if answer, failed := rpc.Parse(plain); failed == nil {
			h.waiting.answer(id, answer)
		}
	}
}

func messagePlace(id store.SessionID, request string) []byte {
	return []byte("mcp_message " + id.String() + " " + request)
}

// endSession cancels what runs for a session that was ended.
func (ws *waiting) endSession(id store.SessionID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if s := ws.of[id]; s != nil {
		for _, calls := range s.calls {
			for _, r := range calls {
				r.cancel()
			}
		}
	}
}

// endAgent cancels what runs for an agent whose token ended.
func (ws *waiting) endAgent(id store.AgentID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, s := range ws.of {
		if s.caller.Agent != id {
			continue
		}
		for _, calls := range s.calls {
			for _, r := range calls {
				r.cancel()
			}
		}
	}
}

// cancelled carries out notifications/cancelled, wherever the call runs.
func (h *Handler) cancelled(ctx context.Context, c store.Caller, s session, params jsontext.Value) error {
	var p struct {
		RequestID jsontext.Value `json:"requestId"`
	}
	_ = rpc.Params(params, &p) // a notification cannot be answered: what makes no sense is passed over
	id, ok := rpc.ParseID(p.RequestID)
	if !ok || h.waiting.cancel(s.id, id.String()) {
		return nil
	}
	return h.leaveMessage(ctx, c, s, store.MCPMessage{Kind: store.MessageCancel, Request: id.String(), Body: []byte{}})
}

// answered hands a client's answer to the request of ours it answers, wherever that waits.
func (h *Handler) answered(ctx context.Context, c store.Caller, s session, m rpc.Message, raw []byte) error {
	if h.waiting.answer(s.id, m) {
		return nil
	}
	key := m.ID.String()
	return h.leaveMessage(ctx, c, s, store.MCPMessage{
		Kind: store.MessageAnswer, Request: key, Body: h.c.Sessions.Seal(messagePlace(s.id, key), raw),
	})
}

// maxMessageID bounds the id of a request that another replica is asked about. Ids of ours are shorter.
const maxMessageID = 256

func (h *Handler) leaveMessage(ctx context.Context, c store.Caller, s session, m store.MCPMessage) error {
	if len(m.Request) > maxMessageID {
		return nil
	}
	return h.c.DB.As(ctx, c, func(tx *store.Tx) error { return tx.SendMessage(ctx, s.id, m) })
}
