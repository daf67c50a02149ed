package oauth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// clients finds a client by its id. One that there is none of is reason.NotFound.
type clients interface {
	Client(ctx context.Context, id string) (Client, error)
}

// A clientsFunc is clients that one function finds.
type clientsFunc func(ctx context.Context, id string) (Client, error)

// Client implements clients.
func (f clientsFunc) Client(ctx context.Context, id string) (Client, error) { return f(ctx, id) }

// registered finds a client that registered. Whoever names it has proven nothing, so this is no use of it.
func (s *Server) registered(ctx context.Context, id string) (Client, error) {
	key, err := store.ParseID[store.ClientKind](id)
	if err != nil {
		return Client{}, err
	}
	c, err := s.c.DB.System().OAuthClient(ctx, key)
	if err != nil {
		return Client{}, fmt.Errorf("load client: %w", err)
	}
	found := Client{ID: id, Name: c.Name, RedirectURIs: c.RedirectURIs, AuthMethod: c.AuthMethod}
	if c.Secret != nil {
		found.Secret = (*store.TokenHash)(c.Secret)
	}
	return found, nil
}

// redeeming finds a client that comes for tokens. One whose id is a document's URL is public, and what it may redeem is what
// was granted to that very id: its document was read when a person was asked, and is not read here.
func (s *Server) redeeming(ctx context.Context, id string) (Client, error) {
	if isDocumentURL(id) == nil {
		return Client{ID: id, AuthMethod: authNone}, nil
	}
	return s.registered(ctx, id)
}

// credentials are how a client says who it is.
type credentials struct {
	id     string
	secret string
	method string // authNone, authBasic or authPost
}

// authenticate proves which client sends a request to the token or revocation endpoint, in the way it registered
// (RFC 6749 §2.3). form is the request's body. What it refuses with is a Fault.
func (s *Server) authenticate(r *http.Request, form url.Values) (Client, error) {
	got, err := readCredentials(r, form)
	if err != nil {
		return Client{}, err
	}
	return s.prove(r.Context(), got)
}

// prove finds the client that a request says it is of, and holds it to how it registered.
func (s *Server) prove(ctx context.Context, got credentials) (Client, error) {
	c, err := s.clients.Client(ctx, got.id)
	if err != nil && !store.IsAbsent(err) {
		return Client{}, err
	}
	if err := got.check(c, err == nil); err != nil {
		return Client{}, err
	}
	return c, nil
}

// check holds what a client proves itself by to how it registered. Its error is a Fault.
func (got credentials) check(c Client, known bool) error {
	// As much is done for a client that there is none of as for one whose secret is wrong.
	fits := got.fits(c.Secret)
	basic := got.method == authBasic
	switch {
	case !known, got.method == c.AuthMethod && !fits:
		return invalidClient(basic, "The client is not known, or its secret is wrong. Register again.")
	case got.method != c.AuthMethod:
		return invalidClient(basic, "The client registered another token_endpoint_auth_method than it uses.")
	}
	return nil
}

// used notes that a client that registered came for what a person had granted it, seldom enough to cost nothing.
func (s *Server) used(ctx context.Context, g store.GrantOf) error {
	if g.ClientUsedAt == nil || s.c.Now().Sub(*g.ClientUsedAt) <= time.Hour {
		return nil
	}
	id, err := store.ParseID[store.ClientKind](g.ClientID) // it has been used, so it registered
	if err != nil {
		return err
	}
	return s.c.DB.System().TouchOAuthClient(ctx, id)
}

// granted is the client of a grant as the look-up of something of that grant brought it along: one less is needed. ok is
// false where it is no longer there.
func granted(g store.GrantOf) (c Client, ok bool) {
	if isDocumentURL(g.ClientID) == nil {
		return Client{ID: g.ClientID, AuthMethod: authNone}, true
	}
	if g.AuthMethod == "" {
		return Client{}, false
	}
	c = Client{ID: g.ClientID, AuthMethod: g.AuthMethod}
	if g.Secret != nil {
		c.Secret = (*store.TokenHash)(g.Secret)
	}
	return c, true
}

// fits reports whether the secret is the one whose hash is want; none is right where there is none. Hashes are compared, in
// constant time, and one is where there is nothing to compare with.
func (c credentials) fits(want *store.TokenHash) bool {
	hash, other := store.HashToken(c.secret), store.TokenHash{}
	if want != nil {
		other = *want
	}
	equal := subtle.ConstantTimeCompare(hash[:], other[:]) == 1
	return equal || want == nil && c.secret == ""
}

// readCredentials reads who a client says it is: in an Authorization header of the scheme Basic or in the body, and not in
// both (RFC 6749 §2.3.1). Headers of another scheme are not the client's: some programs send theirs everywhere.
func readCredentials(r *http.Request, form url.Values) (credentials, error) {
	if query := r.URL.Query(); query.Has("client_secret") || query.Has("client_id") {
		return credentials{}, invalidRequest("The client is named in the body or the Authorization header, never in the query.")
	}
	for _, name := range []string{"client_id", "client_secret"} {
		if len(form[name]) > 1 {
			return credentials{}, invalidRequest("%s is there twice.", name)
		}
	}
	if form.Get("client_assertion") != "" || form.Get("client_assertion_type") != "" {
		return credentials{}, invalidClient(false, "Client assertions are not supported.")
	}
	body := credentials{form.Get("client_id"), form.Get("client_secret"), authNone}
	if body.secret != "" {
		body.method = authPost
	}
	header, given, err := basicCredentials(r.Header)
	switch {
	case err != nil:
		return credentials{}, err
	case given && body.secret != "":
		return credentials{}, invalidRequest("The client authenticates twice: by the Authorization header and in the body.")
	case given && body.id != "" && body.id != header.id:
		return credentials{}, invalidRequest("client_id in the body is another than in the Authorization header.")
	case given:
		return header, nil
	case body.id == "":
		return credentials{}, invalidClient(false, "client_id is missing.")
	}
	return body, nil
}

// basicCredentials reads an Authorization header of the scheme Basic (RFC 7617 §2), in which id and secret are form-encoded
// (RFC 6749 §2.3.1). One that cannot be read is refused, whatever stands in the body.
func basicCredentials(h http.Header) (c credentials, given bool, err error) {
	lines := h.Values("Authorization")
	if len(lines) > 1 {
		return credentials{}, false, invalidRequest("There are several Authorization headers.")
	}
	if len(lines) == 0 {
		return credentials{}, false, nil
	}
	scheme, encoded, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Basic") {
		return credentials{}, false, nil
	}
	pair, err := base64.StdEncoding.Strict().DecodeString(strings.Trim(encoded, " "))
	id, secret, ok := strings.Cut(string(pair), ":")
	if err == nil && ok {
		c, err = decoded(id, secret)
	}
	if err != nil || !ok {
		return credentials{}, true, invalidClient(true, "The Authorization header is not Basic with a form-encoded id and secret.")
	}
	return c, true, nil
}

func decoded(id, secret string) (credentials, error) {
	id, err := url.QueryUnescape(id)
	if err != nil {
		return credentials{}, err
	}
	secret, err = url.QueryUnescape(secret)
	if err == nil && (id == "" || secret == "") {
		err = reason.NotFound // who leaves one out has not authenticated
	}
	return credentials{id, secret, authBasic}, err
}
