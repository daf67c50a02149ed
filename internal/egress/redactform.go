package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minNeedle is the length in bytes from which a secret is looked for. Shorter ones are too easily a part of what has nothing
// to do with them (a user name, "test", a year), and an answer with holes in it tells where they stand and so what they are.
const minNeedle = 8

// maxEscaped is the length up to which a secret is also looked for with each of its characters escaped. Nobody writes a
// longer one so by accident.
const maxEscaped = 512

// needles are byte strings to look for, one after another in one piece of memory that can be wiped.
type needles struct {
	arena []byte
	ends  []int
}

func (n *needles) len() int { return len(n.ends) }

func (n *needles) at(i int) []byte {
	if i == 0 {
		return n.arena[:n.ends[0]]
	}
	return n.arena[n.ends[i-1]:n.ends[i]]
}

// add adds what write appends, unless it is there or too short to be looked for.
func (n *needles) add(size int, write func(dst []byte) []byte) {
	if cap(n.arena)-len(n.arena) < size {
		moved := append(make([]byte, 0, 2*cap(n.arena)+size), n.arena...)
		clear(n.arena)
		n.arena = moved
	}
	from := len(n.arena)
	n.arena = write(n.arena)
	added := n.arena[from:]
	known := len(added) < minNeedle
	for i := n.len() - 1; i >= 0 && !known; i-- {
		known = bytes.Equal(n.at(i), added)
	}
	if known {
		clear(added)
		n.arena = n.arena[:from]
		return
	}
	n.ends = append(n.ends, len(n.arena))
}

// addSecret adds every form that a secret is written in.
func (n *needles) addSecret(plain []byte) {
	if len(plain) < minNeedle {
		return
	}
	n.text(plain)
	n.base64(plain)
	n.hex(plain)
	if scheme, rest, ok := bytes.Cut(plain, []byte(" ")); ok && isScheme(scheme) { // typed as a header's whole value
		n.addSecret(bytes.TrimLeft(rest, " "))
	}
}

