// Package e2e drives Graft with the programs people use: official MCP clients and servers from npm and a real Chromium.
// It finds those programs where `make test` put them, and gives tests a browser page that reads like a visit.
//
// What must always hold:
//   - Only tools.go knows where a program lies; a missing one fails the test and says what installs it. No test is skipped.
//   - Every process started here belongs to a test and has ended when that test has.
//   - A page fails its test for any uncaught exception, console error or policy violation, not only for what it looked for.
package e2e
