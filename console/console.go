package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
)

// Config is what a Handler needs. All of it is required but Address, SignOn, Stop and Tried.
type Config struct {
	DB      *store.DB
	Catalog *catalog.Catalog
	// Desk shows what an ask is about.
	Desk *approval.Desk
	// Connections makes, mends and ends them.
	Connections *connect.Desk
	// Consent keeps what apps ask for until somebody has answered it here.
	Consent *consent.Desk
	// Audit is told every change and decision that is made here.
	Audit *audit.Writer
	// Upstreams are added, tested and changed here.
	Upstreams *upstream.Source
	// SignOn is where people may sign in beside here. Nil: nowhere.
	SignOn *SignOn
	// Origin is the deployment's own, as in https://graft.example.org: no path, no slash. Under https the session's
	// cookie is Secure and bound to the host.
	Origin string
	Log    *slog.Logger
	// Now is the clock of sessions and of "12 s ago".
	Now func() time.Time
	// Streams is how many MCP streams an agent has open on this replica.
	Streams func(store.AgentID) int
	// LiveEvery is how often a live page looks for changes.
	LiveEvery time.Duration
	// Tried counts an attempt to sign in with an address, and refuses one too many. Nil: none is.
	Tried func(w http.ResponseWriter, r *http.Request, email string) error
	// Address is where a request came from, as a person's list of sessions shows it. Nil: it shows none.
	Address func(*http.Request) string
	// Refused notes the word that a request was refused with, for its log line.
	Refused func(ctx context.Context, word reason.Word)
	// Stop ends the live streams when it is closed, while requests under way go on. Nil: never.
	Stop <-chan struct{}
	// RequestID is the id of the request that ctx belongs to.
	RequestID func(context.Context) string
}

// A Handler has a method for every screen. A screen returns what it could not do, for Fail to draw.
type Handler struct {
	c         Config
	host      string // of Origin, as a page's foot shows it
	secure    bool   // Origin is https
	sessions  *scs.SessionManager
	party     *webauthn.WebAuthn // who passkeys are made for; nil where there can be none
	passwords *passwords
	slots     *slots
	keepAlive time.Duration // the longest silence on a live stream
}

// New makes a Handler.
func New(c Config) (*Handler, error) {
	u, err := url.Parse(c.Origin)
	if err != nil || u.Host == "" || u.Path != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("console: origin %q is not http:// or https:// and a host alone", c.Origin)
	}
	if c.DB == nil || c.Catalog == nil || c.Desk == nil || c.Connections == nil || c.Consent == nil || c.Upstreams == nil || c.Audit == nil || c.Log == nil || c.Now == nil || c.Streams == nil || c.RequestID == nil || c.Refused == nil || c.LiveEvery <= 0 {
		return nil, errors.New("console: the configuration is not complete")
	}
	h := &Handler{
		c: c, host: u.Host, secure: u.Scheme == "https",
		passwords: newPasswords(), slots: newSlots(liveStreams), keepAlive: 15 * time.Second,
	}
	if h.party, err = newRelyingParty(u); err != nil {
		return nil, fmt.Errorf("console: passkeys for %s: %w", c.Origin, err)
	}
	h.sessions = h.newSessions()
	return h, nil
}

// gateway is the address that clients are given.
func (h *Handler) gateway() string { return h.c.Origin + "/mcp" }
