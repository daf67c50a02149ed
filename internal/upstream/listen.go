package upstream

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/egress"
)

// How long to wait before the server's stream is opened again after it failed: twice as long each time.
const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	longEnough   = 10 * time.Second // a stream that lasted begins the waiting anew
)

// Listen keeps a stream open on which the server tells that its tools changed, until Close. It returns at once, and does
// nothing where the server does not tell, or will not open a stream.
func (s *Session) Listen() {
	s.mu.Lock()
	again := s.hears
	s.hears = true
	s.mu.Unlock()
	if !again && s.server.ListChanged && s.d.OnListChanged != nil {
		s.begin(s.listen)
	}
}

func (s *Session) listen(ctx context.Context) {
	var lastID string
	var opened bool
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		heard, retry, err := s.listenOnce(ctx, &lastID, backoff > firstBackoff)
		if errors.Is(err, errNoStream) {
			if opened && ctx.Err() == nil {
				s.d.OnListChanged() // it was there: whoever looks at the list finds out whether the session is lost
			}
			return
		}
		opened = opened || heard
		if time.Since(began) > longEnough {
			backoff = firstBackoff
		}
		wait := max(backoff, min(retry, maxRetryAfter))
		pause(ctx, wait/2+rand.N(wait/2+1))
		backoff = min(2*backoff, lastBackoff)
	}
}

// errNoStream says that the server has no stream for us, and will not have one.
var errNoStream = errors.New("there is no stream")

// listenOnce opens the stream and hears what it brings until it ends. heard is true where it could be opened; missed says
// that it could not be for a while.
func (s *Session) listenOnce(ctx context.Context, lastID *string, missed bool) (heard bool, retry time.Duration, err error) {
	st, err := s.ownStream(ctx, *lastID)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = st.Close() }()
	if !isEventStream(st) {
		if st.Status >= http.StatusInternalServerError || st.Status == http.StatusTooManyRequests {
			return false, 0, s.status(st.Status, "%s answered with status %d.", s.host(), st.Status)
		}
		return false, 0, errNoStream
	}
	if missed && *lastID == "" {
		s.d.OnListChanged()
	}
	var p pace
	e := newEvents(st, maxAnswer)
	defer e.close()
	e.lastID = *lastID
	for {
		_, data, err := e.next()
		if !s.modern {
			*lastID = e.lastID
		}
		if errors.Is(err, io.EOF) {
			return true, e.retry, nil
		}
		if err != nil {
			return true, e.retry, err
		}
		messages, _ := parse(data) // what is no message is not for us
		for _, m := range messages {
			s.hear(m, nil)
			p.wait(ctx)
		}
	}
}

// ownStream opens the stream that belongs to no request: a GET, or in the stateless era a request that is never answered.
func (s *Session) ownStream(ctx context.Context, lastID string) (*egress.Stream, error) {
	if !s.modern {
		return s.get(ctx, lastID, -1)
	}
	r := request{method: string(mcpgo.MethodSubscriptionsListen), params: []byte(`"notifications":{"toolsListChanged":true}`)}
	out := s.outgoing(http.MethodPost, s.body(s.lastID.Add(1), r), map[string]string{mcpgo.HeaderMethod: r.method}, -1)
	out.AnswerLimit = maxStream
	return s.d.Client.Stream(ctx, out)
}

func isEventStream(st *egress.Stream) bool {
	kind, _, _ := strings.Cut(st.Header.Get("Content-Type"), ";")
	return st.Status == http.StatusOK && strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// isOldTransport reports whether the server answers a GET as HTTP+SSE does: with an event that names another address
// (2024-11-05, Transports).
func (s *Session) isOldTransport(ctx context.Context) bool {
	out := s.outgoing(http.MethodGet, nil, map[string]string{"Accept": "text/event-stream"}, 3*time.Second)
	st, err := s.d.Client.Stream(ctx, out)
	if err != nil {
		return false
	}
	defer func() { _ = st.Close() }()
	if !isEventStream(st) {
		return false
	}
	e := newEvents(st, 64<<10)
	defer e.close()
	kind, _, err := e.next()
	return err == nil && kind == "endpoint"
}
