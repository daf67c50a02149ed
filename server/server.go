package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/httprate"
	"golang.org/x/sync/errgroup"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/invoke"
	"github.com/getgraft/graft/internal/job"
	"github.com/getgraft/graft/internal/oidc"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/mcp"
	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/oauth"
	"github.com/getgraft/graft/web"
)

// Deps is what a Server is given beside its Config. All of it is required but Now, KeepAlive and BodyTime.
type Deps struct {
	DB *store.DB
	// DirectURL is a direct connection to DB's database, for the bus and for jobs.
	DirectURL string
	Master    *vault.MasterKeys
	Log       *slog.Logger
	Version   string
	// Sources are where tools come from beside the builtins; tests add their own.
	Sources []catalog.Source
	// Offer is what is served beside tools; nil is nothing. Tests give one.
	Offer mcp.Offer
	// Now is the clock of sessions and pages; nil is the database handle's.
	Now func() time.Time
	// KeepAlive is the pause between comments on an idle stream; 0 is 15 s.
	KeepAlive time.Duration
	// BodyTime is how long a request's body may take to arrive; 0 is 60 s.
	BodyTime time.Duration
}

// A Server is one replica of the gateway.
type Server struct {
	c            settings
	db           *store.DB
	log          *slog.Logger
	version      string
	bodyTime     time.Duration
	verifier     *oauth.Verifier
	oauth        *oauth.Server
	bus          *bus.Bus
	sessions     *sealBox
	signing      *signing.Keys
	tokens       *signing.Tokens
	jobs         *job.Client
	audit        *audit.Writer
	desk         *approval.Desk
	invoker      *invoke.Invoker
	keys         *vault.Keyring
	egress       *egress.Client // to upstreams
	documents    *egress.Client // to the documents of clients: to public addresses alone
	provider     *oidc.Provider // where people may sign in too; nil: nowhere
	upstream     *upstream.Source
	mcp          *mcp.Handler
	console      *console.Handler
	mcpLimit     *httprate.RateLimiter // nil: none
	accountLimit *httprate.RateLimiter // nil: none
	pages        pages
	schema       schema
	metrics      *metrics
	handler      http.Handler
	// sameOrigin refuses state changes that another site's page sends.
	sameOrigin func(http.Handler) http.Handler
	stopping   atomic.Bool
	stop       chan struct{} // closed when Serve begins to stop; open streams end on it
}

