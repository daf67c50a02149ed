package egress

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is how far back a body may refer to itself, in bytes: what RFC 8878 §3.1.1.1.2 asks every decoder to have.
const maxWindow = 8 << 20

var (
	errEncoding = errors.New("egress: the body is not in the encoding that its header names")
	errPacked   = errors.New("egress: the encoded body is longer than the plain one may be")
)

// decoders undo the encodings (RFC 9110 §8.4.1) of a vendor that compresses although it was asked not to. Each reads its
// header, and so may fail, when it is made.
var decoders = map[string]func(*bufio.Reader) (io.Reader, error){
	"gzip":    unzip,
	"x-gzip":  unzip,
	"deflate": inflate,
	"zstd": func(r *bufio.Reader) (io.Reader, error) {
		// One thread works within Read, so there is nothing to close.
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	},
	"br": func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
}

func unzip(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// inflate takes the zlib format, which the name means, and the bare one, which some vendors send by it.
func inflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 { // RFC 1950 §2.2
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// encodings are those that a body was given, without the one that changes nothing.
func encodings(h http.Header) []string {
	var names []string
	for _, line := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				names = append(names, name)
			}
		}
	}
	return names
}

// decode has the body read in plain, and reports whether it is: not where it has several encodings or one that is not known
// here, and not where it is a part of an encoded whole.
func (s *Stream) decode(method string) bool {
	names := encodings(s.Header)
	if len(names) == 0 || s.bodiless(method) {
		return true
	}
	open, known := decoders[names[0]]
	if !known || len(names) > 1 || s.Status == http.StatusPartialContent {
		return false
	}
	s.body = &decoded{packed: packed{ReadCloser: s.body, stream: s, left: s.limit}, open: open}
	s.Header.Del("Content-Encoding")
	s.Header.Del("Content-Length")
	s.length = -1
	return true
}

// bodiless reports whether there is no body, whatever the header says of one (RFC 9110 §6.4.1).
func (s *Stream) bodiless(method string) bool {
	return method == http.MethodHead || s.Status == http.StatusNoContent || s.Status == http.StatusNotModified
}

// decoded is a body in plain.
type decoded struct {
	packed
	open  func(*bufio.Reader) (io.Reader, error)
	plain io.Reader
}

// Read implements io.Reader.
func (d *decoded) Read(p []byte) (int, error) {
	if d.plain == nil {
		b := bufio.NewReader(&d.packed)
		if _, err := b.Peek(1); err != nil {
			return 0, err // io.EOF too: nothing is nothing in any encoding
		}
		plain, err := d.open(b)
		if err != nil {
			return 0, d.cause()
		}
		d.plain = plain
	}
	n, err := d.plain.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = d.cause()
	}
	return n, err
}

// cause is why the decoder failed: the connection, if that failed, or the encoding.
func (d *decoded) cause() error {
	if d.err != nil && !errors.Is(d.err, io.EOF) {
		return d.err
	}
	return errEncoding
}

// packed is a body as it comes. It may be no longer than the plain one: an encoding can also be made to grow for ever
// without a byte of text.
type packed struct {
	io.ReadCloser
	stream *Stream
	left   int64
	err    error
}

// Read implements io.Reader.
func (e *packed) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.ReadCloser.Read(p)
	if n > 0 {
		e.stream.silence.broken()
	}
	if e.left -= int64(n); e.left < 0 && err == nil {
		err = errPacked
	}
	e.err = err
	return n, err
}
