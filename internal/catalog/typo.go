package catalog

import (
	"math/bits"
	"slices"
)

// A spelling is a word that the index knows, prepared for comparison.
type spelling struct {
	word    string
	runes   []rune
	letters uint64 // a bit for each letter in it, folded to 64
}

func newSpelling(word string) spelling {
	s := spelling{word: word, runes: []rune(word)}
	for _, r := range s.runes {
		s.letters |= 1 << (uint32(r) % 64)
	}
	return s
}

// slips is how many slips of the pen a word of that many letters may have.
func slips(letters int) int {
	switch {
	case letters < 4:
		return 0
	case letters < 8:
		return 1
	}
	return 2
}

// A guess is a known word that an unknown one may stand for, and how much a match of it counts.
type guess struct {
	word   string
	factor float64
}

// maxGuesses is how many known words one unknown word may stand for.
const maxGuesses = 4

// guesses are the known words nearest to an unknown one: those with the fewest slips, and those that begin with it.
func guesses(known []spelling, word string) []guess {
	asked := newSpelling(word)
	allowed := slips(len(asked.runes))
	if allowed == 0 {
		return nil
	}
	var near, longer []guess
	least := allowed
	for _, k := range known {
		switch d := distance(asked, k, allowed); {
		case d < least:
			least, near = d, []guess{{k.word, slipFactor(asked, k, d)}}
		case d == least:
			near = append(near, guess{k.word, slipFactor(asked, k, d)})
		case d > allowed && len(k.runes) > len(asked.runes) && slices.Equal(k.runes[:len(asked.runes)], asked.runes):
			longer = append(longer, guess{k.word, prefixFactor})
		}
	}
	slices.SortFunc(near, compareGuesses)
	slices.SortFunc(longer, compareGuesses)
	all := append(near, longer...)
	return all[:min(len(all), maxGuesses)]
}

// prefixFactor is what a word counts of which only the beginning was asked for.
const prefixFactor = 0.7

// slipFactor trusts a first letter: few slips are there.
func slipFactor(asked, known spelling, slips int) float64 {
	factor := 0.8
	if slips > 1 {
		factor = 0.55
	}
	if asked.runes[0] != known.runes[0] {
		factor /= 2
	}
	return factor
}

func compareGuesses(a, b guess) int {
	switch {
	case a.factor > b.factor:
		return -1
	case a.factor < b.factor:
		return 1
	case len(a.word) != len(b.word):
		return len(a.word) - len(b.word)
	case a.word < b.word:
		return -1
	}
	return 1
}

// distance counts letters put in, left out, replaced, or swapped with their neighbour (Damerau–Levenshtein, optimal
// string alignment). Over most it stops at any number greater than most.
func distance(a, b spelling, most int) int {
	if d := len(a.runes) - len(b.runes); d > most || -d > most || bits.OnesCount64(a.letters^b.letters) > 2*most {
		return most + 1
	}
	var room [3][maxWord + 1]int
	before, last, row := room[0][:], room[1][:], room[2][:]
	for j := range len(b.runes) + 1 {
		last[j] = j
	}
	for i, r := range a.runes {
		row[0] = i + 1
		least := row[0]
		for j, s := range b.runes {
			cost := 1
			if r == s {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && r == b.runes[j-1] && a.runes[i-1] == s {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b.runes)]
}
