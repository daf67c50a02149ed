package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

// How long to wait before a stream that ended is gone on with, where the server does not say.
const (
	retryAfter    = time.Second
	minRetryAfter = 50 * time.Millisecond
	maxRetryAfter = 30 * time.Second
)

// awaitEvent reads the event stream that a request was answered with until the answer comes, and hears what comes before.
// A stream that ends early is gone on with where the server gave its events ids (2025-11-25, Resumability).
func (s *Session) awaitEvent(ctx context.Context, st *egress.Stream, id int64, r request) (message, error) {
	var p pace
	var next *egress.Stream
	defer func() {
		if next != nil {
			_ = next.Close()
		}
	}()
	until := time.Now().Add(r.timeout) // of the request, however often its stream is gone on with
	e := newEvents(st, r.limit)
	for {
		m, err := s.readEvents(ctx, e, id, r.relay, &p)
		lastID, retry := e.lastID, e.retry
		e.close()
		if err == nil {
			return m, nil
		}
		if lastID == "" || s.modern || ctx.Err() != nil || !errors.Is(err, errStreamEnded) {
			return message{}, err
		}
		if retry <= 0 {
			retry = retryAfter
		}
		if next != nil {
			_ = next.Close()
		}
		pause(ctx, min(max(retry, minRetryAfter), maxRetryAfter, max(time.Until(until), 0)))
		left := time.Until(until)
		if left <= 0 {
			return message{}, fmt.Errorf("%w (%w)", reason.Refuse(reason.Timeout, "%s did not answer in time.", s.host()).With("host", s.host()), egress.ErrSent)
		}
		var resumeErr error
		if next, resumeErr = s.resume(ctx, lastID, left); resumeErr != nil {
			return message{}, err
		}
		e = newEvents(next, r.limit)
		e.lastID, e.retry = lastID, retry
	}
}

// errStreamEnded says that a stream ended without what it was for.
var errStreamEnded = errors.New("the stream ended")

// readEvents reads e until the answer to the request of that id.
func (s *Session) readEvents(ctx context.Context, e *events, id int64, to *relay, p *pace) (message, error) {
	for {
		_, data, err := e.next()
		switch {
		case errors.Is(err, errEventTooLarge):
			return message{}, fmt.Errorf("%w (%w)",
				reason.Refuse(reason.TooLarge, "%s answered with more than %d bytes. Ask for less at once.", s.host(), e.limit), egress.ErrSent)
		case errors.Is(err, io.EOF):
			return message{}, fmt.Errorf("%w (%w)", s.garbled("closed the stream before it had answered"), errStreamEnded)
		case err != nil:
			return message{}, err
		}
		messages, err := parse(data)
		if err != nil {
			p.wait(ctx)
			continue // an event that is no message is not for us
		}
		for _, m := range messages {
			if m.answers(id) {
				return m, nil
			}
			s.hear(m, to)
			p.wait(ctx)
		}
	}
}

// resume asks for the rest of a stream.
func (s *Session) resume(ctx context.Context, lastID string, timeout time.Duration) (*egress.Stream, error) {
	st, err := s.get(ctx, lastID, timeout)
	if err != nil {
		return nil, err
	}
	if !isEventStream(st) {
		_ = st.Close()
		return nil, s.status(st.Status, "%s does not go on with a stream.", s.host())
	}
	return st, nil
}

// get asks for the server's own stream, or for the rest of another after the event of that id.
func (s *Session) get(ctx context.Context, lastID string, timeout time.Duration) (*egress.Stream, error) {
	header := map[string]string{"Accept": "text/event-stream"}
	if lastID != "" {
		header[mcpgo.HeaderLastEventID] = lastID
	}
	out := s.outgoing(http.MethodGet, nil, header, timeout)
	out.AnswerLimit = maxStream
	return s.d.Client.Stream(ctx, out)
}
