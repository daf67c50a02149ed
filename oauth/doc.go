// Package oauth proves who is calling. It verifies the bearer of every request to /mcp and says, as the protocol
// wants it said, why one was refused.
//
// What must hold:
//   - A token resolves to exactly one agent, or to nothing.
//   - Unknown, ended and revoked are one answer. A database that does not answer is never a 401.
//   - A token is read from the Authorization header alone: not from the query, a body or a cookie.
//   - Tokens are stored and compared as SHA-256, and no error, log line or answer holds one.
package oauth
