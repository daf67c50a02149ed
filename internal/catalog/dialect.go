package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Where schemas stand inside a schema, by keyword: one, a list of them, or a map of names to them. What stands under any
// other keyword is data (an enum may hold {"type":1}).
var (
	holdsOne = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	holdsList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdsMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// object is a JSON object as jsonschema.UnmarshalJSON reads it.
type object = map[string]any

// A placed schema is one inside a document.
type placed struct {
	at string // JSON Pointer
	object
}

// schemasOf is every schema of a document that is an object: those where schemas stand, and those that a $ref points to.
func schemasOf(doc any) []placed {
	var list []placed
	seen := map[string]bool{}
	add := func(at string, v any) {
		if s, ok := v.(object); ok && !seen[at] {
			seen[at] = true
			list = append(list, placed{at, s})
		}
	}
	add("", doc)
	for i := 0; i < len(list); i++ {
		s := list[i]
		for _, k := range slices.Sorted(maps.Keys(s.object)) {
			v, at := s.object[k], s.at+"/"+escape(k)
			switch inside := v.(type) {
			case object:
				if slices.Contains(holdsOne, k) {
					add(at, inside)
				}
				if slices.Contains(holdsMap, k) {
					for _, name := range slices.Sorted(maps.Keys(inside)) {
						add(at+"/"+escape(name), inside[name])
					}
				}
			case []any:
				if slices.Contains(holdsList, k) {
					for n, item := range inside {
						add(at+"/"+strconv.Itoa(n), item)
					}
				}
			case string:
				if k == "$ref" {
					if target, found := lookup(doc, inside); found {
						add(inside[1:], target)
					}
				}
			}
		}
	}
	return list
}

func escape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// lookup finds what a reference into its own document (#/a/b) points to.
func lookup(doc any, ref string) (v any, found bool) {
	path, local := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(path)
	if !local || err != nil || path != "" && path[0] != '/' {
		return nil, false
	}
	for token := range jsontext.Pointer(path).Tokens() {
		switch v := doc.(type) {
		case object:
			if doc, found = v[token]; !found {
				return nil, false
			}
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(v) {
				return nil, false
			}
			doc = v[n]
		default:
			return nil, false
		}
	}
	return doc, true
}

// What a schema may be. Compiling takes time that grows with the square of the schemas in it.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
	maxSubschemas  = 5000
)

