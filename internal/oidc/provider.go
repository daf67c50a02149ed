package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/vault"
)

// Config is what a Provider is made of. All of it is required.
type Config struct {
	Issuer   string // as ID tokens name it, to the letter
	ClientID string
	Secret   vault.Secret
	// Redirect is where the provider sends browsers back to.
	Redirect string
	Now      func() time.Time
}

// A Provider is where people sign in. It is safe for concurrent use.
type Provider struct {
	c      Config
	way    *way
	inject egress.Injection
	turn   chan struct{} // holds one token while nobody asks for the metadata

	mu      sync.Mutex
	known   *metadata
	until   time.Time // when known, or failure where there is none, is asked for anew
	failure error
}

// New makes a Provider and asks nothing of it.
func New(c Config) (*Provider, error) {
	issuer, err := CheckIssuer(c.Issuer)
	if err != nil {
		return nil, err
	}
	if c.ClientID == "" || c.Secret.IsZero() || c.Redirect == "" || c.Now == nil {
		return nil, errors.New("oidc: the configuration is not complete")
	}
	p := &Provider{c: c, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	if p.inject, err = egress.Basic(c.ClientID, c.Secret); err != nil {
		return nil, err
	}
	if p.way, err = newWay(issuer); err != nil {
		return nil, err
	}
	return p, nil
}

// CheckIssuer reads an issuer (OpenID Connect Discovery §3). Over plain http it is on this machine.
func CheckIssuer(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("must be https:// and a host, as the provider names itself")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil || len(s) > 500:
		return nil, errors.New("must have no user, query or fragment, and 500 characters at most")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, errors.New("must be https unless its host is loopback")
	}
	if _, err := egress.ParseHosts(u.Scheme + "://" + u.Host); err != nil {
		return nil, errors.New("must be https:// and a host, as the provider names itself")
	}
	return u, nil
}

// Close closes the connections to the provider.
func (p *Provider) Close() { p.way.close() }

// Issuer is the provider's name for itself, which identities are known by.
func (p *Provider) Issuer() string { return p.c.Issuer }

// Check asks the provider for its metadata.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.metadata(ctx)
	return err
}

// AuthURL is where the browser of f goes to sign in. again has the provider ask the person anew, whatever it remembers of
// them. An error is ErrUnavailable.
func (p *Provider) AuthURL(ctx context.Context, f Flow, again bool) (string, error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(f.verifier), oidc.Nonce(f.nonce)}
	if again {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return p.client(m).AuthCodeURL(f.state, options...), nil
}

func (p *Provider) client(m *metadata) *oauth2.Config {
	// The secret is none of the library's business: it joins the request on its way out.
	return &oauth2.Config{ClientID: p.c.ClientID, Endpoint: m.endpoint, RedirectURL: p.c.Redirect, Scopes: []string{oidc.ScopeOpenID}}
}

// Claims are what an ID token says of a person.
type Claims struct {
	Subject string
	SeenAt  time.Time // when they last signed in there; zero where it does not say
}

// Finish takes what the browser of f brought back, and finds out who it is. since is when f began, where it asked for the
// person anew; else it is zero. An error is a *Refusal, ErrUnavailable, ErrNotProven or ErrNotFresh.
func (p *Provider) Finish(ctx context.Context, f Flow, back url.Values, since time.Time) (Claims, error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return Claims{}, err
	}
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(back[name]) > 1 { // RFC 6749 §3.1
			return Claims{}, fmt.Errorf("%w: %s came more than once", ErrNotProven, name)
		}
	}
	// RFC 9207 §2.4, of errors too.
	if iss := back["iss"]; len(iss) == 0 && m.namesItself || len(iss) == 1 && iss[0] != p.c.Issuer {
		return Claims{}, fmt.Errorf("%w: it does not come from the issuer", ErrNotProven)
	}
	switch {
	case !f.Owns(back.Get("state")):
		return Claims{}, fmt.Errorf("%w: it is of another flow", ErrNotProven)
	case back.Get("error") != "":
		return Claims{}, refusal(back.Get("error"), back.Get("error_description"))
	case back.Get("code") == "":
		return Claims{}, fmt.Errorf("%w: it has no code", ErrNotProven)
	}
	token, err := p.client(m).Exchange(oidc.ClientContext(ctx, p.way.client(false, p.inject)), back.Get("code"), oauth2.VerifierOption(f.verifier))
	if err != nil {
		return Claims{}, notExchanged(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Claims{}, fmt.Errorf("%w: there is no ID token", ErrNotProven)
	}
	return p.verify(ctx, m, f, raw, since)
}

// leeway is how far the provider's clock may be from ours where an instant is compared.
const leeway = time.Minute

// verify is OpenID Connect Core §3.1.3.7.
func (p *Provider) verify(ctx context.Context, m *metadata, f Flow, raw string, since time.Time) (Claims, error) {
	keys := &heard{KeySet: m.keys}
	token, err := oidc.NewVerifier(p.c.Issuer, keys, &oidc.Config{ClientID: p.c.ClientID, SupportedSigningAlgs: m.algorithms, Now: p.c.Now}).Verify(ctx, raw)
	if keys.unavailable {
		return Claims{}, unavailable("fetch keys", keys.err)
	}
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %s", ErrNotProven, Plain(err.Error(), 200))
	}
	var more struct {
		AuthorizedParty *string `json:"azp"`
		AuthTime        float64 `json:"auth_time"`
	}
	if err := token.Claims(&more); err != nil {
		return Claims{}, fmt.Errorf("%w: its claims cannot be read", ErrNotProven)
	}
	c := Claims{Subject: token.Subject}
	if more.AuthTime > 0 && more.AuthTime < 1<<40 {
		c.SeenAt = time.Unix(int64(more.AuthTime), 0)
	}
	now := p.c.Now()
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.nonce)) != 1:
		return Claims{}, fmt.Errorf("%w: its nonce is of another flow", ErrNotProven)
	case more.AuthorizedParty != nil && *more.AuthorizedParty != p.c.ClientID, more.AuthorizedParty == nil && len(token.Audience) > 1:
		return Claims{}, fmt.Errorf("%w: it is for another party", ErrNotProven)
	case token.IssuedAt.After(now.Add(leeway)):
		return Claims{}, fmt.Errorf("%w: it is from the future", ErrNotProven)
	case !isSubject(token.Subject):
		return Claims{}, fmt.Errorf("%w: its subject is none", ErrNotProven)
	case c.SeenAt.After(now.Add(leeway)):
		return Claims{}, fmt.Errorf("%w: its time of sign-in is in the future", ErrNotProven)
	case !since.IsZero() && c.SeenAt.Before(since.Add(-leeway)):
		return Claims{}, ErrNotFresh
	}
	return c, nil
}

// isSubject says whether s is up to 255 characters of ASCII (OpenID Connect Core §2).
func isSubject(s string) bool {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, odd)
}

// heard remembers of a key set whether its keys could be had, which the verifier does not pass on.
type heard struct {
	oidc.KeySet
	unavailable bool
	err         error
}

// VerifySignature implements oidc.KeySet.
func (h *heard) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := h.KeySet.VerifySignature(ctx, jwt)
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys") {
		h.unavailable, h.err = true, err
	}
	return payload, err
}

// asymmetric are the algorithms under which a token cannot be made with what we know (RFC 7518 §3.1, RFC 8037 §3.1).
var asymmetric = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

func isAsymmetric(alg string) bool { return slices.Contains(asymmetric, alg) }
