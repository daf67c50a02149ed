package oauth

import (
	"strings"

	"github.com/getgraft/graft/internal/reason"
)

// Challenge is the WWW-Authenticate value of a 401 (RFC 6750 §3, RFC 9728 §5.1). error and its description stand
// only where a token was presented. path is the request's: a client that was given the address with a slash at its end is
// led to the document that has it too.
func Challenge(origin, path string, r *reason.Refusal) string {
	slash := ""
	if path == resourcePath+"/" {
		slash = "/"
	}
	c := `Bearer resource_metadata="` + origin + `/.well-known/oauth-protected-resource` + resourcePath + slash + `"`
	if r.Word == reason.TokenMissing {
		return c
	}
	return c + `, error="invalid_token", error_description="` + describable(r.Message) + `"`
}

// describable keeps the characters RFC 6750 §3 allows in error_description: printable ASCII without " and \.
func describable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < 0x20 || r > 0x7e:
			return '-'
		}
		return r
	}, s)
}
