package oidctest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func unsigned(header map[string]string, payload []byte) string {
	head, _ := json.Marshal(header) // strings can be
	return b64(head) + "." + b64(payload)
}

// SignRS256 is a token as a provider makes one.
func SignRS256(k Key, payload []byte) string {
	text := unsigned(map[string]string{"alg": "RS256", "kid": k.ID}, payload)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, k.Private, crypto.SHA256, sum[:]) // with a key that is whole
	return text + "." + b64(signature)
}

// SignNone is a token that nobody signed.
func SignNone(_ *Provider, payload []byte) string {
	return unsigned(map[string]string{"alg": "none"}, payload) + "."
}

// SignHS256 is a token that anybody can make who takes the public key for a secret.
func SignHS256(p *Provider, payload []byte) string {
	text := unsigned(map[string]string{"alg": "HS256", "kid": p.Key.ID}, payload)
	public, _ := x509.MarshalPKIXPublicKey(&p.Key.Private.PublicKey) // of a key that is whole
	m := hmac.New(sha256.New, public)
	_, _ = m.Write([]byte(text)) // never fails; see hash.Hash
	return text + "." + b64(m.Sum(nil))
}
