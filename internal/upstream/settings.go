package upstream

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// How long an upstream has where nobody says otherwise, in seconds.
const (
	ConnectSeconds = 10
	CallSeconds    = 60
)

// A Header is sent with every request to an upstream. ${NAME} in its value stands for a secret of the organisation.
type Header struct {
	Name, Value string
}

// An Addition is an upstream to be.
type Addition struct {
	Name     string
	URL      string
	Headers  []Header
	Settings store.UpstreamSettings // seconds of 0 are the defaults
}

// Add makes an upstream. It is there as soon as Add returns, and Try lists it.
func (s *Source) Add(ctx context.Context, c store.Caller, in Addition) (store.Upstream, error) {
	if err := catalog.CheckVendor(in.Name); err != nil {
		return store.Upstream{}, err
	}
	if err := checkURL(in.URL); err != nil {
		return store.Upstream{}, err
	}
	headers, err := s.seal(ctx, c, in.Headers)
	if err != nil {
		return store.Upstream{}, err
	}
	if in.Settings.ConnectSeconds == 0 {
		in.Settings.ConnectSeconds = ConnectSeconds
	}
	if in.Settings.CallSeconds == 0 {
		in.Settings.CallSeconds = CallSeconds
	}
	defer s.views.Forget(c.Org)
	var u store.Upstream
	err = s.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		u, err = tx.CreateUpstream(ctx, in.Name, in.URL, in.Settings, headers)
		return err
	})
	return u, err
}

// Change replaces the settings of an upstream. They hold as soon as Change returns, but for which of its tools are taken:
// that is when it is listed, by Try.
func (s *Source) Change(ctx context.Context, c store.Caller, id store.UpstreamID, in store.UpstreamSettings) error {
	defer s.views.Forget(c.Org)
	return s.c.DB.As(ctx, c, func(tx *store.Tx) error { return tx.ChangeUpstream(ctx, id, in) })
}

// Try lists an upstream now and returns it as it is then. That it cannot be listed is no error: it is in its LastError.
func (s *Source) Try(ctx context.Context, c store.Caller, id store.UpstreamID) (u store.Upstream, err error) {
	if err := s.Refresh(ctx, c, id); err != nil && reason.Of(err).Word == reason.Internal {
		return u, err
	}
	err = s.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		u, err = tx.Upstream(ctx, id)
		return err
	})
	return u, err
}

// SetHeaders replaces the headers of an upstream.
func (s *Source) SetHeaders(ctx context.Context, c store.Caller, id store.UpstreamID, list []Header) error {
	headers, err := s.seal(ctx, c, list)
	if err != nil {
		return err
	}
	defer s.views.Forget(c.Org)
	return s.c.DB.As(ctx, c, func(tx *store.Tx) error { return tx.SetUpstreamHeaders(ctx, id, headers) })
}

// SetSecret sets a secret of the organisation, and reports whether it is new.
func (s *Source) SetSecret(ctx context.Context, c store.Caller, name string, value vault.Secret) (made bool, err error) {
	if err := store.CheckSecretName(name); err != nil {
		return false, err
	}
	if value.IsZero() {
		return false, reason.Refuse(reason.InputInvalid, "The secret is empty.").Field("value")
	}
	key, err := s.c.Keys.Key(ctx, c.Org.String())
	if err != nil {
		return false, err
	}
	defer s.views.Forget(c.Org)
	err = s.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		made, err = tx.SetSecret(ctx, name, func(id store.SecretID) ([]byte, error) { return key.Seal(secretPlace(c.Org, id), value) })
		return err
	})
	return made, err
}

const maxURL = 2048

// checkURL refuses an address that no request could go to. Whether it may is decided when one is made.
func checkURL(address string) error {
	wrong := func(sentence string) error { return reason.Refuse(reason.InputInvalid, "%s", sentence).Field("url") }
	if len(address) > maxURL || strings.IndexFunc(address, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		return wrong("The address is longer than 2,048 characters, or has a space in it.")
	}
	if strings.Contains(address, "${") {
		return wrong("A secret is not put into the address, which is shown to people. Send it in a header.")
	}
	if _, err := hostsOf(address); err != nil {
		return err
	}
	if u, err := url.Parse(address); err != nil || u.Fragment != "" {
		return wrong("The address ends before the #.")
	}
	return nil
}

const (
	maxHeaders     = 32
	maxHeaderValue = 8 << 10
)

// reference is where a secret stands in a header.
var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// seal checks headers and makes them ready to be kept.
func (s *Source) seal(ctx context.Context, c store.Caller, list []Header) ([]store.UpstreamHeader, error) {
	wrong := func(format string, args ...any) error {
		return reason.Refuse(reason.InputInvalid, format, args...).Field("header")
	}
	if len(list) > maxHeaders {
		return nil, wrong("An upstream has at most %d headers.", maxHeaders)
	}
	if len(list) == 0 {
		return nil, nil
	}
	key, err := s.c.Keys.Key(ctx, c.Org.String())
	if err != nil {
		return nil, err
	}
	sealed := make([]store.UpstreamHeader, 0, len(list))
	for _, h := range list {
		name := http.CanonicalHeaderKey(strings.TrimSpace(h.Name))
		template := vault.NewSecret([]byte(strings.TrimSpace(h.Value)))
		if _, err := egress.Header(name, "", template); err != nil {
			return nil, wrong("%s", reason.Of(err).Message)
		}
		if isProtocols(name) {
			return nil, wrong("%s is a header of the protocol itself.", name)
		}
		if len(h.Value) > maxHeaderValue || strings.IndexFunc(h.Value, unicode.IsControl) >= 0 {
			return nil, wrong("The value of %s is longer than %d bytes, or has a character that no header may carry.", name, maxHeaderValue)
		}
		var secrets []string
		for _, m := range reference.FindAllStringSubmatch(h.Value, -1) {
			if store.CheckSecretName(m[1]) != nil {
				return nil, wrong("%s has a ${…} that names no secret. Secrets have names such as GITHUB_TOKEN.", name)
			}
			secrets = append(secrets, m[1])
		}
		sealed = append(sealed, store.UpstreamHeader{Name: name, Secrets: secrets, Seal: func(id store.UpstreamID) ([]byte, error) {
			return key.Seal(headerPlace(c.Org, id, name), template)
		}})
	}
	return sealed, nil
}

// isProtocols reports whether a header is set by the client itself.
func isProtocols(name string) bool {
	return name == "Accept" || name == "Content-Type" || name == "Last-Event-Id" || strings.HasPrefix(name, "Mcp-")
}
