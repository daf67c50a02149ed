package consent

import (
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// maxBrowserCookies is how many requests of one browser wait at once. What a page makes it begin beyond that ends the
// oldest, so that it never sends more than a few hundred bytes for them.
const maxBrowserCookies = 10

// cookiePrefix begins the names of the cookies that bind requests to a browser. Under https they are bound to this host
// (RFC 6265bis §4.1.3.2), so that no sister of the host can plant one.
func cookiePrefix(secure bool) string {
	if secure {
		return "__Host-graft-browser-"
	}
	return "graft-browser-"
}

// cookieName is of the cookie for the request of that id. Each has its own, so that two that begin at once both can be
// answered. The id itself is not told by it.
func cookieName(id string, secure bool) string {
	hash := store.HashToken(id)
	return cookiePrefix(secure) + hex.EncodeToString(hash[:6])
}

// BrowserToken is the browser's token that r came with for the request of that id, or "". secure is whether the
// deployment's origin is https.
func BrowserToken(r *http.Request, id string, secure bool) string {
	c, err := r.Cookie(cookieName(id, secure))
	if err != nil {
		return ""
	}
	return c.Value
}

// BrowserCookie is the cookie that keeps a browser's token for the request of that id, as long as that lives. It is sent
// along when an app leads the browser here.
func BrowserCookie(id, token string, secure bool) *http.Cookie {
	c := browserCookie(cookieName(id, secure), secure)
	c.Value, c.MaxAge = token, int(Life/time.Second)
	return c
}

// SpentCookie ends the cookie of a request that was answered.
func SpentCookie(id string, secure bool) *http.Cookie {
	return browserCookie(cookieName(id, secure), secure)
}

// SurplusCookies end the oldest of the cookies that r came with, where there is no room for one more. A browser sends
// first what it has had longest (RFC 6265bis §5.8.3).
func SurplusCookies(r *http.Request, secure bool) []*http.Cookie {
	var ends []*http.Cookie
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, cookiePrefix(secure)) {
			ends = append(ends, browserCookie(c.Name, secure))
		}
	}
	return ends[:max(0, len(ends)-maxBrowserCookies+1)]
}

func browserCookie(name string, secure bool) *http.Cookie {
	return &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: -1}
}
