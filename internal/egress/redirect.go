package egress

import (
	"io"
	"net/http"
	"net/url"
	"slices"
)

// maxHops is the most redirects that a request follows.
const maxHops = 3

// carried are the caller's headers that go to another origin than the request was for. Others may hold what was meant for
// that one alone.
var carried = []string{"Accept", "Accept-Language", "Range", "User-Agent"}

// hop is the request that an answer redirects req to, which was sent to from. It is false where the answer is to be returned: not a redirect, one that would do something
// again, or one to somewhere the request may not go.
func hop(req Request, s *Stream, from *url.URL) (Request, bool) {
	switch s.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
			return Request{}, false
		}
	case http.StatusSeeOther:
		if req.Method != http.MethodHead {
			req.Method = http.MethodGet
		}
	default:
		return Request{}, false
	}
	location, err := url.Parse(s.Header.Get("Location"))
	if err != nil || len(s.Header["Location"]) != 1 || s.Header.Get("Location") == "" {
		return Request{}, false
	}
	next := from.ResolveReference(location)
	next.Fragment, next.RawFragment = "", ""
	if from.Scheme == "https" && next.Scheme != "https" {
		return Request{}, false
	}
	req.URL, req.Body = next.String(), nil
	req.Header = req.Header.Clone()
	for name := range req.Header {
		if slices.Contains([]string{"Content-Type", "Content-Encoding", "Content-Language"}, http.CanonicalHeaderKey(name)) {
			delete(req.Header, name)
		}
	}
	return req, true
}

// elsewhere is req for another origin: without credential, and without headers that may be one. Nor do the hops after it have
// them: that another origin leads back is no way to get them sent where it likes.
func elsewhere(req Request) Request {
	req.Inject = nil
	header := http.Header{}
	for name, values := range req.Header {
		if slices.Contains(carried, http.CanonicalHeaderKey(name)) {
			header[name] = values
		}
	}
	req.Header = header
	return req
}

// skip reads the little text that comes with a redirect, so that its connection can serve the next request.
func skip(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}
