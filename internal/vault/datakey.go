package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A DataKey seals what one owner stores. Deleting its wrapped form makes everything sealed under it unreadable
// for good. Safe for concurrent use.
type DataKey struct {
	key *sealKey
}

// A Place is where a secret is stored. A sealed secret opens in its place only: copied into another row, column,
// table or organisation it is noise.
type Place struct {
	Org, Table, Row, Column string
}

func (p Place) binding() ([]byte, error) {
	if p.Org == "" || p.Table == "" || p.Row == "" || p.Column == "" {
		return nil, errors.New("the place lacks its organisation, table, row or column")
	}
	return binding("graft.seal.v1", p.Org, p.Table, p.Row, p.Column), nil
}

// Seal returns what is stored of s at place.
func (k *DataKey) Seal(place Place, s Secret) ([]byte, error) {
	bound, err := place.binding()
	if err != nil {
		return nil, fmt.Errorf("seal %s.%s: %w", place.Table, place.Column, err)
	}
	plain, err := s.plain()
	if err != nil {
		return nil, fmt.Errorf("seal %s.%s: %w", place.Table, place.Column, err)
	}
	defer clear(plain)
	return k.key.seal(bound, plain), nil
}

// Open returns the secret sealed at place, or an error that wraps ErrSealed.
//
// It proves that the secret opens, then forgets the plain text again: the Secret keeps what was sealed, and
// opens it anew for the length of each Reveal.
func (k *DataKey) Open(place Place, sealed []byte) (Secret, error) {
	bound, err := place.binding()
	if err != nil {
		return Secret{}, fmt.Errorf("open %s.%s: %w", place.Table, place.Column, err)
	}
	kept := bytes.Clone(sealed)
	reopen := func() ([]byte, error) { return open([]*sealKey{k.key}, bound, kept) }
	plain, err := reopen()
	if err != nil {
		return Secret{}, fmt.Errorf("open %s.%s: %w", place.Table, place.Column, err)
	}
	defer clear(plain)
	if len(plain) == 0 {
		return Secret{}, nil
	}
	return Secret{open: reopen}, nil
}

// Format implements fmt.Formatter: the key's id and nothing else.
func (k *DataKey) Format(f fmt.State, _ rune) {
	if k == nil {
		_, _ = io.WriteString(f, "no data key")
		return
	}
	_, _ = io.WriteString(f, "data key "+k.key.id.String())
}