// New checks the configuration, reads the keys, and puts the parts together. It stops where the database's schema is
// older than this binary needs; a newer one is fine, since migrations expand before they contract.
func New(ctx context.Context, c Config, d Deps) (*Server, error) {
	set, err := c.settle()
	if err != nil {
		return nil, err
	}
	have, err := d.DB.System().SchemaVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	if have < migrations.Latest() {
		return nil, fmt.Errorf("the database schema is at %d and %d is needed: run graft migrate", have, migrations.Latest())
	}
	if d.Now == nil {
		d.Now = d.DB.Now
	}
	if d.KeepAlive == 0 {
		d.KeepAlive = 15 * time.Second
	}
	if d.BodyTime == 0 {
		d.BodyTime = bodyTime
	}
	s := &Server{c: set, db: d.DB, log: d.Log, version: d.Version, bodyTime: d.BodyTime, stop: make(chan struct{})}
	s.bus = bus.New(bus.Config{URL: d.DirectURL, Log: d.Log})
	s.signing = signing.New(d.DB, d.Master)
	s.tokens = s.signing.Tokens(d.Now)
	s.verifier, err = oauth.NewVerifier(oauth.VerifierConfig{DB: d.DB, Origin: set.Origin, Keys: s.tokens, Healthy: s.bus.Healthy, Now: d.Now})
	if err != nil {
		return nil, err
	}
	s.bus.Listen(s.verifier)
	if s.sessions, err = openBox(ctx, d.DB, d.Master, SessionKeys); err != nil {
		return nil, err
	}
	if s.jobs, err = job.Open(ctx, job.Config{URL: d.DirectURL, Log: d.Log, Periodic: s.periodic()}); err != nil {
		return nil, err
	}
	d.DB.InsertJobsWith(s.jobs.Insert)
	if s.keys, err = OpenKeyring(d.DB, d.Master); err != nil {
		return nil, err
	}
	s.bus.Listen(keyringListener{s.keys})
	s.mcpLimit = set.mcp.limiter(agentKey, s.failMCP)
	s.accountLimit = set.account.limiter(s.addressKey, s.failPage) // by the key that tried gives it
	if s.egress, err = set.Client(); err != nil {
		return nil, err
	}
	static, err := c.ClientDocuments()
	if err != nil {
		return nil, err
	}
	// Whoever is signed in has documents fetched, so what upstreams are exempt from does not hold for them.
	if s.documents, err = egress.New(egress.Config{}); err != nil {
		return nil, err
	}
	documents, err := oauth.NewDocuments(oauth.DocumentsConfig{DB: d.DB, Client: s.documents, Static: static, Log: d.Log})
	if err != nil {
		return nil, err
	}
	s.audit = audit.New(audit.Config{DB: d.DB, Log: d.Log})
	s.oauth, err = oauth.New(oauth.Config{DB: d.DB, Origin: set.Origin, Keys: s.tokens, Documents: documents, Audit: s.audit, Log: d.Log, Now: d.Now})
	if err != nil {
		return nil, err
	}
	s.upstream, err = upstream.NewSource(upstream.Config{
		DB: d.DB, Keys: s.keys, Client: s.egress, Healthy: s.bus.Healthy, Version: d.Version, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	s.bus.Listen(s.upstream)
	tools, err := catalog.New(s.bus.Healthy, append([]catalog.Source{catalog.Builtins{}, s.upstream}, d.Sources...)...)
	if err != nil {
		return nil, err
	}
	s.bus.Listen(tools) // before whoever reads from it
	s.desk = approval.NewDesk(d.DB, s.keys, set.Origin)
	connections, err := connect.NewDesk(connect.Config{DB: d.DB, Keys: s.keys, Egress: s.egress, Link: s.desk.Link, Healthy: s.bus.Healthy})
	if err != nil {
		return nil, err
	}
	s.bus.Listen(connections)
	s.invoker, err = invoke.New(invoke.Config{
		Catalog: tools, DB: d.DB, Desk: s.desk, Keys: s.keys, Audit: s.audit, Log: d.Log, Healthy: s.bus.Healthy, Now: d.Now,
	})
	if err != nil {
		return nil, err
	}
	s.bus.Listen(s.invoker)
	s.mcp, err = mcp.New(mcp.Config{
		DB: d.DB, Bus: s.bus, Verify: s.verifier.Verify, Offer: d.Offer, Catalog: tools, Invoker: s.invoker, Connections: connections, Audit: s.audit, Sessions: s.sessions.Box, Version: d.Version, Log: d.Log,
		Now: d.Now, KeepAlive: d.KeepAlive, Stop: s.stop, Address: s.address, RequestID: RequestID,
		Spend: s.spend, Refused: noteReason,
	})
	if err != nil {
		return nil, err
	}
	signOn, err := s.signOn(d.Now)
	if err != nil {
		return nil, err
	}
	s.console, err = console.New(console.Config{
		SignOn: signOn,
		DB:     d.DB, Catalog: tools, Desk: s.desk, Connections: connections, Consent: s.oauth.Desk(), Audit: s.audit, Upstreams: s.upstream, Origin: set.Origin, Log: d.Log, Now: d.Now, Streams: s.mcp.AgentStreams,
		Address: s.address, LiveEvery: time.Second, Stop: s.stop, Tried: s.tried, Refused: noteReason, RequestID: RequestID,
	})
	if err != nil {
		return nil, err
	}
	s.metrics = newMetrics(d.Version, s.mcp.Streams)
	guard := http.NewCrossOriginProtection()
	if err := guard.AddTrustedOrigin(set.Origin); err != nil {
		return nil, err
	}
	guard.SetDenyHandler(s.page(func(http.ResponseWriter, *http.Request) error {
		return reason.Refuse(reason.OriginNotAllowed, "This form was sent from another site, so nothing was done.")
	}))
	s.sameOrigin = guard.Handler
	s.handler = s.routes()
	return s, nil
}

// Handler is the whole gateway as one handler.
func (s *Server) Handler() http.Handler { return s.handler }

// drain is how long running requests may take to finish once the server stops.
const drain = 30 * time.Second

// Serve answers on l, and on metricsListener where there is one, until ctx ends. Then it takes itself out of
// readiness, ends open streams so that clients reconnect elsewhere, lets running requests finish, and writes down
// what is pending. It is called once.
func (s *Server) Serve(ctx context.Context, l, metricsListener net.Listener) error {
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()

	servers := []*http.Server{s.httpServer(s.handler)}
	listeners := []net.Listener{l}
	if metricsListener != nil {
		servers, listeners = append(servers, s.httpServer(s.metrics.handler())), append(listeners, metricsListener)
	}

	recording, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var beside, serving, writing errgroup.Group
	writing.Go(func() error { s.audit.Run(recording); return nil })
	beside.Go(func() error { s.bus.Run(background); return nil })
	beside.Go(func() error { s.mcp.Run(background); return nil })
	beside.Go(func() error { s.sessions.run(background, s.log); return nil })
	beside.Go(func() error {
		s.upstream.Keep(background)
		s.egress.Close()
		s.documents.Close()
		if s.provider != nil {
			s.provider.Close()
		}
		return nil
	})
	beside.Go(func() error { s.sweep(background); return nil })
	beside.Go(func() error { s.jobs.Run(background); return nil })
	defer s.jobs.Close()
	failed := make(chan error, len(servers))
	for i, srv := range servers {
		serving.Go(func() error {
			err := srv.Serve(listeners[i])
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			failed <- err
			return err
		})
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stopping.Store(true)
	close(s.stop)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, srv := range servers {
		if stopErr := srv.Shutdown(late); stopErr != nil {
			s.log.Warn("requests cut off", slog.Any("err", stopErr))
			_ = srv.Close() // what did not finish in time is ended
		}
	}
	err = errors.Join(err, serving.Wait())
	s.invoker.Stop(late)
	stopBackground()
	err = errors.Join(err, beside.Wait())
	stopAudit() // last: what ended until now is written down
	return errors.Join(err, writing.Wait())
}

// httpServer has every limit but one on writing: a stream sets its own for each write.
func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h,
		// OPTIONS * is a path like any other: net/http's own answer to it waits for a body.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               64 << 10,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// sweepEvery is how often browser sessions and one-time links that ran out are deleted.
const sweepEvery = 10 * time.Minute

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.db.System().Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "sweep failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// notFound answers a path or method that no route has: JSON where programs ask, a page elsewhere.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/.well-known/openid-configuration/") || strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		s.oauth.NoOpenID(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/.well-known/") || strings.HasPrefix(r.URL.Path, "/mcp/") {
		s.failMCP(w, r, reason.Refuse(reason.NotFoundWord, "Nothing is served at this path."))
		return
	}
	secured(s.ownHost(s.failPage)(s.console.Session(s.page(s.console.NotFound)))).ServeHTTP(w, r)
}

// favicon is for browsers that ask before they have read the page.
func (s *Server) favicon(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, web.Asset("mark.svg"), http.StatusFound)
}
