package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
)

// Config is what a Server needs.
type Config struct {
	// DB is where clients, grants and tokens are. Required.
	DB *store.DB
	// Origin is the deployment's own, without a path or a slash at the end: the issuer (RFC 8414 §2). Required.
	Origin string
	// Keys are what access tokens are signed with. Required.
	Keys *signing.Tokens
	// Documents are the clients whose id is a document's URL. Required.
	Documents *Documents
	// Audit is told of grants that end here. Required.
	Audit *audit.Writer
	// Log is told of what went wrong on our side; nil for nobody.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Server is the authorization server's endpoints. Each is a method that server mounts.
type Server struct {
	c         Config
	clients   clients
	discovery discovery
	issuer    *issuer
	desk      *consent.Desk
}

// New makes a Server.
func New(c Config) (*Server, error) {
	if c.DB == nil || c.Keys == nil || c.Documents == nil || c.Audit == nil {
		return nil, errors.New("oauth: a database, keys, documents and an audit log are required")
	}
	if site, path := cutSite(c.Origin); site == "" || site != c.Origin || path != "" {
		return nil, fmt.Errorf("oauth: %q is no origin: it must be a scheme and a host in lower case, with a port that is not the default, and nothing else", c.Origin)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{c: c, discovery: discoveryOf(c.Origin), issuer: newIssuer(c.Origin, c.Keys, c.Now)}
	s.clients = clientsFunc(s.redeeming)
	s.desk = consent.NewDesk(consent.Config{DB: c.DB, Prover: s, Issuer: c.Origin, Now: c.Now})
	return s, nil
}

// Desk is where what clients ask for waits for people.
func (s *Server) Desk() *consent.Desk { return s.desk }

// Fail answers a request that was refused before it came here.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	s.fail(w, r, err)
}

// fail answers a request that went wrong, and logs what is withheld from it.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := faultOf(err)
	id := slog.String("request_id", w.Header().Get("X-Request-Id"))
	switch {
	case r.Context().Err() != nil && errors.Is(err, context.Canceled): // the client left
	case f == serverError:
		s.c.Log.ErrorContext(r.Context(), "request failed", slog.Any("err", err), id)
	case f == temporarilyUnavailable:
		s.c.Log.WarnContext(r.Context(), "database unavailable", slog.Any("err", err), id)
	}
	writeFault(w, f)
}
