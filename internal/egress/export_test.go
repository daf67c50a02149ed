package egress

import (
	"net/http"

	"github.com/getgraft/graft/internal/vault"
)

// InQuery injects a secret as a parameter of the query, as vendors of long ago want it.
func InQuery(name string, secret vault.Secret) Injection {
	return Injection{apply: func(out *outgoing) error {
		return out.reveal(secret, func(plain []byte) error {
			q := out.url.Query()
			q.Set(name, string(plain))
			out.url.RawQuery = q.Encode()
			return nil
		})
	}}
}

// InCookie injects a secret as a cookie.
func InCookie(name string, secret vault.Secret) Injection {
	return Injection{apply: func(out *outgoing) error {
		return out.reveal(secret, func(plain []byte) error {
			return set(out.header, "Cookie", (&http.Cookie{Name: name, Value: string(plain)}).String())
		})
	}}
}
