package egress

import (
	"net/http"
	"regexp"

	"golang.org/x/net/http/httpguts"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// placeholder is where a secret stands in a template. What else looks like one is text.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_-]{0,63})\}`)

// Template injects the header name with the template as its value, in which each ${NAME} stands for the secret of that
// name: "Bearer ${GITHUB_TOKEN}". The template is a secret too, because people write credentials into it. An error is a
// *reason.Refusal, which names a secret that is missing.
func Template(name string, template vault.Secret, secrets map[string]vault.Secret) (Injection, error) {
	canonical, err := injectable(name)
	if err != nil {
		return Injection{}, err
	}
	if template.IsZero() {
		return Injection{}, reason.Refuse(reason.InputInvalid, "The header's value is empty.").Field("credential")
	}
	used := map[string]vault.Secret{}
	err = template.Reveal(func(plain []byte) error {
		for _, m := range placeholder.FindAllSubmatch(plain, -1) {
			secret, ok := secrets[string(m[1])]
			if !ok || secret.IsZero() {
				return reason.Refuse(reason.UpstreamUnauthorized, "The secret %s, which the header %s is made with, is not set.", m[1], canonical).
					With("secret", string(m[1]))
			}
			used[string(m[1])] = secret
		}
		return nil
	})
	if err != nil {
		return Injection{}, err
	}
	if len(used) == 0 {
		return Header(name, "", template)
	}
	return Injection{apply: func(out *outgoing) error {
		return out.reveal(template, func(plain []byte) error { return out.expand(canonical, plain, used) })
	}}, nil
}

// expand sets a header to the template with its secrets in place.
func (o *outgoing) expand(name string, template []byte, secrets map[string]vault.Secret) error {
	var room [512]byte // on the stack, where the value fits
	value := room[:0]
	defer func() { clear(value) }()
	for len(template) > 0 {
		at := placeholder.FindSubmatchIndex(template)
		if at == nil {
			value = appendWiped(value, template)
			break
		}
		value = appendWiped(value, template[:at[0]])
		err := o.reveal(secrets[string(template[at[2]:at[3]])], func(plain []byte) error {
			value = appendWiped(value, plain)
			return nil
		})
		if err != nil {
			return err
		}
		template = template[at[1]:]
	}
	return set(o.header, name, string(value))
}

// appendWiped is append that leaves nothing behind where it moves.
func appendWiped(b, more []byte) []byte {
	if len(b)+len(more) <= cap(b) {
		return append(b, more...)
	}
	moved := append(make([]byte, 0, 2*(len(b)+len(more))), b...)
	clear(b)
	return append(moved, more...)
}

// set sets a header to a value that has been opened.
func set(h http.Header, name, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return reason.Refuse(reason.InputInvalid, "The credential has a character that no header may carry. Enter it again.").Field("credential")
	}
	h[name] = []string{value}
	return nil
}
