package catalog

import (
	"strings"
	"unicode"

	snowball "github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// words are the words of s in lower case, in order. Identifiers fall apart at their capitals and separators. A single
// letter is no word, except where one letter can be one: there, words are a run's pairs of letters, because nothing says
// where a word ends.
func words(s string) []string {
	var out []string
	var run []rune
	end := func() {
		switch {
		case len(run) == 0:
		case unspaced(run[0]):
			out = append(out, pairs(run)...)
		case len(run) > 1:
			out = append(out, strings.ToLower(string(run)))
		}
		run = run[:0]
	}
	runes := []rune(fold(s))
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			end()
			continue
		}
		if len(run) > 0 && splits(runes, i) {
			end()
		}
		run = append(run, r)
	}
	end()
	return out
}

// splits tells whether a word ends before runes[i], a letter, digit or mark that follows another.
func splits(runes []rune, i int) bool {
	before, r := runes[i-1], runes[i]
	if unspaced(before) != unspaced(r) && !unicode.IsMark(r) {
		return true
	}
	if !unicode.IsUpper(r) {
		return false
	}
	// issueID, and the S of HTTPServer; not the Rs of PRs
	return unicode.IsLower(before) || unicode.IsUpper(before) && i+2 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsLower(runes[i+2])
}

// pairs are the overlapping pairs of a run, or the one letter there is.
func pairs(run []rune) []string {
	if len(run) == 1 {
		return []string{string(run)}
	}
	var out []string
	for i := range run[1:] {
		out = append(out, string(run[i:i+2]))
	}
	return out
}

// unspaced tells letters of scripts that put no spaces between words, or, as Korean, glue much to a word.
func unspaced(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold makes one of the ways to write a letter: wide and narrow, with an accent and without.
func fold(s string) string {
	if isASCII(s) {
		return s
	}
	bare := strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f { // Combining Diacritical Marks, which no script needs but for accents
			return -1
		}
		return r
	}, norm.NFKD.String(s))
	return norm.NFC.String(bare)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// stem is what a word has in common with its plural and its tenses.
func stem(word string) string {
	if !isASCII(word) {
		return word
	}
	if plain, ok := irregular[word]; ok {
		word = plain
	}
	if n := len(word); n > 2 && n < 6 && word[n-1] == 's' && !strings.ContainsAny(word, "aeiouy") { // PRs, URLs
		return word[:n-1]
	}
	return snowball.Stem(word, true)
}

// irregular are forms that no rule of the stemmer leads back.
var irregular = forms("people person children child women woman men man won win sent send bought buy paid pay sold sell made make " +
	"wrote write written write gave give given give got get found find kept keep lost lose built build ran run took take taken take " +
	"held hold chose choose chosen choose began begin begun begin drew draw drawn draw spent spend told tell said say went go gone go " +
	"saw see seen see shown show spoke speak spoken speak forgot forget forgotten forget hid hide hidden hide broke break broken break " +
	"stole steal stolen steal left leave met meet fed feed sought seek taught teach caught catch flew fly flown fly " +
	"indices index matrices matrix analyses analysis statuses status")

func forms(list string) map[string]string {
	out := map[string]string{}
	for f := strings.Fields(list); len(f) > 1; f = f[2:] {
		out[f[0]] = f[1]
	}
	return out
}

// empty tells words that say nothing about a tool.
func empty(word string) bool { return snowball.IsStopWord(word) || emptyWords[word] }

var emptyWords = set("please want wants need needs like would could should may might can cannot let lets via using use my our your their " +
	"me us it its somebody someone something anybody anyone anything everyone everybody one some any there here just also tool tools " +
	"able way yes out up off onto into upon within without about again soon today tomorrow yesterday last week month year please")

func set(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}
