package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/httprate"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A rate is at most Requests in any Window, kept by each replica for itself. The zero rate limits nothing.
type rate struct {
	Requests int
	Window   time.Duration
}

// parseRate reads N/s, N/m, N/s:BURST or off. With a burst the average stays N, over the time in which N a second
// makes up the burst.
func parseRate(s string) (rate, error) {
	if s == "off" {
		return rate{}, nil
	}
	fail := fmt.Errorf("must be N/s, N/m, N/s:BURST or off, not %q", s)
	head, burst, bursts := strings.Cut(s, ":")
	count, unit, ok := strings.Cut(head, "/")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 1 || unit != "s" && unit != "m" {
		return rate{}, fail
	}
	r := rate{Requests: n, Window: time.Second}
	if unit == "m" {
		r.Window = time.Minute
	}
	if bursts {
		b, err := strconv.Atoi(burst)
		if err != nil || b < n {
			return rate{}, fail
		}
		r.Window = r.Window * time.Duration(b) / time.Duration(n)
		r.Requests = b
	}
	return r, nil
}

// limit is middleware that holds each key of key to r. refuse writes the 429; Retry-After is set by then.
func (r rate) limit(key httprate.KeyFunc, refuse func(http.ResponseWriter, *http.Request, error)) func(http.Handler) http.Handler {
	l := r.limiter(key, refuse)
	if l == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	return l.Handler
}

// perAccount is how many times the rate of an address one account is tried at, from all addresses together. It is more
// than one, so that nobody at one address keeps the account's owner out.
const perAccount = 5

// tried counts an attempt to sign in to an account, and refuses it above perAccount times the rate: whoever has many
// addresses guesses one password no faster. It knows the account by what was typed, so that one that is not there looks
// the same. Nothing happens to the account itself. Retry-After is set where it refuses.
func (s *Server) tried(w http.ResponseWriter, r *http.Request, email string) error {
	email = store.FoldEmail(email)
	isOne := store.CheckEmail(email) == nil
	if s.accountLimit != nil && isOne && s.accountLimit.OnLimit(w, r, email) {
		return s.c.account.refusal()
	}
	return nil
}

// limitMCP holds each agent to its rate.
func (s *Server) limitMCP(next http.Handler) http.Handler {
	if s.mcpLimit == nil {
		return next
	}
	return s.mcpLimit.Handler(next)
}

// limiter counts for limit; nil where r limits nothing.
func (r rate) limiter(key httprate.KeyFunc, refuse func(http.ResponseWriter, *http.Request, error)) *httprate.RateLimiter {
	if r.Requests == 0 {
		return nil
	}
	return httprate.NewRateLimiter(r.Requests, r.Window,
		httprate.WithKeyFuncs(key),
		httprate.WithResponseHeaders(httprate.ResponseHeaders{RetryAfter: "Retry-After"}),
		httprate.WithErrorHandler(refuse),
		httprate.WithLimitHandler(func(w http.ResponseWriter, req *http.Request) { refuse(w, req, r.refusal()) }))
}

func (r rate) refusal() error {
	return reason.Refuse(reason.RateLimited, "More than %d requests in %s. Wait as long as Retry-After says.", r.Requests, r.Window)
}

// spend counts n requests more of the agent's, all of them or none. Retry-After is set where there are too many.
func (s *Server) spend(w http.ResponseWriter, r *http.Request, n int) error {
	key, err := httprate.JoinKeys(agentKey)(r)
	if err != nil || s.mcpLimit == nil || n < 1 {
		return err
	}
	if s.mcpLimit.OnLimit(w, r.WithContext(httprate.WithIncrement(r.Context(), n)), key) {
		return s.c.mcp.refusal()
	}
	return nil
}
