// Package server puts Graft together: its configuration, the one route table, the middleware around it, and the
// edge where errors become answers. It starts what runs beside requests and stops all of it again.
//
// What must hold:
//   - Every route stands in routes.go with the middleware it goes through; tests walk that table and ask each one who
//     may use it.
//   - On /mcp the bearer is checked before any method, version, session or body.
//   - An error becomes words once, here; one that is no refusal is answered as internal with a request id, and its
//     text goes to the log alone.
//   - The pages of one user do not take all connections to the database: they are few at a time.
//   - Nothing here reads the environment: Config is filled by cmd.
package server
