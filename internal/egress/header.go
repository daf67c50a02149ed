package egress

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/getgraft/graft/internal/reason"
)

// hopByHop are the headers of one connection (RFC 9110 §7.6.1), which no gateway forwards. Connection itself may
// name more.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// ours are request headers that the client sets itself, or that carry a credential: a credential is injected, or
// there is none.
var ours = []string{
	"Accept-Encoding", "Authorization", "Content-Length", "Cookie", "Expect", "Host", "Proxy-Authorization",
}

// inbound are request headers that say how a request came to us, or belong to the trace of our own. They are for nobody
// else, and a vendor may believe what they say of an address.
var inbound = []string{
	"Baggage", "Forwarded", "Traceparent", "Tracestate", "Via", "X-Amz-Cf-Id", "X-Amzn-Trace-Id", "X-Real-Ip",
}

// inboundPrefixes are what names of more of them begin with.
var inboundPrefixes = []string{"Cloudfront-", "Proxy-", "X-Forwarded-", "X-Graft-"}

func isInbound(name string) bool {
	return slices.Contains(inbound, name) || slices.ContainsFunc(inboundPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// forwarded returns the headers of a caller that are sent on.
func forwarded(given http.Header) (http.Header, error) {
	h := make(http.Header, len(given)+3)
	for name, values := range given {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, reason.Refuse(reason.InputInvalid, "A header name has a character that no header may carry.").Field("headers")
		}
		name = http.CanonicalHeaderKey(name)
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, reason.Refuse(reason.InputInvalid, "The header %s has a character that no header may carry.", name).Field("headers")
			}
		}
		if len(h[name]) == 0 {
			h[name] = values[:len(values):len(values)] // read by the transport, never written
		} else {
			h[name] = append(h[name], values...)
		}
	}
	dropHopByHop(h)
	for _, name := range ours {
		delete(h, name)
	}
	for name := range h {
		if isInbound(name) {
			delete(h, name)
		}
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "Graft")
	}
	// What is passed on, and searched for secrets, is the plain form, so that is asked for.
	h.Set("Accept-Encoding", "identity")
	return h, nil
}

// checkHeaders refuses more headers of a caller than are sent.
func (l Limits) checkHeaders(given http.Header) error {
	lines, size := 0, int64(0)
	for name, values := range given {
		for _, v := range values {
			lines++
			size += int64(len(name) + len(v))
		}
	}
	if lines > l.RequestHeaders || size > l.RequestHeaderBytes {
		return reason.Refuse(reason.TooLarge, "The request has %d headers of %d bytes; at most %d of %d bytes are sent.", lines, size, l.RequestHeaders, l.RequestHeaderBytes)
	}
	return nil
}

// dropHopByHop removes the headers of the connection that h came over.
func dropHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}
