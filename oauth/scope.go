package oauth

import (
	"slices"
	"strings"
)

// The scopes. There is one thing to be allowed, and offline_access names what everybody gets: clients ask for it where
// it is listed, and some take no refresh token without.
const (
	scopeMCP     = "mcp"
	scopeOffline = "offline_access"
)

// supportedScopes are all there are, in the order in which they are granted.
var supportedScopes = []string{scopeMCP, scopeOffline}

// grantScope is what is granted of the scope that a client asks for: mcp always, and of the rest what there is. What we do
// not know is left out (RFC 6749 §3.3), since clients send what other servers taught them. ok is false for what is no scope
// at all.
func grantScope(asked string) (granted string, ok bool) {
	tokens, ok := scopeTokens(asked)
	if !ok {
		return "", false
	}
	var list []string
	for _, s := range supportedScopes {
		if s == scopeMCP || slices.Contains(tokens, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, " "), true
}

// within reports whether a scope asked for with a refresh token asks for nothing that was not granted (RFC 6749 §6).
// None asks for what was.
func within(granted, asked string) bool {
	have, ok := scopeTokens(granted)
	want, sound := scopeTokens(asked)
	return ok && sound && !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

// scopeTokens cuts a scope into its tokens, and reports whether it is one (RFC 6749 §3.3). An empty one counts as
// absent (§3.1).
func scopeTokens(scope string) (tokens []string, ok bool) {
	if scope == "" {
		return nil, true
	}
	tokens = strings.Split(scope, " ")
	return tokens, !slices.ContainsFunc(tokens, func(s string) bool { return s == "" || strings.ContainsFunc(s, notInScope) })
}

func notInScope(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }
