package console

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

const (
	// eventStream is the media type of server-sent events (HTML, Server-sent events).
	eventStream = "text/event-stream"
	// liveStreams is how many live streams one user may have open on a replica: one a tab that is in sight.
	liveStreams = 8
	// writeWait is how long a browser may take to accept one write before it counts as gone.
	writeWait = 10 * time.Second
)

// parts are elements of a page by their id, each drawn for a time.
type parts map[string]func(now time.Time) templ.Component

// A scene is what a live stream looks at.
type scene struct {
	shape string // which of the parts a page has; at the start and where it changes, whole is sent
	whole parts
	parts parts
}

// LiveAgents is GET /live/agents: the stream of a list of agents.
func (h *Handler) LiveAgents(w http.ResponseWriter, r *http.Request) error {
	q := readAgentQuery(r)
	return h.live(w, r, func(ctx context.Context) (scene, error) {
		list, err := h.agentList(ctx, q)
		if err != nil {
			return scene{}, err
		}
		at := func(draw func(web.AgentList) templ.Component) func(time.Time) templ.Component {
			return func(now time.Time) templ.Component {
				list.Now = now
				return draw(list)
			}
		}
		card := parts{"agents": at(web.AgentList.Card)}
		switch {
		case list.Total == 0:
			return scene{"none", card, card}, nil
		case len(list.Rows) == 0:
			return scene{"none found", card, card}, nil
		}
		return scene{"some", card, parts{"agent-rows": at(web.AgentList.Body), "agent-count": at(web.AgentList.Count)}}, nil
	})
}

// LiveAgent is GET /live/agents/{id}: the stream of an agent's page.
func (h *Handler) LiveAgent(w http.ResponseWriter, r *http.Request) error {
	id, err := agentID(r)
	if err != nil {
		return err
	}
	var since, first time.Time
	if micros, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64); err == nil {
		since = time.UnixMicro(micros)
	}
	return h.live(w, r, func(ctx context.Context) (scene, error) {
		v := viewerOf(ctx)
		var a store.Agent
		var sessions []store.MCPSession
		var apps int
		err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
			if a, err = tx.Agent(ctx, id); err != nil || a.RevokedAt != nil {
				return err
			}
			if apps, err = tx.CountGrants(ctx, id); err != nil {
				return err
			}
			sessions, err = tx.Sessions(ctx, id, sessionsShown)
			return err
		})
		if err != nil {
			return scene{}, err
		}
		if first.IsZero() {
			first = firstCall(a, since)
		}
		agent := h.webAgent(v, a)
		all := parts{
			"agent-status":   agent.Status,
			"agent-used":     agent.Used,
			"agent-sessions": func(now time.Time) templ.Component { return web.SessionList(webSessions(sessions), now) },
			"first-call":     func(now time.Time) templ.Component { return web.FirstCall(first, now) },
		}
		for _, id := range []string{"revoke-ends", "revoke-card-ends"} {
			all[id] = func(time.Time) templ.Component {
				return web.RevokeEnds(id, agent, a.TokenHint != nil, apps, len(sessions))
			}
		}
		return scene{"agent", all, all}, nil
	})
}

