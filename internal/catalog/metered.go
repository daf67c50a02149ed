package catalog

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxWork is how many times schemas may be held against values in one check: some tenths of a second. A schema that refers
// to itself in two branches doubles the work with every level that its arguments are nested, and the arguments are an
// agent's.
const maxWork = 300_000

var errCostly = errors.New("the check takes too long")

// A metered is a compiled schema that counts what one check of it costs. It is used by one check at a time.
type metered struct {
	compiled *jsonschema.Schema
	left     int
}

// newMetered compiles doc with a vocabulary that has no keywords: each schema in it counts.
func newMetered(doc any) (*metered, error) {
	m := &metered{}
	c := jsonschema.NewCompiler()
	c.AssertVocabs()
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "graft:work",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return m, nil },
	})
	var err error
	m.compiled, err = compile(c, doc)
	return m, err
}

// Validate implements jsonschema.SchemaExt.
func (m *metered) Validate(*jsonschema.ValidatorContext, any) {
	if m.left--; m.left < 0 {
		panic(errCostly) // the validator has no other way out; check takes it
	}
}

func (m *metered) check(doc any) (err error) {
	defer func() {
		if p := recover(); p == errCostly { //nolint:errorlint // our own value, as it was thrown
			err = errCostly
		} else if p != nil {
			panic(p)
		}
	}()
	m.left = maxWork
	return m.compiled.Validate(doc)
}

// validate holds arguments to the schema.
func (s *Schema) validate(doc any) error {
	if s.metered == nil {
		return s.compiled.Validate(doc)
	}
	m := s.metered.Get().(*metered)
	defer s.metered.Put(m)
	return m.check(doc)
}

// refers reports whether a schema can come back to itself.
func refers(doc any) bool {
	switch v := doc.(type) {
	case map[string]any:
		for name, member := range v {
			if name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef" || refers(member) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if refers(item) {
				return true
			}
		}
	}
	return false
}
