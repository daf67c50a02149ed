package catalog_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
)

func searchSchema(t *testing.T) *catalog.Schema {
	t.Helper()
	s, err := catalog.CompileSchema(jsontext.Value(`{"type":"object","properties":{` +
		`"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":20},"shape":{}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A number of 4 MiB took the validator a minute of a core and 70 GB of garbage; it must be refused unread.
func TestCheckRefusesNumbersThatAreCostlyToCompare(t *testing.T) {
	t.Parallel()
	s := searchSchema(t)
	for name, c := range map[string]struct {
		args, path string
	}{
		"digits":            {`{"limit":` + strings.Repeat("9", 4<<20) + `}`, "/limit"},
		"fraction":          {`{"limit":0.` + strings.Repeat("3", 4<<20) + `}`, "/limit"},
		"exponent":          {`{"limit":1e1000000}`, "/limit"},
		"negative exponent": {`{"limit":1E-1000000}`, "/limit"},
		"endless exponent":  {`{"limit":1e` + strings.Repeat("9", 40) + `}`, "/limit"},
		"deep inside":       {`{"shape":[0,{"a/b":1e1000000}]}`, "/shape/1/a~1b"},
	} {
		began := time.Now()
		r := reason.Of(s.Check(jsontext.Value(c.args)))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: Check took %v", name, took)
		}
		problems, _ := r.Details["problems"].([]catalog.Problem)
		if r.Word != reason.InputInvalid || len(problems) != 1 || problems[0].Path != c.path {
			t.Errorf("%s: Check() = %v, %+v, want input_invalid at %s", name, r.Word, problems, c.path)
		}
	}
	for _, args := range []string{
		`{"limit":20}`, `{"limit":2e1}`, `{"shape":1e308}`, `{"shape":-1.5E-9999}`, `{"shape":` + strings.Repeat("9", 1000) + `}`,
	} {
		if err := s.Check(jsontext.Value(args)); err != nil {
			t.Errorf("Check(%.40s) = %v, want nil", args, err)
		}
	}
}

// A refusal quotes the names in the arguments, each of which, and all of which, may be as large as a body.
func TestCheckAnswersBrieflyToLargeArguments(t *testing.T) {
	t.Parallel()
	s := searchSchema(t)
	loose, err := catalog.CompileSchema(jsontext.Value(`{"type":"object","additionalProperties":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	long := `{"` + strings.Repeat("ü", 1<<20) + `":1}`
	many := `{"x":0,"y":0,"` + strings.Repeat("z", 1<<20) + `":0}`
	for name, err := range map[string]error{
		"one long name": s.Check(jsontext.Value(long)), "many names": s.Check(jsontext.Value(many)), "a long path": loose.Check(jsontext.Value(long)),
	} {
		r := reason.Of(err)
		problems, _ := r.Details["problems"].([]catalog.Problem)
		if r.Word != reason.InputInvalid || len(problems) == 0 {
			t.Errorf("%s: Check() = %v, want input_invalid with problems", name, r.Word)
		}
		for _, p := range problems {
			if utf8.RuneCountInString(p.Path) > 200 || utf8.RuneCountInString(p.Problem) > 200 || !utf8.ValidString(p.Path+p.Problem) {
				t.Errorf("%s: a problem has %d + %d bytes, want at most 200 characters each", name, len(p.Path), len(p.Problem))
			}
		}
		if len(r.Message) > 10_000 {
			t.Errorf("%s: the message has %d bytes", name, len(r.Message))
		}
	}
}
