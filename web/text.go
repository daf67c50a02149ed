package web

import (
	"strings"
	"unicode"
)

// shownText is words of several lines as they may stand in a page: as shown, but
// lines and tabs stay.
func shownText(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j, cell := range cells {
			cells[j] = shown(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

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
