package upstreamtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Options say what kind of server it is. The zero value keeps sessions, answers with JSON, and has the tools echo and
// count.
type Options struct {
	Tools       []Tool // in place of echo and count
	Modern      bool   // speaks 2026-07-28 and nothing else
	NoSessions  bool   // gives no session id
	NoStream    bool   // answers GET with 405
	SSE         bool   // answers each request as an event stream
	ListChanged bool   // declares tools.listChanged
	Protocol    string // the version that initialize answers; "" is 2025-11-25
	Page        int    // how many tools a page of the list has; 0 is all
	// Cursor makes the cursor of the page that begins with the tool of that index; nil is a number.
	Cursor func(next int) string
	// LastCursor is the nextCursor of the last page; nil leaves it out.
	LastCursor *string
	// Forgetful is a server that keeps no requests, for tests of many.
	Forgetful bool
	// Bearer is a token without which every request is answered with 401; "" is none.
	Bearer string
}

// A Tool is one that the server has.
type Tool struct {
	Name   string
	Listed string             // its whole JSON in the list; "" is its name and a schema that takes any object
	Run    func(*Call) string // the result's JSON, or `error:` and the JSON of an error object
}

// Echo answers with its arguments, as text and as structured content.
var Echo = Tool{Name: "echo", Listed: `{"name":"echo","description":"Answers with its arguments.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, Run: func(c *Call) string {
	text, _ := json.Marshal(string(c.Args)) // a string
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, text, c.Args)
}}

// Count answers how often it was called in its session.
var Count = Tool{Name: "count", Run: func(c *Call) string { return Text(fmt.Sprint(c.Calls)) }}

// Text is a result of one text block.
func Text(s string) string {
	text, _ := json.Marshal(s) // a string
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
}

// A Server is a running server.
type Server struct {
	URL string

	t    testing.TB
	opts Options
	done chan struct{} // closed when the test ends, so that what hangs does not hang for ever

	mu       sync.Mutex
	script   Script
	tools    []Tool
	sessions map[string]*session
	requests []Request
	wire     bytes.Buffer
	conns    int
	runs     map[string]int
	running  map[string]context.CancelFunc // by session and request id
	streams  map[*stream]bool
	answers  map[string]chan Message // of the client, to the server's requests
	nextID   int
}

type session struct{ calls int }

// A Request is one HTTP request that arrived.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   string
	Message
}

// A Message is what a POST carried.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// A Script answers a request in place of the server, if it returns true.
type Script func(w http.ResponseWriter, r *http.Request, m Message) bool

// Start starts a server on loopback that ends with the test.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Tools == nil {
		opts.Tools = []Tool{Echo, Count}
	}
	s := &Server{
		t: t, opts: opts, done: make(chan struct{}), tools: opts.Tools, sessions: map[string]*session{}, runs: map[string]int{},
		running: map[string]context.CancelFunc{}, streams: map[*stream]bool{}, answers: map[string]chan Message{},
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	srv.Listener = listener{srv.Listener, s}
	srv.Start()
	s.URL = srv.URL + "/mcp"
	t.Cleanup(func() {
		close(s.done)
		srv.CloseClientConnections()
		srv.Close()
	})
	return s
}

// Script makes f answer from now on; nil ends that.
func (s *Server) Script(f Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = f
}

// SetTools replaces the tools, and says nothing of it.
func (s *Server) SetTools(tools ...Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

// Forget makes the server forget every session, as a restart does.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Changed tells everyone who listens that the tools changed, and returns how many do.
func (s *Server) Changed() int {
	return s.Broadcast(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// Broadcast sends a message to everyone who listens, and returns how many do.
func (s *Server) Broadcast(message string) int {
	s.mu.Lock()
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, st := range streams {
		st.send(message)
	}
	return len(streams)
}

// DropStreams ends the streams of everyone who listens.
func (s *Server) DropStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		st.end()
	}
}

// Sessions is how many sessions are open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Runs is how often a tool was run.
func (s *Server) Runs(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[tool]
}

// Connections is how many were made.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// Requests are the requests that arrived: those whose HTTP or JSON-RPC method is one of methods, or all.
func (s *Server) Requests(methods ...string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rs []Request
	for _, r := range s.requests {
		if len(methods) == 0 || slices.Contains(methods, r.Method) || slices.Contains(methods, r.Message.Method) {
			rs = append(rs, r)
		}
	}
	return rs
}

// Wire is every byte that arrived.
func (s *Server) Wire() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire.String()
}

// Done is closed when the test ends. A script that hangs waits for it.
func (s *Server) Done() <-chan struct{} { return s.done }

// listener keeps what arrives on its connections.
type listener struct {
	net.Listener
	s *Server
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.conns++
	return conn{c, l.s}, nil
}

type conn struct {
	net.Conn
	s *Server
}

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.s.opts.Forgetful {
		return n, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.wire.Write(b[:n])
	return n, err
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	var m Message
	_ = json.Unmarshal(body, &m) // a GET has none
	s.mu.Lock()
	if !s.opts.Forgetful {
		s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: string(body), Message: m})
	}
	script := s.script
	s.mu.Unlock()
	if script != nil && script(w, r, m) {
		return
	}
	if s.opts.Bearer != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Bearer {
		w.Header().Set("WWW-Authenticate", `Bearer realm="upstream"`)
		http.Error(w, `{"error":"unauthorized"}`, http.StatusUnauthorized)
		return
	}
	if s.opts.Modern {
		s.serveModern(w, r, m)
		return
	}
	s.serveSessions(w, r, m)
}

func (s *Server) serveSessions(w http.ResponseWriter, r *http.Request, m Message) {
	id := r.Header.Get("Mcp-Session-Id")
	if m.Method != "initialize" && !s.opts.NoSessions {
		s.mu.Lock()
		known := s.sessions[id] != nil
		s.mu.Unlock()
		if !known {
			status := http.StatusNotFound
			if id == "" {
				status = http.StatusBadRequest
			}
			http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, status)
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && !s.opts.NoStream:
		s.stream(w, r, "")
	case r.Method == http.MethodDelete && !s.opts.NoSessions:
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
	case r.Method != http.MethodPost:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case m.Method == "" && m.ID != nil:
		s.answered(m)
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "notifications/cancelled":
		s.cancel(id, m)
		w.WriteHeader(http.StatusAccepted)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		s.initialize(w, m)
	case m.Method == "ping":
		s.answer(w, m, `{}`)
	default:
		s.common(w, r, m, id)
	}
}

func (s *Server) serveModern(w http.ResponseWriter, r *http.Request, m Message) {
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		s.refuse(w, m, http.StatusNotFound, -32601, "Method not found")
	case r.Header.Get("Mcp-Method") != m.Method || r.Header.Get("Mcp-Protocol-Version") != "2026-07-28":
		s.refuse(w, m, http.StatusBadRequest, -32020, "A header is missing or wrong")
	case !strings.Contains(string(m.Params), `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/clientCapabilities":{`):
		s.refuse(w, m, http.StatusBadRequest, -32602, "_meta is missing")
	case m.Method == "server/discover":
		s.answer(w, m, fmt.Sprintf(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":%v}},"ttlMs":1000,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}`, s.opts.ListChanged))
	case m.Method == "subscriptions/listen":
		s.stream(w, r, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`)
	default:
		s.common(w, r, m, "")
	}
}

func (s *Server) initialize(w http.ResponseWriter, m Message) {
	protocol := s.opts.Protocol
	if protocol == "" {
		protocol = "2025-11-25"
	}
	if !s.opts.NoSessions {
		s.mu.Lock()
		s.nextID++
		id := fmt.Sprintf("session-%d", s.nextID)
		s.sessions[id] = &session{}
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	s.answer(w, m, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":%v},"logging":{}},"serverInfo":{"name":"fake","title":"A fake","version":"1"},"instructions":"Be kind."}`,
		protocol, s.opts.ListChanged))
}

// common is what both eras have.
func (s *Server) common(w http.ResponseWriter, r *http.Request, m Message, sessionID string) {
	switch m.Method {
	case "tools/list":
		s.list(w, m)
	case "tools/call":
		s.call(w, r, m, sessionID)
	default:
		status := http.StatusOK
		if s.opts.Modern {
			status = http.StatusNotFound
		}
		s.refuse(w, m, status, -32601, "Method not found")
	}
}

func (s *Server) list(w http.ResponseWriter, m Message) {
	var p struct{ Cursor *string }
	_ = json.Unmarshal(m.Params, &p) // may be absent
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	size := s.opts.Page
	if size == 0 {
		size = max(len(tools), 1)
	}
	cursor := s.opts.Cursor
	if cursor == nil {
		cursor = func(next int) string { return fmt.Sprint(next) }
	}
	from := 0
	if p.Cursor != nil {
		for from = size; from < len(tools) && cursor(from) != *p.Cursor; from += size {
		}
		if from >= len(tools) {
			s.refuse(w, m, http.StatusOK, -32602, "Unknown cursor "+*p.Cursor)
			return
		}
	}
	to := min(from+size, len(tools))
	listed := make([]string, 0, size)
	for _, tool := range tools[from:to] {
		if tool.Listed == "" {
			tool.Listed = fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, tool.Name)
		}
		listed = append(listed, tool.Listed)
	}
	result := `{"tools":[` + strings.Join(listed, ",") + `]`
	if to < len(tools) {
		next, _ := json.Marshal(cursor(to)) // a string
		result += `,"nextCursor":` + string(next)
	} else if s.opts.LastCursor != nil {
		next, _ := json.Marshal(*s.opts.LastCursor) // a string
		result += `,"nextCursor":` + string(next)
	}
	s.answer(w, m, result+`}`)
}

// answer answers a request with a result.
func (s *Server) answer(w http.ResponseWriter, m Message, result string) {
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	if s.opts.SSE {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", message)
		_ = http.NewResponseController(w).Flush() // so that its end comes after it, as it does from others
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, message)
}

func (s *Server) refuse(w http.ResponseWriter, m Message, status, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}
