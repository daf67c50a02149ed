package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/getgraft/graft/internal/reason"
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
	Call                time.Duration // from Do's beginning to the last byte of the answer; 30 s
	RequestBody         int64         // bytes; 10 MiB
	ResponseBody        int64         // bytes, as they come; 10 MiB
	ResponseHeaderBytes int64         // 64 KiB
	ResponseHeaders     int           // lines; 256
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Call < 0 || l.RequestBody < 0 || l.ResponseBody < 0 || l.ResponseHeaderBytes < 0 || l.ResponseHeaders < 0 {
		return Limits{}, errors.New("a limit is negative")
	}
	if l.Call == 0 {
		l.Call = 30 * time.Second
	}
	if l.RequestBody == 0 {
		l.RequestBody = 10 << 20
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
	// One transport a scheme, so that a dialer knows which scheme it dials for and no connection made under one
	// rule serves the other.
	https, http *http.Transport
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
	c.https = c.transport("https", cfg)
	c.http = c.transport("http", cfg)
	return c, nil
}

func (c *Client) transport(scheme string, cfg Config) *http.Transport {
	dialer := &net.Dialer{
		Timeout:  10 * time.Second,
		Resolver: cfg.Resolver,
		Control:  c.policy.control(scheme),
	}
	return &http.Transport{
		Proxy:                  nil, // a proxy would be the one to connect, past the policy
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: c.limits.ResponseHeaderBytes,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        90 * time.Second,
	}
}

// Close closes the connections that no call is using.
func (c *Client) Close() {
	c.https.CloseIdleConnections()
	c.http.CloseIdleConnections()
}

// Do sends one request and returns the whole answer, whatever its status. What it refuses, and what goes wrong
// on the way, is a *reason.Refusal, except for a credential that does not open.
//
// Nothing is looked up or sent before the host has been found in the request's set, and no credential is opened
// before the request is complete.
func (c *Client) Do(ctx context.Context, req Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	u, to, err := c.target(ctx, req)
	if err != nil {
		return nil, err
	}
	out, err := c.build(ctx, req, u)
	if err != nil {
		return nil, err
	}
	if err := inject(out.Header, req.Inject); err != nil {
		return nil, err
	}
	// RoundTrip, not http.Client: no redirects, no cookies, and no errors that repeat the URL.
	transport := c.https
	if to.scheme == "http" {
		transport = c.http
	}
	resp, err := transport.RoundTrip(out)
	if err != nil {
		return nil, failure(ctx, to, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return c.read(ctx, to, resp)
}

// read takes the answer in, within the limits.
func (c *Client) read(ctx context.Context, to origin, resp *http.Response) (*Response, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, unavailable(to, "protocol", "%s switched to another protocol without being asked.", to)
	}
	lines := 0
	for _, values := range resp.Header {
		lines += len(values)
	}
	if lines > c.limits.ResponseHeaders {
		return nil, reason.Refuse(reason.TooLarge, "%s answered with %d headers; at most %d are taken.", to, lines, c.limits.ResponseHeaders)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.limits.ResponseBody+1))
	if err == nil {
		// Told that we hang up, the other side may end its body properly in the middle.
		err = ctx.Err()
	}
	if err != nil {
		return nil, failure(ctx, to, err)
	}
	if int64(len(body)) > c.limits.ResponseBody {
		return nil, reason.Refuse(reason.TooLarge, "%s answered with more than %d bytes. Ask for less at once.", to, c.limits.ResponseBody)
	}
	dropHopByHop(resp.Header)
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}
