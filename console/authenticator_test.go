package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// An authenticator is a device in software: it makes ES256 passkeys without attestation, and signs with them.
type authenticator struct {
	t      *testing.T
	origin string // of the page that asks it
	rpID   string
	flags  byte // user present and verified, unless a test says otherwise
	keys   []*deviceKey
}

// A deviceKey is one passkey, as its device keeps it.
type deviceKey struct {
	id     []byte
	user   []byte
	secret *ecdsa.PrivateKey
	count  uint32
}

const (
	userPresent  = 0x01
	userVerified = 0x04
	withKey      = 0x40 // attested credential data included
)

func (s *house) authenticator(t *testing.T) *authenticator {
	return &authenticator{t: t, origin: s.url, rpID: "localhost", flags: userPresent | userVerified}
}

// options are what the server asks a browser for, either way.
type options struct {
	Create *struct {
		Challenge string `json:"challenge"`
		User      struct {
			ID string `json:"id"`
		} `json:"user"`
		Exclude   []struct{ ID string } `json:"excludeCredentials"`
		Selection struct {
			ResidentKey      string `json:"residentKey"`
			UserVerification string `json:"userVerification"`
		} `json:"authenticatorSelection"`
	} `json:"create"`
	Get *struct {
		Challenge        string                `json:"challenge"`
		RPID             string                `json:"rpId"`
		Allow            []struct{ ID string } `json:"allowCredentials"`
		UserVerification string                `json:"userVerification"`
	} `json:"get"`
	Error string `json:"error"`
}

// asked posts to where a page's script asks for options.
func (b *browser) asked(path string, form ...string) (o options) {
	b.t.Helper()
	p := b.post(path, form...)
	if p.status != http.StatusOK && p.status != http.StatusUnprocessableEntity {
		b.t.Fatalf("POST %s = %d: %s", path, p.status, p.main())
	}
	if err := json.Unmarshal([]byte(p.body), &o); err != nil {
		b.t.Fatalf("POST %s: %v: %s", path, err, p.main())
	}
	return o
}

func (a *authenticator) clientData(kind, challenge string) []byte {
	return a.json(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
}

func (a *authenticator) json(v any) []byte {
	a.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// data is authenticator data (WebAuthn Level 3 §6.1).
func (a *authenticator) data(flags byte, count uint32) []byte {
	id := sha256.Sum256([]byte(a.rpID))
	return binary.BigEndian.AppendUint32(append(id[:], flags), count)
}

// create makes a passkey and returns what navigator.credentials.create gives, as JSON.
func (a *authenticator) create(o options) string {
	a.t.Helper()
	if o.Create == nil {
		a.t.Fatalf("asked for %+v, want to create a passkey", o)
	}
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	k := &deviceKey{id: make([]byte, 32), user: unb64(a.t, o.Create.User.ID), secret: secret}
	_, _ = rand.Read(k.id)
	a.keys = append(a.keys, k)
	point, err := secret.PublicKey.Bytes() // 4, x, y
	if err != nil {
		a.t.Fatal(err)
	}
	cose := a.cbor(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]}) // EC2, ES256, P-256
	data := a.data(a.flags|withKey, k.count)
	data = append(data, make([]byte, 16)...) // no AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(k.id)))
	data = append(append(data, k.id...), cose...)
	object := a.cbor(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	return a.credential(k, map[string]any{
		"clientDataJSON": b64(a.clientData("webauthn.create", o.Create.Challenge)), "attestationObject": b64(object), "transports": []string{"internal", "hybrid"},
	})
}

// get signs with the newest passkey, or with the newest of those that are asked for, and returns what
// navigator.credentials.get gives, as JSON.
func (a *authenticator) get(o options) string {
	a.t.Helper()
	if o.Get == nil || len(a.keys) == 0 {
		a.t.Fatalf("asked for %+v with %d passkeys, want to sign", o, len(a.keys))
	}
	k := a.keys[len(a.keys)-1]
	k.count++
	data, client := a.data(a.flags, k.count), a.clientData("webauthn.get", o.Get.Challenge)
	hash := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte{}, data...), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, k.secret, signed[:])
	if err != nil {
		a.t.Fatal(err)
	}
	return a.credential(k, map[string]any{
		"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(k.user),
	})
}

func (a *authenticator) credential(k *deviceKey, response map[string]any) string {
	return string(a.json(map[string]any{
		"id": b64(k.id), "rawId": b64(k.id), "type": "public-key", "authenticatorAttachment": "platform",
		"clientExtensionResults": map[string]any{}, "response": response,
	}))
}

func (a *authenticator) cbor(v any) []byte {
	a.t.Helper()
	mode, err := cbor.CTAP2EncOptions().EncMode()
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := mode.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func unb64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
