package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Factors of a tool's score.
const (
	namedFactor    = 0.6  // more, for a tool whose name is nothing but what was asked for
	aroundFactor   = 0.25 // of what the tools of its vendor have between them
	readFactor     = 1.2  // a tool that only reads, for a question that asks to be told
	thingFactor    = 1.1  // the same, for a question without a verb
	writeFactor    = 0.85 // a tool that only reads, for a question that asks for a deed
	vendorFactor   = 1.5  // a tool whose vendor is named
	promotedFactor = 1.25
	otherActFactor = 0.7 // a tool that does something else to the thing than is asked for
	coveredShare   = 0.5 // of the score, that depends on how much of the question a tool has at all
)

// A concept is one thing that is asked for: a word or phrase with all that it may be called.
type concept struct {
	any  []alternative
	size int // how many words of a question it stands for
}

// concepts are what a question's words ask for. That of an imperative begins with a verb.
func (x *Index) concepts(asked []string, imperative bool) []concept {
	stems := make([]string, len(asked))
	for i, w := range asked {
		stems[i] = stem(w)
	}
	onlyEmpty := !slices.ContainsFunc(asked, func(w string) bool { return !empty(w) })
	skip := func(i int) bool {
		return slices.Contains(stems[:i], stems[i]) || (empty(asked[i]) || adjective(asked, i) || period(asked, i)) && !onlyEmpty
	}
	var list []concept
	phrase := make([]bool, len(asked)) // words that a phrase accounts for
	for i := range asked {
		for n := maxPhrase; n > 1; n-- {
			if i+n > len(asked) {
				continue
			}
			if joined := strings.Join(asked[i:i+n], ""); x.has(joined) {
				list = append(list, concept{any: []alternative{{[]string{stem(joined)}, 1}}})
			}
			key := strings.Join(stems[i:i+n], " ")
			others := synonyms[key]
			if others == nil && leads[key] == nil || phrase[i] {
				continue
			}
			c := concept{any: append([]alternative{{stems[i : i+n], 1}}, others...)}
			for j := i; j < i+n; j++ {
				phrase[j] = true
				if !skip(j) {
					c.size++
					c.any = append(c.any, alternative{stems[j : j+1], partFactor})
				}
			}
			list = append(list, c)
			list = appendLeads(list, key)
		}
	}
	unknown := 0
	for i, w := range asked {
		switch {
		case i == 0 && imperative && leads[stems[0]] != nil:
			list = append(list, deed(stems[0]))
		case phrase[i]:
		case skip(i):
			list = appendLeads(list, stems[i]) // who and most say nothing, but lead somewhere
		case x.has(w):
			list = append(list, concept{called(stems[i], 1), 1})
			list = appendLeads(list, stems[i])
		case unknown < maxUnknown:
			unknown++
			var c concept
			for _, g := range guesses(x.known, w) {
				c.any = append(c.any, called(stem(g.word), g.factor)...)
			}
			if c.size = 1; c.any != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// partFactor is what a word counts that was asked for as part of a phrase.
const partFactor = 0.4

func appendLeads(list []concept, key string) []concept {
	if leads[key] == nil {
		return list
	}
	return append(list, concept{any: leads[key]})
}

// vendorsIn are the vendors that a question names in whole.
func (x *Index) vendorsIn(asked []string) map[string]bool {
	named := map[string]bool{}
	for i := range asked {
		for n := 1; n <= maxPhrase && i+n <= len(asked); n++ {
			for _, v := range x.vendors[strings.Join(asked[i:i+n], "")] {
				named[v] = true
			}
		}
	}
	return named
}

// has tells whether a word is known, in this or another of its forms.
func (x *Index) has(word string) bool {
	if _, ok := x.spelled[word]; ok {
		return true
	}
	s := stem(word)
	_, ok := x.terms[s]
	return ok || synonyms[s] != nil || leads[s] != nil
}

// deed is what a verb asks for: what it leads to, and of its synonyms only verbs. To file a ticket has to do with no document.
func deed(stem string) concept {
	c := concept{any: []alternative{{[]string{stem}, 1}}, size: 1}
	for _, a := range synonyms[stem] {
		if writeStems[a.stems[0]] {
			c.any = append(c.any, a)
		}
	}
	for _, a := range leads[stem] {
		c.any = append(c.any, alternative{a.stems, likeFactor})
	}
	return c
}

// called is a stem with its synonyms.
func called(stem string, factor float64) []alternative {
	list := []alternative{{[]string{stem}, factor}}
	for _, a := range synonyms[stem] {
		list = append(list, alternative{a.stems, a.factor * factor})
	}
	return list
}

// A match adds up what one question finds. The slices have an element for each tool.
type match struct {
	x     *Index
	score []float64
	named []uint8 // words of its name that were asked for

	covered []float64 // how rare the concepts it has are, together
	total   float64   // and those of the question

	about []float64 // for each vendor, how much of the question its tools have between them

	// of the concept that is being added
	near []float64 // for each vendor, the best of its tools
	best []float64
	name []bool  // found in its name
	hit  []int32 // tools whose best is not 0
}

func newMatch(x *Index) *match {
	n := len(x.entries)
	perTool, perVendor := make([]float64, 3*n), make([]float64, 2*x.vendorCount)
	return &match{
		x: x, score: perTool[:n], covered: perTool[n : 2*n], best: perTool[2*n:], named: make([]uint8, n), name: make([]bool, n),
		about: perVendor[:x.vendorCount], near: perVendor[x.vendorCount:],
	}
}

// add adds what a concept finds: for each tool the best of its alternatives, worth the more the fewer tools have any.
func (m *match) add(c concept) {
	have := 0.0 // tools, each as much as it has it
	for _, a := range c.any {
		m.each(a.stems, func(tool int32, weight float64) {
			if m.best[tool] == 0 {
				m.hit = append(m.hit, tool)
			}
			have += max(0, weight*a.factor-m.best[tool]) / weightName
			m.best[tool] = max(m.best[tool], weight*a.factor)
			m.name[tool] = m.name[tool] || weight == weightName
		})
	}
	m.around(c)
	rarity := math.Log(1+float64(len(m.x.entries))/max(1, have)) * float64(max(1, c.size))
	for _, tool := range m.hit {
		m.score[tool] += m.best[tool] * rarity
		if c.size > 0 {
			m.covered[tool] += rarity
		}
		if m.name[tool] {
			m.named[tool] += uint8(c.size)
		}
		m.best[tool], m.name[tool] = 0, false
	}
	m.hit = m.hit[:0]
	if c.size > 0 && have > 0 {
		m.total += rarity
	}
}

// around notes, for each vendor, what its tools have of a concept: a word that stands in one of them tells what the others
// are about, which seldom say it of themselves.
func (m *match) around(c concept) {
	if c.size == 0 {
		return
	}
	clear(m.near)
	for _, tool := range m.hit {
		v := m.x.vendorOf[tool]
		m.near[v] = max(m.near[v], m.best[tool])
	}
	vendors := 0.0
	for _, n := range m.near {
		vendors += n / weightName
	}
	r := math.Log(1 + float64(len(m.near))/max(1, vendors))
	for v, n := range m.near {
		m.about[v] += n * r
	}
}

// each yields the tools that have all stems, with the weight of the one that stands lowest.
func (m *match) each(stems []string, yield func(tool int32, weight float64)) {
	first := m.x.terms[stems[0]]
next:
	for _, p := range first {
		weight := p.weight
		for _, s := range stems[1:] {
			list := m.x.terms[s]
			i, ok := slices.BinarySearchFunc(list, p.tool, func(q posting, tool int32) int { return cmp.Compare(q.tool, tool) })
			if !ok {
				continue next
			}
			weight = min(weight, list[i].weight)
		}
		yield(p.tool, float64(weight))
	}
}

// rank orders what was found, the same each time.
func (m *match) rank(s shape, asked act, vendors, promoted map[string]bool) []Hit {
	type found struct {
		tool  int32
		score int
	}
	some := 0
	for _, score := range m.score {
		if score > 0 {
			some++
		}
	}
	list := make([]found, 0, some)
	for i, score := range m.score {
		if score == 0 {
			continue
		}
		e := m.x.entries[i]
		score += aroundFactor * m.about[m.x.vendorOf[i]]
		score *= 1 + namedFactor*min(1, float64(m.named[i])/float64(max(1, m.x.names[i])))
		if m.total > 0 {
			score *= 1 - coveredShare + coveredShare*m.covered[i]/m.total
		}
		if does := m.x.acts[i]; asked != 0 && does != 0 && does != asked {
			score *= otherActFactor
		}
		switch {
		case e.ReadOnly && s == asksToKnow:
			score *= readFactor
		case e.ReadOnly && s == asksForThing:
			score *= thingFactor
		case e.ReadOnly && s == asksToDo:
			score *= writeFactor
		}
		if vendors[e.Vendor] {
			score *= vendorFactor
		}
		if promoted[m.x.wires[i]] {
			score *= promotedFactor
		}
		list = append(list, found{int32(i), int(math.Round(100 * score))})
	}
	slices.SortFunc(list, func(a, b found) int {
		if a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return strings.Compare(m.x.wires[a.tool], m.x.wires[b.tool])
	})
	hits := make([]Hit, len(list))
	for i, f := range list {
		hits[i] = Hit{m.x.entries[f.tool], f.score}
	}
	return hits
}

// shape is what a question asks for.
type shape int

const (
	asksForThing shape = iota // it has no verb that we know
	asksToKnow
	asksToDo
)

// imperative tells that a question begins with a verb, whatever it is, because a determiner follows.
func imperative(question string) bool {
	f := strings.Fields(strings.ToLower(question))
	return len(f) > 1 && determiners[strings.TrimSuffix(f[1], "'s")] && !readWords[f[0]]
}

func shapeOf(question string, asked []string) shape {
	if imperative(question) {
		return asksToDo
	}
	for i, w := range asked {
		switch {
		case readWords[w], adjective(asked, i):
			return asksToKnow
		case writeWords[w]:
			return asksToDo
		}
	}
	return asksForThing
}

// adjective tells that open, before a plural, is what things are and not what to do.
func adjective(asked []string, i int) bool {
	return asked[i] == "open" && i+1 < len(asked) && stem(asked[i+1]) != asked[i+1] && strings.HasSuffix(asked[i+1], "s")
}

// period tells the unit of a span of time: the hour of "in the last hour".
func period(asked []string, i int) bool {
	return i > 0 && spanWords[asked[i-1]] && unitWords[stem(asked[i])]
}
