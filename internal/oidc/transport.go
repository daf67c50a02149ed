package oidc

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/getgraft/graft/internal/egress"
)

const (
	answerTime  = 10 * time.Second // that the provider has for one answer
	answerLimit = 256 << 10        // bytes of one
)

// private are the networks that the provider itself may be in, since the operator named it. Link-local ones, where clouds
// serve credentials, are not among them.
var private = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("fc00::/7"),
}

// A way is the two ways out: to the issuer's own host, and to what else the provider names.
type way struct {
	issuer      *url.URL
	own, others *egress.Client
}

func newWay(issuer *url.URL) (*way, error) {
	own, err := egress.New(egress.Config{Allow: private})
	if err != nil {
		return nil, err
	}
	others, err := egress.New(egress.Config{})
	if err != nil {
		return nil, err
	}
	return &way{issuer, own, others}, nil
}

func (w *way) close() {
	w.own.Close()
	w.others.Close()
}

// client is an HTTP client for libraries, whose requests carry in. Where only is set, another status than 200 is an error.
func (w *way) client(only bool, in ...egress.Injection) *http.Client {
	return &http.Client{
		Transport:     transport{w, only, in},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type transport struct {
	way  *way
	only bool
	in   []egress.Injection
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it was read to its end
	}
	if t.way.issuer.Scheme == "https" && r.URL.Scheme != "https" {
		return nil, plainError("it names an address that is not https")
	}
	hosts, err := egress.ParseHosts(r.URL.Scheme + "://" + r.URL.Host)
	if err != nil {
		return nil, err
	}
	client := t.way.others
	if r.URL.Hostname() == t.way.issuer.Hostname() {
		client = t.way.own
	}
	answer, err := client.Do(r.Context(), egress.Request{
		Method: r.Method, URL: r.URL.String(), Header: http.Header{"Accept": {"application/json"}, "Content-Type": r.Header["Content-Type"]},
		Body: body, Hosts: hosts, Inject: t.in, Timeout: answerTime, AnswerLimit: answerLimit,
	})
	if err != nil {
		return nil, err
	}
	if t.only && answer.Status != http.StatusOK {
		return nil, statusError(answer.Status)
	}
	return &http.Response{
		StatusCode: answer.Status, Status: http.StatusText(answer.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header, Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)), Request: r,
	}, nil
}
