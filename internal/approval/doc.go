// Package approval decides whether a call may run, and turns what only a person can settle into an ask with a link.
// The decision is a pure function of the tool, the call and the standing answers.
//
// What must hold:
//   - A tool that only reads never asks. A deny holds whatever the version; an allow holds for one version on one
//     connection; a tool set to ask every time asks about exactly these arguments.
//   - An answer for one call is bound to the digest of tool, version, connection and arguments, never to what the
//     person was shown of them, and is used by one call.
//   - Opening a link decides nothing.
package approval
