// Package invoke is the one path every tool call takes, whoever makes it: an agent over MCP, a person in the
// console, a step of a plan. A call goes straight down and back: resolve the tool, validate its arguments, decide
// whether it may run, run it at its source, bound and shape what comes back.
//
// What must hold:
//   - Nothing runs that was not decided here. A tool that is not read-only is refused until there is someone to ask.
//   - Arguments and results are raw JSON both ways: no number is rounded, no key is folded.
//   - A panic in a source ends the call, not the gateway.
package invoke
