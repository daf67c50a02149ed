package oauth

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
)

// Client ID metadata documents (draft-ietf-oauth-client-id-metadata-document): a client whose id is the https URL of a
// document about itself need not register.

const maxDocumentURL = 2048 // bytes

// uriCharacters are all that a URI may hold (RFC 3986 §2).
const uriCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+,;=%"

// isDocumentURL says what keeps id from being the URL of a client's document; nil for nothing. Which addresses and ports
// may be read is for the way out to say.
func isDocumentURL(id string) error {
	if problem := documentURLProblem(id); problem != "" {
		return reason.Refuse(reason.InputInvalid, "The app's client_id is no address of a document: it %s. Tell the app's maker.", problem).Field("client_id")
	}
	return nil
}

func documentURLProblem(id string) string {
	if len(id) > maxDocumentURL {
		return fmt.Sprintf("is longer than %d bytes", maxDocumentURL)
	}
	u, err := url.Parse(id)
	if err != nil || strings.Trim(id, uriCharacters) != "" || !escaped(id) {
		return "is not a URL"
	}
	switch {
	case u.Scheme != "https" || u.Hostname() == "":
		return "does not begin with https:// and a host"
	case u.User != nil:
		return "has a user name"
	case strings.Contains(id, "#"):
		return "has a fragment"
	case u.Path == "":
		return "has no path"
	case hasDotSegment(u.Path):
		return "has . or .. in its path"
	}
	return ""
}

// escaped reports whether every % begins an escape (RFC 3986 §2.1).
func escaped(id string) bool {
	_, err := url.PathUnescape(id)
	return err == nil
}

// hasDotSegment looks at a path after its escapes were undone, so that no spelling of a dot or of a slash hides one.
func hasDotSegment(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}

// CheckDocument says what is wrong with a client's document, in a sentence for whoever wrote it, or with the URL that it
// is said to be at.
func CheckDocument(url string, body []byte) error {
	_, err := parseDocument(url, body)
	return err
}

// parseDocument makes a Client of the document that was read at a URL. Its Document is what Graft understood of it: the
// rest may hold what Postgres does not take, and nobody asks for it.
func parseDocument(url string, body []byte) (Client, error) {
	if err := isDocumentURL(url); err != nil {
		return Client{}, err
	}
	m, err := readMembers(url, body)
	if err != nil {
		return Client{}, err
	}
	return m.client(url)
}

// members are those of a document that says to be about its URL.
type members map[string]jsontext.Value

// readMembers takes a document apart. Whatever it refuses is no document of this client at all, but what a broken server
// answers.
func readMembers(url string, body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil || m == nil { // nor may a name stand in it twice
		return nil, badDocument(url, "it is not a JSON object")
	}
	// Simple string comparison (RFC 3986 §6.2.1): nothing is normalised.
	if id, ok := member[string](m, "client_id"); !ok || id != url {
		return nil, badDocument(url, "its client_id is not exactly the address that it is at")
	}
	return m, nil
}

// member is one of a type; the zero value where there is none.
func member[T any](m members, name string) (v T, ok bool) {
	raw, found := m[name]
	return v, !found || json.Unmarshal(raw, &v) == nil
}

// client holds the document to the rules.
func (m members) client(url string) (Client, error) {
	for name := range m {
		if strings.HasPrefix(name, "client_secret") { // what everybody can read is no secret
			return Client{}, badDocument(url, "it holds a client_secret")
		}
	}
	c := Client{ID: url, AuthMethod: authNone}
	name, ok := member[string](m, "client_name")
	if c.Name = plain(name); !ok || c.Name == "" {
		return Client{}, badDocument(url, "it has no client_name")
	}
	if c.RedirectURIs, ok = member[[]string](m, "redirect_uris"); !ok || len(c.RedirectURIs) == 0 || len(c.RedirectURIs) > maxRedirectURIs {
		return Client{}, badDocument(url, "it does not list 1 to %d redirect_uris", maxRedirectURIs)
	}
	for i, uri := range c.RedirectURIs {
		if err := checkRedirectURI(uri); err != nil {
			return Client{}, badDocument(url, "number %d of its redirect_uris %v", i+1, err)
		}
	}
	if problem := m.authProblem(); problem != "" {
		return Client{}, badDocument(url, "%s", problem)
	}
	var err error
	c.Document, err = json.Marshal(understood{c.ID, c.Name, c.RedirectURIs, c.AuthMethod})
	return c, err
}

// understood is what is kept of a document.
type understood struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"client_name"`
	RedirectURIs []string `json:"redirect_uris"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
}

// authProblem says why the client cannot be a public one, which is all that a document can make of it here. One that
// prefers a key of its own and lists none beside it is public: so does ChatGPT. grant_types are not looked at, since
// clients that list authorization_code alone refresh all the same.
func (m members) authProblem() string {
	one, ok := member[string](m, "token_endpoint_auth_method")
	several, okSeveral := member[[]string](m, "token_endpoint_auth_methods_supported")
	if !ok || !okSeveral {
		return "its token_endpoint_auth_method is not text, or token_endpoint_auth_methods_supported is not a list of texts"
	}
	switch {
	case strings.HasPrefix(one, "client_secret"):
		return "it wants to prove itself with a secret, which an app that is known by a document cannot have"
	case one == authNone, slices.Contains(several, authNone), one == "" && len(several) == 0:
		return ""
	case one == "private_key_jwt", slices.Contains(several, "private_key_jwt"):
		return "the app proves itself by private_key_jwt, which is not taken here; token_endpoint_auth_methods_supported must list none too"
	}
	return "the app proves itself in no way that is taken here; token_endpoint_auth_methods_supported must list none"
}

// badDocument is the refusal of what was read at a URL. Of the document itself it repeats nothing.
func badDocument(url, problem string, args ...any) *reason.Refusal {
	return reason.Refuse(reason.InputInvalid, "The app's document at %s cannot be used: %s. Tell the app's maker.",
		documentHost(url), fmt.Sprintf(problem, args...)).Field("client_id")
}

// documentHost is the host of a document's URL, with its port where it names one.
func documentHost(id string) string {
	u, err := url.Parse(id)
	if err != nil {
		return "its address"
	}
	return strings.ToLower(u.Host)
}
