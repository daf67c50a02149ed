package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// A verbose source has tools whose results are what a test says, by name.
type verbose map[string]catalog.Output

func (v verbose) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for name := range v {
		list = append(list, catalog.Tool{Vendor: "long", Name: name, Title: name, Description: "Says much.", ReadOnly: true, InputSchema: jsontext.Value(`{"type":"object"}`)})
	}
	return list, nil
}

func (v verbose) Run(_ context.Context, r catalog.Run) (catalog.Output, error) {
	return v[r.Tool.Name], nil
}

// A short is what stands in the place of a value that is too long.
type short struct {
	Truncated bool
	Head      string
	ResultRef string
}

func cutShort(t *testing.T, text string) short {
	t.Helper()
	if n := utf8.RuneCountInString(text); n > 64_000 {
		t.Errorf("%d characters were answered, want at most 64000", n)
	}
	var s short
	if err := json.Unmarshal([]byte(text), &s); err != nil || !s.Truncated || s.ResultRef == "" {
		t.Fatalf("answered %.200s (%v), want a head and a resultRef", text, err)
	}
	return s
}

// whole reads a stored result to its end, in turns on both replicas.
func (c *client) whole(ref string) string {
	c.t.Helper()
	var b strings.Builder
	for offset := 0; ; {
		var w struct {
			Text              string
			NextOffset, Total int
		}
		got := c.call("read_result", fmt.Sprintf(`{"ref":%q,"offset":%d}`, ref, offset))
		if err := json.Unmarshal(got.Structured, &w); err != nil || got.IsError {
			c.t.Fatalf("read_result at %d = %s", offset, got.text())
		}
		b.WriteString(w.Text)
		if w.NextOffset == 0 {
			if n := utf8.RuneCountInString(b.String()); n != w.Total {
				c.t.Errorf("%d characters were read, want %d", n, w.Total)
			}
			return b.String()
		}
		offset = w.NextOffset
	}
}

func TestLongResultsAreCutAndCanBeReadWhole(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("aé🌱\n\"", 30_000) // 150,000 characters of one to four bytes, some of them escaped
	quoted, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	structured := `{"text":` + string(quoted) + `}`
	huge := `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", 5<<20) + `"}],"isError":true}`
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{verbose{
		"value": {Value: jsontext.Value(`[` + string(quoted) + `,9007199254740993]`)},
		"raw":   {Raw: jsontext.Value(`{"content":[{"type":"text","text":"brief"},{"type":"text","text":` + string(quoted) + `,"annotations":{"priority":1}}],"structuredContent":` + structured + `,"_meta":{"x":1}}`)},
		"huge":  {Raw: jsontext.Value(huge)},
	}}})
	c := connect(t, k, "2025-11-25")

	value := cutShort(t, c.call("long__value", `{}`).text())
	if got, want := c.whole(value.ResultRef), `[`+string(quoted)+`,9007199254740993]`; got != want || !strings.HasPrefix(want, value.Head) {
		t.Errorf("a value was read as %d bytes, want %d, with its head", len(got), len(want))
	}

	var raw struct {
		Content []struct {
			Text        string
			Annotations json.RawMessage
		}
		Structured json.RawMessage `json:"structuredContent"`
		Meta       json.RawMessage `json:"_meta"`
	}
	var m struct{ Result json.RawMessage }
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long__raw"}}`)
	if err := json.Unmarshal(a.payload(), &m); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(m.Result, &raw); err != nil || len(raw.Content) != 2 {
		t.Fatalf("raw = %.200s, %v", m.Result, err)
	}
	if raw.Content[0].Text != "brief" || string(raw.Content[1].Annotations) != `{"priority":1}` || string(raw.Structured) != structured || string(raw.Meta) != `{"x":1}` {
		t.Errorf("what is beside the long text changed: %s %.100s %s", raw.Content[1].Annotations, raw.Structured, raw.Meta)
	}
	block := cutShort(t, raw.Content[1].Text)
	if got := c.whole(block.ResultRef); got != string(quoted) {
		t.Errorf("a text block was read as %d bytes, want %d", len(got), len(quoted))
	}

	big := c.call("long__huge", `{}`)
	end := c.call("read_result", fmt.Sprintf(`{"ref":%q,"offset":%d}`, cutShort(t, big.text()).ResultRef, len(huge)-20))
	if want := fmt.Sprintf(`,"text":%q,"total":%d}`, huge[len(huge)-20:], len(huge)); !big.IsError || !strings.HasSuffix(end.text(), want) {
		t.Errorf("the end of a result beyond 4 MiB = %s, error %v, want %s and still an error", end.text(), big.IsError, want)
	}

	stranger := connect(t, k, "2025-11-25")
	for _, ref := range []string{value.ResultRef, "res_06h2xte0psved3n53vvg3vnnf0", "x"} {
		if got := stranger.call("read_result", `{"ref":"`+ref+`"}`); !strings.Contains(got.text(), `"reason":"result_not_found"`) {
			t.Errorf("another agent's read_result = %s", got.text())
		}
	}
	if got := c.call("read_result", `{"ref":"`+value.ResultRef+`","offset":1000000}`); !strings.Contains(got.text(), "input_invalid") {
		t.Errorf("read_result beyond the end = %s", got.text())
	}
}
