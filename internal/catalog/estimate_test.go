package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
)

// list is n values, each made from its number, with commas between.
func list(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(value, "%") {
			_, _ = fmt.Fprintf(&b, value, i+2)
		} else {
			b.WriteString(value)
		}
	}
	return b.String()
}

// Each of these takes minutes to hours to check, though neither the schema nor the arguments are larger than others are,
// and no schema refers to itself.
func TestAnArgumentIsNotHeldToASchemaForHours(t *testing.T) {
	t.Parallel()
	property := func(schema string) string { return `{"type":"object","properties":{"v":` + schema + `}}` }
	for name, tt := range map[string]struct{ schema, args string }{
		"a list held to an enum of objects":     {property(`{"items":{"enum":[` + list(2000, `{"a":%d}`) + `]}}`), `[` + list(100_000, `{"a":1}`) + `]`},
		"a list held to an enum of numbers":     {property(`{"items":{"enum":[` + list(10_000, `%d`) + `]}}`), `[` + list(200_000, `1`) + `]`},
		"a list held to many constants":         {property(`{"items":{"anyOf":[` + list(4900, `{"const":%d}`) + `]}}`), `[` + list(100_000, `1`) + `]`},
		"a long text held to many patterns":     {property(`{"allOf":[` + list(500, `{"pattern":"(a|aa)*%d$"}`) + `]}`), `"` + strings.Repeat("a", 3_500_000) + `"`},
		"a long text held to a large pattern":   {property(`{"pattern":"((a{1,30}){1,30}b)*c$"}`), `"` + strings.Repeat("a", 3_500_000) + `"`},
		"many names held to patterns":           {property(`{"patternProperties":{` + list(500, `"(a|aa)*%d$":true`) + `}}`), `{` + list(100_000, `"aaa%d":1`) + `}`},
		"numbers that are computed first":       {property(`{"items":{"multipleOf":3}}`), `[` + list(200_000, `1e9999`) + `]`},
		"a shared enum that is referred to":     {`{"type":"object","properties":{"v":{"items":{"$ref":"#/$defs/e"}}},"$defs":{"e":{"enum":[` + list(10_000, `%d`) + `]}}}`, `[` + list(200_000, `1`) + `]`},
		"a schema that comes back and compares": {`{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"items":{"$ref":"#/$defs/n"},"enum":[` + list(10_000, `%d`) + `]}}}`, strings.Repeat(`[`, 100) + list(200_000, `1`) + strings.Repeat(`]`, 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := catalog.CompileSchema(jsontext.Value(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if r := reason.Of(s.Check(jsontext.Value(`{"v":` + tt.args + `}`))); r.Word != reason.InputInvalid || !strings.Contains(r.Message, "too large") {
				t.Errorf("Check() = %.300s, want input_invalid that says that it is too large", r.Message)
			}
		})
	}
}

// What is large in an ordinary way is checked as ever.
func TestLargeArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	wide := `{"type":"object","properties":{"v":{"type":["string","array","object"],"pattern":"^[^\\x00]*$","uniqueItems":false,` +
		`"items":{"type":["number","object"],"properties":{"kind":{"enum":[` + list(200, `"kind %d"`) + `]},"n":{"type":"integer","minimum":0}},"required":["kind"],"additionalProperties":false},` +
		`"additionalProperties":{"type":"string"}},` + list(100, `"p%d":{"type":"string","maxLength":10}`) + `},"additionalProperties":false}`
	s, err := catalog.CompileSchema(jsontext.Value(wide))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"a file":       `"` + strings.Repeat("line of a file, ", 60_000) + `"`,
		"a vector":     `[` + list(100_000, `0.%d`) + `]`,
		"many rows":    `[` + list(25_000, `{"kind":"kind 101","n":%d}`) + `]`,
		"many members": `{` + list(25_000, `"m%d":"text"`) + `}`,
	} {
		if err := s.Check(jsontext.Value(`{"v":` + args + `}`)); err != nil {
			t.Errorf("Check() of %s = %.300v, want nil", name, err)
		}
	}
}
