package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
)

const (
	// accessLife is how long an access token lives.
	accessLife = time.Hour
	// clockLeeway is how far another replica's clock may be ahead when it says when it made a token.
	clockLeeway = 5 * time.Second
	// accessType is the typ of an access token's header (RFC 9068 §2.1).
	accessType = "at+jwt"
)

// claims are what an access token says (RFC 9068 §2.2). Its subject is the agent.
type claims struct {
	Issuer   string           `json:"iss"`
	Subject  string           `json:"sub"`
	Audience jwt.ClaimStrings `json:"aud"`
	ClientID string           `json:"client_id"`
	Grant    string           `json:"gid"`
	Org      string           `json:"org"`
	Scope    string           `json:"scope"`
	ID       string           `json:"jti"`
	IssuedAt *jwt.NumericDate `json:"iat"`
	Expires  *jwt.NumericDate `json:"exp"`
}

// They are validated by access, all of them, so that a token which only ran out is told from any other.
func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.Expires, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.IssuedAt, nil }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil } //nolint:nilnil // jwt.Claims wants it so
func (c claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c claims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c claims) GetAudience() (jwt.ClaimStrings, error)       { return c.Audience, nil }

// An issuer makes access tokens, and reads those that it made.
type issuer struct {
	origin string
	keys   *signing.Tokens
	now    func() time.Time
	parser *jwt.Parser
}

func newIssuer(origin string, keys *signing.Tokens, now func() time.Time) *issuer {
	return &issuer{origin, keys, now, jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())}
}

func (i *issuer) resource() string { return i.origin + "/mcp" }

// mint makes an access token of a grant.
func (i *issuer) mint(ctx context.Context, g store.GrantOf) (string, error) {
	kid, key, err := i.keys.Signer(ctx)
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	now := i.now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		Issuer: i.origin, Subject: g.Agent.String(), Audience: jwt.ClaimStrings{i.resource()}, ClientID: g.ClientID,
		Grant: g.Grant.String(), Org: g.Org.String(), Scope: g.Scope, ID: store.NewID[store.TokenKind](now).String(),
		IssuedAt: jwt.NewNumericDate(now), Expires: jwt.NewNumericDate(now.Add(accessLife)),
	})
	t.Header["typ"], t.Header["kid"] = accessType, kid.String()
	return t.SignedString(key)
}

// access is what an access token of ours says.
type access struct {
	agent   store.AgentID
	org     store.OrgID
	grant   store.GrantID
	id      store.TokenID
	client  string
	expires time.Time
}

var (
	errNotOurs = errors.New("oauth: not an access token of ours")
	errExpired = errors.New("oauth: the access token ran out")
)

// read verifies a token's signature and everything that it says. It is errExpired where all is right but its time, and
// errNotOurs for anything else; another error is a key that could not be read.
func (i *issuer) read(ctx context.Context, token string) (access, error) {
	var c claims
	var failed error // of reading the key
	t, err := i.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical || t.Header["typ"] != accessType {
			return nil, errNotOurs
		}
		text, _ := t.Header["kid"].(string) // whatever else the header says of keys is not looked at
		kid, err := store.ParseID[store.KeyKind](text)
		if err != nil {
			return nil, errNotOurs
		}
		public, err := i.keys.Public(ctx, kid)
		if err != nil && !errors.Is(err, signing.ErrUnknown) {
			failed = err
		}
		return public, err
	})
	switch {
	case failed != nil:
		return access{}, fmt.Errorf("read signing key: %w", failed)
	case err != nil || !t.Valid:
		return access{}, errNotOurs
	}
	return i.check(c)
}

func (i *issuer) check(c claims) (a access, err error) {
	var errs [4]error
	a.client = c.ClientID
	a.agent, errs[0] = store.ParseID[store.AgentKind](c.Subject)
	a.org, errs[1] = store.ParseID[store.OrgKind](c.Org)
	a.grant, errs[2] = store.ParseID[store.GrantKind](c.Grant)
	a.id, errs[3] = store.ParseID[store.TokenKind](c.ID)
	now := i.now()
	switch {
	case errors.Join(errs[:]...) != nil, c.Issuer != i.origin, len(c.Audience) != 1 || c.Audience[0] != i.resource(),
		c.Expires == nil, c.IssuedAt == nil, c.IssuedAt.After(now.Add(clockLeeway)):
		return access{}, errNotOurs
	}
	a.expires = c.Expires.Time
	if !now.Before(a.expires) {
		return access{}, errExpired
	}
	return a, nil
}
