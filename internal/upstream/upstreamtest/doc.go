// Package upstreamtest is an MCP server that does what a test tells it to, well or badly, and remembers all it was sent.
// It is made of net/http alone, so that no library of ours or of the client's can make both sides wrong in the same way.
//
// What must hold:
//   - What is not scripted is as the specification has it, in either era.
//   - Each request is kept byte for byte, and each run of a tool is counted.
package upstreamtest
