package egress

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// prefixOf is the path of an entry of Hosts: escaped, with the slash at its beginning and without one at its end.
func prefixOf(u *url.URL) (string, bool) {
	path := u.EscapedPath()
	if !staysBelow(path) || strings.Contains(strings.ToLower(path), "%2f") {
		return "", false
	}
	return strings.TrimSuffix(path, "/"), true
}

// isBelow reports whether an escaped path is prefix or below it, by whole segments.
func isBelow(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// staysBelow reports whether an escaped path means the same place to every server: none takes it for one that is not below
// each of its own beginnings. A slash in its encoded form is a character of a segment (RFC 3986 §2.2), as in the names of
// GitLab's projects; where a server takes it for a slash all the same, what it separates may be no dot segment.
func staysBelow(path string) bool {
	segments := strings.Split(path, "/")
	for i, segment := range segments[1:] {
		if segment == "" && i < len(segments)-2 { // the last may be, after a slash at the end
			return false
		}
		plain, err := url.PathUnescape(segment)
		// A NUL may end a name, and a dot can be written in more bytes than it has.
		if err != nil || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) || !utf8.ValidString(plain) {
			return false
		}
		for part := range strings.SplitSeq(plain, "/") {
			if isDots(part) {
				return false
			}
		}
	}
	return segments[0] == "" // it begins with a slash, or is empty
}

// isDots reports whether some server may take a segment for "." or "..": also with parameters (Java's), or where blanks are
// cut.
func isDots(segment string) bool {
	name, _, _ := strings.Cut(segment, ";")
	name = strings.TrimSpace(name)
	return name == "." || name == ".."
}
