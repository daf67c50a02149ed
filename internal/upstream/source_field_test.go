package upstream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
	"github.com/getgraft/graft/internal/vault"
)

// called answers with the name that the server was called by.
func called(name string) upstreamtest.Tool {
	quoted, _ := json.Marshal(name)
	return upstreamtest.Tool{
		Name: name, Listed: fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, quoted),
		Run: func(*upstreamtest.Call) string { return upstreamtest.Text(name) },
	}
}

// C01: three pages, and the last tool can be called.
func TestFieldC01EveryPageIsKept(t *testing.T) {
	t.Parallel()
	var tools []upstreamtest.Tool
	for i := range 105 {
		tools = append(tools, called(fmt.Sprintf("tool-%03d", i)))
	}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools, Page: 50})
	r := one(t)
	if u := r.add("demo", srv.URL); u.Tools != 105 {
		t.Errorf("tools = %d, want 105", u.Tools)
	}
	if got, want := r.must(r.agent(), "demo__tool-104", `{}`), upstreamtest.Text("tool-104"); got != want {
		t.Errorf("the last tool = %s, want %s", got, want)
	}
}

// C02: names are mended, unique and stable, and each leads to its own tool under its own name.
func TestFieldC02NamesLeadToTheirOwnTools(t *testing.T) {
	t.Parallel()
	names := []string{"a.b/c", "_x", "1st", "get user", strings.Repeat("n", 128), "Search", "search", "sea\x07rch", "größe"}
	var tools []upstreamtest.Tool
	for _, name := range names {
		tools = append(tools, called(name))
	}
	r := one(t)
	for _, vendor := range []string{"first", "second"} {
		srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools})
		if u := r.add(vendor, srv.URL); u.Tools != len(names)-1 || u.LeftOut != 1 {
			t.Errorf("tools, left out = %d, %d, want %d and the one with a control character", u.Tools, u.LeftOut, len(names)-1)
		}
	}
	first := r.tools()
	if len(first) != 2*(len(names)-1) {
		t.Errorf("tools = %v, want %d", slices.Sorted(maps.Keys(first)), 2*(len(names)-1))
	}
	legal := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	a := r.agent()
	for wire, tool := range first {
		if !legal.MatchString(wire) {
			t.Errorf("wire name %q is not legal", wire)
		}
		if got, want := r.must(a, wire, `{}`), upstreamtest.Text(tool.Original); got != want {
			t.Errorf("%s = %s, want %s", wire, got, want)
		}
	}
}

// C03: odd schemas are mended, or cost their own tool alone.
func TestFieldC03OneBadSchemaCostsItsOwnTool(t *testing.T) {
	t.Parallel()
	var tools []upstreamtest.Tool
	for i, schemas := range []string{
		`"inputSchema":{"anyOf":[{"type":"object"},{"type":"object"}]}`,
		`"inputSchema":{"properties":{"a":{"type":"string"}}}`,
		`"inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}`,
		`"inputSchema":{"type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"integer"}}}`,
		`"inputSchema":{"type":["object","null"]}`,
		`"inputSchema":true`,
		`"description":"none"`,
		`"inputSchema":{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}],"if":{"required":["a"]},"then":{"required":["b"]}}`,
		`"inputSchema":{"type":"object"},"outputSchema":{"properties":{}}`,
		`"inputSchema":{"type":"object"}`,
		`"inputSchema":{"type":"array"}`,
		`"inputSchema":{"$ref":"https://example.com/schema.json"}`,
		`"inputSchema":7`,
	} {
		name := fmt.Sprintf("t%d", i+1)
		tools = append(tools, upstreamtest.Tool{Name: name, Listed: fmt.Sprintf(`{"name":%q,%s}`, name, schemas), Run: func(c *upstreamtest.Call) string {
			return upstreamtest.Text(string(c.Args))
		}})
	}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools})
	r := one(t)
	u := r.add("demo", srv.URL)
	got := r.tools()
	for n := 1; n <= 10; n++ {
		tool, ok := got[fmt.Sprintf("demo__t%d", n)]
		if !ok {
			t.Errorf("t%d is left out, want it mended", n)
			continue
		}
		for what, schema := range map[string][]byte{"input": tool.InputSchema, "output": tool.OutputSchema} {
			if what == "output" && schema == nil {
				continue
			}
			var root map[string]any
			if err := json.Unmarshal(schema, &root); err != nil || root["type"] != "object" || root["anyOf"] != nil || root["oneOf"] != nil || root["allOf"] != nil {
				t.Errorf("%s schema of t%d = %s, want an object that is no choice", what, n, schema)
			}
		}
	}
	if u.LeftOut != 3 || len(got) != 10 {
		t.Errorf("left out, tools = %d, %d, want 3, 10", u.LeftOut, len(got))
	}
	for _, row := range rows(t, r, u.ID) {
		if row.LeftOut != "" && !strings.HasSuffix(row.LeftOut, ".") {
			t.Errorf("%s is left out: %q, want a sentence", row.Original, row.LeftOut)
		}
	}
	r.must(r.agent(), "demo__t3", `{"a":1}`)
	r.must(r.agent(), "demo__t10", `{}`)
}

