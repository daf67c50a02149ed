package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

const (
	maxAnswer  = 10 << 20 // bytes of one answer
	maxStream  = 40 << 20 // bytes of a whole event stream
	maxRefusal = 64 << 10 // bytes that are read of an answer that is no result
)

// A request is one that we make.
type request struct {
	method  string
	params  []byte // the members of params, without _meta
	header  map[string]string
	timeout time.Duration
	limit   int // bytes of the answer; 0 is maxAnswer
	relay   *relay
}

// request sends r and returns its result as it came, and the session id that came with it. An error is a *remoteError
// where the server answered with one, else a *reason.Refusal; it is ErrSessionLost or ErrOutcomeUnknown as well where it is
// that.
func (s *Session) request(ctx context.Context, r request) (jsontext.Value, string, error) {
	if r.limit == 0 {
		r.limit = maxAnswer
	}
	id := s.lastID.Add(1)
	if r.relay != nil {
		defer s.follow(id, r.relay)()
	}
	// The answer's stream may outlive ctx by a moment, to be read to its end: its connection serves the next call then.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, cancel)
	release := func() { unhook(); cancel() }
	if s.modern || r.method == string(mcpgo.MethodInitialize) { // which tells a server of both eras which one is meant
		r.header = with(r.header, mcpgo.HeaderMethod, r.method)
	}
	out := s.outgoing(http.MethodPost, s.body(id, r), r.header, r.timeout)
	out.AnswerLimit = maxStream
	st, err := s.d.Client.Stream(own, out)
	if err != nil {
		release()
		return nil, "", s.failed(ctx, id, r, err)
	}
	if isEventStream(st) {
		sessionID := st.Header.Get(mcpgo.HeaderSessionID)
		m, err := s.awaitEvent(own, st, id, r)
		if err == nil {
			unhook()
			s.drain(st, cancel)
			result, err := outcome(m, http.StatusOK)
			return result, sessionID, err
		}
		_ = st.Close()
		release()
		return nil, "", s.failed(ctx, id, r, err)
	}
	defer release()
	defer func() { _ = st.Close() }()
	if st.Status != http.StatusOK && st.Status != http.StatusAccepted {
		body, _ := io.ReadAll(io.LimitReader(st, maxRefusal)) // what could be read says enough
		return nil, "", s.refused(st.Status, body, id)
	}
	m, err := s.readAnswer(st, id, r)
	if err != nil {
		return nil, "", s.failed(ctx, id, r, err)
	}
	result, err := outcome(m, st.Status)
	return result, st.Header.Get(mcpgo.HeaderSessionID), err
}

// outcome is the result, or the error, of an answer.
func outcome(m message, status int) (jsontext.Value, error) {
	if m.Error != nil {
		if status == http.StatusOK {
			status = 0
		}
		return nil, asError(m.Error, status)
	}
	return m.Result, nil
}

// outgoing is a request to the server, with the headers of the session and the configured ones.
func (s *Session) outgoing(method string, body []byte, header map[string]string, timeout time.Duration) egress.Request {
	h := s.header
	if len(header) > 0 {
		h = h.Clone()
		for name, value := range header {
			h.Set(name, value)
		}
	}
	return egress.Request{
		Method: method, URL: s.d.URL, Header: h, Body: body, Hosts: s.d.Hosts, Inject: s.d.Header, Timeout: timeout,
	}
}

func with(header map[string]string, name, value string) map[string]string {
	if header == nil {
		header = map[string]string{}
	}
	header[name] = value
	return header
}

// body is the message that r is sent as.
func (s *Session) body(id int64, r request) []byte {
	b := make([]byte, 0, len(r.params)+256)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, r.method...)
	b = append(b, '"')
	wantsProgress := r.relay != nil && r.relay.progress != nil
	if len(r.params) == 0 && !wantsProgress && !s.modern {
		return append(b, '}')
	}
	b = append(b, `,"params":{`...)
	b = append(b, r.params...)
	if !wantsProgress && !s.modern {
		return append(b, "}}"...)
	}
	if len(r.params) > 0 {
		b = append(b, ',')
	}
	b = append(b, `"_meta":{`...)
	if s.modern {
		b = fmt.Appendf(b, `"%s":"%s","%s":{},"%s":%s`, mcpgo.MetaKeyProtocolVersion, modern, mcpgo.MetaKeyClientCapabilities, mcpgo.MetaKeyClientInfo, s.clientInfo())
		if r.relay != nil && r.relay.log != nil {
			b = fmt.Appendf(b, `,"%s":"debug"`, mcpgo.MetaKeyLogLevel)
		}
		if wantsProgress {
			b = append(b, ',')
		}
	}
	if wantsProgress {
		b = append(b, `"progressToken":`...)
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, "}}}"...)
}

