package oauth

import (
	"slices"
	"strings"
)

// resourcePath is where the one resource is that this server gives tokens for.
const resourcePath = "/mcp"

// ownResource reports whether a resource that a client asks a token for (RFC 8707 §2) means ours: <origin>/mcp, with a
// slash after it, or the origin alone, which is what some clients make of it. Scheme and host are taken in any case and
// the default port may stand there (RFC 3986 §6.2). Nothing else is ours, whatever else is wrong with it.
func ownResource(origin, asked string) bool {
	site, path := cutSite(asked)
	own, _ := cutSite(origin)
	return site != "" && site == own && slices.Contains([]string{"", "/", resourcePath, resourcePath + "/"}, path)
}

// cutSite cuts a URL before its path, and writes what stands there in one way. A user name stays, and so makes
// another site of it.
func cutSite(url string) (site, path string) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "", ""
	}
	end := strings.IndexAny(rest+"/", "/?#")
	scheme, authority := lower(scheme), lower(rest[:end])
	switch scheme {
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	}
	return scheme + "://" + authority, rest[end:]
}
