package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// Dial says which server to speak to, and how.
type Dial struct {
	URL     string
	Hosts   egress.Hosts       // the URL's own, as a rule
	Header  []egress.Injection // the headers a person configured
	Client  *egress.Client
	Version string // Graft's own, which servers are told

	ConnectTimeout time.Duration // of Open, of each page of a list, and of what needs no answer; 10 s
	CallTimeout    time.Duration // of one call; 2 min

	OnListChanged func() // called while Listen listens; it must not wait
	Log           *slog.Logger
}

// A Session is one conversation with one server. It is safe for concurrent use.
type Session struct {
	d       Dial
	server  Server
	modern  bool        // the stateless era
	id      string      // Mcp-Session-Id; "" where the server keeps no session
	header  http.Header // of every request; not changed once open
	lastID  atomic.Int64
	params  atomic.Pointer[map[string]*mcpgo.Tool] // stateless: the tools with arguments that go into headers too
	replies chan struct{}                          // a slot for each answer to a server's request that is on its way

	ctx   context.Context // of the session's own goroutines
	stop  context.CancelFunc
	mu    sync.Mutex
	over  bool // no goroutine is begun any more
	tasks sync.WaitGroup
	calls map[int64]*relay // that want progress, by their token
	hears bool             // Listen was called
}

// Server is what a server said of itself.
type Server struct {
	Name, Title, Version string
	Protocol             string // the version spoken
	ListChanged          bool   // it tells when its tools change
}

// versions are the protocol versions of the sessions era that are spoken.
var versions = []string{
	mcpgo.ProtocolVersion20251125, mcpgo.ProtocolVersion20250618, mcpgo.ProtocolVersion20250326, mcpgo.ProtocolVersion20241105,
}

const modern = mcpgo.ProtocolVersion20260728

var isVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// Open begins a session. An error is a *reason.Refusal for people: upstream_unauthorized, upstream_unavailable, timeout or
// one of egress.
func Open(ctx context.Context, d Dial) (*Session, error) {
	if d.ConnectTimeout == 0 {
		d.ConnectTimeout = 10 * time.Second
	}
	if d.CallTimeout == 0 {
		d.CallTimeout = 2 * time.Minute
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	s := &Session{d: d, calls: map[int64]*relay{}, replies: make(chan struct{}, 8)}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	// Who asks may go, and the server have the session all the same: its answer is waited for a little longer, because
	// only with what it says can the session be ended.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.ConnectTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cancel) })()
	err := s.open(limited)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", reason.Refuse(reason.Cancelled, "The call to %s was cancelled.", s.host()), ctx.Err())
	}
	if err != nil {
		if ctx.Err() != nil {
			bid(s)
		}
		s.stop()
		s.tasks.Wait()
		return nil, err
	}
	return s, nil
}

// open tries the sessions era, and the stateless one where the server does not know the other.
func (s *Session) open(ctx context.Context) error {
	err := s.initialize(ctx)
	if err == nil || !maybeOtherEra(err) {
		return s.explain(err)
	}
	if s.discover(ctx) == nil {
		return nil
	}
	if s.isOldTransport(ctx) {
		return reason.Refuse(reason.UpstreamUnavailable,
			"%s speaks HTTP+SSE, the transport of 2024-11-05, which is not spoken here. Use its streamable HTTP address; it often ends in /mcp.", s.host()).
			With("host", s.host())
	}
	return s.explain(err)
}

// maybeOtherEra reports whether initialize failed as it does where it is not known.
func maybeOtherEra(err error) bool {
	var remote *remoteError
	var status *statusError
	var version *versionError
	switch {
	case errors.As(err, &remote), errors.As(err, &version):
		return true
	case errors.As(err, &status):
		return status.status == http.StatusBadRequest || status.status == http.StatusNotFound || status.status == http.StatusMethodNotAllowed
	}
	return false
}

// explain turns what the server said to a request of ours into a refusal.
func (s *Session) explain(err error) error {
	var remote *remoteError
	if !errors.As(err, &remote) {
		return err
	}
	return reason.Refuse(reason.UpstreamUnavailable, "%s answered with error %d: %s", s.host(), remote.code, remote.message).
		With("host", s.host()).With("code", remote.code)
}

