package oauth

import (
	"context"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A Verifier turns bearers into Callers. It remembers what it found and is a bus.Listener, so that it forgets in time.
type Verifier struct {
	db *store.DB
	*verified
}

// NewVerifier makes a Verifier over db. While healthy is false every request is looked up.
func NewVerifier(db *store.DB, healthy func() bool) (*Verifier, error) {
	known, err := newVerified(healthy)
	return &Verifier{db, known}, err
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

// Verify resolves a request's bearer to its Caller. What it refuses with is token_missing or token_unknown; a
// database that cannot be reached is unavailable.
func (v *Verifier) Verify(ctx context.Context, h http.Header) (store.Caller, error) {
	token, err := Token(h)
	if err != nil {
		return store.Caller{}, err
	}
	if !store.WellFormed(store.StaticTokenPrefix, token) {
		return store.Caller{}, unknown()
	}
	hash := store.HashToken(token)
	c, err := v.resolve(ctx, hash, func(ctx context.Context) (store.Caller, error) { return v.lookUp(ctx, hash) })
	if store.IsAbsent(err) {
		return store.Caller{}, unknown()
	}
	return c, err
}

func (v *Verifier) lookUp(ctx context.Context, hash store.TokenHash) (store.Caller, error) {
	b, err := v.db.System().Bearer(ctx, hash)
	if err != nil {
		return store.Caller{}, err
	}
	return store.Caller{Org: b.Org, User: b.User, Agent: b.Agent, Role: b.Role, Via: store.ViaBearer}, nil
}
