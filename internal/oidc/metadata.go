package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// metadata is what a provider says of itself (OpenID Connect Discovery §3).
type metadata struct {
	endpoint    oauth2.Endpoint
	keys        oidc.KeySet
	algorithms  []string // asymmetric ones that it signs with
	namesItself bool     // its answers carry iss (RFC 9207 §3)
}

const (
	// metadataLife is how long metadata and the keys that were fetched for it are held to.
	metadataLife = time.Hour
	// metadataTime is what the provider has to tell it, in which somebody waits.
	metadataTime = 5 * time.Second
	// failureLife is how long a provider that could not be used is left alone.
	failureLife = 5 * time.Second
)

// metadata is the provider's, asked for when it is wanted. Of many who want it one asks. Where it cannot be had anew, what
// was known goes on for a while.
func (p *Provider) metadata(ctx context.Context) (*metadata, error) {
	if m, err, ok := p.remembered(); ok {
		return m, err
	}
	select {
	case <-p.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	defer func() { p.turn <- struct{}{} }()
	if m, err, ok := p.remembered(); ok {
		return m, err
	}
	// Others wait for it too: whoever asks first and leaves does not take it from them.
	m, err := p.discover(context.WithoutCancel(ctx))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.known, p.failure, p.until = m, nil, p.c.Now().Add(metadataLife)
	case p.known != nil:
		p.until = p.c.Now().Add(time.Minute)
	default:
		p.failure, p.until = err, p.c.Now().Add(failureLife)
	}
	return p.known, p.failure
}

func (p *Provider) remembered() (*metadata, error, bool) { //nolint:revive // an error that is remembered is a value
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.failure, p.c.Now().Before(p.until)
}

// discover asks the provider.
func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.way.client(true)), metadataTime)
	defer cancel()
	found, err := oidc.NewProvider(ctx, p.c.Issuer)
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		err = plainError("it calls itself " + Plain(other.Discovered, 200))
	}
	if err != nil {
		return nil, unavailable("read the provider's metadata", err)
	}
	var says struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Methods    []string `json:"token_endpoint_auth_methods_supported"`
		Names      bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, unavailable("read the provider's metadata", err)
	}
	m := &metadata{endpoint: found.Endpoint(), namesItself: says.Names, algorithms: []string{oidc.RS256}}
	if says.Algorithms != nil {
		m.algorithms = slices.DeleteFunc(slices.Clone(says.Algorithms), func(alg string) bool { return !isAsymmetric(alg) })
	}
	for name, at := range map[string]string{"authorization_endpoint": m.endpoint.AuthURL, "token_endpoint": m.endpoint.TokenURL, "jwks_uri": says.Keys} {
		if !p.reachable(at) {
			return nil, unavailable("read the provider's metadata", plainError("its "+name+" is no address that may be used"))
		}
	}
	switch {
	case len(m.algorithms) == 0:
		return nil, unavailable("read the provider's metadata", plainError("it signs ID tokens with no asymmetric algorithm that is known here"))
	case says.Methods != nil && !slices.Contains(says.Methods, "client_secret_basic"):
		return nil, unavailable("read the provider's metadata", plainError("its token endpoint does not take client_secret_basic"))
	}
	m.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	m.keys = oidc.NewRemoteKeySet(ctx, says.Keys) // which takes the client of ctx alone
	return m, nil
}

// reachable says whether the provider may name that address: https, or like the issuer's own on this machine.
func (p *Provider) reachable(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && p.way.issuer.Scheme == "http" && u.Hostname() == p.way.issuer.Hostname()
}

// loopback reports whether a host name or literal is this machine.
func loopback(h string) bool {
	if h == "localhost" || strings.HasSuffix(h, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(h)
	return err == nil && a.IsLoopback()
}
