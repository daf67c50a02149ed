package invoke

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/rpc"
)

// MaxResult is how many characters of JSON a result may have.
const MaxResult = 64_000

// Bound returns value, or, where it has more than MaxResult characters, a value that says so, holds its head, and names
// the reference under which the whole can be read, where there is one. What it returns never has more than MaxResult
// characters.
func Bound(value jsontext.Value, ref string) jsontext.Value {
	if fits(value) {
		return value
	}
	const before = `{"result":null,"truncated":true,"head":`
	after := `}`
	if ref != "" {
		after = `,"resultRef":"` + ref + `"}`
	}
	room := MaxResult - len(before) - len(after) - len(`""`)
	end, used := 0, 0
	for end < len(value) {
		r, size := utf8.DecodeRune(value[end:])
		cost := quoted(r)
		if used+cost > room {
			break
		}
		used += cost
		end += size
	}
	b := append(make([]byte, 0, MaxResult), before...)
	b = rpc.AppendString(b, string(value[:end]))
	return append(b, after...)
}

// quoted is how many characters r takes inside a JSON string.
func quoted(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029':
		return 6
	}
	return 1
}
