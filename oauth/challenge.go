package oauth

import (
	"strings"

	"github.com/getgraft/graft/internal/reason"
)

// Challenge is the WWW-Authenticate value of a 401 (RFC 6750 §3, RFC 9728 §5.1). error and its description stand
// only where a token was presented.
func Challenge(origin string, r *reason.Refusal) string {
	c := `Bearer resource_metadata="` + origin + `/.well-known/oauth-protected-resource/mcp"`
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
