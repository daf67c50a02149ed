package mcp

import (
	"encoding/base64"

	"github.com/getgraft/graft/internal/vault"
)

// sealText seals what a client is to keep for us, as text.
func sealText(box *vault.Box, place, plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(box.Seal(place, plain))
}

// openText opens what sealText sealed for the same place.
func openText(box *vault.Box, place []byte, text string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, err
	}
	return box.Open(place, sealed)
}
