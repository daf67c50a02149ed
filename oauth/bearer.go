package oauth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
)

// A Verifier turns bearers into Callers. It remembers what it found and is a bus.Listener, so that it forgets in time.
type Verifier struct {
	db     *store.DB
	issuer *issuer
	*verified
}

// VerifierConfig is what a Verifier needs. All of it is required.
type VerifierConfig struct {
	DB      *store.DB
	Origin  string
	Keys    *signing.Tokens
	Healthy func() bool // of the bus: while it is false every request is looked up
	Now     func() time.Time
}

// NewVerifier makes a Verifier.
func NewVerifier(c VerifierConfig) (*Verifier, error) {
	known, err := newVerified(c.Healthy, c.Now)
	return &Verifier{c.DB, newIssuer(c.Origin, c.Keys, c.Now), known}, err
}

// Token reads the bearer token of a request. Without an Authorization header of that scheme there is none; a header
// of that scheme whose token cannot be one, or more than one header, is a token nobody knows.
func Token(h http.Header) (token string, err error) {
	lines := h["Authorization"]
	if len(lines) == 0 {
		return "", missing()
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if len(lines) == 1 && !strings.EqualFold(scheme, "Bearer") { // the scheme in any case: RFC 9110 §11.1
		return "", missing()
	}
	token = strings.Trim(token, " ")
	if len(lines) > 1 || len(lines[0]) > maxHeader || !token68(token) {
		return "", unknown()
	}
	return token, nil
}

// token68 reports whether s is made as RFC 6750 §2.1 wants a token: these characters, then any number of =.
func token68(s string) bool {
	body := strings.TrimRight(s, "=")
	for i := range len(body) {
		c := body[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-._~+/", c) < 0 {
			return false
		}
	}
	return body != ""
}

// maxHeader is longer than any token of ours makes the header.
const maxHeader = 4096

func missing() error {
	return reason.Refuse(reason.TokenMissing, "Send the agent's token as Authorization: Bearer.")
}

func unknown() error {
	return reason.Refuse(reason.TokenUnknown, "This token belongs to no agent, or its agent was revoked. Make a new one in the console.")
}

func expired() error {
	return reason.Refuse(reason.TokenExpired, "This access token ran out. Use the refresh token to get a new one.")
}

// Verify resolves a request's bearer to its Caller. What it refuses with is token_missing, token_unknown or token_expired;
// a database that cannot be reached is unavailable.
func (v *Verifier) Verify(ctx context.Context, h http.Header) (store.Caller, error) {
	token, err := Token(h)
	if err != nil {
		return store.Caller{}, err
	}
	hash := store.HashToken(token)
	var ask func(context.Context) (proven, error)
	switch {
	case store.WellFormed(store.StaticTokenPrefix, token):
		ask = func(ctx context.Context) (proven, error) { return v.static(ctx, hash) }
	case strings.Count(token, ".") == 2:
		ask = func(ctx context.Context) (proven, error) { return v.access(ctx, token) }
	default:
		return store.Caller{}, unknown()
	}
	c, err := v.resolve(ctx, hash, ask)
	switch {
	case errors.Is(err, errExpired):
		return store.Caller{}, expired()
	case store.IsAbsent(err), errors.Is(err, errNotOurs): // the latter is not remembered: it may be made sense of in a moment
		return store.Caller{}, unknown()
	}
	return c, err
}

// static looks an agent's static token up.
func (v *Verifier) static(ctx context.Context, hash store.TokenHash) (proven, error) {
	b, err := v.db.System().Bearer(ctx, hash)
	if err != nil {
		return proven{}, err
	}
	return proven{Caller: store.Caller{Org: b.Org, User: b.User, Agent: b.Agent, Role: b.Role, Via: store.ViaBearer}}, nil
}

// access reads an access token, and looks up whether what it says is still so.
func (v *Verifier) access(ctx context.Context, token string) (proven, error) {
	a, err := v.issuer.read(ctx, token)
	if err != nil {
		return proven{}, err
	}
	g, err := v.db.System().LiveGrant(ctx, a.grant, a.id)
	if err != nil {
		return proven{}, err
	}
	if g.Agent != a.agent || g.Org != a.org || g.ClientID != a.client {
		return proven{}, reason.NotFound
	}
	return proven{holder(g), a.expires}, nil
}

// holder is who acts by what was given of a grant.
func holder(g store.GrantOf) store.Caller {
	return store.Caller{Org: g.Org, User: g.User, Agent: g.Agent, Grant: g.Grant, Role: g.Role, Via: store.ViaBearer}
}
