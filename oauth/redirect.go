package oauth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxRedirectURI is how many bytes a redirect URI may have.
const maxRedirectURI = 2048

// checkRedirectURI says what keeps uri from being one that answers may go to; nil for nothing. https may lead anywhere,
// http to this computer alone, and a scheme of an app's own to that app (RFC 8252 §7). What a browser would read as
// another address than it looks like is refused, so that two URIs are equal where their bytes are.
func checkRedirectURI(uri string) error {
	switch {
	case uri == "":
		return errors.New("is empty")
	case len(uri) > maxRedirectURI:
		return fmt.Errorf("is longer than %d bytes", maxRedirectURI)
	case strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("has a character that is no printable ASCII, or a space")
	case strings.Contains(uri, "#"):
		return errors.New("has a fragment") // RFC 6749 §3.1.2
	case strings.Contains(uri, "*"):
		return errors.New("has a wildcard: each address is registered as it is")
	case strings.ContainsAny(uri, "\\\"<>^`{|}"):
		return errors.New("has a character that no URI has (RFC 3986 §2)")
	}
	u, ok := splitURI(uri)
	if !ok {
		return errors.New("is not absolute: it must begin with a scheme")
	}
	if strings.Contains(u.authority, "@") {
		return errors.New("has a user name")
	}
	if err := u.checkScheme(); err != nil {
		return err
	}
	return checkRest(u)
}

// parts are a URI that is cut and not decoded.
type parts struct {
	scheme    string // lower case
	slashes   bool   // whether an authority follows the scheme
	authority string
	host      string // of the authority, as it is
	port      string // with its colon
	rest      string // path and query
}

// splitURI cuts a URI as RFC 3986 §3 does, and reports whether it begins with a scheme.
func splitURI(uri string) (u parts, ok bool) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || !isScheme(scheme) {
		return parts{}, false
	}
	u.scheme = lower(scheme)
	if rest, u.slashes = strings.CutPrefix(rest, "//"); u.slashes {
		end := strings.IndexAny(rest+"/", "/?#")
		u.authority, rest = rest[:end], rest[end:]
	}
	u.rest = rest
	u.host = u.authority
	if colon := strings.LastIndexByte(u.authority, ':'); colon > strings.LastIndexByte(u.authority, ']') {
		u.host, u.port = u.authority[:colon], u.authority[colon:]
	}
	return u, true
}

// isScheme reports whether s is a scheme (RFC 3986 §3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || (s[i] < '0' || s[i] > '9') && strings.IndexByte("+-.", s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

// lower is s with its ASCII letters in lower case. Of others none becomes ASCII, as strings.ToLower makes k of the
// Kelvin sign.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func (u parts) checkScheme() error {
	switch {
	case u.scheme == "https" || u.scheme == "http":
		if u.authority == "" {
			return fmt.Errorf("has no host: write %s://host/path", u.scheme)
		}
		if !isHost(u.host) || !isPort(u.port) {
			return errors.New("has a host or port that cannot be")
		}
		if u.scheme == "http" && !u.onLoopback() {
			return errors.New("is http: that is for localhost, 127.0.0.1 and [::1] alone, use https")
		}
	case isRefusedScheme(u.scheme):
		return fmt.Errorf("has the scheme %s, which belongs to no app of its own", u.scheme)
	case u.authority != "" && (!isHost(u.host) || !isPort(u.port)):
		return errors.New("has a host or port that cannot be")
	case !u.slashes && !strings.HasPrefix(u.rest, "/"):
		return fmt.Errorf("has no path: write %s:/path", u.scheme) // RFC 8252 §7.1
	}
	return nil
}

// checkRest is about the path, in which a browser resolves dots, and the query, to which the answer is added.
func checkRest(u parts) error {
	path, query, _ := strings.Cut(u.rest, "?")
	if _, err := url.PathUnescape(path); err != nil {
		return errors.New("has a % that no two hexadecimal digits follow")
	}
	for _, segment := range strings.Split(path, "/") {
		if s := strings.ReplaceAll(lower(segment), "%2e", "."); s == "." || s == ".." {
			return errors.New("has a path with . or .. in it")
		}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("has a query that cannot be read")
	}
	for _, name := range []string{"code", "state", "iss", "error", "error_description", "error_uri"} {
		if values.Has(name) {
			return fmt.Errorf("has a query with %s in it, which is the answer's", name)
		}
	}
	return nil
}

