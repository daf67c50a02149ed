package egress

import (
	"encoding/base64"
	"net/url"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// Basic injects "Authorization: Basic" with a client's id and its secret, each encoded as a form's value is (RFC 6749
// §2.3.1). An error is a *reason.Refusal.
func Basic(id string, secret vault.Secret) (Injection, error) {
	if secret.IsZero() {
		return Injection{}, reason.Refuse(reason.InputInvalid, "The credential is empty.").Field("credential")
	}
	return Injection{apply: func(out *outgoing) error {
		return out.reveal(secret, func(plain []byte) error {
			both := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id) + ":" + url.QueryEscape(string(plain))))
			out.hide(vault.NewSecret([]byte(both)))
			return set(out.header, "Authorization", "Basic "+both)
		})
	}}, nil
}
