// Package rpc is the JSON-RPC 2.0 envelope as MCP uses it: read without loss, written as raw JSON. What a client
// sent inside it (ids, params, numbers beyond 2^53) passes through byte for byte.
//
// What must hold:
//   - Names are matched with their exact case and a duplicate anywhere in the message refuses it, so that no two
//     readers of one message can see different things.
//   - An id is a string or an integer, echoed as the bytes that came; null, object, array, boolean and fraction are
//     refused (MCP base protocol: an id is a string or integer and never null).
//   - Nothing here knows a method: eras, sessions and tools are mcp's.
package rpc
