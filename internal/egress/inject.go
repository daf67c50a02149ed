package egress

import (
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// An Injection puts one credential into a request. It is made, and refused, before anything is sent; Do runs it
// after the request has passed host and address policy. The zero value injects nothing.
type Injection struct {
	apply func(*outgoing) error
}

// Bearer injects "Authorization: Bearer <secret>" (RFC 6750 §2.1).
func Bearer(secret vault.Secret) (Injection, error) {
	return Header("Authorization", "Bearer", secret)
}

// Header injects the secret as the header name, after prefix and a space where there is a prefix. It replaces
// what the caller gave under that name. An error is a *reason.Refusal.
func Header(name, prefix string, secret vault.Secret) (Injection, error) {
	canonical, err := injectable(name)
	if err != nil {
		return Injection{}, err
	}
	if !httpguts.ValidHeaderFieldValue(prefix) {
		return Injection{}, reason.Refuse(reason.InputInvalid, "The prefix has a character that no header may carry.").Field("prefix")
	}
	if secret.IsZero() {
		return Injection{}, reason.Refuse(reason.InputInvalid, "The credential is empty.").Field("credential")
	}
	if prefix != "" {
		prefix += " "
	}
	return Injection{apply: func(out *outgoing) error {
		return out.reveal(secret, func(plain []byte) error {
			return set(out.header, canonical, prefix+string(plain))
		})
	}}, nil
}

// injectable returns the canonical name of a header that may carry a credential.
func injectable(name string) (string, error) {
	canonical := http.CanonicalHeaderKey(name)
	if !httpguts.ValidHeaderFieldName(name) || slices.Contains(hopByHop, canonical) || canonical != "Authorization" && slices.Contains(ours, canonical) {
		return "", reason.Refuse(reason.InputInvalid, "A credential cannot be sent in a header of that name.").Field("header")
	}
	return canonical, nil
}

func inject(out *outgoing, injections []Injection) error {
	for _, in := range injections {
		if in.apply == nil {
			continue
		}
		if err := in.apply(out); err != nil {
			return fmt.Errorf("inject credential: %w", err)
		}
	}
	return nil
}