func rows(t testing.TB, r *replica, id store.UpstreamID) (list []store.UpstreamTool) {
	t.Helper()
	if err := r.house.db.As(t.Context(), r.owner, func(tx *store.Tx) (err error) {
		list, err = tx.UpstreamTools(t.Context(), id)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// C14: 2,000 tools, one of more than a MiB, and characters that Postgres refuses.
func TestFieldC14AHugeCatalogueIsKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1600)
	tools := make([]upstreamtest.Tool, 2000)
	for i := range tools {
		tools[i] = upstreamtest.Tool{Name: fmt.Sprintf("tool-%04d", i), Listed: fmt.Sprintf(`{"name":"tool-%04d","description":"%s","inputSchema":{"type":"object"}}`, i, long)}
	}
	tools[7] = upstreamtest.Tool{Name: "huge", Listed: fmt.Sprintf(`{"name":"huge","description":"%s","inputSchema":{"type":"object"}}`, strings.Repeat("x", 1<<20))}
	tools[8] = upstreamtest.Tool{Name: "odd", Listed: `{"name":"odd","title":"a\u0000b","description":"c\u0000d\u001b[31me\nf","inputSchema":{"type":"object","description":"g\u0000h"},"annotations":{"title":"i\u0000j"}}`}
	tools[9] = upstreamtest.Tool{Name: "nul", Listed: `{"name":"nul\u0000","inputSchema":{"type":"object"}}`}
	tools[10] = upstreamtest.Tool{Name: "tool-0000", Listed: `{"name":"tool-0000","description":"again","inputSchema":{"type":"object"}}`}
	tools[11] = upstreamtest.Tool{Name: "", Listed: `{"description":"no name"}`}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: tools, Page: 200})
	r := one(t)
	u := r.add("demo", srv.URL)
	if u.Tools != 1996 || u.LeftOut != 4 {
		t.Errorf("tools, left out = %d, %d, want 1996, 4", u.Tools, u.LeftOut)
	}
	why := map[string]string{}
	for _, row := range rows(t, r, u.ID) {
		if row.LeftOut != "" {
			why[row.Original] = row.LeftOut
		}
	}
	for name, want := range map[string]string{"huge": "at most 1048576 are taken", "nul": "character that cannot be kept", "tool-0000 (again, 11)": "listed twice", "": "no name"} {
		if !strings.Contains(why[name], want) {
			t.Errorf("%q is left out: %q, want %q", name, why[name], want)
		}
	}
	odd := r.tools()["demo__odd"]
	if odd.Description != "cd[31me\nf" || odd.Title != "ab" || !json.Valid(odd.InputSchema) || !json.Valid(odd.Annotations) {
		t.Errorf("odd = %q %q %s %s, want its texts without control characters", odd.Title, odd.Description, odd.InputSchema, odd.Annotations)
	}

	// More than are taken stop at the bound, with a word about it.
	many := make([]upstreamtest.Tool, upstream.MaxTools+10)
	for i := range many {
		many[i] = upstreamtest.Tool{Name: fmt.Sprint("t", i), Listed: fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i)}
	}
	endless := upstreamtest.Start(t, upstreamtest.Options{Tools: many, Page: 1000})
	if u = r.add("endless", endless.URL); u.Tools != upstream.MaxTools || !strings.Contains(u.LastError, "more than 5000 tools") {
		t.Errorf("tools = %d with %q, want the first 5,000 and a word about it", u.Tools, u.LastError)
	}
}

// A canary in a header and in a secret appears nowhere but on the wire to its upstream.
func TestAHeadersSecretAppearsNowhere(t *testing.T) {
	t.Parallel()
	const pasted, kept = "canary-pasted-51c7", "canary-kept-9e02"
	echo := upstreamtest.Tool{Name: "plain", Run: func(*upstreamtest.Call) string { return upstreamtest.Text("fine") }}
	srv := upstreamtest.Start(t, upstreamtest.Options{Tools: []upstreamtest.Tool{echo}})
	// This one says what it was sent in each of its errors.
	telltale := upstreamtest.Start(t, upstreamtest.Options{Bearer: "never"})
	h := newHouse(t)
	r := h.replica(upstream.Config{})
	if _, err := r.SetSecret(t.Context(), r.owner, "KEPT", vault.NewSecret([]byte(kept))); err != nil {
		t.Fatal(err)
	}
	headers := []upstream.Header{{Name: "Authorization", Value: "Bearer ${KEPT}"}, {Name: "X-Api-Key", Value: pasted}}
	u := r.add("demo", srv.URL, headers...)
	tell := r.tryAdd("telltale", telltale.URL, headers...)
	var said []string
	note := func(v any) { said = append(said, fmt.Sprintf("%v %+v %#v", v, v, v)) }
	note(u)
	note(tell)
	note(r.tools())
	a := r.agent()
	note(r.must(a, "demo__plain", `{}`))
	_, err := r.Add(t.Context(), r.owner, upstream.Addition{Name: "bad", URL: srv.URL, Headers: []upstream.Header{{Name: "X-Key", Value: pasted + "\x01"}}})
	assertRefused(t, "a header that cannot be sent", err, reason.InputInvalid)
	note(err)
	note(r.Refresh(t.Context(), r.owner, tell.ID))
	for _, want := range []string{pasted, kept} {
		if !strings.Contains(srv.Wire(), want) {
			t.Errorf("the upstream was not sent %s", want)
		}
		if strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%s was said:\n%s", want, said)
		}
		if strings.Contains(h.log.String(), want) {
			t.Errorf("%s was logged", want)
		}
		if at := storetest.Holders(t, storetest.URL(t), want); len(at) > 0 {
			t.Errorf("%s stands in %v", want, at)
		}
	}
}
