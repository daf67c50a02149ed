package catalog

import (
	"strings"
	"unicode/utf8"
)

// maxCompared is how long a name may be, in bytes, to be compared with others.
const maxCompared = maxWord

// closest is which of the known names was meant by name, or "" where none is near: the same but for case, one that
// holds the other, or one at most two letters away.
func closest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if len(name) > maxCompared || len(k) > maxCompared {
			continue
		}
		if d := apart(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// apart is how many letters are put in, left out, replaced or swapped between a and b, or any number above two; where one
// holds the other it is two at most, and where either has fewer than three letters it is many.
func apart(a, b string) int {
	switch {
	case a == b:
		return 0
	case min(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) < 3:
		return maxCompared
	}
	d := distance(newSpelling(a), newSpelling(b), 2)
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return min(d, 2)
	}
	return d
}
