package oauth

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// Where the endpoints are, from the origin.
const (
	registerPath  = "/mcp/oauth/register"
	authorizePath = "/mcp/oauth/authorize"
	tokenPath     = "/mcp/oauth/token"
	revokePath    = "/mcp/oauth/revoke"
)

// A discovery is the documents that say what is here, as they are sent.
type discovery struct {
	resource      []byte
	resourceSlash []byte // where the resource is written with a slash
	server        []byte
	nothing       []byte
}

// resourceMetadata is of the protected resource (RFC 9728 §2). scopes_supported leaves offline_access out, because it is
// nothing that a resource knows of.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// serverMetadata is of the authorization server (RFC 8414 §2).
type serverMetadata struct {
	Issuer                 string   `json:"issuer"`
	AuthorizationEndpoint  string   `json:"authorization_endpoint"`
	TokenEndpoint          string   `json:"token_endpoint"`
	RegistrationEndpoint   string   `json:"registration_endpoint"`
	RevocationEndpoint     string   `json:"revocation_endpoint"`
	ScopesSupported        []string `json:"scopes_supported"`
	ResponseTypesSupported []string `json:"response_types_supported"`
	ResponseModesSupported []string `json:"response_modes_supported"`
	GrantTypesSupported    []string `json:"grant_types_supported"`
	TokenAuthMethods       []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods  []string `json:"revocation_endpoint_auth_methods_supported"`
	CodeChallengeMethods   []string `json:"code_challenge_methods_supported"`
	IssuerInResponse       bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207 §3
	ClientDocuments        bool     `json:"client_id_metadata_document_supported"`
}

// discoveryOf writes the documents, in which nothing but the origin has a part.
func discoveryOf(origin string) discovery {
	resource := resourceMetadata{
		Resource:             origin + resourcePath,
		AuthorizationServers: []string{origin},
		ScopesSupported:      []string{scopeMCP},
		BearerMethods:        []string{"header"},
		ResourceName:         "Graft",
	}
	slash := resource
	slash.Resource += "/"
	return discovery{
		resource:      encode(resource),
		resourceSlash: encode(slash),
		server: encode(serverMetadata{
			Issuer:                 origin,
			AuthorizationEndpoint:  origin + authorizePath,
			TokenEndpoint:          origin + tokenPath,
			RegistrationEndpoint:   origin + registerPath,
			RevocationEndpoint:     origin + revokePath,
			ScopesSupported:        supportedScopes,
			ResponseTypesSupported: responseTypes,
			ResponseModesSupported: []string{"query"},
			GrantTypesSupported:    grantTypes,
			TokenAuthMethods:       authMethods,
			RevocationAuthMethods:  authMethods,
			CodeChallengeMethods:   []string{challengeMethod},
			IssuerInResponse:       true,
			ClientDocuments:        true,
		}),
		nothing: encode(map[string]string{"error": "not_found", "error_description": "This is no OpenID provider. See /.well-known/oauth-authorization-server."}),
	}
}

// encode writes what is ours to the last member.
func encode(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // strings and booleans
	}
	return b
}

// ResourceMetadata is GET /.well-known/oauth-protected-resource, and the same with /mcp and /mcp/ after it: clients that
// were given the address with a slash compare it with what stands here, so there it has one.
func (s *Server) ResourceMetadata(w http.ResponseWriter, r *http.Request) {
	body := s.discovery.resource
	if strings.HasSuffix(r.URL.Path, resourcePath+"/") {
		body = s.discovery.resourceSlash
	}
	discover(w, r, http.StatusOK, body)
}

// ServerMetadata is GET /.well-known/oauth-authorization-server, and the same with /mcp after it, where clients look that
// take the server for the issuer.
func (s *Server) ServerMetadata(w http.ResponseWriter, r *http.Request) {
	discover(w, r, http.StatusOK, s.discovery.server)
}

// NoOpenID is GET /.well-known/openid-configuration, whatever comes before or after. Clients that look there go on when
// they get a 404, and fail on a page or on a document that lacks what OpenID requires.
func (s *Server) NoOpenID(w http.ResponseWriter, r *http.Request) {
	discover(w, r, http.StatusNotFound, s.discovery.nothing)
}

func discover(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if admit(w, r, http.MethodGet, http.MethodHead) {
		writePublic(w, status, body)
	}
}

// writePublic writes JSON that everybody may keep for five minutes.
func writePublic(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left is not our error
}

// A PublicKey verifies access tokens.
type PublicKey struct {
	Kid string
	Key ed25519.PublicKey
}

// jwk is a PublicKey as RFC 8037 §2 writes it.
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	Kid string `json:"kid"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	X   string `json:"x"`
}

// Keys is GET /.well-known/jwks.json: the keys that list returns. No document names it, since nobody but this server
// verifies its tokens; operators and tests do.
func (s *Server) Keys(list func(context.Context) ([]PublicKey, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !admit(w, r, http.MethodGet, http.MethodHead) {
			return
		}
		keys, err := list(r.Context())
		if err != nil {
			s.fail(w, r, fmt.Errorf("list signing keys: %w", err))
			return
		}
		set := struct {
			Keys []jwk `json:"keys"`
		}{}
		for _, k := range keys {
			set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", k.Kid, "sig", "EdDSA", base64.RawURLEncoding.EncodeToString(k.Key)})
		}
		writePublic(w, http.StatusOK, encode(set))
	}
}
