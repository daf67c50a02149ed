package consent

import (
	"strings"
	"unicode"
)

// How long names may be, in characters.
const (
	maxAppName   = 80
	maxAgentName = 64
)

// AppName is what a client calls itself, as a page may show it. What cannot be seen, and what turns the direction of
// writing, is left out: it would show what is not there.
func AppName(s string) string {
	s = clean(s)
	if s == "" {
		return "An app without a name"
	}
	if r := []rune(s); len(r) > maxAppName {
		return strings.TrimSpace(string(r[:maxAppName-1])) + "…"
	}
	return s
}

// AgentName is what a client calls itself, as an agent may be called.
func AgentName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), strings.ContainsRune(" ._-", r):
			return r
		case unicode.IsMark(r):
			return -1
		}
		return ' '
	}, clean(s))
	s = strings.Join(strings.Fields(strings.TrimLeft(s, " ._-")), " ")
	if r := []rune(s); len(r) > maxAgentName {
		s = strings.TrimSpace(string(r[:maxAgentName]))
	}
	if s == "" {
		return "App"
	}
	return s
}

// maxMarks is how many marks one letter carries: more of them reach into the lines above and below.
const maxMarks = 3

// clean leaves out what has no shape of its own and makes each run of space one.
func clean(s string) string {
	marks := 0
	s = strings.Map(func(r rune) rune {
		if !unicode.IsMark(r) {
			marks = 0
		} else if marks++; marks > maxMarks {
			return -1
		}
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == unicode.ReplacementChar, r == '\u2800', // braille without a dot
			unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}
