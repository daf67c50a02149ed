package web

import (
	"strings"
	"unicode"
)

// shown is a name from somebody else as it may stand in a sentence: a control
// character, or a mark that turns the direction of writing, would show what is
// not there, so the sign for an unknown character stands in its place.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
