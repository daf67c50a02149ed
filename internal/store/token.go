package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"strings"
)

// Prefixes of the opaque tokens, so that a leaked one can be found and named.
const (
	StaticTokenPrefix  = "grft_"
	LinkTokenPrefix    = "grftl_"
	InviteTokenPrefix  = "grfti_"
	RefreshTokenPrefix = "grftr_"
	CodePrefix         = "grftc_"
	ClientSecretPrefix = "grfts_"
	ConsentTokenPrefix = "grftq_" // what a stored authorization request is known by
	BrowserTokenPrefix = "grftb_" // what binds one to a browser
	PasskeyTokenPrefix = "grftp_" // what binds a passkey's challenge to a browser
	SignOnTokenPrefix  = "grfto_" // what binds a sign-in at a provider to a browser
)

// A TokenHash is what is stored of an opaque token: its SHA-256.
type TokenHash [sha256.Size]byte

// NewToken makes an opaque token: prefix, 32 random bytes in base64url, and a checksum of six characters that
// tells a mistyped or cut token from an unknown one without a look-up.
func NewToken(prefix string) (token string, hash TokenHash) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	token = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	sum := checksum(token)
	token += string(sum[:])
	return token, HashToken(token)
}

// HashToken is the hash a token is stored under.
func HashToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// WellFormed reports whether token has prefix, length and checksum of one that NewToken made. It says nothing
// about whether the token is known.
func WellFormed(prefix, token string) bool {
	const random, sum = 43, 6
	if len(token) != len(prefix)+random+sum || !strings.HasPrefix(token, prefix) {
		return false
	}
	want := checksum(token[:len(token)-sum])
	return string(want[:]) == token[len(token)-sum:]
}

// hint is the last four random characters, which a page may show to recognise a token by.
func hint(token string) string { return token[len(token)-10 : len(token)-6] }

// checksum is the CRC-32 of s in base64url.
func checksum(s string) (sum [6]byte) {
	c := crc32.ChecksumIEEE([]byte(s))
	base64.RawURLEncoding.Encode(sum[:], []byte{byte(c >> 24), byte(c >> 16), byte(c >> 8), byte(c)})
	return sum
}