// live sends what look sees, and then what has changed in it, until the browser leaves, the gateway stops, the session
// ends, the viewer is no longer the member they were, or what is looked at is not there. A database that does not
// answer ends no stream.
func (h *Handler) live(w http.ResponseWriter, r *http.Request, look func(context.Context) (scene, error)) error {
	ctx, v := r.Context(), viewerOf(r.Context())
	if !h.slots.take(v.caller.User) {
		w.Header().Set("Retry-After", "15")
		return reason.Refuse(reason.RateLimited, "%d pages that stay fresh are open already. Close one.", liveStreams)
	}
	defer h.slots.give(v.caller.User)
	now, err := look(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)

	s := stream{w: w, out: http.NewResponseController(w)}
	if err := s.write(nil); err != nil { // a page that has nothing to hear yet still hears that it may wait
		return nil // the browser left
	}
	tick, silence := time.NewTicker(h.c.LiveEvery), time.NewTicker(h.keepAlive)
	defer tick.Stop()
	defer silence.Stop()
	for {
		sent, err := s.send(ctx, now, h.c.Now())
		if err != nil {
			h.c.Log.DebugContext(ctx, "live stream ended", slog.Any("err", err))
			return nil
		}
		if sent {
			silence.Reset(h.keepAlive)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.c.Stop:
			return nil
		case <-silence.C:
			if err := s.write([]byte(": keep-alive\n\n")); err != nil {
				return nil
			}
		case <-tick.C:
			next, goesOn := h.lookAgain(ctx, v, look)
			if !goesOn {
				return nil
			}
			if next != nil {
				now = *next
			}
		}
	}
}

// lookAgain is a later look, nil where the database does not answer. Its second result is whether the stream goes on.
func (h *Handler) lookAgain(ctx context.Context, v viewer, look func(context.Context) (scene, error)) (*scene, bool) {
	ok, err := h.still(ctx, v)
	var s scene
	if err == nil && ok {
		s, err = look(ctx)
	}
	switch {
	case store.IsAbsent(err):
		return nil, false
	case err != nil:
		if ctx.Err() == nil {
			h.c.Log.WarnContext(ctx, "live page not read", slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)))
		}
		return nil, true
	}
	return &s, ok
}

// A stream is one open live page, and what its browser has.
type stream struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	shape string
	seen  map[string]string // HTML by id, drawn for a time that moves by the hour
}

// send sends what the browser has not, and reports whether that was anything. Words such as "12 s ago" change by
// themselves and the page's script keeps them true, so what is compared is drawn for the last full hour.
func (s *stream) send(ctx context.Context, now scene, at time.Time) (bool, error) {
	seen := map[string]string{}
	send := now.parts
	var fresh []string
	for id, draw := range now.parts {
		html, err := render(ctx, draw(at.Truncate(time.Hour)))
		if err != nil {
			return false, err
		}
		if seen[id] = html; s.seen[id] != html {
			fresh = append(fresh, id)
		}
	}
	if s.shape != now.shape {
		send, fresh = now.whole, slices.Collect(maps.Keys(now.whole))
	}
	slices.Sort(fresh)
	var b bytes.Buffer
	for _, id := range fresh {
		html, err := render(ctx, send[id](at))
		if err != nil {
			return false, err
		}
		if err := appendSwap(&b, id, html); err != nil {
			return false, err
		}
	}
	s.shape, s.seen = now.shape, seen
	if b.Len() == 0 {
		return false, nil
	}
	return true, s.write(b.Bytes())
}

func render(ctx context.Context, c templ.Component) (string, error) {
	var b bytes.Buffer
	err := c.Render(ctx, &b)
	return b.String(), err
}

// appendSwap writes the event that graft.js puts one element in place by. JSON has no line break in it.
func appendSwap(b *bytes.Buffer, id, html string) error {
	data, err := json.Marshal(struct {
		ID   string `json:"id"`
		HTML string `json:"html"`
	}{id, html})
	if err != nil {
		return err
	}
	b.WriteString("event: swap\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
	return nil
}

// write sends b now, or fails within writeWait.
func (s *stream) write(b []byte) error {
	if err := s.out.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.out.Flush()
}

// slots count the live streams of each user on this replica.
type slots struct {
	most int
	mu   sync.Mutex
	open map[store.UserID]int
}

func newSlots(most int) *slots { return &slots{most: most, open: map[store.UserID]int{}} }

func (s *slots) take(u store.UserID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[u] >= s.most {
		return false
	}
	s.open[u]++
	return true
}

func (s *slots) give(u store.UserID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[u]--; s.open[u] == 0 {
		delete(s.open, u)
	}
}