// failed is the error of a request that got no answer. Where the server may be at work on it, it is told to stop.
func (s *Session) failed(ctx context.Context, id int64, r request, err error) error {
	sent := errors.Is(err, egress.ErrSent)
	switch { // ctx knows why: the stream was only cancelled
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w (%w)", reason.Refuse(reason.Timeout, "%s did not answer in time.", s.host()).With("host", s.host()), ctx.Err())
	case ctx.Err() != nil:
		err = fmt.Errorf("%w (%w)", reason.Refuse(reason.Cancelled, "The call to %s was cancelled.", s.host()), ctx.Err())
	}
	if !sent {
		return err
	}
	if word := reason.Of(err).Word; word == reason.Timeout || word == reason.Cancelled {
		s.cancel(id, r.method)
	}
	if r.method != string(mcpgo.MethodToolsCall) {
		return err
	}
	return uncertain(err)
}

// cancel tells the server that nobody waits for a request any more (2025-11-25, Cancellation). In the stateless era the
// closed response has told it.
func (s *Session) cancel(id int64, method string) {
	if s.modern || method == string(mcpgo.MethodInitialize) {
		return
	}
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"Nobody waits for it any more."}}`, id)
	out := s.outgoing(http.MethodPost, body, nil, s.d.ConnectTimeout)
	s.begin(func(ctx context.Context) { _, _, _ = s.tell(ctx, out) })
}

// tell posts what wants no answer: a notification, or our own answer to a server's request. It returns what came back all
// the same.
func (s *Session) tell(ctx context.Context, out egress.Request) (status int, answer []byte, err error) {
	st, err := s.d.Client.Stream(ctx, out)
	if err != nil {
		s.d.Log.DebugContext(ctx, "upstream not told", "host", s.host(), "error", err)
		return 0, nil, err
	}
	defer func() { _ = st.Close() }()
	if isEventStream(st) {
		return st.Status, nil, nil // which may stay open for as long as the session
	}
	answer, _ = io.ReadAll(io.LimitReader(st, maxRefusal)) // what could be read says enough
	return st.Status, answer, nil
}

// readAnswer reads an answer that is one JSON message.
func (s *Session) readAnswer(st *egress.Stream, id int64, r request) (message, error) {
	st.Limit(int64(r.limit))
	body, err := st.ReadAll()
	if err != nil {
		return message{}, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return message{}, s.garbled(fmt.Sprintf("answered with status %d and no message", st.Status))
	}
	messages, err := parse(body)
	if err != nil {
		return message{}, s.garbled("answered with something that is not JSON-RPC, so it may not be an MCP server")
	}
	for _, m := range messages {
		if m.answers(id) {
			return m, nil
		}
		s.hear(m, r.relay)
	}
	return message{}, s.garbled("answered, but not to the request")
}

// garbled is the error of an answer that cannot be read: the request has arrived.
func (s *Session) garbled(what string) error {
	return fmt.Errorf("%w (%w)", s.unreadable(what), egress.ErrSent)
}

// drain reads what a server sends after its answer, which is the end of the stream as a rule, so that the connection can
// serve the next call.
func (s *Session) drain(st *egress.Stream, cancel context.CancelFunc) {
	end := func() {
		_ = st.Close()
		cancel()
	}
	begun := s.begin(func(ctx context.Context) {
		defer end()
		t := time.AfterFunc(time.Second, cancel)
		defer t.Stop()
		defer context.AfterFunc(ctx, cancel)()
		_, _ = io.CopyN(io.Discard, st, 64<<10) // its error is the end of the stream, or of our patience
	})
	if !begun {
		end()
	}
}
