package upstreamtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Call is one run of a tool.
type Call struct {
	context.Context                 // ends when the client cancels, or the test ends
	Args            json.RawMessage // as they came
	Session         string
	Calls           int // how many this session has made, this one included

	s     *Server
	w     http.ResponseWriter
	token json.RawMessage // progressToken; nil for none
	out   *stream
}

// Send sends a message before the answer, which becomes an event stream by it.
func (c *Call) Send(message string) {
	if c.out == nil {
		c.out = newStream(c.w)
	}
	c.out.send(message)
}

// Event sends a whole event, such as "id: 1\ndata: {}".
func (c *Call) Event(text string) {
	if c.out == nil {
		c.out = newStream(c.w)
	}
	c.out.write(text + "\n\n")
}

// Progress reports progress, if the client gave a token. of is the total; 0 is none.
func (c *Call) Progress(done, of float64, message string) {
	if c.token == nil {
		return
	}
	total := ""
	if of != 0 {
		total = fmt.Sprintf(`,"total":%v`, of)
	}
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%v%s,"message":%q}}`, c.token, done, total, message))
}

// Token is the progress token that the client gave.
func (c *Call) Token() string { return string(c.token) }

// Log sends a log message whose data is JSON.
func (c *Call) Log(level, logger, data string) {
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"logger":%q,"data":%s}}`, level, logger, data))
}

// Ask sends the client a request and waits for its answer.
func (c *Call) Ask(method, params string) Message {
	c.s.mu.Lock()
	c.s.nextID++
	id := fmt.Sprintf(`"ask-%d"`, c.s.nextID)
	answer := make(chan Message, 1)
	c.s.answers[id] = answer
	c.s.mu.Unlock()
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case m := <-answer:
		return m
	case <-c.Done():
		return Message{}
	}
}

func (s *Server) answered(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.answers[string(m.ID)]; answer != nil {
		delete(s.answers, string(m.ID))
		answer <- m
	}
}

func (s *Server) cancel(sessionID string, m Message) {
	var p struct{ RequestID json.RawMessage }
	_ = json.Unmarshal(m.Params, &p) // then nothing is cancelled
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[sessionID+" "+string(p.RequestID)]; cancel != nil {
		cancel()
	}
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, m Message, sessionID string) {
	var p struct {
		Name      string
		Arguments json.RawMessage
		Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p) // then the tool has no name
	ctx := context.WithoutCancel(r.Context())
	if s.opts.Modern {
		ctx = r.Context() // closing the response cancels
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	c := &Call{Context: ctx, Args: p.Arguments, Session: sessionID, s: s, w: w, token: p.Meta.ProgressToken}
	key := sessionID + " " + string(m.ID)
	s.mu.Lock()
	s.running[key] = cancel
	var tool Tool
	for _, t := range s.tools {
		if t.Name == p.Name {
			tool = t
			s.runs[t.Name]++
		}
	}
	if state := s.sessions[sessionID]; state != nil {
		state.calls++
		c.Calls = state.calls
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, key)
	}()
	if tool.Run == nil {
		s.refuse(w, m, http.StatusOK, -32602, "Unknown tool: "+p.Name)
		return
	}
	result := tool.Run(c)
	if failed, ok := strings.CutPrefix(result, "error:"); ok {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, failed)
		return
	}
	if c.out != nil {
		c.out.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
		return
	}
	s.answer(w, m, result)
}

// A stream is an event stream that is being written.
type stream struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	gone bool // its handler has returned
	over chan struct{}
	once sync.Once
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return &stream{w: w, over: make(chan struct{})}
}

func (st *stream) send(message string) { st.write("event: message\ndata: " + message + "\n\n") }

func (st *stream) write(text string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.gone {
		return
	}
	_, _ = io.WriteString(st.w, text)
	_ = http.NewResponseController(st.w).Flush() // the client may have gone
}

func (st *stream) end() { st.once.Do(func() { close(st.over) }) }

// stream serves the stream that belongs to no request, until it is dropped.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, first string) {
	st := newStream(w)
	st.write(": open\n\n")
	if first != "" {
		st.send(first)
	}
	s.mu.Lock()
	s.streams[st] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.streams, st)
		s.mu.Unlock()
		st.mu.Lock()
		defer st.mu.Unlock()
		st.gone = true
	}()
	select {
	case <-st.over:
	case <-s.done:
	case <-r.Context().Done():
	}
}
