// Package upstream is Graft as an MCP client: it speaks to the servers whose tools it passes on. A Session is one
// conversation with one server over streamable HTTP, in the sessions era (up to 2025-11-25) or the stateless one
// (2026-07-28), whichever the server speaks.
//
// A Source is the tools of an organisation's upstreams: it lists them into the database, and calls them in the sessions of
// a pool.
//
// The client is our own. That of mcp-go, whose types and constants are used, reads an answer of any size into memory, takes
// every 404 for a lost session, every 4xx of initialize for the old transport and every broken connection for one error, and
// cannot say whether a call was carried out.
//
// What must hold:
//   - Nothing of an agent's own request (headers, token, session, ids, progress token) reaches a server: what is sent is
//     made here, and no argument could carry it.
//   - Arguments and results are raw JSON both ways.
//   - No call is sent twice, unless the first was not carried out or is a read. An error says whether it may have been
//     (ErrOutcomeUnknown).
//   - A session is used by one agent. It ends with the agent, with the upstream, and with the headers it was opened with.
//   - What is listed of an upstream comes from the database. A call in steady state needs neither that nor a listing.
//   - Effects are an upstream's word only where a person trusts it; else each of its tools is a destructive write.
//   - What is kept or told of a failure is our own sentence: an upstream may repeat the credential that it was sent.
//   - Everything is bounded: time, answers, lists, the pace of notifications, goroutines. One server's fault costs its own
//     calls only.
//   - A Session's goroutines have ended when Close returns.
package upstream
