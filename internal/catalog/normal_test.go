package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/catalog"
)

func TestFieldC03OneBadSchemaDoesNotKillTheCatalogue(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ in, want string }{
		"a choice of objects": {
			`{"anyOf":[{"type":"object"},{"type":"object"}]}`,
			`{"properties":{},"type":"object"}`,
		},
		"no type":        {`{"properties":{"b":{},"a":{}}}`, `{"type":"object","properties":{"b":{},"a":{}}}`},
		"no properties":  {`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		"references":     {`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, ``},
		"a named root":   {`{"$ref":"#/$defs/In","$defs":{"In":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, `{"$defs":{"In":{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}},"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		"draft-07":       {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"string","format":"uri"}}}`, ``},
		"object or null": {`{"type":["object","null"],"properties":{"a":{}}}`, `{"properties":{"a":{}},"type":"object"}`},
		"true":           {`true`, `{"type":"object","properties":{}}`},
		"missing":        {``, `{"type":"object","properties":{}}`},
		"null":           {`null`, `{"type":"object","properties":{}}`},
		"nothing":        {` { } `, `{"type":"object","properties":{}}`},
		"conditions in a list": {
			`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"if":{"required":["a"]},"then":{"required":["b"]}},{"properties":{"b":{"type":"integer"}},"required":["c"]}]}`,
			`{"if":{"required":["a"]},"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["c"],"then":{"required":["b"]},"type":"object"}`,
		},
		"one of two closed": {
			`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"string"}},"required":["k","x"],"additionalProperties":false},` +
				`{"type":"object","properties":{"k":{"const":"b"}},"required":["k"],"additionalProperties":false},{"type":"string"}]}`,
			`{"additionalProperties":false,"properties":{"k":{"anyOf":[{"const":"a"},{"const":"b"}]},"x":{"type":"string"}},"required":["k"],"type":"object"}`,
		},
		"one of two open": {
			`{"type":"object","anyOf":[{"properties":{"x":{"type":"string"}}},{"required":["y"]}]}`,
			`{"properties":{"x":{"anyOf":[{"type":"string"},{}]}},"type":"object"}`,
		},
		"properties of PHP": {`{"type":"object","properties":[]}`, `{"properties":{},"type":"object"}`},
		"tuples of old": {
			`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false,"description":"<a>"}}}`,
			`{"properties":{"a":{"description":"<a>","items":false,"prefixItems":[{"type":"string"}],"type":"array"}},"type":"object"}`,
		},
		"bounds of old":  {`{"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`, `{"properties":{"a":{"exclusiveMinimum":0}},"type":"object"}`},
		"a cycle":        {`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}`, ``},
		"a great number": {`{"type":"object","properties":{"a":{"maximum":18446744073709551615}}}`, ``},
	} {
		want := x.want
		if want == "" {
			want = x.in
		}
		got, err := catalog.NormalizeInput(jsontext.Value(x.in))
		if err != nil || string(got) != want {
			t.Errorf("%s: NormalizeInput() =\n%s, %v, want\n%s", name, got, err, want)
			continue
		}
		if out := catalog.NormalizeOutput(jsontext.Value(x.in)); string(out) != want && name != "missing" && name != "null" {
			t.Errorf("%s: NormalizeOutput() = %s, want as the input", name, out)
		}
		mustBeListable(t, got)
	}
}

// mustBeListable holds a schema to what clients are known to want, and to the meta-schema of 2020-12.
func mustBeListable(t *testing.T, schema jsontext.Value) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil || root["type"] != "object" || root["properties"] == nil {
		t.Errorf("%s is no object schema with properties: %v", schema, err)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "$ref"} {
		if _, has := root[k]; has {
			t.Errorf("%s has %s at its root", schema, k)
		}
	}
	meta, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.Validate(doc); err != nil {
		t.Errorf("%s: %v", schema, err)
	}
	if _, err := catalog.CompileSchema(schema); err != nil {
		t.Errorf("CompileSchema(%s) = %v", schema, err)
	}
	if again, err := catalog.NormalizeInput(schema); err != nil || string(again) != string(schema) {
		t.Errorf("NormalizeInput of what it made = %s, %v, want %s", again, err, schema)
	}
}

