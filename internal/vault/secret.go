package vault

import (
	"bytes"
	"crypto/subtle"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted is what every printer and encoder gets in place of a secret.
const redacted = "[redacted]"

var errNotEncoded = errors.New("vault: a secret is not encoded; seal it with a data key")

// A Secret is what a person or a vendor gave: a credential, an upstream header, a model key. It cannot be
// printed, logged, marshalled or stored as it is, and == on it does not compile. The zero value is an empty
// secret. A Secret is safe for concurrent use.
type Secret struct {
	// open returns a fresh copy of the plain bytes, which the caller wipes. Nil means empty. It is a function
	// because nothing that walks values by reflection can step into one: fmt reaches the fields of a value that
	// stands in an unexported field of another struct without asking for its methods.
	open func() ([]byte, error)
}

// NewSecret makes a secret of a copy of plain.
func NewSecret(plain []byte) Secret {
	if len(plain) == 0 {
		return Secret{}
	}
	kept := bytes.Clone(plain)
	return Secret{open: func() ([]byte, error) { return bytes.Clone(kept), nil }}
}

// Reveal calls use with the plain bytes, which are wiped when use returns and must not be kept.
//
// Only internal/egress may call it: a secret leaves this process inside a request to its vendor, or not at all.
func (s Secret) Reveal(use func(plain []byte) error) error {
	plain, err := s.plain()
	if err != nil {
		return err
	}
	defer clear(plain)
	return use(plain)
}

// Equal reports whether both hold the same bytes, in a time that depends on their lengths only.
func (s Secret) Equal(t Secret) bool {
	a, errA := s.plain()
	b, errB := t.plain()
	defer clear(a)
	defer clear(b)
	return subtle.ConstantTimeCompare(a, b) == 1 && errA == nil && errB == nil
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.open == nil }

func (s Secret) plain() ([]byte, error) {
	if s.open == nil {
		return nil, nil
	}
	return s.open()
}

// String implements fmt.Stringer, for callers that do not go through fmt.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter: every verb with every flag prints the same.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, which YAML and XML encoders use.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON implements json.Marshaler.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalBinary implements encoding.BinaryMarshaler. It always fails: what writes bytes means to read them back.
func (Secret) MarshalBinary() ([]byte, error) { return nil, errNotEncoded }

// GobEncode implements gob.GobEncoder. It always fails.
func (Secret) GobEncode() ([]byte, error) { return nil, errNotEncoded }

// Value implements driver.Valuer. It always fails, so that no column holds a secret in clear, or "[redacted]".
func (Secret) Value() (driver.Value, error) { return nil, errNotEncoded }
