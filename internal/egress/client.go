package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Config is what a Client is made of. The zero value is a client for the public internet.
type Config struct {
	// Allow are networks exempt from the address policy and from https-only, for private networks and tests.
	// A network larger than any private one is refused: the policy has no off switch.
	Allow []netip.Prefix
	// Resolver looks names up. Nil is the system's.
	Resolver *net.Resolver
	// RootCAs are trusted to sign the certificates of other parties. Nil is the system's.
	RootCAs *x509.CertPool
	Limits  Limits
}

// Limits bound every call. A zero field is its default.
type Limits struct {
	Call                time.Duration // from the call's beginning to the last byte of the answer; 30 s
	RequestBody         int64         // bytes; 10 MiB
	RequestHeaderBytes  int64         // of names and values that the caller gives; 64 KiB
	RequestHeaders      int           // lines; 256
	ResponseBody        int64         // bytes, as they come and decompressed; 10 MiB
	ResponseHeaderBytes int64         // 64 KiB
	ResponseHeaders     int           // lines; 256
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Call < 0 || l.RequestBody < 0 || l.RequestHeaderBytes < 0 || l.RequestHeaders < 0 || l.ResponseBody < 0 || l.ResponseHeaderBytes < 0 || l.ResponseHeaders < 0 {
		return Limits{}, errors.New("a limit is negative")
	}
	if l.Call == 0 {
		l.Call = 30 * time.Second
	}
	if l.RequestBody == 0 {
		l.RequestBody = 10 << 20
	}
	if l.RequestHeaderBytes == 0 {
		l.RequestHeaderBytes = 64 << 10
	}
	if l.RequestHeaders == 0 {
		l.RequestHeaders = 256
	}
	if l.ResponseBody == 0 {
		l.ResponseBody = 10 << 20
	}
	if l.ResponseHeaderBytes == 0 {
		l.ResponseHeaderBytes = 64 << 10
	}
	if l.ResponseHeaders == 0 {
		l.ResponseHeaders = 256
	}
	return l, nil
}

// A Client sends requests to other parties. It is safe for concurrent use and keeps connections for reuse until
// Close.
type Client struct {
	policy *policy
	limits Limits
	// One transport a rule, so that a dialer knows which scheme it dials for and no connection made under one rule
	// serves another.
	https, http, ownPort *http.Transport
}

// New makes a client.
func New(cfg Config) (*Client, error) {
	limits, err := cfg.Limits.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make egress client: %w", err)
	}
	policy, err := newPolicy(cfg.Allow)
	if err != nil {
		return nil, fmt.Errorf("make egress client: %w", err)
	}
	c := &Client{policy: policy, limits: limits}
	c.https = c.transport(cfg, c.policy.control("https", false))
	c.http = c.transport(cfg, c.policy.control("http", false))
	c.ownPort = c.transport(cfg, c.policy.control("https", true))
	return c, nil
}

func (c *Client) transport(cfg Config, control control) *http.Transport {
	dialer := &net.Dialer{
		Timeout:  10 * time.Second,
		Resolver: cfg.Resolver,
		Control:  control,
	}
	return &http.Transport{
		Proxy:                  nil, // a proxy would be the one to connect, past the policy
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: c.limits.ResponseHeaderBytes,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    128, // as many as call one upstream at once, so that none of them has to dial
		IdleConnTimeout:        90 * time.Second,
	}
}

// Close closes the connections that no call is using.
func (c *Client) Close() {
	c.https.CloseIdleConnections()
	c.http.CloseIdleConnections()
	c.ownPort.CloseIdleConnections()
}

// Do is Stream for an answer that is wanted whole.
func (c *Client) Do(ctx context.Context, req Request) (*Response, error) {
	s, err := c.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	body, err := s.ReadAll()
	if err != nil {
		return nil, err
	}
	if s.sized {
		s.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return &Response{Status: s.Status, Header: s.Header, Body: body, Redacted: s.Redacted}, nil
}
