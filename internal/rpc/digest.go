package rpc

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
)

// Digest tells one JSON value from another: its SHA-256, whatever the order of members and the space between tokens. Two
// numbers are the same where they are spelled the same, so that no digits are lost on the way.
func Digest(value jsontext.Value) []byte {
	canonical := value.Clone()
	if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		canonical = value
	}
	sum := sha256.Sum256(canonical)
	return sum[:]
}
