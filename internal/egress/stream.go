package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/getgraft/graft/internal/reason"
)

// A Stream is an answer whose body is read as it comes: an event stream, or a body whose reader knows when it has had
// enough. Whoever has one closes it. It is not safe for concurrent use, except that Close may come at any time.
type Stream struct {
	Status int
	Header http.Header // without those of the connection

	ctx     context.Context // of the whole call; ends with stop
	stop    func()
	to      origin
	body    io.ReadCloser
	length  int64 // of the body, as the other side said; -1 where it did not
	limit   int64
	left    int64 // bytes of limit that may still come
	silence *silence
	err     error // of the first Read that failed, and of all after it
}

// Stream sends one request and returns its answer, whatever the status, as soon as its headers are there. What it
// refuses, and what goes wrong on the way, is a *reason.Refusal, except for a credential that does not open. An error
// of a request that may have been carried out all the same is ErrSent too.
//
// Nothing is looked up or sent before the host has been found in the request's set, and no credential is opened
// before the request is complete.
func (c *Client) Stream(ctx context.Context, req Request) (*Stream, error) {
	ctx, stop, silence := c.within(ctx, req)
	s, err := c.open(ctx, req)
	if err != nil {
		stop()
		return nil, err
	}
	s.stop, s.silence = stop, silence
	silence.broken()
	return s, nil
}

// within is ctx with the request's deadlines.
func (c *Client) within(ctx context.Context, req Request) (context.Context, context.CancelFunc, *silence) {
	timeout := req.Timeout
	if timeout == 0 {
		timeout = c.limits.Call
	}
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeout(ctx, timeout)
	}
	if req.Silence <= 0 {
		return ctx, stop, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &silence{limit: req.Silence, timer: time.AfterFunc(req.Silence, func() { cancel(errSilent) })}
	stopDeadline := stop
	return ctx, func() {
		s.timer.Stop()
		cancel(nil)
		stopDeadline()
	}, s
}

// silence ends a call when the other side has sent nothing for as long as limit. A nil one never does.
type silence struct {
	limit time.Duration
	timer *time.Timer
}

var errSilent = errors.New("egress: the other side is silent")

func (s *silence) broken() {
	if s != nil {
		s.timer.Reset(s.limit)
	}
}

func (c *Client) open(ctx context.Context, req Request) (*Stream, error) {
	u, to, err := c.target(ctx, req)
	if err != nil {
		return nil, err
	}
	out, sent, err := c.build(ctx, req, u)
	if err != nil {
		return nil, err
	}
	credential := outgoing{method: out.Method, url: out.URL, header: out.Header, body: req.Body, now: time.Now()}
	if err := inject(&credential, req.Inject); err != nil {
		return nil, err
	}
	// RoundTrip, not http.Client: no redirects, no cookies, and no errors that repeat the URL.
	resp, err := c.transportFor(to, req).RoundTrip(out)
	if err != nil {
		return nil, sent.mark(failure(ctx, to, err))
	}
	if err := c.checkHeader(to, resp); err != nil {
		_ = resp.Body.Close()
		return nil, sent.mark(err)
	}
	dropHopByHop(resp.Header)
	limit := req.AnswerLimit
	if limit == 0 {
		limit = c.limits.ResponseBody
	}
	return &Stream{
		Status: resp.StatusCode, Header: resp.Header,
		ctx: ctx, to: to, body: resp.Body, length: resp.ContentLength, limit: limit, left: limit,
	}, nil
}

// transportFor is the one whose dialer holds the rules that the request is under. Plain http is spoken in exempt networks
// alone, where any port will do.
func (c *Client) transportFor(to origin, req Request) *http.Transport {
	switch {
	case to.scheme == "http":
		return c.http
	case req.OwnPort:
		return c.ownPort
	}
	return c.https
}

func (c *Client) checkHeader(to origin, resp *http.Response) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return unavailable(to, "protocol", "%s switched to another protocol without being asked.", to)
	}
	lines := 0
	for _, values := range resp.Header {
		lines += len(values)
	}
	if lines > c.limits.ResponseHeaders {
		return reason.Refuse(reason.TooLarge, "%s answered with %d headers; at most %d are taken.", to, lines, c.limits.ResponseHeaders)
	}
	return nil
}

// Read implements io.Reader. Its errors are those of Client.Stream, and io.EOF.
func (s *Stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if int64(len(p)) > s.left+1 {
		p = p[:s.left+1] // one more than is taken, to see that there is more
	}
	n, err := s.body.Read(p)
	if n > 0 {
		s.silence.broken()
	}
	if s.left -= int64(n); s.left < 0 {
		s.err = sentError{reason.Refuse(reason.TooLarge, "%s answered with more than %d bytes. Ask for less at once.", s.to, s.limit)}
		return n - 1, s.err
	}
	if errors.Is(err, io.EOF) && s.ctx.Err() != nil {
		err = s.ctx.Err() // told that we hang up, the other side may end its body properly in the middle
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		s.err = io.EOF
	default:
		s.err = sentError{failure(s.ctx, s.to, err)}
	}
	return n, s.err
}

// Limit lowers the number of bytes that are taken of the body from here on to n.
func (s *Stream) Limit(n int64) {
	if n < s.left {
		s.limit, s.left = n, n
	}
}

// ReadAll reads what is left of the body.
func (s *Stream) ReadAll() ([]byte, error) {
	const first = 512
	size := s.length + 1 // the last Read wants room, to be told of the end
	if size < first || s.length > s.left {
		size = first
	}
	b := make([]byte, 0, min(size, 1<<20)) // what is said but never sent shall not cost memory
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := s.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Close ends the call. A body that was read to its end leaves its connection to the next call.
func (s *Stream) Close() error {
	s.stop() // before the body: closing one of HTTP/2 may wait for the other side, unless its call has ended
	return s.body.Close()
}
