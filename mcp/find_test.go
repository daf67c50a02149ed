package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// kites is a source of tools that are all found by one word.
type kites struct{ catalog.Builtins }

func (kites) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	var list []catalog.Tool
	for i := range 23 {
		list = append(list, catalog.Tool{Vendor: "kites", Name: fmt.Sprintf("fly_%02d", i), Description: "Flies a kite.", InputSchema: []byte(`{"type":"object"}`)})
	}
	return list, nil
}

func TestFindToolIsPagedToItsEnd(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{kites{}}})
	c := connect(t, k, "2025-11-25")
	type answer struct {
		Tools  []struct{ Name string }
		More   int
		Cursor string
	}
	var got, want []string
	for i := range 23 {
		want = append(want, fmt.Sprintf("fly_%02d", i))
	}
	var page answer
	first := ""
	for args := `{"query":"fly kites","limit":10}`; ; args = `{"query":"fly kites","limit":10,"cursor":"` + page.Cursor + `"}` {
		page = answer{}
		structured(t, c.call("find_tool", args), &page)
		for _, tool := range page.Tools {
			got = append(got, tool.Name)
		}
		if page.More != 23-len(got) || (page.More > 0) != (page.Cursor != "") || len(page.Tools) == 0 {
			t.Fatalf("after %d tools: %+v", len(got), page)
		}
		if page.More == 0 {
			break
		}
		if first == "" {
			first = page.Cursor
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all pages (-want +got):\n%s", diff)
	}
	for what, args := range map[string]string{
		"another query": `{"query":"kites fly","cursor":"` + first + `"}`,
		"a changed one": `{"query":"fly kites","cursor":"x` + first[1:] + `"}`,
		"no cursor":     `{"query":"fly kites","cursor":"10"}`,
	} {
		if a := c.call("find_tool", args); !a.IsError || !strings.Contains(a.text(), "cursor is not one that find_tool gave for this query") {
			t.Errorf("cursor of %s = %s, want it refused", what, a.text())
		}
	}
	if a := connect(t, k, "2025-11-25").call("find_tool", `{"query":"fly kites","cursor":"`+first+`"}`); !a.IsError {
		t.Errorf("cursor of another agent = %s, want it refused", a.text())
	}
}
