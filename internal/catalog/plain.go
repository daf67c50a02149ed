package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// phrasal are verbs of several words with the usual verb that says the same. Word by word they say something else: to get
// rid of a thing is not to get it.
var phrasal = map[string]string{
	"get rid of":     "delete",
	"throw away":     "delete",
	"throw out":      "delete",
	"do away with":   "delete",
	"take away":      "remove",
	"take off":       "remove",
	"pull up":        "show",
	"bring up":       "show",
	"look at":        "show",
	"take a look at": "show",
	"go through":     "list",
	"find out":       "show",
	"figure out":     "find",
	"get hold of":    "get",
	"come up with":   "create",
	"switch to":      "set to",
	"make changes":   "update",
	"put together":   "create",
	"write up":       "create",
}

var isPhrasal = func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(slices.Sorted(maps.Keys(phrasal)), "|") + `)\b`)
}()

// isAddress finds addresses, whose words say where something is and not what to do.
var isAddress = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|\S+@\S+\.\S+`)

// plain is a question without addresses, its phrasal verbs replaced.
func plain(question string) string {
	without := isAddress.ReplaceAllString(question, " ")
	if strings.TrimSpace(without) == "" {
		return question
	}
	return isPhrasal.ReplaceAllStringFunc(without, func(phrase string) string { return phrasal[strings.ToLower(phrase)] })
}