func TestASchemaThatCannotBeListedSaysWhy(t *testing.T) {
	t.Parallel()
	var wide, laughs strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&wide, `"p%d":{},`, i)
	}
	for i := range 60 {
		fmt.Fprintf(&laughs, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for says, in := range map[string]string{
		`neither an object nor true`: `"x"`,
		`no object fits it`:          `{"type":"string"}`,
		`fits it, and`:               `{"anyOf":[{"type":"string"},false]}`,
		`neither an object`:          `false`,
		`no JSON`:                    `{"type":"object"`,
		`a name twice`:               `{"type":"object","type":"object"}`,
		`at /properties/a/$ref it refers to "http://169.254.169.254/s.json", which is outside`: `{"properties":{"a":{"$ref":"http://169.254.169.254/s.json"}}}`,
		`"file:///etc/hosts", which is outside`:                                                `{"$ref":"file:///etc/hosts"}`,
		`"other.json", which is outside`:                                                       `{"type":"object","$defs":{"unused":{"$ref":"other.json"}}}`,
		`"#/$defs/missing", which is not in it`:                                                `{"type":"object","properties":{"a":{"$ref":"#/$defs/missing"}}}`,
		`does not compile`:                                                                     `{"type":"object","$id":"https://a.example/s","properties":{"a":{"$ref":"http://169.254.169.254/s.json"}}}`,
		`at /properties/a/type it is no JSON Schema`:                                           `{"type":"object","properties":{"a":{"type":"strng"}}}`,
		`nests more than 64`:                                                                   strings.Repeat(`{"properties":{"a":`, 40) + `{}` + strings.Repeat(`}}`, 40),
		`256`:                                                                                  `{"description":"` + strings.Repeat("x", 300<<10) + `"}`,
		`5000`:                                                                                 `{"properties":{` + wide.String() + `"p":{}}}`,
		`number has more than`:                                                                 `{"properties":{"a":{"multipleOf":1e-1000000}}}`,
		`more than 10000 schemas`:                                                              `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + laughs.String() + `"d60":{}}}`,
		`without end`:                                                                          `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`,
		`at /properties/a x-mcp-header is not the name of a header`:         `{"properties":{"a":{"type":"string","x-mcp-header":"not a token"}}}`,
		`/properties/7 x-mcp-header is not the name`:                        `{"properties":{"7":{"type":"string","x-mcp-header":7}}}`,
		`/properties/e x-mcp-header is not the name`:                        `{"properties":{"e":{"type":"string","x-mcp-header":""}}}`,
		`at /properties/a and /properties/b x-mcp-header has one name`:      `{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"string","x-mcp-header":"same"}}}`,
		`at /properties/o x-mcp-header is on something other than a string`: `{"properties":{"o":{"type":"object","x-mcp-header":"Whole"}}}`,
		`at /properties/n x-mcp-header is on something`:                     `{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}`,
		`at /properties/u x-mcp-header is on something`:                     `{"properties":{"u":{"x-mcp-header":"U"}}}`,
	} {
		began := time.Now()
		got, err := catalog.NormalizeInput(jsontext.Value(in))
		if err == nil || !strings.HasPrefix(err.Error(), "the input schema cannot be used: ") || !strings.Contains(err.Error(), says) || len(err.Error()) > 600 {
			t.Errorf("NormalizeInput(%.80s) = %.80s, %v, want an error that says %q", in, got, err, says)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("NormalizeInput(%.80s) took %v", in, took)
		}
		if out := catalog.NormalizeOutput(jsontext.Value(in)); out != nil {
			t.Errorf("NormalizeOutput(%.80s) = %.80s, want nothing", in, out)
		}
	}
	if out := catalog.NormalizeOutput(nil); out != nil {
		t.Errorf("NormalizeOutput() = %s, want nothing", out)
	}
	if _, err := catalog.NormalizeInput(jsontext.Value(`{"properties":{"a":{"type":["string","integer"],"x-mcp-header":"X-A"},"x-mcp-header":{"type":"object"}}}`)); err != nil {
		t.Errorf("a proper x-mcp-header is refused: %v", err)
	}
}

// schemas draws schemas of objects, most with choices at their root, and some with what Go cannot check.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
			return rapid.SampledFrom([]any{
				true,
				map[string]any{},
				map[string]any{"type": "string"},
				map[string]any{"type": "integer"},
				map[string]any{"const": "x"},
				map[string]any{"pattern": "^(?!x)"},
				map[string]any{"format": "email"},
				map[string]any{"$ref": "#/$defs/d"},
				map[string]any{"type": "object"},
				map[string]any{"type": []any{"object", "null"}},
				map[string]any{"patternProperties": map[string]any{"^(?=a)": map[string]any{"type": "string"}}, "additionalProperties": false},
			}).Draw(t, "leaf")
		}
		s := map[string]any{}
		sub := schemas(depth - 1)
		for _, k := range []string{"properties", "patternProperties", "dependentSchemas"} {
			if rapid.IntRange(0, 3).Draw(t, k) == 0 {
				s[k] = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), sub, 0, 2).Draw(t, k)
			}
		}
		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			if rapid.IntRange(0, 3).Draw(t, k) == 0 {
				s[k] = rapid.SliceOfN(sub, 1, 3).Draw(t, k)
			}
		}
		for _, k := range []string{"if", "then", "else", "not", "additionalProperties", "unevaluatedProperties"} {
			if rapid.IntRange(0, 7).Draw(t, k) == 0 {
				s[k] = sub.Draw(t, k)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "closed") == 0 {
			s["additionalProperties"] = false
		}
		if rapid.Bool().Draw(t, "required") {
			s["required"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"a", "b", "c"}), 0, 2, rapid.ID[any]).Draw(t, "required")
		}
		return s
	})
}

// Formats and look-aheads as most servers check them.
func original(t *rapid.T, doc any) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(p string) (jsonschema.Regexp, error) { return lookahead(p), nil })
	if err := c.AddResource("test:original", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test:original")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type lookahead string

func (p lookahead) String() string { return string(p) }

func (p lookahead) MatchString(s string) bool {
	switch p {
	case "^(?!x)":
		return !strings.HasPrefix(s, "x")
	case "^(?=a)":
		return strings.HasPrefix(s, "a")
	}
	return strings.Contains(s, string(p))
}

func TestNoSchemaRefusesWhatItsOriginalAccepts(t *testing.T) {
	t.Parallel()
	values := rapid.SampledFrom([]any{"x", "y", "a@b.example", json.Number("1"), nil, map[string]any{}, map[string]any{"a": "x"}, map[string]any{"b": json.Number("2")}})
	rapid.Check(t, func(t *rapid.T) {
		doc, ok := schemas(3).Draw(t, "schema").(map[string]any)
		if !ok {
			return
		}
		doc["$defs"] = map[string]any{"d": rapid.SampledFrom([]any{map[string]any{"type": "string"}, map[string]any{"required": []any{"a"}}}).Draw(t, "d")}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		args := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "ax"}), values, 0, 4).Draw(t, "args")
		sent, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		accepts := original(t, doc).Validate(args) == nil
		made, err := catalog.NormalizeInput(raw)
		if err != nil {
			if accepts {
				t.Fatalf("%s accepts %s and is left out: %v", raw, sent, err)
			}
			return
		}
		s, err := catalog.CompileSchema(made)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(sent); accepts && err != nil {
			t.Fatalf("%s accepts %s, and what became of it does not: %s: %v", raw, sent, made, err)
		}
	})
}

func FuzzNormalizeInput(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","pattern":"(?!x)"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://a.example/","anyOf":[{"$ref":"#"},{"items":[{}],"additionalItems":false}]}`,
		`{"$id":"a","$anchor":"b","$dynamicRef":"#b","oneOf":[{"$id":"c","format":"uri"}],"unevaluatedProperties":false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		schema, err := catalog.NormalizeInput(raw)
		if err != nil {
			return
		}
		s, err := catalog.CompileSchema(schema)
		if err != nil {
			t.Fatalf("%s was made of %s and does not compile: %v", schema, raw, err)
		}
		_ = s.Check(jsontext.Value(`{"a":"x"}`))
	})
}
