// Package signing holds the keys that the gateway signs with, one active key for each purpose. A key is made when it
// is first needed, is the same on every replica, and its private half is sealed under the master key.
//
// What must hold:
//   - Of many replicas that need a key at once, one makes it.
//   - A private half is opened in this package only and never leaves it.
//   - The public half of a key that has retired stays, so that what it signed can be verified.
//   - A public half that does not belong to the private one beside it was put there by somebody, and is an error.
package signing
