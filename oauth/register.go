package oauth

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/store"
)

const (
	maxRegistration = 16 << 10 // bytes
	maxRedirectURIs = 10
	maxClientName   = 200 // characters
)

// What there is, as metadata names it.
var (
	authMethods   = []string{authNone, authBasic, authPost}
	grantTypes    = []string{"authorization_code", "refresh_token"}
	responseTypes = []string{"code"}
)

// metadata of a client (RFC 7591 §2) as far as anything follows from it. What else is sent is ignored, software statements
// and addresses of pages and pictures among it: none of it is proven, so none is shown.
type clientMetadata struct {
	RedirectURIs    []string `json:"redirect_uris"`
	Name            string   `json:"client_name,omitzero"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	Scope           string   `json:"scope"`
	ApplicationType string   `json:"application_type,omitzero"`
}

// A registration is the answer (RFC 7591 §3.2.1): who the client is, and its metadata as it holds.
type registration struct {
	ID       store.ClientID `json:"client_id"`
	IssuedAt int64          `json:"client_id_issued_at"`
	// Secret stands in this answer and nowhere else.
	Secret          string `json:"client_secret,omitzero"`
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitzero"` // 0, for never, where there is a secret
	clientMetadata
}

// Register is POST /mcp/oauth/register: any program may introduce itself. It gets an id, and a secret where it wants to
// prove itself by one. Neither lets it do anything before a person has agreed.
func (s *Server) Register(w http.ResponseWriter, r *http.Request) {
	if !admit(w, r, http.MethodPost) {
		return
	}
	m, err := readRegistration(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer, err := s.register(r, m)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, answer)
}

func (s *Server) register(r *http.Request, m clientMetadata) (registration, error) {
	c := store.OAuthClient{Name: m.Name, RedirectURIs: m.RedirectURIs, AuthMethod: m.AuthMethod, ApplicationType: m.ApplicationType}
	answer := registration{clientMetadata: m}
	if m.AuthMethod != authNone {
		secret, hash := store.NewToken(store.ClientSecretPrefix)
		c.Secret = hash[:]
		answer.Secret, answer.SecretExpiresAt = secret, new(int64)
	}
	c, err := s.c.DB.System().AddOAuthClient(r.Context(), c)
	if err != nil {
		return registration{}, fmt.Errorf("add client: %w", err)
	}
	answer.ID, answer.IssuedAt = c.ID, c.CreatedAt.Unix()
	return answer, nil
}

// readRegistration reads what a client says of itself, and settles what of it holds.
func readRegistration(w http.ResponseWriter, r *http.Request) (clientMetadata, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		f := invalidClientMetadata("The body must be application/json.")
		f.Status = http.StatusUnsupportedMediaType
		return clientMetadata{}, f
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		f := invalidClientMetadata("The body is longer than %d bytes.", maxRegistration)
		f.Status = http.StatusRequestEntityTooLarge
		return clientMetadata{}, f
	}
	if err != nil {
		return clientMetadata{}, invalidClientMetadata("The body did not arrive whole.")
	}
	if jsontext.Value(body).Kind() != '{' {
		return clientMetadata{}, invalidClientMetadata("The body must be a JSON object.")
	}
	var m clientMetadata
	if err := json.Unmarshal(body, &m); err != nil {
		return clientMetadata{}, unreadable(err)
	}
	return m, m.settle()
}

// unreadable is about a body that is no JSON, or has a member of another type.
func unreadable(err error) Fault {
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) {
		return invalidClientMetadata("The body is no JSON, or has a member twice.")
	}
	member, _, _ := strings.Cut(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/")
	if member == "redirect_uris" {
		return invalidRedirectURI("redirect_uris must be a list of strings.")
	}
	return invalidClientMetadata("%s has the wrong type.", member)
}

// settle checks m and makes of it what holds: defaults where something is missing, and of lists what is supported
// (RFC 7591 §3.2.1).
func (m *clientMetadata) settle() error {
	if err := checkRedirectURIs(m.RedirectURIs); err != nil {
		return err
	}
	if m.AuthMethod == "" {
		m.AuthMethod = authBasic
	}
	if !slices.Contains(authMethods, m.AuthMethod) {
		return invalidClientMetadata("token_endpoint_auth_method must be one of %s.", strings.Join(authMethods, ", "))
	}
	// What was registered is not asked for again: everybody gets a refresh token, and may use it.
	var ok bool
	if m.GrantTypes, ok = supported(m.GrantTypes, grantTypes); !ok {
		return invalidClientMetadata("grant_types must have authorization_code among them.")
	}
	if m.ResponseTypes, ok = supported(m.ResponseTypes, responseTypes); !ok {
		return invalidClientMetadata("response_types must have code among them.")
	}
	if m.Scope == "" {
		m.Scope = strings.Join(supportedScopes, " ")
	}
	if m.Scope, ok = grantScope(m.Scope); !ok {
		return invalidClientMetadata("scope must be words with one space between them.")
	}
	if m.ApplicationType != "web" && m.ApplicationType != "native" {
		m.ApplicationType = ""
	}
	m.Name = plain(m.Name)
	return nil
}

func checkRedirectURIs(uris []string) error {
	if len(uris) == 0 {
		return invalidRedirectURI("redirect_uris is missing or empty.")
	}
	if len(uris) > maxRedirectURIs {
		return invalidRedirectURI("There are %d redirect_uris: at most %d are taken.", len(uris), maxRedirectURIs)
	}
	for i, uri := range uris {
		if err := checkRedirectURI(uri); err != nil {
			return invalidRedirectURI("redirect_uris[%d] %v.", i, err)
		}
	}
	return nil
}

// supported is what of asked there is, and all of it where nothing is asked for. ok is false without the first.
func supported(asked, there []string) (list []string, ok bool) {
	if len(asked) == 0 {
		return there, true
	}
	for _, s := range there {
		if slices.Contains(asked, s) {
			list = append(list, s)
		}
	}
	return list, slices.Contains(list, there[0])
}

// plain is a name without what cannot be seen, cut to what is kept.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > maxClientName {
		name = strings.TrimSpace(string(runes[:maxClientName]))
	}
	return name
}
