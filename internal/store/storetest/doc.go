// Package storetest gives tests a real Postgres: one throw-away cluster a run, started by the first test that asks, a
// migrated database for each test package, an organisation for each test. Tests therefore run in parallel, and every
// run is a test of tenancy.
//
// What must hold:
//   - The login that tests use is an ordinary role, not a superuser: a superuser is not under row-level security.
//   - Nothing outlives the run: the database is dropped and the cluster stopped by whoever started it.
//   - A test that must be alone (the first user, system look-ups) takes a private database.
package storetest
