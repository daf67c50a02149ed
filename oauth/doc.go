// Package oauth is the authorization server: a client that has nothing but our URL comes to a token with it. It also proves
// who is calling: it verifies the bearer of every request to /mcp and says, as the protocol wants it said, why one was refused.
//
//	client                          Graft                                         person
//	  │ POST /mcp ─────────────────▶ 401, resource_metadata      bearer.go, challenge.go
//	  │ GET  …protected-resource ──▶ resource, issuer            metadata.go
//	  │ GET  …authorization-server ▶ endpoints                   metadata.go
//	  │ POST /mcp/oauth/register ──▶ client_id                   register.go, or a document: document.go
//	  │ GET  /mcp/oauth/authorize ─▶ client and redirect proven  authorize.go
//	  │                              the request is stored       internal/consent
//	  │                              303 /consent/{id} ─────────────────────────────▶ signs in, chooses
//	  │ ◀─ code, state, iss ──────── agent, grant and code made  internal/consent ◀── Connect
//	  │ POST /mcp/oauth/token ─────▶ access and refresh token    token.go, code.go
//	  │ POST /mcp ─────────────────▶ claims, liveness            access.go, verified.go
//	  │ POST /mcp/oauth/token ─────▶ the next pair               refresh.go
//	  │ POST /mcp/oauth/revoke ────▶ 200                         revoke.go
//
// What must hold:
//   - A token resolves to exactly one agent, or to nothing.
//   - Unknown, ended and revoked are one answer. A database that does not answer is never a 401, and never invalid_client or
//     invalid_grant: clients throw their registration or their tokens away on those.
//   - A token is read from the Authorization header alone: not from the query, a body or a cookie.
//   - Opaque tokens are stored and compared as SHA-256, and no error, log line or answer holds one.
//   - What is at a client's URL is read through egress, within bounds, and never on the way of a token. What is not good is
//     not kept.
//   - Nothing is redirected to an address before it is proven to be the client's.
//   - The issuer and the resource follow from the configured origin, never from a request.
package oauth
