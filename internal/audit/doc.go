// Package audit is the chained log of what was done: a Writer appends entries in group commits, a job signs checkpoints
// of where every chain stands, and Verify walks all of it. Whoever changes or deletes an entry afterwards, with whatever
// right in the database, leaves a mark that Verify names the place of.
//
// What must hold:
//   - Commit returns nil only once its entry is durable. An entry that Record took is durable within 50 ms while the
//     database answers, and is retried in its order while it does not.
//   - One writer appends to a chain, so nothing is locked; its first entry names where the organisation's chains stood.
//   - What was not known to be written is written again byte for byte, so that a chain neither forks nor repeats.
//   - Nothing waits for the database without a bound: Record never does, and Commit is refused while it is away.
//   - An entry has a bounded size, whatever a client calls a tool, and the writer connections of its own.
//   - Entries are deleted in one way only: whole beginnings of chains behind a daily checkpoint.
package audit
