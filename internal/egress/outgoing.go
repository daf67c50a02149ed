package egress

import (
	"net/http"
	"net/url"
	"time"

	"github.com/getgraft/graft/internal/vault"
)

// An outgoing is a request that has passed host and address policy and lacks its credential alone. An Injection changes
// its URL's query and its header; a signature also reads method and body.
type outgoing struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	now    time.Time

	revealed []vault.Secret // what the answer is redacted of
}

// reveal opens a secret for fn, and has the answer redacted of it.
func (o *outgoing) reveal(secret vault.Secret, fn func(plain []byte) error) error {
	o.hide(secret)
	return secret.Reveal(fn)
}

// hide has the answer redacted of what was derived from a secret: a token, a user and password in base64.
func (o *outgoing) hide(secret vault.Secret) {
	if !secret.IsZero() {
		o.revealed = append(o.revealed, secret)
	}
}
