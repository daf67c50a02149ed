package store

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/getgraft/graft/internal/reason"
)

// An ID is a UUIDv7 that knows what it identifies. In Postgres it is a uuid; everywhere else it is a prefix and
// 26 characters of lower-case Crockford base32, as in agt_068p5k….
type ID[K Kind] struct{ uuid [16]byte }

// A Kind names one kind of ID by its prefix.
type Kind interface{ prefix() string }

// The kinds of thing that have ids.
type (
	OrgKind     struct{}
	UserKind    struct{}
	AgentKind   struct{}
	TokenKind   struct{}
	GrantKind   struct{}
	ClientKind  struct{}
	SessionKind struct{}
	KeyKind     struct{}
	PasskeyKind struct{}
	// IdentityKind is of who a person is at a provider of sign-in.
	IdentityKind struct{}
	// ConnectionKind is of one account of one vendor.
	ConnectionKind struct{}
	UpstreamKind   struct{}
	SecretKind     struct{}
	// RunKind is of one execution of a tool. Every call has such an id; a row only where something of it is kept.
	RunKind struct{}
	AskKind struct{}
	// ResultKind is of a value that was too long to answer with.
	ResultKind struct{}
	InviteKind struct{}

	OrgID     = ID[OrgKind]
	UserID    = ID[UserKind]
	AgentID   = ID[AgentKind]
	TokenID   = ID[TokenKind]
	GrantID   = ID[GrantKind]
	ClientID  = ID[ClientKind]
	SessionID = ID[SessionKind]
	KeyID     = ID[KeyKind]
	PasskeyID = ID[PasskeyKind]

	IdentityID   = ID[IdentityKind]
	ConnectionID = ID[ConnectionKind]
	UpstreamID   = ID[UpstreamKind]
	SecretID     = ID[SecretKind]
	RunID        = ID[RunKind]
	AskID        = ID[AskKind]
	ResultID     = ID[ResultKind]
	InviteID     = ID[InviteKind]
)

func (OrgKind) prefix() string     { return "org_" }
func (UserKind) prefix() string    { return "usr_" }
func (AgentKind) prefix() string   { return "agt_" }
func (TokenKind) prefix() string   { return "tok_" }
func (GrantKind) prefix() string   { return "grt_" }
func (ClientKind) prefix() string  { return "cli_" }
func (SessionKind) prefix() string { return "ses_" }
func (KeyKind) prefix() string     { return "key_" }
func (PasskeyKind) prefix() string { return "pky_" }

func (IdentityKind) prefix() string   { return "idn_" }
func (ConnectionKind) prefix() string { return "con_" }
func (UpstreamKind) prefix() string   { return "ups_" }
func (SecretKind) prefix() string     { return "sec_" }
func (RunKind) prefix() string        { return "run_" }
func (AskKind) prefix() string        { return "ask_" }
func (ResultKind) prefix() string     { return "res_" }
func (InviteKind) prefix() string     { return "inv_" }

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID makes an id for something that began at now (RFC 9562 §5.7).
func NewID[K Kind](now time.Time) ID[K] {
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(u[6:]) // never fails; see crypto/rand
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return ID[K]{u}
}

// ParseID reads an id as it stands in a URL or an argument. Anything else, another kind's prefix included, is
// reason.NotFound: it cannot name anything that exists.
func ParseID[K Kind](s string) (ID[K], error) {
	var k K
	p := k.prefix()
	if len(s) != len(p)+26 || s[:len(p)] != p {
		return ID[K]{}, reason.NotFound
	}
	var id ID[K]
	if _, err := crockford.Decode(id.uuid[:], []byte(s[len(p):])); err != nil || id.String() != s {
		return ID[K]{}, reason.NotFound
	}
	return id, nil
}

// IDFromBytes makes an id of its 16 bytes, as Bytes gave them.
func IDFromBytes[K Kind](b [16]byte) ID[K] { return ID[K]{b} }

// Bytes are the 16 bytes of the UUID.
func (id ID[K]) Bytes() [16]byte { return id.uuid }

// Compare orders ids by when they were made, to the millisecond.
func (id ID[K]) Compare(other ID[K]) int { return bytes.Compare(id.uuid[:], other.uuid[:]) }

// IsZero reports whether id names nothing.
func (id ID[K]) IsZero() bool { return id.uuid == [16]byte{} }

// Time is when the id was made, to the millisecond.
func (id ID[K]) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id.uuid[:8]) >> 16)).UTC()
}

// String is the wire form. The zero ID is the empty string.
func (id ID[K]) String() string {
	if id.IsZero() {
		return ""
	}
	var k K
	return k.prefix() + crockford.EncodeToString(id.uuid[:])
}

// MarshalText implements encoding.TextMarshaler with the wire form.
func (id ID[K]) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID[K]) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID[K]{}
		return nil
	}
	v, err := ParseID[K](string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// hex is the form Postgres reads, which holds only digits, a to f and dashes and so needs no quoting.
func (id ID[K]) hex() string {
	u := id.uuid
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// orNull is the id as Postgres stores it: the zero ID is NULL.
func (id ID[K]) orNull() pgtype.UUID { return pgtype.UUID{Bytes: id.uuid, Valid: !id.IsZero()} }

// UUIDValue implements pgtype.UUIDValuer. The zero ID is NULL.
func (id ID[K]) UUIDValue() (pgtype.UUID, error) {
	return id.orNull(), nil
}

// ScanUUID implements pgtype.UUIDScanner. NULL is the zero ID.
func (id *ID[K]) ScanUUID(v pgtype.UUID) error {
	*id = ID[K]{}
	if v.Valid {
		id.uuid = v.Bytes
	}
	return nil
}
