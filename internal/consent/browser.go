package consent

import "net/http"

// browserCookie is the name of the cookie that holds the browser's token. Under https it is bound to this host
// (RFC 6265bis §4.1.3.2), so that no sister of the host can plant one.
func browserCookie(secure bool) string {
	if secure {
		return "__Host-graft-browser"
	}
	return "graft-browser"
}

// BrowserToken is the browser's token that r came with, or "". secure is whether the deployment's origin is https.
func BrowserToken(r *http.Request, secure bool) string {
	c, err := r.Cookie(browserCookie(secure))
	if err != nil {
		return ""
	}
	return c.Value
}

// BrowserCookie is the cookie that keeps a browser's token until the browser is closed. It is sent along when an app leads
// the browser here.
func BrowserCookie(token string, secure bool) *http.Cookie {
	return &http.Cookie{Name: browserCookie(secure), Value: token, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}