// isScheme reports whether b may be the name of an authentication scheme (RFC 9110 §11.1), such as Bearer.
func isScheme(b []byte) bool {
	for _, c := range b {
		if !isAlpha(c) && c != '-' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 20
}

// text adds a secret as it is, and as URLs, JSON and HTML hold it.
func (n *needles) text(plain []byte) {
	n.add(len(plain), func(dst []byte) []byte { return append(dst, plain...) })
	for _, digits := range []string{upperHex, lowerHex} {
		if !isUnreserved(plain) {
			n.partly(plain, digits)
		}
		if len(plain) <= maxEscaped {
			n.add(3*len(plain), func(dst []byte) []byte { return percentAll(dst, plain, digits) })
			n.add(6*len(plain), func(dst []byte) []byte { return appendUnicodeAll(dst, plain, digits) })
		}
	}
}

// kept are the characters, beside letters and digits, that somebody leaves as they are in a URL.
var kept = []string{
	"-._~",                 // RFC 3986 §2.3, and most libraries
	"-._",                  // PHP
	"-._*",                 // forms (WHATWG URL §5.2), Java
	"-._~/",                // Python
	"-._~!'()*",            // encodeURIComponent
	"-._~$&+=:@",           // Go's PathEscape
	"-._~!$&'()*+,;=:@",    // RFC 3986 §3.3, a segment
	"-._~!$&'()*+,;=:@/?#", // encodeURI
	"-._*+@/",              // escape
}

// partly adds a secret with those of its characters escaped that one library or another escapes.
func (n *needles) partly(plain []byte, digits string) {
	spaced := bytes.IndexByte(plain, ' ') >= 0
	var seen subsets
	for _, keep := range kept {
		if seen.has(plain, keep) {
			continue
		}
		n.add(3*len(plain), func(dst []byte) []byte { return percent(dst, plain, keep, digits, false) })
		if spaced {
			n.add(3*len(plain), func(dst []byte) []byte { return percent(dst, plain, keep, digits, true) })
		}
	}
	n.json(plain, digits)
	n.add(6*len(plain), func(dst []byte) []byte { return htmlEscape(dst, plain, "&#34;", "&#39;") })
	n.add(6*len(plain), func(dst []byte) []byte { return htmlEscape(dst, plain, "&quot;", "&#x27;") })
}

// subsets are the sets of characters that have been tried, as far as the secret has them.
type subsets struct {
	sets [12][2]uint64 // of ASCII
	n    int
}

// has reports whether set has no more and no less of the characters of plain than one before it.
func (s *subsets) has(plain []byte, set string) bool {
	var present [2]uint64
	for _, r := range set {
		if c := min(r, 0x7f); bytes.IndexByte(plain, byte(c)) >= 0 || r > 0x7f && bytes.Contains(plain, lineSeparators) {
			present[c>>6] |= 1 << (c & 63)
		}
	}
	for _, before := range s.sets[:s.n] {
		if before == present {
			return true
		}
	}
	s.sets[s.n] = present
	s.n++
	return false
}

// lineSeparators is what U+2028 and U+2029 begin with in UTF-8.
var lineSeparators = []byte("\xe2\x80")

// escaped are the characters, beside those that must be, that somebody escapes in JSON.
var escaped = []string{
	"",
	"/",             // PHP
	"<>&",           // for HTML
	"/<>&",          // Rails
	"<>&'`+\"",      // .NET
	"/<>&'`+\"",     // PHP, for pages
	"\u2028",        // JavaScript's line separators, without HTML
	"/\u2028",       // and with slashes
	"<>&\u2028",     // Go
	"/<>&'\"\u2028", // Gson, Rails
}

// json adds what stands in a JSON string for a secret, and in a JSON string of a JSON text, as MCP's text blocks are.
func (n *needles) json(plain []byte, digits string) {
	if bytes.IndexFunc(plain, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("\"\\/<>&'`+", r) }) < 0 {
		return
	}
	once := make([]byte, 0, 6*len(plain))
	defer func() { clear(once[:cap(once)]) }()
	var seen subsets
	for _, also := range escaped {
		if seen.has(plain, also) {
			continue
		}
		for _, ascii := range []bool{false, true} {
			once = jsonEscape(once[:0], plain, also, digits, ascii)
			n.add(len(once), func(dst []byte) []byte { return append(dst, once...) })
			n.add(2*len(once), func(dst []byte) []byte { return jsonEscape(dst, once, "", digits, false) })
			n.add(2*len(once), func(dst []byte) []byte { return jsonEscape(dst, once, "/", digits, false) })
		}
	}
}

// isUnreserved reports whether plain stands in URLs (RFC 3986 §2.3), JSON and HTML as it is.
func isUnreserved(plain []byte) bool {
	for _, c := range plain {
		if !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' && c != '~' {
			return false
		}
	}
	return true
}

const (
	upperHex = "0123456789ABCDEF"
	lowerHex = "0123456789abcdef"
)

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlphanumeric(c byte) bool { return isAlpha(c) || '0' <= c && c <= '9' }

// alphanumerics returns how many letters and digits b begins with.
func alphanumerics(b []byte) int {
	for i, c := range b {
		if !alphanumeric[c] {
			return i
		}
	}
	return len(b)
}

// alphanumeric is isAlphanumeric of each byte.
var alphanumeric = func() (table [256]bool) {
	for c := range table {
		table[c] = isAlphanumeric(byte(c))
	}
	return table
}()

