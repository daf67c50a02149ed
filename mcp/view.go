package mcp

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/store"
)

// A view is what answering an agent's requests takes: its list as bytes, and which of its sessions ended. It never
// changes; when the bus says that the agent moved, the next request reads a new one.
type view struct {
	org         store.OrgID
	promoted    map[string]bool
	bound       map[string]string // of an agent bound to one upstream: its tools' own names, and their wire names; nil for others
	endedBefore time.Time
	ended       map[store.SessionID]bool
	levels      map[store.SessionID]string
	pages       map[era][]page
	list        []byte // digest of the tools on the pages
}

// A page is one page of tools/list.
type page struct {
	after  string // the last name of the page before; "" for the first
	result jsontext.Value
}

func (v *view) sessionEnded(id store.SessionID) bool {
	return v.ended[id] || id.Time().Before(v.endedBefore)
}

// maxViews bounds the agents a replica keeps a view of; the least active are read again.
const maxViews = 20_000

// view is the caller's.
func (h *Handler) view(ctx context.Context, c store.Caller) (*view, error) {
	return h.views.Get(ctx, c.Agent, func(ctx context.Context) (*view, error) { return h.readView(ctx, c) })
}

func (h *Handler) readView(ctx context.Context, c store.Caller) (*view, error) {
	var row store.AgentView
	var sees store.AgentUpstreams
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		if row, err = tx.AgentView(ctx, c.Agent); err != nil {
			return err
		}
		sees, err = tx.AgentUpstreams(ctx, c.Agent)
		return err
	})
	if err != nil {
		return nil, err
	}
	v := &view{org: c.Org, promoted: map[string]bool{}, ended: map[store.SessionID]bool{}, levels: row.Levels}
	for _, name := range row.Promoted {
		v.promoted[name] = true
	}
	for _, id := range row.Ended {
		v.ended[id] = true
	}
	if row.EndedBefore != nil {
		v.endedBefore = *row.EndedBefore
	}
	known, err := h.c.Catalog.Of(ctx, c)
	if err != nil {
		return nil, err
	}
	var tools []mcpgo.Tool
	if sees.Passthrough != "" {
		tools, v.bound = boundTools(known, sees.Passthrough)
	} else {
		tools = h.workingTools(known, row.Promoted, sees.Listed)
	}
	v.pages, v.list, err = h.render(c, tools)
	return v, err
}

// Hear implements bus.Listener.
func (h *Handler) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Agent, bus.List, bus.Credential, bus.Revoked:
		agent, err := store.ParseID[store.AgentKind](e.ID)
		if err != nil {
			return
		}
		h.views.Forget(agent)
		switch e.Topic {
		case bus.List:
			h.streams.listChanged(agent)
		case bus.Credential: // a stream may be the new token's already
			h.streams.recheck(func(s *stream) bool { return s.caller.Agent == agent })
		case bus.Revoked:
			h.streams.endAgent(agent)
			h.waiting.endAgent(agent)
		}
	case bus.Session:
		if id, err := store.ParseID[store.SessionKind](e.ID); err == nil {
			h.streams.endSession(id)
			h.waiting.endSession(id)
		}
	case bus.Member, bus.Tools:
		if org, err := store.ParseID[store.OrgKind](e.ID); err == nil {
			h.views.ForgetIf(func(_ store.AgentID, v *view) bool { return v.org == org })
			h.streams.recheck(func(s *stream) bool { return s.caller.Org == org })
		}
	case bus.Message:
		if id, err := store.ParseID[store.SessionKind](e.ID); err == nil {
			h.waiting.wake(id)
		}
	}
}

// Reset implements bus.Listener: what may have been missed is made up for.
func (h *Handler) Reset() {
	h.views.Reset()
	h.streams.recheck(func(*stream) bool { return true })
	h.waiting.wakeAll()
}
