package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/getgraft/graft/internal/reason"
)

// An originPattern is an origin whose port may be any.
type originPattern struct {
	scheme, host, port string // port "*" is any; "" is the scheme's own
}

func parseOriginPattern(s string) (originPattern, error) {
	anyPort := strings.HasSuffix(s, ":*")
	u, err := url.Parse(strings.TrimSuffix(s, ":*"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return originPattern{}, fmt.Errorf("must be origins such as https://app.example.com, not %q", s)
	}
	p := originPattern{u.Scheme, strings.ToLower(u.Hostname()), u.Port()}
	if anyPort {
		p.port = "*"
	}
	return p, nil
}

func (p originPattern) matches(u *url.URL) bool {
	return u.Scheme == p.scheme && u.Hostname() == p.host && (p.port == "*" || u.Port() == p.port)
}

// ownHost refuses a request whose Host is not the deployment's, which is how a page of another site reaches a
// service on this machine (DNS rebinding). A loopback origin has four names, on the port that is listened on.
func (s *Server) ownHost(refuse func(http.ResponseWriter, *http.Request, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.isOwn(r) {
				refuse(w, r, reason.Refuse(reason.HostNotAllowed, "This deployment is %s. It does not answer for another host.", s.c.Origin))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (s *Server) isOwn(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if host == s.c.host || withPort(host, s.c.origin.Scheme) == withPort(s.c.host, s.c.origin.Scheme) {
		return true
	}
	if !loopbackHost(s.c.origin.Hostname()) {
		return false
	}
	name, port, err := net.SplitHostPort(withPort(host, s.c.origin.Scheme))
	if err != nil || name != "localhost" && name != "127.0.0.1" && name != "::1" {
		return false
	}
	_, listen, err := net.SplitHostPort(localAddr(r))
	return err == nil && port == listen || port == s.c.origin.Port()
}

// localAddr is the address the request came in on.
func localAddr(r *http.Request) string {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	return a.String()
}

func withPort(host, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// CORS of /mcp (Fetch §3.2). No credentials mode: the bearer is a header that the page itself sends.
const (
	corsMethods = "GET, POST, DELETE, OPTIONS"
	corsHeaders = "Authorization, Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
	corsExpose  = "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, Retry-After"
)

// cors refuses pages of origins that are not allowed, answers preflights before anybody is asked for a bearer, and
// puts the headers on every answer, refusals too. A request without Origin comes from no page.
func (s *Server) cors(refuse func(http.ResponseWriter, *http.Request, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Add("Vary", "Origin")
			origins := r.Header.Values("Origin")
			if len(origins) == 0 {
				next.ServeHTTP(w, r)
				return
			}
			if len(origins) > 1 || !s.originAllowed(origins[0], r) {
				refuse(w, r, reason.Refuse(reason.OriginNotAllowed, "Pages of this origin may not call the gateway."))
				return
			}
			h.Set("Access-Control-Allow-Origin", origins[0])
			h.Set("Access-Control-Expose-Headers", corsExpose)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", corsMethods)
				h.Set("Access-Control-Allow-Headers", corsHeaders)
				h.Set("Access-Control-Max-Age", "7200")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (s *Server) originAllowed(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if origin == s.c.Origin || u.Scheme == s.c.origin.Scheme && strings.EqualFold(u.Host, r.Host) {
		return true
	}
	if loopbackHost(s.c.origin.Hostname()) && (originPattern{"http", "localhost", "*"}).matches(u) {
		return true
	}
	for _, p := range s.c.allow {
		if p.matches(u) {
			return true
		}
	}
	return false
}
