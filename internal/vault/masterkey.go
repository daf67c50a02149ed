package vault

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MasterKeys wrap the data keys that are stored in the database. The first key wraps, all of them unwrap, so a
// new one is put in front of the old. Safe for concurrent use.
type MasterKeys struct {
	keys []*sealKey // newest first, never empty
}

// ParseMasterKeys reads master keys, one a line, newest first, each the base64 (standard or URL alphabet, padded
// or not) of 32 bytes. Blank lines are skipped. An error names the line and never what stands in it.
func ParseMasterKeys(text string) (*MasterKeys, error) {
	m := &MasterKeys{}
	lineOf := map[keyID]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		raw, ok := decodeKey(line)
		if !ok {
			return nil, fmt.Errorf("master key on line %d: not the base64 of %d bytes", i+1, keySize)
		}
		key := newSealKey(&raw)
		clear(raw[:])
		if first, twice := lineOf[key.id]; twice {
			return nil, fmt.Errorf("master key on line %d: the same as on line %d", i+1, first)
		}
		lineOf[key.id] = i + 1
		m.keys = append(m.keys, key)
	}
	if len(m.keys) == 0 {
		return nil, errors.New("master keys: none given")
	}
	return m, nil
}

// decodeKey is strict: each key has one spelling in each alphabet, with or without its padding.
func decodeKey(line string) (raw [keySize]byte, ok bool) {
	alphabet := base64.RawStdEncoding
	if strings.ContainsAny(line, "-_") {
		alphabet = base64.RawURLEncoding
	}
	decoded, err := alphabet.Strict().DecodeString(strings.TrimSuffix(line, "="))
	defer clear(decoded)
	if err != nil || len(decoded) != keySize {
		return raw, false
	}
	return [keySize]byte(decoded), true
}

// GenerateMasterKey returns the text of a new random master key, one line without its end, for a file that only
// the operator may read.
func GenerateMasterKey() string {
	raw := randomKey()
	defer clear(raw[:])
	return base64.StdEncoding.EncodeToString(raw[:])
}

func randomKey() *[keySize]byte {
	var raw [keySize]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	return &raw
}

// Owner says what a data key is for. A wrapped key unwraps for the same owner only.
type Owner struct {
	Purpose string // what is sealed under it: "organisation", "session", …
	ID      string // the organisation's id, or the id of the key's own row
}

func (o Owner) binding() ([]byte, error) {
	if o.Purpose == "" || o.ID == "" {
		return nil, errors.New("owner of a data key lacks its purpose or its id")
	}
	return binding("graft.wrap.v1", o.Purpose, o.ID), nil
}

// NewDataKey makes a random data key and returns it with its wrapped form, which is what is stored.
func (m *MasterKeys) NewDataKey(owner Owner) (*DataKey, []byte, error) {
	bound, err := owner.binding()
	if err != nil {
		return nil, nil, fmt.Errorf("make data key: %w", err)
	}
	raw := randomKey()
	defer clear(raw[:])
	return &DataKey{newSealKey(raw)}, m.keys[0].seal(bound, raw[:]), nil
}

// Unwrap returns the data key that NewDataKey wrapped for owner. Its error wraps ErrSealed.
func (m *MasterKeys) Unwrap(owner Owner, wrapped []byte) (*DataKey, error) {
	bound, err := owner.binding()
	if err != nil {
		return nil, fmt.Errorf("unwrap data key: %w", err)
	}
	raw, err := open(m.keys, bound, wrapped)
	defer clear(raw)
	if err != nil {
		return nil, fmt.Errorf("unwrap data key of %s %s: %w", owner.Purpose, owner.ID, err)
	}
	if len(raw) != keySize {
		return nil, fmt.Errorf("unwrap data key of %s %s: %w", owner.Purpose, owner.ID, ErrTampered)
	}
	return &DataKey{newSealKey((*[keySize]byte)(raw))}, nil
}

// Format implements fmt.Formatter: the ids of the keys, newest first, and nothing else.
func (m *MasterKeys) Format(f fmt.State, _ rune) {
	if m == nil {
		_, _ = io.WriteString(f, "no master keys")
		return
	}
	ids := make([]string, len(m.keys))
	for i, k := range m.keys {
		ids[i] = k.id.String()
	}
	_, _ = io.WriteString(f, "master keys "+strings.Join(ids, ", "))
}
