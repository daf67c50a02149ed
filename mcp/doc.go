// Package mcp is the /mcp endpoint: POST, GET and DELETE of the streamable HTTP transport, sessions, streams, and
// the meta-tools that every agent has. It turns a request into a call of invoke and the outcome back into the wire.
//
// What must hold:
//   - A request reaches this package with a Caller in its context: the bearer was checked before any method,
//     version or session.
//   - Any replica answers any request of any session. A session id is sealed, bound to the agent and not to the
//     token, and a restart does not end it.
//   - What belongs to a request (its id, its cancellation, its stream) is keyed by session and request, never by a
//     request id alone.
//   - Ids, arguments and results stay raw JSON; mcp-go lends its types and never sees a client's bytes.
package mcp
