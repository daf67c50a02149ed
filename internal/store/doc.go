// Package store is the data of Graft: every domain type stands beside the SQL that reads and writes it. Tenant
// data is reached only inside DB.As, for one Caller; the few questions that come before a tenant is known are
// methods of System.
//
// What must hold:
//   - The pool is unexported and a *Tx exists only inside DB.As, whose BEGIN takes the role graft_app and sets the
//     organisation. Row-level security does the rest: no query here names org_id to filter by it.
//   - Every tenant table has org_id NOT NULL, row-level security enabled and forced, composite foreign keys, and
//     unique constraints that lead with org_id. A catalogue test asks Postgres.
//   - All methods of System stand in lookup.go and the few files that source_test.go names, so that what crosses tenants
//     is read in one go. A Tx takes System's role in one place: a person who was removed from everywhere loses their
//     browser sessions, which are no organisation's.
//   - Another organisation's row and a missing row are one answer: reason.NotFound.
//   - Within an organisation, a method that takes an agent's id asks whether the caller may see or use that agent.
//     RecordSessions, SeeSessions and TouchAgents do not: one transaction writes down what many agents did.
//   - The time is an argument, never now() in SQL. The closure given to As may run again, so it has no effect
//     outside SQL, and it never waits on the network.
package store
