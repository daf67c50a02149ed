// Package migrations is the database schema as numbered SQL files (and river's, by its own migrator), and the one function that brings a database
// up to it. The three roles that tenancy rests on are made here too, before the first file runs.
//
// What must hold:
//   - Files are named NNNNN_words.sql, go forward only, and are never edited once merged (a test holds their hashes).
//   - They run as graft_owner, under goose's session lock, with a lock_timeout of 5 s, so that a busy table stops a
//     migration rather than the service.
//   - A table of a tenant is made one by tenant_table(), never by hand.
//   - Expand, backfill in batches, contract a release later: two releases run side by side on one schema.
package migrations
