package catalog

import (
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
)

// Weights of where a word of the question is found.
const (
	weightName        = 4
	weightVendor      = 3
	weightLabel       = 2 // an input's name or title
	weightDescription = 1
)

// What a question and a document may have, so that neither costs more than it should.
const (
	maxQuestion = 1000 // characters of a question that are read
	maxAsked    = 40   // words of it
	maxUnknown  = 8    // words of it whose spelling is guessed at
	maxText     = 4000 // characters of a description that are read
	maxWord     = 40   // letters of a word whose spelling is compared
)

// A Hit is a tool that fits a question, and how well.
type Hit struct {
	*Entry // the index's own: not to be changed
	Score  int
}

// An Index finds tools by words. It does not change once made, and may be used by many at a time.
type Index struct {
	entries     []*Entry
	wires       []string
	names       []uint8 // how many words each tool's name has
	acts        []act   // what each tool does, by its name
	vendorOf    []int32 // each tool's vendor, counted from 0
	vendorCount int
	terms       map[string][]posting
	vendors     map[string][]string // by each of their names, without its spaces
	spelled     map[string]struct{} // every word as it is written, and the stems of synonyms
	known       []spelling          // the same, but for the very long
}

// A posting says where a tool has a term: its highest weight.
type posting struct {
	tool   int32
	weight uint8
}

// NewIndex reads the tools. It keeps entries, which are not to be changed afterwards.
func NewIndex(entries []*Entry) *Index {
	x := &Index{
		entries: entries,
		wires:   make([]string, len(entries)),
		names:   make([]uint8, len(entries)),
		terms:   map[string][]posting{},
		vendors: map[string][]string{},
		spelled: map[string]struct{}{},
	}
	stems := map[string]string{}
	numbers := map[string]int32{}
	for i := range entries {
		x.wires[i] = entries[i].Wire()
		v, ok := numbers[entries[i].Vendor]
		if !ok {
			v = int32(len(numbers))
			numbers[entries[i].Vendor] = v
		}
		x.vendorOf = append(x.vendorOf, v)
		x.add(int32(i), &entries[i].Tool, stems)
	}
	x.vendorCount = len(numbers)
	for _, table := range []map[string][]alternative{synonyms, leads} {
		for phrase := range table {
			for word := range strings.FieldsSeq(phrase) {
				x.spelled[word] = struct{}{}
			}
		}
	}
	for word := range x.spelled {
		if s := newSpelling(word); len(s.runes) <= maxWord {
			x.known = append(x.known, s)
		}
	}
	return x
}

// add reads one tool. stems remembers what was stemmed before.
func (x *Index) add(tool int32, t *Tool, stems map[string]string) {
	put := func(word string, weight uint8) {
		s, ok := stems[word]
		if !ok {
			s = stem(word)
			stems[word] = s
		}
		x.spelled[word] = struct{}{}
		list := x.terms[s]
		if n := len(list); n > 0 && list[n-1].tool == tool {
			list[n-1].weight = max(list[n-1].weight, weight)
			return
		}
		x.terms[s] = append(list, posting{tool, weight})
	}
	putAll := func(text string, weight uint8) []string {
		list := words(text)
		for _, w := range list {
			put(w, weight)
		}
		return list
	}
	name := putAll(t.Name, weightName)
	x.acts = append(x.acts, actOf(name))
	x.names[tool] = uint8(min(len(name), math.MaxUint8))
	for i := range name[min(1, len(name)):] {
		put(name[i]+name[i+1], weightName) // timezone for time zone
	}
	putAll(t.Title, weightName)
	for _, v := range append([]string{t.Vendor}, t.VendorNames...) {
		list := putAll(v, weightVendor)
		whole := strings.Join(list, "")
		if len(list) > 1 {
			put(whole, weightVendor)
		}
		if !slices.Contains(x.vendors[whole], t.Vendor) {
			x.vendors[whole] = append(x.vendors[whole], t.Vendor)
		}
	}
	labels(t, func(text string) { putAll(text, weightLabel) })
	putAll(cut(t.Description, maxText), weightDescription)
}

// labels yields the names and titles of a tool's top-level inputs.
func labels(t *Tool, yield func(string)) {
	var schema struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return
	}
	for name, raw := range schema.Properties {
		yield(name)
		var p struct {
			Title string `json:"title"`
		}
		if json.Unmarshal(raw, &p) == nil {
			yield(p.Title)
		}
	}
}

// Find ranks the tools that have a word of the question, or a word like it, by how rare the word is and where it
// stands, by how much of the question they have, and by whether they do what it asks. Among tools that fit about as well
// the promoted stand first, and for a question that asks to be told something those that only read. A question without
// a word of two letters is refused.
func (x *Index) Find(question string, promoted map[string]bool) ([]Hit, error) {
	question = plain(cut(question, maxQuestion))
	asked := words(question)
	if len(asked) == 0 {
		return nil, reason.Refuse(reason.InputInvalid, "query needs at least one word of two letters or more.").Field("query")
	}
	asked = asked[:min(len(asked), maxAsked)]
	m := newMatch(x)
	for _, c := range x.concepts(asked, imperative(question)) {
		m.add(c)
	}
	shape := shapeOf(question, asked)
	return m.rank(shape, askedAct(asked, shape), x.vendorsIn(asked), promoted), nil
}

// cut is the first characters of s.
func cut(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i]
		}
	}
	return s
}
