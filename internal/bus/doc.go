// Package bus is what every replica must hear: which agent was revoked, whose list moved, what answer arrived. It
// rides on Postgres LISTEN/NOTIFY over one connection of its own, and says at every moment whether it can be relied on.
//
// What must hold:
//   - An event names a topic and an id, never content: whoever hears it reads the row. It is sent with the
//     transaction that makes it true, by store, or right after it.
//   - Healthy means that this replica's own heartbeat came back over the bus within Silence. A connection that is up
//     and delivers nothing is not healthy.
//   - Whatever might have been missed is made up for: after a silence every listener is told to Reset, which means to
//     forget what it holds and to read anew, before the bus is healthy again.
//   - Listeners do not block. They are called one after the other on one goroutine, in the order of the events.
package bus
