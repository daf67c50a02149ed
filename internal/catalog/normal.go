package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// NormalizeInput makes the input schema of a tool of elsewhere one that every client takes: its root is of type object,
// has properties, and is no choice of schemas (anyOf, oneOf, allOf). It accepts whatever the original does; where it
// accepts more, the tool's own server refuses. An original that cannot be listed is an error whose text a person reads
// after the name of the tool.
func NormalizeInput(raw jsontext.Value) (jsontext.Value, error) {
	v, err := normalize(raw)
	if err != nil {
		return nil, fmt.Errorf("the input schema cannot be used: %w", err)
	}
	return v, nil
}

// NormalizeOutput does the same for an output schema. One that cannot be listed is left out: the tool works without.
func NormalizeOutput(raw jsontext.Value) jsontext.Value {
	if isNothing(raw) {
		return nil
	}
	v, err := normalize(raw)
	if err != nil {
		return nil
	}
	return v
}

func isNothing(raw jsontext.Value) bool {
	s := string(bytes.TrimSpace(raw))
	return s == "" || s == "null"
}

func normalize(raw jsontext.Value) (jsontext.Value, error) {
	if isNothing(raw) {
		raw = jsontext.Value(`{}`)
	}
	doc, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	if doc == true {
		raw, doc = jsontext.Value(`{}`), object{}
	}
	root, ok := doc.(object)
	if !ok {
		return nil, errors.New("it is neither an object nor true")
	}
	changed := modernise(doc)
	if err := checkReferences(doc); err != nil {
		return nil, err
	}
	if mustMerge(root) {
		if root, err = mergeRoot(root); err != nil {
			return nil, err
		}
		changed = true
	}
	if err := checkHeaders(root); err != nil {
		return nil, err
	}
	out, err := draw(raw, root, changed)
	if err != nil {
		return nil, err
	}
	if _, err := CompileSchema(out); err != nil {
		return nil, err
	}
	return out, nil
}

// draw writes the schema. Most lack a type or properties at most: those keep the order their author wrote them in.
func draw(raw jsontext.Value, root object, changed bool) (jsontext.Value, error) {
	head := ""
	for _, m := range []struct{ name, text string }{{"type", `"type":"object"`}, {"properties", `"properties":{}`}} {
		if _, has := root[m.name]; !has {
			head += m.text + ","
		}
	}
	if changed {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(root); err != nil {
			return nil, fmt.Errorf("write schema: %w", err)
		}
		raw = b.Bytes()
	}
	out := raw.Clone()
	if err := out.Compact(); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	if head == "" {
		return out, nil
	}
	if string(out) == "{}" {
		head = strings.TrimSuffix(head, ",")
	}
	return append(jsontext.Value("{"+head), out[1:]...), nil
}

// readSchema reads a document and holds it to the bounds.
func readSchema(raw jsontext.Value) (any, error) {
	if len(raw) > maxSchemaBytes {
		return nil, checkSize(raw, nil)
	}
	if !raw.IsValid() {
		return nil, errors.New("it is no JSON, or has a name twice")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	return doc, checkSize(raw, doc)
}

// checkReferences refuses what points outside the document, or nowhere in it. Nothing is ever fetched. What a reference
// means beside a $id is for the compiler to find out, and to refuse.
func checkReferences(doc any) error {
	list := schemasOf(doc)
	named := map[string]bool{}
	for _, s := range list {
		if s.object["$id"] != nil {
			return nil
		}
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := s.object[k].(string); ok {
				named["#"+name] = true
			}
		}
	}
	for _, s := range list {
		for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref, ok := s.object[k].(string)
			if !ok || named[ref] {
				continue
			}
			if !strings.HasPrefix(ref, "#") {
				return fmt.Errorf("at %s it refers to %q, which is outside of it", s.at+"/"+k, clip(ref))
			}
			if _, found := lookup(doc, ref); !found {
				return fmt.Errorf("at %s it refers to %q, which is not in it", s.at+"/"+k, clip(ref))
			}
		}
	}
	return nil
}

