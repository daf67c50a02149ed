package catalog

import (
	"strings"
	"unicode/utf8"
)

// maxCompared is how long a name may be, in bytes, to be compared with others.
const maxCompared = 64

// closest is which of the known names was meant by name, or "" where none is near: the same but for case, one that
// holds the other, or one at most two letters away.
func closest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if len(name) > maxCompared || len(k) > maxCompared {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to add, drop or change between a and b; where one holds the
// other it is two at most, and where either has fewer than three letters it is many.
func distance(a, b string) int {
	if a == b {
		return 0
	}
	if min(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) < 3 {
		return maxCompared
	}
	to := []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range []rune(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	d := row[len(to)]
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return min(d, 2)
	}
	return d
}
