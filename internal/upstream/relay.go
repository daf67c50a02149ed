package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/rpc"
)

// A relay passes on what a server says of a call before it answers.
type relay struct {
	progress func(catalog.Progress)                          // nil where nobody wants it
	log      func(level, logger string, data jsontext.Value) // likewise

	mu   sync.Mutex
	over bool // the call has been answered, and nothing is passed on
	told bool
	last float64
}

// follow makes what the server says of the request of that id reach r, until the returned function is called.
func (s *Session) follow(id int64, r *relay) func() {
	if r.progress != nil {
		s.mu.Lock()
		s.calls[id] = r
		s.mu.Unlock()
	}
	return func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
		if r.progress != nil {
			s.mu.Lock()
			delete(s.calls, id)
			s.mu.Unlock()
		}
	}
}

// hear acts on what a server sends that is not an answer. to is the call whose stream it came on, or nil.
func (s *Session) hear(m message, to *relay) {
	switch {
	case m.Method == "":
	case m.hasID():
		s.reply(m)
	case m.Method == string(mcpgo.MethodNotificationProgress):
		s.hearProgress(m.Params)
	case m.Method == string(mcpgo.MethodNotificationMessage):
		to.hearLog(m.Params)
	case m.Method == string(mcpgo.MethodNotificationToolsListChanged):
		if s.d.OnListChanged != nil {
			s.d.OnListChanged()
		}
	}
}

// hearProgress passes progress on to the call whose token it has, whichever stream it came on.
func (s *Session) hearProgress(params jsontext.Value) {
	var p struct {
		Token    jsontext.Value `json:"progressToken"`
		Progress *float64       `json:"progress"`
		Total    float64        `json:"total"`
		Message  string         `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil || p.Progress == nil {
		return
	}
	token, err := strconv.ParseInt(string(p.Token), 10, 64)
	if err != nil {
		return // not one that we gave
	}
	s.mu.Lock()
	to := s.calls[token]
	s.mu.Unlock()
	if to == nil {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.over || to.told && *p.Progress <= to.last {
		return
	}
	to.told, to.last = true, *p.Progress
	to.progress(catalog.Progress{Done: *p.Progress, Total: p.Total, Message: sentence(p.Message)})
}

func (r *relay) hearLog(params jsontext.Value) {
	if r == nil || r.log == nil {
		return
	}
	var l struct {
		Level  string         `json:"level"`
		Logger string         `json:"logger"`
		Data   jsontext.Value `json:"data"`
	}
	if json.Unmarshal(params, &l) != nil || l.Data == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.log(l.Level, sentence(l.Logger), rpc.OneLine(l.Data))
	}
}

// reply answers a server's request. What it may ask of a client (sampling, elicitation, roots) was not declared.
func (s *Session) reply(m message) {
	id, ok := rpc.ParseID(m.ID)
	if !ok || s.modern {
		return // 2026-07-28 has no such requests
	}
	body := rpc.AppendResult(nil, id, jsontext.Value(`{}`))
	if m.Method != string(mcpgo.MethodPing) {
		body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"This client does not do that."}}`, id, rpc.MethodNotFound)
	}
	select {
	case s.replies <- struct{}{}:
	default:
		return // it asks faster than it reads answers
	}
	out := s.outgoing(http.MethodPost, body, nil, s.d.ConnectTimeout)
	begun := s.begin(func(ctx context.Context) {
		defer func() { <-s.replies }()
		_, _, _ = s.tell(ctx, out)
	})
	if !begun {
		<-s.replies
	}
}