// checkHeaders holds x-mcp-header to the specification (2026-07-28, Tools): a token (RFC 9110 §5.6.2) on a parameter
// of a primitive type, and one of its kind. A client must drop a tool that breaks it.
func checkHeaders(root object) error {
	taken := map[string]string{}
	for _, s := range schemasOf(root) {
		v, ok := s.object["x-mcp-header"]
		if !ok {
			continue
		}
		name, _ := v.(string)
		lower := strings.ToLower(name)
		switch {
		case name == "" || strings.Trim(lower, tokenCharacters) != "":
			return fmt.Errorf("at %s x-mcp-header is not the name of a header", s.at)
		case !isPrimitive(s.object["type"]):
			return fmt.Errorf("at %s x-mcp-header is on something other than a string, an integer or a boolean", s.at)
		case taken[lower] != "":
			return fmt.Errorf("at %s and %s x-mcp-header has one name", taken[lower], s.at)
		}
		taken[lower] = s.at
	}
	return nil
}

const tokenCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"

func isPrimitive(kind any) bool {
	list, ok := kind.([]any)
	if !ok {
		list = []any{kind}
	}
	for _, k := range list {
		if k != "string" && k != "integer" && k != "boolean" {
			return false
		}
	}
	return len(list) > 0
}

// mustMerge reports whether a root is something else than one plain object.
func mustMerge(root object) bool {
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf"} {
		if _, has := root[k]; has {
			return true
		}
	}
	_, named := root["type"]
	return named && root["type"] != "object"
}

// errNoObject is of a schema that no object fits.
var errNoObject = errors.New("no object fits it, and the arguments of a call are an object")

// mergeRoot is one plain object schema that accepts every object the root does. What the root keeps for reference, and
// what describes it, stays.
func mergeRoot(root object) (object, error) {
	merged, ok := (&merger{root: root}).plain(root, 0)
	if !ok {
		return nil, errNoObject
	}
	for _, k := range []string{"$defs", "definitions", "$id", "$anchor", "$dynamicAnchor", "$comment"} {
		if v, has := root[k]; has {
			merged[k] = v
		}
	}
	merged["type"] = "object"
	return merged, nil
}

// A merger follows choices and references from a root.
type merger struct {
	root  object
	steps int
}

// How far a merger goes; what lies beyond could be anything.
const (
	maxMergeDepth = 16
	maxMergeSteps = 1000
)

// plain is a schema without choices, references and type that accepts every object v does; false where v accepts none.
func (m *merger) plain(v any, depth int) (object, bool) {
	if v == false {
		return nil, false
	}
	s, ok := v.(object)
	m.steps++
	if !ok || depth > maxMergeDepth || m.steps > maxMergeSteps || depth > 0 && s["$id"] != nil { // a $id moves what references below it mean
		return object{}, true
	}
	if !maybeObject(s["type"]) {
		return nil, false
	}
	own := maps.Clone(s)
	for _, k := range []string{
		"type", "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor",
		"$recursiveAnchor", "$comment", "unevaluatedProperties",
	} {
		delete(own, k)
	}
	parts := []object{own}
	if ref, ok := s["$ref"].(string); ok {
		target, found := lookup(m.root, ref)
		if found && ref != "#" {
			part, ok := m.plain(withoutAnchors(target), depth+1)
			if !ok {
				return nil, false
			}
			parts = append(parts, part)
		}
	}
	every, _ := s["allOf"].([]any)
	for _, branch := range every {
		part, ok := m.plain(branch, depth+1)
		if !ok {
			return nil, false
		}
		parts = append(parts, part)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if branches, ok := s[k].([]any); ok {
			part, ok := m.either(branches, depth+1)
			if !ok {
				return nil, false
			}
			parts = append(parts, part)
		}
	}
	return both(parts), true
}

