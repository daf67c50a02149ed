package catalog

import (
	"encoding/json"
	"regexp/syntax"
	"strconv"
	"strings"
)

const (
	// maxEffort is how much one check may take, in units of some 100 ns: about a second.
	maxEffort = 10_000_000
	// textUnit is how many bytes of text are looked through in one unit, patternUnit how many steps a pattern takes.
	textUnit    = 64
	patternUnit = 50
	// numberUnits is what comparing two numbers takes: they are compared exactly. One with an exponent is computed first.
	numberUnits  = 10
	exponentUnit = 32
	// textsUnit is how many short texts are compared with one, levelUnit at what depth a schema takes one more: whatever does
	// not fit is noted with the way there.
	textsUnit = 16
	levelUnit = 2
	// uniqueUnits is what comparing the items of a list with one another takes, of each.
	uniqueUnits = 20
)

// An estimate says, from above, what it takes to hold values to a schema, before that is done: the validator cannot be
// stopped, and an array of a million numbers takes it hours against an enum of ten thousand of them.
type estimate struct {
	root  *node
	loops bool // the schema can come back to itself
	total int  // what all schemas in it take of one value
}

// A node is what matters of one schema. A nil node takes any value at no cost.
type node struct {
	texts, numbers, other int // units of the members of enum, and const
	arithmetic            bool
	unique                bool
	pattern               int // steps of it
	inPlace               []*node
	named                 map[string]*node
	patterns              []patterned
	members               []*node // of every member: additionalProperties and the like
	names                 *node
	first                 []*node
	items                 []*node // of every item: items and the like
}

type patterned struct {
	steps int
	node  *node
}

func newEstimate(doc any) *estimate {
	p := plan{doc, map[string]*node{}}
	e := &estimate{root: p.node("", doc), loops: refers(doc)}
	for _, n := range p.known {
		e.total += n.effort()
	}
	return e
}

// tooCostly reports whether holding v to the schema may take more than maxEffort.
func (e *estimate) tooCostly(v any) bool {
	size := units(v)
	if !e.loops && size <= maxEffort/max(e.total, 1) {
		return false // every value, at worst, is held to every schema once
	}
	left := maxEffort
	visit(e.root, v, 0, &left)
	return left < 0
}

// effort is what a node takes of one unit of a value, its children not counted.
func (n *node) effort() int {
	effort := 1 + n.texts + numberUnits*n.numbers + n.other + n.pattern*textUnit/patternUnit
	if n.arithmetic {
		effort += numberUnits
	}
	if n.unique {
		effort += uniqueUnits
	}
	for _, p := range n.patterns {
		effort += p.steps
	}
	return effort
}

// A plan is a document whose nodes are made.
type plan struct {
	doc   any
	known map[string]*node // by where they stand
}

// node is what stands at a place of the document.
func (p plan) node(at string, v any) *node {
	s, ok := v.(object)
	if !ok {
		return nil
	}
	if n := p.known[at]; n != nil {
		return n
	}
	n := &node{named: map[string]*node{}}
	p.known[at] = n
	n.values(s)
	for inner, v := range inPlace(p.doc, at, s) {
		n.inPlace = append(n.inPlace, p.node(inner, v))
	}
	under := func(keyword string) (list []*node) {
		if inside, ok := s[keyword].([]any); ok {
			for i, item := range inside {
				list = append(list, p.node(at+"/"+keyword+"/"+strconv.Itoa(i), item))
			}
		} else if inner := p.node(at+"/"+keyword, s[keyword]); inner != nil {
			list = append(list, inner)
		}
		return list
	}
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		n.members = append(n.members, under(keyword)...)
	}
	for _, keyword := range []string{"contains", "additionalItems", "unevaluatedItems"} {
		n.items = append(n.items, under(keyword)...)
	}
	if _, list := s["items"].([]any); list {
		n.first = under("items")
	} else {
		n.first, n.items = under("prefixItems"), append(n.items, under("items")...)
	}
	n.names = p.node(at+"/propertyNames", s["propertyNames"])
	properties, _ := s["properties"].(object)
	for name, inner := range properties {
		n.named[name] = p.node(at+"/properties/"+escape(name), inner)
	}
	byPattern, _ := s["patternProperties"].(object)
	for pattern, inner := range byPattern {
		n.patterns = append(n.patterns, patterned{steps(pattern), p.node(at+"/patternProperties/"+escape(pattern), inner)})
	}
	return n
}

// values notes what a schema compares values with.
func (n *node) values(s object) {
	list, _ := s["enum"].([]any)
	if v, has := s["const"]; has {
		list = append(list[:len(list):len(list)], v)
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			n.texts++
		case json.Number:
			n.numbers += numeral(v)
		default:
			n.other += units(v)
		}
	}
	for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		_, has := s[keyword]
		n.arithmetic = n.arithmetic || has
	}
	n.texts = (n.texts + textsUnit - 1) / textsUnit
	n.arithmetic = n.arithmetic || strings.Contains(typeNames(s["type"]), "integer")
	n.unique = s["uniqueItems"] == true
	if pattern, ok := s["pattern"].(string); ok {
		n.pattern = steps(pattern)
	}
}

func typeNames(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var names []string
		for _, name := range v {
			names = append(names, typeNames(name))
		}
		return strings.Join(names, " ")
	}
	return ""
}

// steps is how large the program is that a pattern becomes. One that Go cannot read is not held against anything.
func steps(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// visit takes from left what n takes of v, so deep in the arguments, and of all in it, until nothing is left.
func visit(n *node, v any, depth int, left *int) {
	if *left -= 1 + depth/levelUnit; n == nil || *left < 0 {
		return
	}
	for _, inner := range n.inPlace {
		visit(inner, v, depth, left)
	}
	switch v := v.(type) {
	case string:
		*left -= n.texts + n.pattern*len(v)/patternUnit + len(v)/textUnit
	case json.Number:
		if one := numeral(v); n.arithmetic || n.numbers > 0 {
			*left -= numberUnits * (one + n.numbers*one)
		}
	case []any:
		*left -= compared(n, v)
		for i, item := range v {
			if i < len(n.first) {
				visit(n.first[i], item, depth+1, left)
			}
			for _, inner := range n.items {
				visit(inner, item, depth+1, left)
			}
			if *left < 0 {
				return
			}
		}
	case object:
		*left -= compared(n, v)
		for name, member := range v {
			visit(n.named[name], member, depth+1, left)
			for _, p := range n.patterns {
				*left -= p.steps * len(name) / patternUnit
				visit(p.node, member, depth+1, left)
			}
			for _, inner := range n.members {
				visit(inner, member, depth+1, left)
			}
			if n.names != nil {
				visit(n.names, name, depth, left)
			}
			if *left < 0 {
				return
			}
		}
	}
}

// compared is what comparing a composite value as a whole takes, with those of an enum and its items with one another.
func compared(n *node, v any) int {
	effort := n.other
	if n.unique {
		effort += uniqueUnits * units(v)
	}
	return effort
}

// units is how much there is of a value.
func units(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/textUnit
	case json.Number:
		return numeral(v)
	case []any:
		n := 1
		for _, item := range v {
			n += units(item)
		}
		return n
	case object:
		n := 1
		for name, member := range v {
			n += 1 + len(name)/textUnit + units(member)
		}
		return n
	}
	return 1
}

// numeral is how much there is of a number.
func numeral(n json.Number) int {
	size := 1 + len(n)/textUnit
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n[i+1:])); err == nil {
			size += max(e, -e) / exponentUnit
		}
	}
	return size
}
