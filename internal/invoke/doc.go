// Package invoke is the one path every tool call takes, whoever makes it: an agent over MCP, a person in the
// console, a step of a plan. A call goes straight down and back: resolve the tool, validate its arguments, decide
// whether it may run, write down that it will, run it at its source, shape what comes back, write down how it went.
//
// What must hold:
//   - Nothing runs that was not decided here.
//   - Nothing that can change something leaves before its intent is durable in the audit; a call that only reads is
//     written down after it, within moments. Every call is written down, also one that is refused.
//   - In steady state a call that only reads asks the database nothing.
//   - Arguments and results are raw JSON both ways: no number is rounded, no key is folded.
//   - Whatever is under way ends with its agent, and with the gateway; how a run ended is kept once the database can.
//   - A panic in a source ends the call, not the gateway.
package invoke
