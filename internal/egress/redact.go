package egress

import (
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

// A redactor takes secrets out of an answer: out of its headers, and out of its body as it comes.
type redactor struct {
	mu      sync.Mutex // a call may be closed while its body is read
	search  *search    // nil once the call is closed
	found   bool
	carry   []byte // the end of the text, which may be the beginning of a needle
	covered int    // bytes of carry that a marker stands for already
	out     []byte // redacted
	told    int    // bytes of out that have been read
	err     error  // once out has been read
	buf     []byte // for readers with little room
}

// newRedactor makes a redactor of every form of some secrets. It is nil if there is nothing to look for.
func newRedactor(secrets []vault.Secret) (*redactor, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	s := searches.Get().(*search)
	for _, secret := range secrets {
		err := secret.Reveal(func(plain []byte) error {
			s.needles.addSecret(plain)
			return nil
		})
		if err != nil {
			s.wipe()
			return nil, fmt.Errorf("redact credential: %w", err)
		}
	}
	if s.needles.len() == 0 {
		s.wipe()
		return nil, nil
	}
	s.index()
	return &redactor{search: s}, nil
}

// wipe ends the redactor. What is read through it afterwards is an error.
func (r *redactor) wipe() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.search == nil {
		return
	}
	r.search.wipe()
	r.search = nil
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
	at, length, _ := r.search.next([]byte(s), 0, true)
	return length > 0 && at >= 0
}

// replace appends text to dst, a marker in place of each stretch of secrets, and returns where the rest begins that may be
// the beginning of one, and whether dst was written at all: where there is no secret text is what it is up to the rest.
// The first covered bytes of the text are a secret that has its marker. The last text has no rest.
func (r *redactor) replace(dst, text []byte, covered int, last bool) (out []byte, rest int, written bool) {
	written = covered > 0
	done := covered // the text is in dst up to here
	for from := 0; ; {
		at, length, partial := r.search.next(text, from, last)
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
	if r.search == nil {
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
	r.carry = appendWiped(r.carry[:0], text[rest:]) // of a body that broke off, what may be the beginning of a secret is never told
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