func maybeObject(kind any) bool {
	list, ok := kind.([]any)
	return kind == nil || kind == "object" || ok && slices.Contains(list, any("object"))
}

// withoutAnchors is a copy that can stand beside what it was copied from.
func withoutAnchors(v any) any {
	switch v := v.(type) {
	case object:
		c := make(object, len(v))
		for k, member := range v {
			if k != "$anchor" && k != "$dynamicAnchor" {
				c[k] = withoutAnchors(member)
			}
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = withoutAnchors(item)
		}
		return c
	}
	return v
}

// both accepts what every part does, and more where the parts cannot be said in one: of a keyword that two parts have, the
// first one's is kept. An additionalProperties of one part refuses less in the whole, which names more properties.
func both(parts []object) object {
	out := object{}
	required := []any{}
	for _, p := range parts {
		for k, v := range p {
			switch k {
			case "properties", "patternProperties":
				before, _ := out[k].(object)
				out[k] = together(before, v)
			case "required":
				list, _ := v.([]any)
				for _, name := range list {
					if !slices.Contains(required, name) {
						required = append(required, name)
					}
				}
			case "then", "else": // with their if
			case "if":
				if _, has := out["if"]; !has {
					for _, k := range []string{"if", "then", "else"} {
						if v, has := p[k]; has {
							out[k] = v
						}
					}
				}
			default:
				if _, has := out[k]; !has {
					out[k] = v
				}
			}
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// together is every property of both maps of schemas.
func together(a object, b any) object {
	all := maps.Clone(a)
	if all == nil {
		all = object{}
	}
	more, _ := b.(object)
	for name, s := range more {
		all[name] = conjunction(all[name], s)
	}
	return all
}

// conjunction is both of two schemas of one property; a may be missing.
func conjunction(a, b any) any {
	if a == nil || a == true || reflect.DeepEqual(a, b) {
		return b
	}
	if b == true {
		return a
	}
	return object{"allOf": []any{a, b}}
}

// either accepts what any branch does, and more where the branches cannot be said in one.
func (m *merger) either(branches []any, depth int) (object, bool) {
	var live []object
	for _, b := range branches {
		if p, ok := m.plain(b, depth); ok {
			live = append(live, p)
		}
	}
	switch len(live) {
	case 0:
		return nil, false
	case 1:
		return live[0], true
	}
	out := object{}
	properties := object{}
	for name := range allNames(live) {
		properties[name] = choice(live, name)
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	var required []any
	first, _ := live[0]["required"].([]any)
	for _, name := range first {
		if !slices.ContainsFunc(live, func(p object) bool {
			list, _ := p["required"].([]any)
			return !slices.Contains(list, name)
		}) {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if !slices.ContainsFunc(live, func(p object) bool { return !isClosed(p) }) {
		out["additionalProperties"] = false
	}
	return out, true
}

func allNames(parts []object) map[string]bool {
	names := map[string]bool{}
	for _, p := range parts {
		named, _ := p["properties"].(object)
		for name := range named {
			names[name] = true
		}
	}
	return names
}

// isClosed reports whether a schema names every property it allows.
func isClosed(p object) bool {
	return p["additionalProperties"] == false && p["patternProperties"] == nil
}

// choice is what a property may be in any of the branches. A branch that does not name it, and is not closed, lets it be
// anything; what the others say of it is still worth reading.
func choice(branches []object, name string) any {
	var options []any
	open := false
	for _, b := range branches {
		named, _ := b["properties"].(object)
		s, has := named[name]
		switch {
		case !has:
			open = open || !isClosed(b)
		case !slices.ContainsFunc(options, func(o any) bool { return reflect.DeepEqual(o, s) }):
			options = append(options, s)
		}
	}
	if open {
		options = append(options, object{})
	}
	if len(options) == 1 {
		return options[0]
	}
	return object{"anyOf": options}
}
