package catalog

import (
	"sort"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
)

// Weights of where a word of the question is found.
const (
	weightName        = 4
	weightVendor      = 3
	weightLabel       = 2 // an input's name or title
	weightDescription = 1
)

// A Hit is a tool that fits a question, and how well.
type Hit struct {
	*Entry
	Score int
}

// Find ranks tools by how many words of the question they carry and where. Tools of the working set come first
// among equals. A question without a word of two letters is refused.
func Find(list []*Entry, question string, promoted map[string]bool) ([]Hit, error) {
	asked := words(question)
	if len(asked) == 0 {
		return nil, reason.Refuse(reason.InputInvalid, "query needs at least one word of two letters or more.").Field("query")
	}
	var hits []Hit
	for _, e := range list {
		if s := score(e.Tool, asked); s > 0 {
			hits = append(hits, Hit{e, s})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if hits[i].Score != hits[j].Score {
			return hits[i].Score > hits[j].Score
		}
		if pi, pj := promoted[hits[i].Wire()], promoted[hits[j].Wire()]; pi != pj {
			return pi
		}
		return hits[i].Wire() < hits[j].Wire()
	})
	return hits, nil
}

func score(t Tool, asked []string) int {
	places := []struct {
		weight int
		words  []string
	}{
		{weightName, append(words(t.Name), words(t.Title)...)},
		{weightVendor, words(t.Vendor)},
		{weightLabel, labels(t)},
		{weightDescription, words(t.Description)},
	}
	total := 0
	for _, a := range asked {
		best := 0
		for _, p := range places {
			for _, w := range p.words {
				if w == a || len(a) >= 4 && strings.HasPrefix(w, a) {
					best = max(best, p.weight)
				}
			}
		}
		total += best
	}
	return total
}

// labels are the words of a tool's top-level inputs.
func labels(t Tool) []string {
	var schema struct {
		Properties map[string]struct {
			Title string `json:"title"`
		} `json:"properties"`
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return nil
	}
	var out []string
	for name, p := range schema.Properties {
		out = append(append(out, words(name)...), words(p.Title)...)
	}
	return out
}

// words are the lower-case runs of letters and digits in s, two characters or more.
func words(s string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) >= 2 {
			out = append(out, w)
		}
	}
	return out
}
