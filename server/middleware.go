package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

type eventKey struct{}

// An event is what the one log line of a request says. Middleware and handlers add to it as they learn.
type event struct {
	id     string
	caller store.Caller
	reason string
}

func eventOf(ctx context.Context) *event {
	e, _ := ctx.Value(eventKey{}).(*event)
	if e == nil {
		return &event{}
	}
	return e
}

// RequestID is the id of the request that ctx belongs to: ours, on every answer and in the log.
func RequestID(ctx context.Context) string { return eventOf(ctx).id }

// noteReason writes the word that the request of ctx is refused with into its log line. The faces are given it for
// the refusals that they answer themselves.
func noteReason(ctx context.Context, word reason.Word) { eventOf(ctx).reason = string(word) }

// withEvent gives the request its id, logs it once when it is over, and measures it.
func (s *Server) withEvent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &event{id: strings.ToLower(rand.Text()[:16])}
		w.Header().Set("X-Request-Id", e.id)
		r = r.WithContext(context.WithValue(r.Context(), eventKey{}, e))
		out := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		began := time.Now()
		s.metrics.active.Inc()
		defer func() {
			s.metrics.active.Dec()
			s.logRequest(r, e, out.Status(), time.Since(began))
		}()
		next.ServeHTTP(out, r)
	})
}

func (s *Server) logRequest(r *http.Request, e *event, status int, took time.Duration) {
	route := chi.RouteContext(r.Context()).RoutePattern()
	if status == 0 {
		status = http.StatusOK
	}
	s.metrics.observe(r.Method, route, status, took)
	attrs := []slog.Attr{
		slog.String("request_id", e.id), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("status", status), slog.Int64("ms", took.Milliseconds()),
	}
	for _, a := range []slog.Attr{
		slog.String("org", e.caller.Org.String()), slog.String("agent", e.caller.Agent.String()),
		slog.String("user", e.caller.User.String()), slog.String("reason", e.reason),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	level := slog.LevelInfo
	if health[route] {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// noteCaller writes who acts into the request's log line.
func noteCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		eventOf(r.Context()).caller = store.CallerFrom(r.Context())
		next.ServeHTTP(w, r)
	})
}

// recovered answers a panic as any other unexpected error. http.ErrAbortHandler passes through.
func (s *Server) recovered(fail func(http.ResponseWriter, *http.Request, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if p == http.ErrAbortHandler { //nolint:errorlint // net/http asks for this very value
					panic(p)
				}
				fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// bodyTime is how long a request's body may take to arrive.
const bodyTime = 60 * time.Second

// bodyInTime gives the body bodyTime to arrive. Without it whoever announces a body and sends none holds a connection for
// good, bearer or not: net/http reads the rest of a body before it sends the answer.
func (s *Server) bodyInTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // -1 is not known
			out := http.NewResponseController(w)
			if out.SetReadDeadline(time.Now().Add(s.bodyTime)) == nil { // nothing but a connection has one
				r.Body = timedBody{r.Body, out}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// A timedBody lifts the deadline when it has been read: from then on it would end the answer.
type timedBody struct {
	io.ReadCloser
	out *http.ResponseController
}

// Read implements io.Reader.
func (b timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.out.SetReadDeadline(time.Time{}) // fails on a closed connection alone
	}
	return n, err
}

// maxBody is how large a request to /mcp may be.
const maxBody = 4 << 20

// capBody lets no more than n bytes of the body be read. It reads nothing itself.
func capBody(n int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, n)
			next.ServeHTTP(w, r)
		})
	}
}

// bearer lets through who proves an agent, before anything else about the request is looked at.
func (s *Server) bearer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := s.verifier.Verify(r.Context(), r.Header)
		if err != nil {
			s.failMCP(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(store.WithCaller(r.Context(), c)))
	})
}

// secured puts the headers of every page and asset.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("X-Frame-Options", "DENY") // for what does not know frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}

// address is the client's address. X-Forwarded-For is believed as far as it was written by trusted proxies: read
// from its end, the first address that is none of theirs is the client.
func (s *Server) address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	at := host
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(at); i-- {
		a, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = a.Unmap().String()
	}
	return at
}

func (s *Server) trusts(addr string) bool {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return false
	}
	for _, p := range s.c.proxies {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}
