package console

import (
	"net/url"
	"strings"
)

// localPath is s where it is a path of this site, else "/". It is what may follow a sign-in: a browser must not be
// able to read it as another host's address, so it begins with one slash, and has no backslash, which browsers take
// for a slash, and no control character or space, which they leave out.
func localPath(s string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }
	if len(s) > 2048 || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.ContainsFunc(s, odd) {
		return "/"
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return s
}