// isHost reports whether s is a host that every browser takes for the same: a name, or an address as it is usually
// written. 127.1 and 0x7f000001 are addresses in the eyes of a browser (WHATWG URL §3.5) and names to everybody else.
func isHost(s string) bool {
	if strings.HasPrefix(s, "[") {
		a, err := netip.ParseAddr(strings.TrimSuffix(s[1:], "]"))
		return err == nil && a.Is6() && a.Zone() == "" && strings.HasSuffix(s, "]")
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && strings.IndexByte("-._", s[i]) < 0 {
			return false
		}
	}
	labels := strings.Split(lower(s), ".")
	last := labels[len(labels)-1]
	if last == "" && len(labels) > 1 { // the dot of the root
		labels = labels[:len(labels)-1]
		last = labels[len(labels)-1]
	}
	if slices.Contains(labels, "") {
		return false
	}
	hex := strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == ""
	if hex || strings.Trim(last, "0123456789") == "" {
		_, err := netip.ParseAddr(s)
		return err == nil
	}
	return true
}

// isPort reports whether s is nothing, or a colon and a port.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	_, err := strconv.ParseUint(s[1:], 10, 16)
	return err == nil && len(s) <= len(":65535")
}

// onLoopback reports whether u is of this computer, by one of the three names that it has (RFC 8252 §7.3). Native
// clients use localhost too, whatever §8.3 says of it.
func (u parts) onLoopback() bool {
	return u.scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "[::1]"}, lower(u.host))
}

// refusedSchemes are those that a browser or an operating system answers itself: by running what the URI says, by
// showing it as a page of ours, or by opening what is no app that a person chose for this.
var refusedSchemes = []string{
	"javascript", "vbscript", "livescript", "mocha", "data", "blob", "about", "filesystem", "file", "view-source", "jar", "mhtml", "mk", "res", "resource",
	"ws", "wss", "ftp", "ftps", "sftp", "ssh", "telnet", "rlogin", "tn3270", "gopher", "wais", "news", "nntp", "snews", "irc", "ircs", "ldap", "ldaps",
	"smb", "cifs", "nfs", "afp", "dav", "davs", "webdav", "rtsp", "rtmp", "git", "svn", "rsync", "dict", "finger", "dns",
	"mailto", "tel", "sms", "mms", "smsto", "mmsto", "callto", "sip", "sips", "xmpp", "facetime", "facetime-audio", "geo", "maps", "market",
	"intent", "android-app", "content", "package", "shell", "search", "search-ms", "hcp", "help", "its", "magnet", "feed", "webcal",
	// Those that start a program which does what the URI says, or connects to where it says.
	"applescript", "x-man-page", "vnc", "rdp", "x-rdp", "shortcuts", "steam", "skype", "jnlp", "jnlps", "zoommtg", "zoomus", "teamviewer8", "teamviewerapi",
	"anydesk", "citrixonline", "receiver", "spice", "nx", "putty", "winscp", "itunes", "onenote", "onenote-cmd", "calculator", "bingmaps", "read", "ldapi",
	"apt", "aptonline", "snap", "flatpak", "appstream", "cmd", "ed2k", "bitcoin", "help-viewer", "macappstore", "macappstores", "message", "addressbook", "photos",
	"urn", "cid", "mid", "tag", "uuid", "null", "wyciwyg", "edge", "opera", "brave", "vivaldi", "browser", "safari", "prefs", "app-settings",
}

// refusedFamilies are beginnings of such schemes.
var refusedFamilies = []string{"chrome", "moz-", "ms-", "microsoft-edge", "safari-", "x-apple", "x-help", "com.apple.", "com-apple", "x-radar", "vbs", "powershell", "steam", "x-web-search", "itms", "web+", "http"}

func isRefusedScheme(scheme string) bool {
	return slices.Contains(refusedSchemes, scheme) || slices.ContainsFunc(refusedFamilies, func(f string) bool { return strings.HasPrefix(scheme, f) })
}

// matchRedirect reports whether asked is one of registered, byte for byte. On this computer the port may be another,
// which the client gets from its operating system (RFC 8252 §7.3), and no path is the same as /. The three names of
// this computer do not stand for one another.
func matchRedirect(registered []string, asked string) bool {
	if checkRedirectURI(asked) != nil {
		return false
	}
	if slices.Contains(registered, asked) {
		return true
	}
	a, _ := splitURI(asked)
	return a.onLoopback() && slices.ContainsFunc(registered, func(uri string) bool {
		r, ok := splitURI(uri)
		return ok && r.onLoopback() && checkRedirectURI(uri) == nil && r.host == a.host && rooted(r.rest) == rooted(a.rest)
	})
}

// rooted is a path and query that begins with a slash.
func rooted(rest string) string {
	if strings.HasPrefix(rest, "/") {
		return rest
	}
	return "/" + rest
}

// redirectHost is what a person may know a redirect URI by: the host, with its port where it has one, or the scheme of
// an app with its colon. loopback is true of what stays on the person's computer, where any program may listen.
func redirectHost(uri string) (host string, loopback bool) {
	u, ok := splitURI(uri)
	switch {
	case !ok:
		return "", false
	case u.scheme == "http" || u.scheme == "https":
		return lower(u.authority), u.onLoopback()
	}
	return u.scheme + ":", false
}