// checkSize refuses a document that would cost too much to compile or to draw.
func checkSize(raw jsontext.Value, doc any) error {
	if len(raw) > maxSchemaBytes {
		return fmt.Errorf("it has %d KiB, and the most is %d", len(raw)>>10, maxSchemaBytes>>10)
	}
	if depth(doc) > maxSchemaDepth {
		return fmt.Errorf("it nests more than %d deep", maxSchemaDepth)
	}
	if n := len(schemasOf(doc)); n > maxSubschemas {
		return fmt.Errorf("it is made of %d schemas, and the most is %d", n, maxSubschemas)
	}
	if p, long := longNumber(doc, nil); long {
		return fmt.Errorf("at %s a %s", p.Path, p.Problem)
	}
	return nil
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case object:
		for _, member := range v {
			deepest = max(deepest, depth(member))
		}
	case []any:
		for _, item := range v {
			deepest = max(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

// beside a $ref, drafts before 2019-09 read none of these.
var unreadBesideRef = append(slices.Concat(holdsOne, holdsList, []string{"dependencies", "patternProperties", "properties"}),
	"const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
	"minLength", "minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems")

var oldDraft = regexp.MustCompile(`^https?://json-schema\.org/draft-0?([3-7])/`)

// modernise turns a document of any draft, or of none that exists, into one of 2020-12. It reports whether it did more
// than drop what a reader of the draft the document names would not have read.
func modernise(doc any) (changed bool) {
	root, _ := doc.(object)
	dialect, _ := root["$schema"].(string)
	draft := 0
	if m := oldDraft.FindStringSubmatch(dialect); m != nil {
		draft, _ = strconv.Atoi(m[1])
	}
	for _, s := range schemasOf(doc) {
		delete(s.object, "$schema")
		if _, ref := s.object["$ref"].(string); ref && draft > 0 {
			for _, k := range unreadBesideRef {
				delete(s.object, k)
			}
		}
		for _, step := range []func(object, int) bool{renameID, tuples, bounds, empties} {
			if step(s.object, draft) {
				changed = true
			}
		}
	}
	return changed
}

// renameID: id became $id with draft 6, and a $id that is a fragment became $anchor with 2019-09.
func renameID(s object, draft int) (changed bool) {
	if id, ok := s["id"].(string); ok && (draft == 3 || draft == 4) {
		s["$id"] = id
		delete(s, "id")
		changed = true
	}
	if id, ok := s["$id"].(string); ok && strings.HasPrefix(id, "#") {
		delete(s, "$id")
		if len(id) > 1 {
			s["$anchor"] = id[1:]
		}
		changed = true
	}
	return changed
}

// tuples: a list of items became prefixItems with 2020-12, and additionalItems became items.
func tuples(s object, _ int) bool {
	list, ok := s["items"].([]any)
	if !ok {
		return false
	}
	delete(s, "items")
	if len(list) > 0 {
		s["prefixItems"] = list
	}
	if rest, ok := s["additionalItems"]; ok {
		s["items"] = rest
		delete(s, "additionalItems")
	}
	return true
}

// bounds: exclusiveMinimum and exclusiveMaximum were flags of minimum and maximum before draft 6.
func bounds(s object, _ int) (changed bool) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		flag, ok := s[exclusive].(bool)
		if !ok {
			continue
		}
		delete(s, exclusive)
		if at, ok := s[bound].(json.Number); ok && flag {
			s[exclusive] = at
			delete(s, bound)
		}
		changed = true
	}
	return changed
}

// empties: before draft 4 required was a flag of the property itself, and some languages write an empty map as an empty
// list, or nothing at all as null. What was demanded that way is no longer demanded.
func empties(s object, _ int) (changed bool) {
	if v, has := s["required"]; has && (v == nil || v == true || v == false) {
		delete(s, "required")
		changed = true
	}
	for _, k := range holdsMap {
		list, isList := s[k].([]any)
		if v, has := s[k]; has && (v == nil || isList && len(list) == 0) {
			delete(s, k)
			changed = true
		}
	}
	return changed
}

// relax makes a schema of 2020-12 one that Go can check, and which accepts whatever the schema itself does: a pattern
// that Go cannot read is not checked, nor is a format (2020-12 Validation §7.2.1). Where less checked would mean more
// refused, under not for one, that is not checked either. It returns where the patterns stood.
func relax(doc any) (patterns []string) {
	var loose []string
	unseen := false // properties may have been evaluated by what is gone
	list := schemasOf(doc)
	for _, s := range list {
		if p, ok := s.object["pattern"].(string); ok && !readable(p) {
			delete(s.object, "pattern")
			patterns = append(patterns, s.at+"/pattern")
			loose = append(loose, s.at)
		}
		if _, ok := s.object["format"].(string); ok {
			loose = append(loose, s.at)
		}
		named, _ := s.object["patternProperties"].(object)
		for p := range named {
			if !readable(p) {
				delete(named, p)
				delete(s.object, "additionalProperties") // it would be of the properties that the pattern is of
				patterns = append(patterns, s.at+"/patternProperties/"+escape(p))
				loose = append(loose, s.at)
				unseen = true
			}
		}
	}
	if len(loose) > 0 {
		for _, s := range list {
			_, conditional := s.object["if"]
			loosen(s.object, func(keyword string) bool { return isLoose(s.at+"/"+keyword, list, loose) })
			unseen = unseen || conditional && s.object["if"] == nil
		}
	}
	if unseen {
		for _, s := range list {
			delete(s.object, "unevaluatedProperties")
			delete(s.object, "unevaluatedItems")
		}
	}
	slices.Sort(patterns)
	return patterns
}

func readable(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// isLoose reports whether something at or below the pointer is no longer checked, or is checked elsewhere and may not be.
func isLoose(at string, list []placed, loose []string) bool {
	within := func(other string) bool { return other == at || strings.HasPrefix(other, at+"/") }
	if slices.ContainsFunc(loose, within) {
		return true
	}
	return slices.ContainsFunc(list, func(s placed) bool {
		return within(s.at) && (s.object["$ref"] != nil || s.object["$dynamicRef"] != nil)
	})
}

// loosen takes out of a schema what would refuse more now that what stands below it refuses less.
func loosen(s object, isLoose func(keyword string) bool) {
	if s["not"] != nil && isLoose("not") {
		delete(s, "not")
	}
	if s["if"] != nil && isLoose("if") {
		delete(s, "if")
	}
	if s["maxContains"] != nil && isLoose("contains") {
		delete(s, "maxContains")
	}
	if one, ok := s["oneOf"].([]any); ok && isLoose("oneOf") {
		delete(s, "oneOf")
		all, _ := s["allOf"].([]any)
		s["allOf"] = append(slices.Clone(all), object{"anyOf": one})
	}
}

// maxChecks is how many schemas one value may be held to at once. References can double them with every line.
const maxChecks = 10_000

// checkCost refuses a schema that never comes to an end, or not soon, on one and the same value.
func checkCost(doc any) error {
	known := map[string]int{} // by where; -1 while it is being counted
	var count func(at string, v any) (int, error)
	count = func(at string, v any) (int, error) {
		s, ok := v.(object)
		switch n := known[at]; {
		case !ok:
			return 1, nil
		case n < 0:
			return 0, fmt.Errorf("at %s it refers to itself without end", at)
		case n > 0:
			return n, nil
		}
		known[at] = -1
		total := 1
		for inner, v := range inPlace(doc, at, s) {
			n, err := count(inner, v)
			if err != nil {
				return 0, err
			}
			if total += n; total > maxChecks {
				return 0, fmt.Errorf("it holds one value to more than %d schemas", maxChecks)
			}
		}
		known[at] = total
		return total, nil
	}
	for _, s := range schemasOf(doc) {
		if _, err := count(s.at, s.object); err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the schemas that a value is held to because it is held to s, by where they stand.
func inPlace(doc any, at string, s object) map[string]any {
	found := map[string]any{}
	for _, k := range []string{"else", "if", "not", "then"} {
		if v, has := s[k]; has {
			found[at+"/"+k] = v
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[k].([]any)
		for n, v := range list {
			found[at+"/"+k+"/"+strconv.Itoa(n)] = v
		}
	}
	for _, k := range []string{"dependencies", "dependentSchemas"} {
		named, _ := s[k].(object)
		for name, v := range named {
			found[at+"/"+k+"/"+escape(name)] = v
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		if v, has := lookup(doc, ref); has {
			found[ref[1:]] = v
		}
	}
	return found
}
