package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/getgraft/graft/internal/store"
)

// An Entry is one thing that was done, or is about to be.
type Entry = store.AuditEntry

// Kind is what an entry tells of.
type Kind = store.AuditKind

// The kinds of entry.
const (
	Intent   = store.AuditIntent
	Call     = store.AuditCall
	Decision = store.AuditDecision
	Change   = store.AuditChange
)

// form is the first byte of what is hashed of an entry. Another form gets another number.
const form = 1

// hash is the hash of a link behind previous, which is nil before the first. It covers every field of the link; buf is
// scratch space, returned for the next.
func hash(buf, previous []byte, l *store.AuditLink) (sum [sha256.Size]byte, scratch []byte) {
	b := append(buf[:0], form)
	b = appendBytes(b, previous)
	b = appendID(b, l.Org)
	b = appendID(b, l.Writer)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Seq))
	b = appendBytes(b, l.Heads)
	b = appendID(b, l.Run)
	b = appendText(b, string(l.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(l.At.UnixMicro()))
	b = appendText(b, string(l.Via))
	b = appendID(b, l.Agent)
	b = appendID(b, l.User)
	b = appendText(b, l.Tool)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Version))
	b = appendText(b, l.Source)
	b = appendID(b, l.Connection)
	b = appendBytes(b, l.Digest)
	b = appendText(b, l.Outcome)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Took.Microseconds()))
	b = appendText(b, l.Line)
	return sha256.Sum256(b), b
}

func appendID[K store.Kind](b []byte, id store.ID[K]) []byte {
	u := id.Bytes()
	return append(b, u[:]...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendBytes tells nil, which is NULL in the database, from nothing.
func appendBytes(b, v []byte) []byte {
	if v == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
}

// A place is an entry of a chain, and the hash it must have.
type place struct {
	writer store.WriterID
	seq    int64
	hash   [sha256.Size]byte
}

// placeSize is a place's length in an entry's heads.
const placeSize = 16 + 8 + sha256.Size

func appendPlace(b []byte, h store.AuditHead) []byte {
	b = appendID(b, h.Writer)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Seq))
	return append(b, h.Hash...)
}

// places reads an entry's heads; ok is false where they are none.
func places(b []byte) (list []place, ok bool) {
	if len(b)%placeSize != 0 {
		return nil, false
	}
	for ; len(b) > 0; b = b[placeSize:] {
		list = append(list, place{
			writer: store.IDFromBytes[store.WriterKind]([16]byte(b)),
			seq:    int64(binary.BigEndian.Uint64(b[16:])),
			hash:   [sha256.Size]byte(b[24:]),
		})
	}
	return list, true
}
