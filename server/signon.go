package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/getgraft/graft/console"
	"github.com/getgraft/graft/internal/oidc"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// SignOn is a provider where people may sign in (OpenID Connect), besides with a password or a passkey. Without an issuer
// there is none.
type SignOn struct {
	OIDCIssuer           string `name:"oidc-issuer" env:"GRAFT_OIDC_ISSUER" help:"OpenID Connect provider where people may sign in too, by its issuer URL."`
	OIDCClientID         string `name:"oidc-client-id" env:"GRAFT_OIDC_CLIENT_ID" help:"Client ID that the provider gave this deployment."`
	OIDCClientSecret     string `name:"oidc-client-secret" env:"GRAFT_OIDC_CLIENT_SECRET" help:"Client secret that the provider gave this deployment."`
	OIDCClientSecretFile string `name:"oidc-client-secret-file" env:"GRAFT_OIDC_CLIENT_SECRET_FILE" type:"path" help:"File that holds the client secret, in place of GRAFT_OIDC_CLIENT_SECRET."`
	OIDCName             string `name:"oidc-name" env:"GRAFT_OIDC_NAME" help:"What pages call the provider, as in: Continue with NAME. Its host when absent."`
}

// SignOnPath is where the provider leads browsers back to.
const SignOnPath = "/sign-in/oidc/callback"

// Check reports everything that is wrong with o, as a Wrong.
func (o SignOn) Check() error {
	var wrong Wrong
	o.check(&wrong)
	return wrong.err()
}

func (o SignOn) check(wrong *Wrong) {
	if o == (SignOn{}) {
		return
	}
	if o.OIDCIssuer == "" {
		wrong.Add("GRAFT_OIDC_ISSUER", "must be set with the other GRAFT_OIDC settings")
	} else if _, err := oidc.CheckIssuer(o.OIDCIssuer); err != nil {
		wrong.Add("GRAFT_OIDC_ISSUER", "%v", err)
	}
	if bad := strings.ContainsFunc(o.OIDCClientID, unprintable); o.OIDCClientID == "" || bad || len(o.OIDCClientID) > 500 {
		wrong.Add("GRAFT_OIDC_CLIENT_ID", "must be the ID that the provider gave this deployment")
	}
	switch {
	case o.OIDCClientSecret != "" && o.OIDCClientSecretFile != "":
		wrong.Add("GRAFT_OIDC_CLIENT_SECRET", "and GRAFT_OIDC_CLIENT_SECRET_FILE are both set; give one")
	case o.OIDCClientSecretFile != "":
		if _, err := o.secret(); err != nil {
			wrong.Add("GRAFT_OIDC_CLIENT_SECRET_FILE", "names no file with a secret: %v", err)
		}
	default:
		if _, err := o.secret(); err != nil {
			wrong.Add("GRAFT_OIDC_CLIENT_SECRET", "or GRAFT_OIDC_CLIENT_SECRET_FILE must hold the secret that the provider gave this deployment")
		}
	}
	if o.OIDCName != "" && (store.CheckName("name", o.OIDCName, 40) != nil || strings.TrimSpace(o.OIDCName) != o.OIDCName) {
		wrong.Add("GRAFT_OIDC_NAME", "must be a short name on one line, 40 characters at most")
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// secret reads the client's secret, without the line's end that an editor leaves.
func (o SignOn) secret() (vault.Secret, error) {
	text := []byte(o.OIDCClientSecret)
	if o.OIDCClientSecretFile != "" {
		var err error
		if text, err = os.ReadFile(o.OIDCClientSecretFile); err != nil {
			return vault.Secret{}, err
		}
	}
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" || len(trimmed) > 4096 || strings.ContainsFunc(trimmed, unprintable) {
		return vault.Secret{}, errors.New("it is empty, too long or of several lines")
	}
	return vault.NewSecret([]byte(trimmed)), nil
}

// Provider is the provider, of which nothing is asked yet; nil where there is none. origin is the deployment's.
func (o SignOn) Provider(origin string, now func() time.Time) (*oidc.Provider, error) {
	if o.OIDCIssuer == "" {
		return nil, nil //nolint:nilnil // there is none, and nothing is wrong
	}
	secret, err := o.secret()
	if err != nil {
		return nil, fmt.Errorf("read the client secret of %s: %w", o.OIDCIssuer, err)
	}
	return oidc.New(oidc.Config{Issuer: o.OIDCIssuer, ClientID: o.OIDCClientID, Secret: secret, Redirect: origin + SignOnPath, Now: now})
}

// signOn is the provider as the console takes it.
func (s *Server) signOn(now func() time.Time) (*console.SignOn, error) {
	var err error
	if s.provider, err = s.c.Provider(s.c.Origin, now); err != nil || s.provider == nil {
		return nil, err
	}
	u, err := url.Parse(s.c.OIDCIssuer)
	if err != nil {
		return nil, err
	}
	return &console.SignOn{Provider: s.provider, Name: cmp.Or(s.c.OIDCName, u.Host)}, nil
}
