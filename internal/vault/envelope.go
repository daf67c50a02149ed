package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Everything sealed has one layout, whatever key seals it:
//
//	version (1) | key id (4) | nonce (12) | ciphertext | tag (16)
//
// AES-256-GCM with a random nonce; one key seals at most 2^32 messages. What the ciphertext is bound to
// (its additional data) is not stored: whoever opens it has to know.
const (
	layoutVersion = 1
	keySize       = 32
	headerSize    = 1 + 4
	// Overhead is how many bytes longer a sealed message is than its plain text.
	Overhead = headerSize + 12 + 16
)

// ErrSealed is wrapped by every error of opening what was sealed.
var ErrSealed = errors.New("sealed data does not open")

// The ways of not opening. All of them wrap ErrSealed.
var (
	ErrTruncated  = fmt.Errorf("%w: too short", ErrSealed)
	ErrVersion    = fmt.Errorf("%w: unknown version", ErrSealed)
	ErrUnknownKey = fmt.Errorf("%w: sealed under a key that is not here", ErrSealed)
	// ErrTampered says that the bytes were changed, or that they were sealed for another place or purpose.
	ErrTampered = fmt.Errorf("%w: changed, or sealed for another place", ErrSealed)
)

type keyID [4]byte

// String is the id as keys are named in files, rows and logs.
func (id keyID) String() string { return hex.EncodeToString(id[:]) }

// A sealKey is one AES-256 key, ready to use: expanding it costs more than sealing a short message.
type sealKey struct {
	id   keyID
	aead cipher.AEAD
}

// newSealKey keeps nothing of raw, which the caller wipes.
func newSealKey(raw *[keySize]byte) *sealKey {
	block, err := aes.NewCipher(raw[:])
	if err != nil {
		panic(err) // not with 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // not with a cipher of crypto/aes
	}
	h := sha256.New()
	_, _ = h.Write([]byte("graft.key-id.v1\x00"))
	_, _ = h.Write(raw[:])
	return &sealKey{id: keyID(h.Sum(nil)), aead: aead}
}

func (k *sealKey) seal(bound, plain []byte) []byte {
	out := make([]byte, headerSize, len(plain)+Overhead)
	out[0] = layoutVersion
	copy(out[1:], k.id[:])
	return k.aead.Seal(out, nil, plain, bound)
}

// open opens sealed with the one of keys whose id it names.
func open(keys []*sealKey, bound, sealed []byte) ([]byte, error) {
	switch {
	case len(sealed) == 0:
		return nil, ErrTruncated
	case sealed[0] != layoutVersion:
		return nil, ErrVersion
	case len(sealed) < Overhead:
		return nil, ErrTruncated
	}
	err := ErrUnknownKey
	for _, k := range keys {
		if k.id != keyID(sealed[1:headerSize]) {
			continue
		}
		plain, openErr := k.aead.Open(nil, nil, sealed[headerSize:], bound)
		if openErr == nil {
			return plain, nil
		}
		err = ErrTampered // and look on: two keys may share an id of four bytes
	}
	return nil, err
}

// binding encodes what a ciphertext is bound to. Every part is preceded by its length, so that no two lists of
// parts encode alike; domain keeps apart the things one key might be used for.
func binding(domain string, parts ...string) []byte {
	size := len(domain) + 1
	for _, p := range parts {
		size += binary.MaxVarintLen32 + len(p)
	}
	b := make([]byte, 0, size)
	b = append(b, domain...)
	b = append(b, 0)
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}
