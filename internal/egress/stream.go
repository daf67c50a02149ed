package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// A Stream is an answer whose body is read as it comes: an event stream, or a body whose reader knows when it has had
// enough. Whoever has one closes it. It is not safe for concurrent use, except that Close may come at any time.
type Stream struct {
	Status   int
	Header   http.Header // without those of the connection
	Redacted bool        // the other side sent a secret back: so far, until the body has been read

	ctx     context.Context // of the whole call; ends with stop
	stop    func()
	to      origin
	body    io.ReadCloser
	redact  *redactor // nil where no secret went out
	length  int64     // of the body, as the other side said; -1 where it did not
	limit   int64
	sized   bool  // length was said, and is no longer
	left    int64 // bytes of limit that may still come, before redaction
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

// open sends the request, and what it is redirected to as far as that is followed.
func (c *Client) open(ctx context.Context, req Request) (*Stream, error) {
	t := trip{client: c}
	s, err := t.send(ctx, req)
	for left := min(req.Follow, maxHops); left > 0 && err == nil; left-- {
		next, follow := t.next(ctx, req, s)
		if !follow {
			break
		}
		skip(s.body)
		req = next
		if s, err = t.send(ctx, req); err != nil {
			err = sentError{err} // the first request was answered
		}
	}
	if err == nil {
		err = t.finish(s, req)
	}
	if err != nil {
		t.redact.wipe()
		return nil, err
	}
	return s, nil
}

// A trip is one call: a request, and those that it is redirected to.
type trip struct {
	client   *Client
	first    origin   // which the credential is for
	from     *url.URL // of the last request, without its credential
	revealed []vault.Secret
	redact   *redactor
}

// send sends one request. Nothing has been done to its answer but counting the headers.
func (t *trip) send(ctx context.Context, req Request) (*Stream, error) {
	c := t.client
	u, to, err := c.target(ctx, req)
	if err != nil {
		return nil, err
	}
	if t.from == nil {
		t.first = to
	}
	plain := *u
	t.from = &plain
	out, sent, err := c.build(ctx, req, u)
	if err != nil {
		return nil, err
	}
	if err := t.inject(out, req); err != nil {
		return nil, err
	}
	// RoundTrip, not http.Client: no redirects but ours, no cookies, and no errors that repeat the URL.
	resp, err := c.transportFor(to, req).RoundTrip(out)
	if err != nil {
		return nil, sent.mark(failure(ctx, to, err))
	}
	if err := c.checkHeader(to, resp); err != nil {
		_ = resp.Body.Close()
		return nil, sent.mark(err)
	}
	limit := req.AnswerLimit
	if limit == 0 {
		limit = c.limits.ResponseBody
	}
	return &Stream{
		Status: resp.StatusCode, Header: resp.Header,
		ctx: ctx, to: to, body: resp.Body, length: resp.ContentLength, limit: limit, left: limit,
	}, nil
}

// inject puts the credential in, and gets ready to take it out of the answer. Without one there is nothing to be done.
func (t *trip) inject(out *http.Request, req Request) error {
	if len(req.Inject) == 0 {
		return nil
	}
	credential := outgoing{method: out.Method, url: out.URL, header: out.Header, body: req.Body, now: time.Now()}
	if err := inject(&credential, req.Inject); err != nil {
		return err
	}
	t.revealed = append(t.revealed, credential.revealed...)
	t.redact.wipe()
	var err error
	t.redact, err = newRedactor(t.revealed)
	return err
}

// next is the request that an answer leads to, if it is to be followed: to where it may go, and with the credential to the
// origin it is for alone.
func (t *trip) next(ctx context.Context, req Request, s *Stream) (Request, bool) {
	next, follow := hop(req, s, t.from)
	if !follow {
		return Request{}, false
	}
	_, to, err := t.client.target(ctx, next)
	if err != nil {
		return Request{}, false
	}
	if to != t.first {
		if t.redact != nil && t.redact.holds(next.URL) { // the other side has written it there
			return Request{}, false
		}
		next = elsewhere(next)
	}
	return next, true
}

// finish makes of an answer what the caller gets.
func (t *trip) finish(s *Stream, req Request) error {
	dropHopByHop(s.Header)
	for name := range s.Header {
		if strings.HasPrefix(name, "X-Graft-") { // nobody speaks for us
			delete(s.Header, name)
		}
	}
	s.redact = t.redact
	if decoded := s.decode(req.Method); s.redact == nil {
		return nil
	} else if !decoded { // and so could not be searched
		_ = s.body.Close()
		return sentError{unavailable(s.to, "encoding", "%s sent a body in an encoding that was not asked for and cannot be read here.", s.to)}
	}
	s.redact.header(s.Header)
	s.Redacted = s.redact.found
	if !s.bodiless(req.Method) && s.Header.Get("Content-Length") != "" {
		s.Header.Del("Content-Length") // of what was sent, not of what will be read
		s.sized = true
	}
	return nil
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
	if s.redact == nil {
		return s.read(p)
	}
	n, err := s.redact.read(p, s.read)
	s.Redacted = s.Redacted || s.redact.found
	if errors.Is(err, errClosed) {
		err = sentError{fmt.Errorf("%w (%w)", reason.Refuse(reason.Cancelled, "The call to %s was cancelled.", s.to), context.Canceled)}
	}
	return n, err
}

// read reads the body as it was sent.
func (s *Stream) read(p []byte) (int, error) {
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
	if s.left -= int64(n); s.left < 0 || errors.Is(err, errPacked) {
		s.err = sentError{reason.Refuse(reason.TooLarge, "%s answered with more than %d bytes. Ask for less at once.", s.to, s.limit)}
		return max(n-1, 0), s.err
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
	s.redact.wipe()
	return s.body.Close()
}
