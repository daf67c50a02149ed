// Package servertest starts the real gateway for tests of any package: two replicas on one database, behind a proxy
// that sends each request to the next of them. Whatever a test does is therefore done across replicas.
//
// What must hold:
//   - Everything is real: Postgres, HTTP over loopback, the route table, the middleware.
//   - Nothing is sticky. What works here works behind a plain load balancer.
//   - A kit ends with its test: listeners, goroutines and replicas are waited for.
package servertest
