package catalog_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
)

func nested(levels int) jsontext.Value {
	return jsontext.Value(strings.Repeat(`{"n":`, levels) + `{}` + strings.Repeat(`}`, levels))
}

// A schema that refers to itself in several branches multiplies the work of its check with each level of the arguments:
// forty levels would take a core for days. Other schemas that refer to themselves are not held to so few.
func TestACheckOfDeepArgumentsEnds(t *testing.T) {
	t.Parallel()
	branching, err := catalog.CompileSchema(jsontext.Value(`{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"anyOf":[` +
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"},"a":true},"required":["a"]},` +
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"},"b":true},"required":["b"]},` +
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 { // no check spends what another has
		all.Go(func() {
			if err := branching.Check(nested(3)); err != nil {
				t.Errorf("Check() of three levels = %v, want nil", err)
			}
			if r := reason.Of(branching.Check(nested(40))); r.Word != reason.InputInvalid || !strings.Contains(r.Message, "nested too deeply") {
				t.Errorf("Check() of forty levels = %v, want input_invalid that says why", r)
			}
			if err := branching.Check(nested(3)); err != nil {
				t.Errorf("Check() after that = %v, want nil", err)
			}
		})
	}
	all.Wait()
	list, err := catalog.CompileSchema(jsontext.Value(`{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"additionalProperties":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Check(nested(500)); err != nil {
		t.Errorf("Check() of a list of 500 = %v, want nil", err)
	}
	if r := reason.Of(list.Check(jsontext.Value(`{"n":{"n":{"x":1}}}`))); r.Word != reason.InputInvalid {
		t.Errorf("Check() of what does not fit = %v, want input_invalid", r)
	}
}