// initialize opens a session (2025-11-25, Lifecycle).
func (s *Session) initialize(ctx context.Context) error {
	s.header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	params := fmt.Appendf(nil, `"protocolVersion":%q,"capabilities":{},"clientInfo":%s`, versions[0], s.clientInfo())
	result, id, err := s.request(ctx, request{method: string(mcpgo.MethodInitialize), params: params, timeout: s.d.ConnectTimeout})
	if err != nil {
		return err
	}
	var hello struct {
		Protocol string `json:"protocolVersion"`
		description
	}
	if err := json.Unmarshal(result, &hello); err != nil || hello.Protocol == "" {
		return s.unreadable("answered initialize with something else than its result")
	}
	if !slices.Contains(versions, hello.Protocol) {
		spoken := "a version"
		if isVersion.MatchString(hello.Protocol) { // else it may be anything, the credential that it was sent too
			spoken = "version " + hello.Protocol
		}
		return &versionError{reason.Refuse(reason.UpstreamUnavailable, "%s speaks %s of the protocol that is not spoken here.", s.host(), spoken).
			With("host", s.host())}
	}
	s.id = id
	s.server = hello.server(hello.Protocol)
	s.header.Set(mcpgo.HeaderProtocolVersion, hello.Protocol)
	if s.id != "" {
		s.header.Set(mcpgo.HeaderSessionID, s.id)
	}
	ready := s.outgoing(http.MethodPost, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil, s.d.ConnectTimeout)
	status, answer, err := s.tell(ctx, ready)
	if err == nil && status >= http.StatusMultipleChoices {
		return s.refused(status, answer, 0)
	}
	return err
}

// discover asks a server of the stateless era what it is (2026-07-28, Discovery).
func (s *Session) discover(ctx context.Context) error {
	s.modern = true
	s.header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, mcpgo.HeaderProtocolVersion: {modern},
	}
	result, _, err := s.request(ctx, request{method: string(mcpgo.MethodServerDiscover), timeout: s.d.ConnectTimeout})
	if err != nil {
		return err
	}
	var hello struct {
		Versions []string `json:"supportedVersions"`
		description
	}
	if err := json.Unmarshal(result, &hello); err != nil || !slices.Contains(hello.Versions, modern) {
		return s.unreadable("does not speak " + modern)
	}
	s.server = hello.server(modern)
	return nil
}

// description is what the results of initialize and server/discover have in common.
type description struct {
	Capabilities struct {
		Tools struct {
			ListChanged bool `json:"listChanged"`
		} `json:"tools"`
	} `json:"capabilities"`
	Info struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"serverInfo"`
	Meta struct {
		Info jsontext.Value `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

func (d description) server(protocol string) Server {
	if d.Meta.Info != nil {
		_ = json.Unmarshal(d.Meta.Info, &d.Info) // a name is told to people, and nothing hangs on it
	}
	return Server{
		Name: sentence(d.Info.Name), Title: sentence(d.Info.Title), Version: sentence(d.Info.Version),
		Protocol: protocol, ListChanged: d.Capabilities.Tools.ListChanged,
	}
}

func (s *Session) clientInfo() []byte {
	return append(rpc.AppendString([]byte(`{"name":"graft","title":"Graft","version":`), s.d.Version), '}')
}

// Server is what the server said of itself when the session was opened.
func (s *Session) Server() Server { return s.server }

// Ping asks whether the server is there.
func (s *Session) Ping(ctx context.Context) error {
	method := mcpgo.MethodPing
	if s.modern {
		method = mcpgo.MethodServerDiscover // there is no ping any more
	}
	_, _, err := s.request(ctx, request{method: string(method), timeout: s.d.ConnectTimeout})
	return s.explain(err)
}

// Close ends the session, tells the server, and waits for what the session began. A call that is under way is its caller's
// to end.
func (s *Session) Close(ctx context.Context) {
	s.mu.Lock()
	over := s.over
	s.over = true
	s.mu.Unlock()
	s.stop()
	s.tasks.Wait()
	if over || s.id == "" {
		return
	}
	resp, err := s.d.Client.Do(ctx, s.outgoing(http.MethodDelete, nil, nil, s.d.ConnectTimeout))
	if err != nil {
		s.d.Log.DebugContext(ctx, "upstream session not ended", "host", s.host(), "error", err)
		return
	}
	s.d.Log.DebugContext(ctx, "upstream session ended", "host", s.host(), "status", resp.Status)
}

// begin runs f in a goroutine that Close waits for, unless the session is closed. f is given a ctx that Close ends.
func (s *Session) begin(f func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.tasks.Go(func() { f(s.ctx) })
	return true
}

// host names the server in sentences.
func (s *Session) host() string {
	if hosts := s.d.Hosts.Strings(); len(hosts) > 0 {
		return hosts[0]
	}
	return "The MCP server"
}
