package oauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// maxTokenForm is how large a form to the token or revocation endpoint may be, in bytes.
const maxTokenForm = 64 << 10

// A tokenAnswer is what the token endpoint gives (RFC 6749 §5.1).
type tokenAnswer struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"` // seconds
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

func newTokenAnswer(access, refresh, scope string) tokenAnswer {
	return tokenAnswer{access, "Bearer", int64(accessLife / time.Second), refresh, scope}
}

// Token is POST /mcp/oauth/token (RFC 6749 §3.2).
func (s *Server) Token(w http.ResponseWriter, r *http.Request) {
	if !admit(w, r, http.MethodPost) {
		return
	}
	form, err := readForm(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var answer any
	switch grantType := form.Get("grant_type"); grantType {
	case "":
		err = invalidRequest("grant_type is missing.")
	case "authorization_code":
		answer, err = s.redeem(r, form)
	case "refresh_token":
		answer, err = s.refresh(r, form)
	default:
		err = unsupportedGrantType("grant_type must be authorization_code or refresh_token.")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// readForm reads the form that a client posts. Each parameter stands there once, and none in the query, where servers in
// between would log it.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, invalidRequest("The body must be application/x-www-form-urlencoded.")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTokenForm))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, Fault{Status: http.StatusRequestEntityTooLarge, Code: "invalid_request", Description: "The body is too large."}
	case err != nil:
		return nil, invalidRequest("The body did not arrive whole.")
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, invalidRequest("The body is not a form.")
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return nil, invalidRequest("%.40s is there more than once.", name)
		}
	}
	for name := range r.URL.Query() {
		if slices.Contains([]string{"grant_type", "code", "code_verifier", "refresh_token", "token", "redirect_uri", "scope"}, name) {
			return nil, invalidRequest("%s belongs into the body, never into the query.", name)
		}
	}
	return form, nil
}

// checkResource holds what a client says that its token is for to what it is for; saying nothing is fine (RFC 8707 §2.2).
func (s *Server) checkResource(form url.Values) error {
	if slices.ContainsFunc(form["resource"], func(asked string) bool { return !ownResource(s.c.Origin, asked) }) {
		return invalidTarget("The resource is not %s.", s.issuer.resource())
	}
	return nil
}

// presented finds the grant of what a client presents, and proves the client. Whoever proves to be another one is told
// that there is no such thing, reason.NotFound, and learns no more.
func (s *Server) presented(r *http.Request, form url.Values, find func() (store.GrantOf, error)) (store.GrantOf, error) {
	ctx := r.Context()
	got, err := readCredentials(r, form)
	if err != nil {
		return store.GrantOf{}, err
	}
	g, notFound := find()
	if notFound != nil && !store.IsAbsent(notFound) {
		return store.GrantOf{}, notFound
	}
	if notFound == nil && g.ClientID == got.id {
		c, known := granted(g)
		if err := got.check(c, known); err != nil {
			return store.GrantOf{}, err
		}
		if err := s.used(ctx, g); err != nil {
			return store.GrantOf{}, err
		}
	} else {
		if _, err := s.prove(ctx, got); err != nil {
			return store.GrantOf{}, err
		}
		notFound = reason.NotFound
	}
	if err := s.checkResource(form); err != nil {
		return store.GrantOf{}, err
	}
	return g, notFound
}
