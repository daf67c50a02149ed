package egress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/getgraft/graft/internal/vault"
)

// marker stands where a secret stood. It may stand in JSON, in a URL and in a header.
const marker = "[redacted]"

var errClosed = errors.New("egress: read of a stream that was closed")

// A redactor takes secrets out of an answer: out of its headers, and out of its body as it comes. The search is Wu and
// Manber's: two bytes of the text say as a rule that no needle begins at any of the next few places.
type redactor struct {
	mu      sync.Mutex // a call may be closed while its body is read
	wiped   bool
	needles needles
	shift   [1 << shiftBits]uint8  // by hash of two bytes: how many places no needle begins at
	bucket  [1 << bucketBits]int16 // by hash of a needle's first bytes: one of them, from 1
	chain   []int16                // by needle: the next of its bucket
	prefix  []uint64               // by needle: its first bytes
	first   [256]bool              // bytes that a needle begins with
	found   bool

	carry   []byte // the end of the text, which may be the beginning of a needle
	covered int    // bytes of carry that a marker stands for already
	out     []byte // redacted
	told    int    // bytes of out that have been read
	err     error  // once out has been read
	buf     []byte // for readers with little room
}

const (
	shiftBits  = 12
	bucketBits = 8
)

// newRedactor makes a redactor of every form of some secrets. It is nil if there is nothing to look for.
func newRedactor(secrets []vault.Secret) (*redactor, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	r := &redactor{needles: needles{arena: make([]byte, 0, 2048), ends: make([]int, 0, 64)}}
	for _, secret := range secrets {
		err := secret.Reveal(func(plain []byte) error {
			r.needles.addSecret(plain)
			return nil
		})
		if err != nil {
			r.wipe()
			return nil, fmt.Errorf("redact credential: %w", err)
		}
	}
	if r.needles.len() == 0 {
		return nil, nil
	}
	r.index()
	return r, nil
}

func (r *redactor) index() {
	for i := range r.shift {
		r.shift[i] = minNeedle - 1
	}
	r.chain = make([]int16, r.needles.len())
	r.prefix = make([]uint64, r.needles.len())
	for i := range r.needles.len() {
		needle := r.needles.at(i)
		r.first[needle[0]] = true
		for j := 1; j < minNeedle; j++ {
			at := &r.shift[pair(needle[j-1], needle[j])]
			*at = min(*at, uint8(minNeedle-1-j))
		}
		r.prefix[i] = binary.LittleEndian.Uint64(needle)
		b := &r.bucket[bucketOf(r.prefix[i])]
		r.chain[i], *b = *b, int16(i+1)
	}
}

func pair(a, b byte) uint { return (uint(a)<<5 ^ uint(b)) & (1<<shiftBits - 1) }

func bucketOf(prefix uint64) uint64 { return prefix * 0x9e3779b97f4a7c15 >> (64 - bucketBits) }

// wipe ends the redactor. What is read through it afterwards is an error.
func (r *redactor) wipe() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wiped = true
	clear(r.needles.arena[:cap(r.needles.arena)])
	clear(r.prefix)
	clear(r.carry[:cap(r.carry)])
	clear(r.buf)
	r.carry = nil
}

// header redacts the values of h.
func (r *redactor) header(h http.Header) {
	var room [512]byte
	for name, values := range h {
		for i, v := range values {
			text := append(room[:0], v...)
			if out, _, ok := r.replace(nil, text, 0, true); ok {
				h[name][i] = string(out)
			}
			clear(text)
		}
	}
}

// holds reports whether a secret is in s.
func (r *redactor) holds(s string) bool {
	at, length, _ := r.next([]byte(s), 0, true)
	return length > 0 && at >= 0
}

// replace appends text to dst, a marker in place of each stretch of secrets, and returns where the rest begins that may be
// the beginning of one, and whether dst was written at all: where there is no secret text is what it is up to the rest.
// The first covered bytes of the text are a secret that has its marker. The last text has no rest.
func (r *redactor) replace(dst, text []byte, covered int, last bool) (out []byte, rest int, written bool) {
	written = covered > 0
	done := covered // the text is in dst up to here
	for from := 0; ; {
		at, length, partial := r.next(text, from, last)
		if length > 0 {
			written, r.found = true, true
			if at >= done {
				dst = append(append(dst, text[done:at]...), marker...)
			}
			done = max(done, at+length)
		}
		if partial || length == 0 {
			if written && done < at {
				dst = append(dst, text[done:at]...)
			}
			r.covered = max(done-at, 0)
			return dst, at, written
		}
		from = at + 1
	}
}

// next returns the first place from which on there is a needle, or may be one when more text comes: its length, the
// longest if there are several, and whether more text may make one, or a longer one. Where there is neither it is the end
// of the text.
func (r *redactor) next(text []byte, from int, last bool) (at, length int, partial bool) {
	i := from
	for i+minNeedle <= len(text) {
		if s := r.shift[pair(text[i+minNeedle-2], text[i+minNeedle-1])]; s > 0 {
			i += int(s)
			continue
		}
		prefix := binary.LittleEndian.Uint64(text[i:])
		for n := r.bucket[bucketOf(prefix)]; n > 0; n = r.chain[n-1] {
			if r.prefix[n-1] != prefix {
				continue
			}
			needle := r.needles.at(int(n - 1))
			if rest := text[i:]; len(rest) >= len(needle) {
				if len(needle) > length && bytes.Equal(rest[:len(needle)], needle) {
					length = len(needle)
				}
			} else if !last && bytes.HasPrefix(needle, rest) {
				partial = true
			}
		}
		if length > 0 || partial {
			return i, length, partial
		}
		i++
	}
	for ; i < len(text) && !last; i++ {
		if !r.first[text[i]] {
			continue
		}
		for n := range r.needles.len() {
			if bytes.HasPrefix(r.needles.at(n), text[i:]) {
				return i, 0, true
			}
		}
	}
	return len(text), 0, false
}

// read is the Read of a body that from reads as it comes.
func (r *redactor) read(p []byte, from func([]byte) (int, error)) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.told == len(r.out) {
		if r.err != nil {
			return 0, r.err
		}
		if n := r.more(p, from); n > 0 {
			return n, nil
		}
	}
	n := copy(p, r.out[r.told:])
	r.told += n
	return n, nil
}

// more reads some text. What may be read of it at once is in p, and its length returned; what else may is in r.out.
func (r *redactor) more(p []byte, from func([]byte) (int, error)) int {
	const little = 512
	into := p
	if len(p) < len(r.carry)+little {
		if len(r.buf) < len(r.carry)+little {
			clear(r.buf)
			r.buf = make([]byte, len(r.carry)+4<<10)
		}
		into = r.buf
	}
	carried := len(r.carry)
	n, err := from(into[carried:])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wiped {
		clear(into[carried : carried+n])
		r.err = errClosed
		if err != nil && !errors.Is(err, io.EOF) {
			r.err = err // which says more
		}
		return 0
	}
	copy(into, r.carry)
	text := into[:carried+n]
	r.out, r.told, r.err = r.out[:0], 0, err
	out, rest, written := r.replace(r.out, text, r.covered, errors.Is(err, io.EOF))
	if r.carry = r.carry[:0]; err == nil { // of a body that broke off, what may be the beginning of a secret is not told
		r.carry = appendWiped(r.carry, text[rest:])
	}
	if written {
		r.out = out
		clear(text)
		return 0
	}
	clear(text[rest:])
	if &into[0] == &p[0] {
		return rest
	}
	r.out = append(r.out, text[:rest]...)
	clear(text)
	return 0
}
