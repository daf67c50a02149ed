package web_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func render(t *testing.T, c templ.Component) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(source(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// renderFragment parses as a template element does, which takes a tbody too.
func renderFragment(t *testing.T, c templ.Component) []*html.Node {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(source(t, c)), &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(nodes, func(n *html.Node) bool { return n.Type == html.TextNode && strings.TrimSpace(n.Data) == "" })
}

func source(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// elements is n and every element below it.
func elements(n *html.Node) []*html.Node {
	var all []*html.Node
	if n.Type == html.ElementNode {
		all = append(all, n)
	}
	for d := range n.Descendants() {
		if d.Type == html.ElementNode {
			all = append(all, d)
		}
	}
	return all
}

func find(n *html.Node, tag string) []*html.Node {
	return slices.DeleteFunc(elements(n), func(e *html.Node) bool { return e.Data != tag })
}

func one(t *testing.T, p sample, doc *html.Node, tag string) *html.Node {
	t.Helper()
	all := find(doc, tag)
	if len(all) != 1 {
		t.Fatalf("%s: %d <%s>, want 1", p.name, len(all), tag)
	}
	return all[0]
}

func byID(n *html.Node, id string) *html.Node {
	for _, e := range elements(n) {
		if attr(e, "id") == id {
			return e
		}
	}
	return nil
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func classes(n *html.Node) map[string]bool {
	set := map[string]bool{}
	for _, c := range strings.Fields(attr(n, "class")) {
		set[c] = true
	}
	return set
}

// text is the words in n, each run of space as one.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
