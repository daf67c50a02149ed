// Package vault keeps secrets at rest. What a person or a vendor gave is sealed to the place it is stored in,
// under the key of its organisation, which is itself wrapped by a master key; our own data is sealed in a Box.
//
// What must hold:
//   - A Secret is never printed, logged, encoded or compared by accident, and is revealed in internal/egress only.
//   - What was sealed opens with the same key at the same place (organisation, table, row, column) and nowhere else.
//   - No error holds a key, a plain text or a line of a key file.
//   - The bytes of a key exist only while it is made, wrapped or unwrapped; they are wiped after.
//   - An organisation has one data key; when its row is gone, so is everything sealed under it.
//   - This package imports nothing of ours.
package vault
