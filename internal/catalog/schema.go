package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/getgraft/graft/internal/reason"
)

// A Schema is a tool's input schema, compiled.
type Schema struct {
	raw       jsontext.Value
	compiled  *jsonschema.Schema // nil where it may come back to itself
	metered   *sync.Pool         // then of *metered
	estimate  *estimate
	unchecked []string
}

// CompileSchema compiles a JSON Schema (2020-12 unless it says otherwise) whose root is an object. It never reads
// a file or the network: a reference that leaves the document is an error. The error's text is for whoever wrote the
// schema.
func CompileSchema(raw jsontext.Value) (*Schema, error) {
	doc, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	if root, ok := doc.(object); !ok || root["type"] != "object" {
		return nil, errors.New("its root is not of type object")
	}
	modernise(doc)
	if err := checkReferences(doc); err != nil {
		return nil, err
	}
	if err := checkCost(doc); err != nil {
		return nil, err
	}
	unchecked := relax(doc)
	s := &Schema{raw: raw, estimate: newEstimate(doc), unchecked: unchecked}
	if !refers(doc) {
		s.compiled, err = compile(jsonschema.NewCompiler(), doc)
		return s, err
	}
	first, err := newMetered(doc)
	if err != nil {
		return nil, err
	}
	s.metered = &sync.Pool{New: func() any {
		m, _ := newMetered(doc) // it compiled before
		return m
	}}
	s.metered.Put(first)
	return s, nil
}

func compile(c *jsonschema.Compiler, doc any) (*jsonschema.Schema, error) {
	c.UseLoader(noLoader{})
	const self = "graft:input"
	if err := c.AddResource(self, doc); err != nil {
		return nil, unfit(err)
	}
	compiled, err := c.Compile(self)
	if err != nil {
		return nil, unfit(err)
	}
	return compiled, nil
}

// Unchecked is where the patterns stand that Go cannot read, as JSON Pointers: arguments are not held to them.
func (s *Schema) Unchecked() []string { return s.unchecked }

// unfit says what is wrong with a schema and where, if the compiler says it.
func unfit(err error) error {
	var invalid *jsonschema.ValidationError
	if schema := (*jsonschema.SchemaValidationError)(nil); errors.As(err, &schema) && errors.As(schema.Err, &invalid) {
		p := leaves(invalid, func(e *jsonschema.ValidationError) Problem {
			return newProblem(e.InstanceLocation, e.ErrorKind.LocalizedString(english))
		}, nil)[0]
		return fmt.Errorf("at %s it is no JSON Schema: %s", p.Path, p.Problem)
	}
	return fmt.Errorf("it does not compile: %w", err)
}

// noLoader is why no schema makes us fetch anything.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema", url)
}

// A Problem is one thing wrong with the arguments of a call.
type Problem struct {
	Path    string `json:"path"` // JSON Pointer (RFC 6901) into the arguments; "" is the whole
	Problem string `json:"problem"`
}

// maxProblems is how many problems one refusal lists.
const maxProblems = 10

// Check validates arguments. What does not fit is refused as input_invalid with the problems and the schema, so
// that a model can mend its call in one try.
func (s *Schema) Check(args jsontext.Value) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	if problem, ok := longNumber(doc, nil); ok {
		return s.refuse([]Problem{problem})
	}
	if s.estimate.tooCostly(doc) {
		return s.refuse([]Problem{{Problem: "is too large, or nested too deeply, to be checked against this schema"}})
	}
	err = s.validate(doc)
	if errors.Is(err, errCostly) {
		return s.refuse([]Problem{{Problem: "is nested too deeply to be checked against this schema"}})
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	return s.refuse(leaves(invalid, s.newProblem, nil))
}

func (s *Schema) refuse(problems []Problem) error {
	said := make([]string, len(problems))
	for i, p := range problems {
		said[i] = strings.TrimSpace(p.Path + " " + p.Problem)
	}
	return reason.Refuse(reason.InputInvalid, "The arguments do not fit the tool's schema: %s.", strings.Join(said, "; ")).
		With("problems", problems).
		With("inputSchema", s.raw)
}

var english = message.NewPrinter(language.English)

// leaves are the causes that have no cause of their own, each told by tell.
func leaves(e *jsonschema.ValidationError, tell func(*jsonschema.ValidationError) Problem, into []Problem) []Problem {
	if len(into) == maxProblems {
		return into
	}
	if len(e.Causes) == 0 {
		return append(into, tell(e))
	}
	for _, c := range e.Causes {
		into = leaves(c, tell, into)
	}
	return into
}

// newProblem tells what is wrong with arguments. A property that is unknown is often one that is known, misspelt.
func (s *Schema) newProblem(e *jsonschema.ValidationError) Problem {
	what := e.ErrorKind.LocalizedString(english)
	if k, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		known := s.propertiesAt(e.SchemaURL)
		for _, name := range k.Properties[:min(len(k.Properties), maxProblems)] {
			if meant := closest(name, known); meant != "" {
				what += fmt.Sprintf("; did you mean %q?", meant)
			}
		}
	}
	return newProblem(e.InstanceLocation, what)
}

// propertiesAt are the names of the properties of the schema at that address, in their order.
func (s *Schema) propertiesAt(address string) []string {
	_, fragment, _ := strings.Cut(address, "#")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.raw))
	if err != nil {
		return nil
	}
	modernise(doc)
	at, _ := lookup(doc, "#"+fragment)
	schema, _ := at.(object)
	named, _ := schema["properties"].(object)
	return slices.Sorted(maps.Keys(named))
}

// maxProblem is how many characters a problem has, and its path: both may quote the arguments, which may be large.
const maxProblem = 200

func newProblem(at []string, what string) Problem {
	return Problem{Path: clip(pointer(at)), Problem: clip(what)}
}

func clip(s string) string {
	if r := []rune(s[:min(len(s), 4*maxProblem+4)]); len(r) > maxProblem {
		return string(r[:maxProblem-1]) + "…"
	}
	return s
}

// What a number in arguments may have (RFC 8259 §9 lets us say). The validator computes exactly, at a cost that grows
// with the square of the length: one number of four million digits takes it a minute.
const (
	maxDigits   = 1000 // characters, with sign, point and exponent
	maxExponent = 9999
)

// longNumber finds a number that is over the limits.
func longNumber(v any, at []string) (Problem, bool) {
	switch v := v.(type) {
	case json.Number:
		if !fits(string(v)) {
			return newProblem(at, fmt.Sprintf("number has more than %d characters or an exponent beyond %d", maxDigits, maxExponent)), true
		}
	case []any:
		for i, item := range v {
			if p, ok := longNumber(item, append(at, strconv.Itoa(i))); ok {
				return p, true
			}
		}
	case map[string]any:
		for name, member := range v {
			if p, ok := longNumber(member, append(at, name)); ok {
				return p, true
			}
		}
	}
	return Problem{}, false
}

func fits(number string) bool {
	if len(number) > maxDigits {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(number[i+1:])
	return err == nil && e >= -maxExponent && e <= maxExponent
}

func pointer(tokens []string) string {
	var p jsontext.Pointer
	for _, t := range tokens {
		p = p.AppendToken(t)
	}
	return string(p)
}