// percent writes what is not a letter, a digit or in keep as RFC 3986 §2.1 does, and a space as a plus if plus says so, as
// forms do. Which characters are kept differs from one library to the next.
func percent(dst, plain []byte, keep, digits string, plus bool) []byte {
	for i := 0; i < len(plain); {
		if n := alphanumerics(plain[i:]); n > 0 {
			dst = append(dst, plain[i:i+n]...)
			i += n
			continue
		}
		switch c := plain[i]; {
		case strings.IndexByte(keep, c) >= 0:
			dst = append(dst, c)
		case plus && c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
		i++
	}
	return dst
}

func percentAll(dst, plain []byte, digits string) []byte {
	for _, c := range plain {
		dst = append(dst, '%', digits[c>>4], digits[c&15])
	}
	return dst
}

// jsonEscape writes what stands in a JSON string for plain (RFC 8259 §7). What must be escaped is; and so are a slash,
// HTML's characters and the line separators of JavaScript as far as they are in also, and what is not ASCII if ascii says so.
func jsonEscape(dst, plain []byte, also, digits string, ascii bool) []byte {
	for i := 0; i < len(plain); {
		if n := alphanumerics(plain[i:]); n > 0 {
			dst = append(dst, plain[i:i+n]...)
			i += n
			continue
		}
		c := plain[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(plain[i:])
			switch {
			case !ascii && (r|1 != '\u2029' || !strings.Contains(also, "\u2028")):
				dst = append(dst, plain[i:i+size]...)
			case r == utf8.RuneError && size == 1:
				dst = appendUnicode(dst, uint16(c), digits)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				dst = appendUnicode(appendUnicode(dst, uint16(high), digits), uint16(low), digits)
			default:
				dst = appendUnicode(dst, uint16(r), digits)
			}
			i += size
			continue
		}
		i++
		short := strings.IndexByte("\b\f\n\r\t", c)
		switch {
		case c == '"' && strings.IndexByte(also, c) < 0 || c == '\\' || c == '/' && strings.IndexByte(also, c) >= 0:
			dst = append(dst, '\\', c)
		case short >= 0:
			dst = append(dst, '\\', "bfnrt"[short])
		case c < ' ' || strings.IndexByte(also, c) >= 0:
			dst = appendUnicode(dst, uint16(c), digits)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendUnicode(dst []byte, u uint16, digits string) []byte {
	return append(dst, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}

func appendUnicodeAll(dst, plain []byte, digits string) []byte {
	for len(plain) > 0 {
		r, size := utf8.DecodeRune(plain)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = appendUnicode(dst, uint16(plain[0]), digits)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = appendUnicode(appendUnicode(dst, uint16(high), digits), uint16(low), digits)
		default:
			dst = appendUnicode(dst, uint16(r), digits)
		}
		plain = plain[size:]
	}
	return dst
}

func htmlEscape(dst, plain []byte, quote, apostrophe string) []byte {
	for _, c := range plain {
		switch c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, quote...)
		case '\'':
			dst = append(dst, apostrophe...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// base64 adds what any base64 text that holds the secret has in it: by where in a group of three bytes the secret begins,
// the characters that are made of its bits alone. The few bits at either end that share a character with a neighbour are
// not covered, unless the secret stands alone.
func (n *needles) base64(plain []byte) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		n.alphabet(plain, enc)
	}
}

func (n *needles) alphabet(plain []byte, enc *base64.Encoding) {
	room := make([]byte, 0, 2+len(plain)+2+enc.EncodedLen(len(plain)+4))
	defer func() { clear(room[:cap(room)]) }()
	for shift := range 3 {
		padded := append(append(room, 0, 0)[:shift], plain...)
		from, to := (8*shift+5)/6, 8*len(padded)/6
		all := enc.AppendEncode(padded, padded)[len(padded):]
		n.encoded(all[from:to])
		if shift == 0 {
			n.encoded(all)
			n.encoded(bytes.TrimRight(all, "="))
		}
	}
}

// encoded adds a text in base64, also as JSON and URLs hold it.
func (n *needles) encoded(text []byte) {
	n.add(len(text), func(dst []byte) []byte { return append(dst, text...) })
	if bytes.ContainsAny(text, "+/") {
		n.add(3*len(text), func(dst []byte) []byte { return percent(dst, text, "=", upperHex, false) })
		n.add(3*len(text), func(dst []byte) []byte { return percent(dst, text, "=", lowerHex, false) })
		n.add(2*len(text), func(dst []byte) []byte { return jsonEscape(dst, text, "/", lowerHex, false) })
		n.add(6*len(text), func(dst []byte) []byte { return jsonEscape(dst, text, "+", upperHex, false) })
		n.add(6*len(text), func(dst []byte) []byte { return jsonEscape(dst, text, "+", lowerHex, false) })
	}
}

func (n *needles) hex(plain []byte) {
	n.add(2*len(plain), func(dst []byte) []byte { return hex.AppendEncode(dst, plain) })
	n.add(2*len(plain), func(dst []byte) []byte {
		from := len(dst)
		dst = hex.AppendEncode(dst, plain)
		for i, c := range dst[from:] {
			if isAlpha(c) {
				dst[from+i] = c - 'a' + 'A'
			}
		}
		return dst
	})
}
