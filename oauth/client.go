package oauth

import "github.com/getgraft/graft/internal/store"

// How a client proves itself at the token endpoint (RFC 7591 §2, token_endpoint_auth_method).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// A Client is a program that asks for grants: one that registered, or one whose id is the URL of a document about itself.
// Nothing that it says of itself is proven but where its answers go.
type Client struct {
	ID           string
	Name         string
	RedirectURIs []string
	AuthMethod   string
	Secret       *store.TokenHash // nil for authNone
	Document     []byte           // the document as JSON; nil for one that registered
}
