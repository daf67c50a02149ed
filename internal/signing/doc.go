// Package signing holds the keys that the gateway signs with, one active key for each purpose. A key is made when it
// is first needed, is the same on every replica, and its private half is sealed under the master key.
//
// What must hold:
//   - Of many replicas that need a key at once, one makes it.
//   - A private half is opened in this package only and never leaves it.
//   - A public half is believed only where the private one, sealed for its purpose and its id, is beside it and belongs
//     to it. Any other was put there by somebody, and is an error: whoever writes to the database has no key of theirs.
//   - A key that has retired keeps its private half for that, so that what it signed can be verified.
package signing
