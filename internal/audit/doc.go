// Package audit is the chained log of what was done: a Writer appends entries in group commits, a Signer makes checkpoints
// of where every chain stands, and Verify walks all of it. Hashes are plain, so that whoever has an export can check a
// chain; what holds them is the signature of checkpoints, which takes the master key.
//
// Whoever changes or deletes afterwards, with whatever right in the database, what a checkpoint names leaves a mark that
// Verify names the place of. So does whoever puts an entry in that says it is more than eight days older, or puts it behind
// a chain that had ended. Verify cannot see:
//   - a change to what no checkpoint names yet, which is at most what came since the last minute's;
//   - an entry that is added where a chain goes on, or begins, and says a time of the last days: the next checkpoint
//     names it like any other;
//   - a database that was put back to an older checkpoint, or emptied with its keys, and gone on from there. A Signer
//     that lives sees that, and so does who noted a checkpoint elsewhere: one a day is in the gateway's log.
//
// What must hold:
//   - Commit returns nil only once its entry is durable. An entry that Record took is durable within 50 ms while the
//     database answers, and is retried in its order while it does not.
//   - One writer appends to a chain, so nothing is locked; its first entry names where the organisation's chains stood.
//   - What was not known to be written is written again byte for byte, so that a chain neither forks nor repeats.
//   - Nothing waits for the database without a bound: Record never does, and Commit is refused while it is away.
//   - An entry has a bounded size, whatever a client calls a tool, and the writer connections of its own.
//   - What a checkpoint names of a chain, every later one goes on to build on: a Signer reads the entry again, and where
//     it is another names the old one as long as it is kept. It builds on no checkpoint that is not as it was signed.
//   - Verify holds a chain to everything that was ever named of it and is kept, not to the newest only.
//   - Entries are deleted in one way only: whole beginnings of chains behind a signed daily checkpoint, older than a week.
package audit
