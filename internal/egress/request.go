package egress

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/getgraft/graft/internal/reason"
)

// A Request is one call to another party.
type Request struct {
	Method string // GET if empty; CONNECT and TRACE are refused
	URL    string // its path and query go out as they are written
	Header http.Header
	Body   []byte
	Hosts  Hosts // where it may go
	Inject []Injection
	// OwnPort refuses another port than the scheme's own, for URLs that anybody may name. In an exempt network any will do.
	OwnPort bool

	// Timeout is in place of Limits.Call where it is not 0. A negative one is none: the call lasts as long as its ctx.
	Timeout time.Duration
	// Silence is how long the other side may send nothing before the call ends; 0 is as long as it likes.
	Silence time.Duration
	// Follow is how many redirects are followed, 3 at most: of GET and HEAD, and the 303 that another method is answered with.
	// Each hop is decided as the request was, and one to where it may not go, from https to http, or that would do something
	// again is returned as the answer. The credential goes to the request's own origin alone.
	Follow int

	// AnswerLimit is in place of Limits.ResponseBody where it is not 0.
	AnswerLimit int64
}

// A Response is the whole answer to a Request. Redirects are answers like any other, unless they are followed. A body that is
// compressed although that is not asked for is decompressed, once: gzip, deflate, zstd and br. What else it may be encoded
// with is left as it is, and refused if a credential went out, which could not be found in it. Cookies are handed over
// like any header, and not kept.
type Response struct {
	Status   int
	Header   http.Header // without those of the connection
	Body     []byte
	Redacted bool // the other side sent a secret back, in whose place there is now "[redacted]"
}

// target returns where the request goes, once the host set and the address policy have passed it.
func (c *Client) target(ctx context.Context, req Request) (*url.URL, origin, error) {
	u, err := url.Parse(req.URL)
	if err != nil {
		// Not err, which repeats the URL.
		return nil, origin{}, reason.Refuse(reason.InputInvalid, "The URL cannot be parsed.").Field("url")
	}
	to, refusal := originOf(u)
	if refusal != nil {
		return nil, origin{}, refusal.Field("url")
	}
	if refusal := req.Hosts.check(to, u); refusal != nil {
		return nil, origin{}, refusal
	}
	if err := c.policy.checkOrigin(to, req.OwnPort); err != nil {
		return nil, origin{}, failure(ctx, to, err)
	}
	u.Host = to.hostPort()
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, to, nil
}

// build makes the request that is sent, without its credential.
func (c *Client) build(ctx context.Context, req Request, u *url.URL) (*http.Request, *sent, error) {
	switch strings.ToUpper(req.Method) {
	case http.MethodConnect, http.MethodTrace: // one is for proxies, the other asks for the credential back
		return nil, nil, refusedMethod()
	}
	if int64(len(req.Body)) > c.limits.RequestBody {
		return nil, nil, reason.Refuse(reason.TooLarge, "The request body has %d bytes; at most %d are sent.", len(req.Body), c.limits.RequestBody)
	}
	if err := c.limits.checkHeaders(req.Header); err != nil {
		return nil, nil, err
	}
	header, err := forwarded(req.Header)
	if err != nil {
		return nil, nil, err
	}
	sent := &sent{}
	// A plain bytes.Reader, of which net/http knows that its head and body may go out in one packet.
	out, err := http.NewRequestWithContext(sent.watch(withoutHeaderTrace{ctx}), req.Method, "", bytes.NewReader(req.Body))
	if err != nil {
		return nil, nil, refusedMethod() // not err, which repeats the method
	}
	out.URL, out.Host, out.Header = u, u.Host, header
	return out, sent, nil
}

// sent knows whether a request was handed to a connection. net/http takes another connection where it knows that nothing
// went out over the first.
type sent struct{ began atomic.Bool }

func (s *sent) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.began.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { s.began.Store(true) },
	})
}

func refusedMethod() *reason.Refusal {
	return reason.Refuse(reason.InputInvalid, "A request is not sent with that method.").Field("method")
}

// escapeQuery encodes the bytes that may not stand in a request line (RFC 3986 §2.1) and leaves the rest alone.
func escapeQuery(q string) string {
	stands := func(r rune) bool { return r > ' ' && r < 0x7f }
	if strings.IndexFunc(q, func(r rune) bool { return !stands(r) }) < 0 {
		return q
	}
	var out strings.Builder
	for _, b := range []byte(q) {
		if stands(rune(b)) {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// withoutHeaderTrace hides the caller's httptrace.ClientTrace, whose WroteHeaderField would be shown the credential.
// Traces of DNS and of connections, which package net does, go on.
type withoutHeaderTrace struct{ context.Context }

func (c withoutHeaderTrace) Value(key any) any {
	v := c.Context.Value(key)
	if _, is := v.(*httptrace.ClientTrace); is {
		return nil
	}
	return v
}
