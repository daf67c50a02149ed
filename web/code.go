package web

import (
	"context"
	"html"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Token is a run of code in one colour.
type Token struct {
	Class string // k keyword, s string, n option, f name, c comment; "" none
	Text  string
}

// Code is a block to read and to copy.
type Code struct {
	Label  string // what it is, for those who hear the page: "Codex command"
	Tokens []Token
	Wrap   bool // break long words, for what is one line
}

// Text is what a copy takes.
func (c Code) Text() string {
	var b strings.Builder
	for _, t := range c.Tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}

// plain is a block of one line without colours.
func plain(label, text string) Code {
	return Code{Label: label, Tokens: []Token{{Text: text}}, Wrap: true}
}

// tokens writes code as it is, with no space that is not in it: in a pre every
// one would show.
func tokens(list []Token) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for _, t := range list {
			text := html.EscapeString(t.Text)
			if t.Class != "" {
				text = `<span class="` + html.EscapeString(t.Class) + `">` + text + `</span>`
			}
			b.WriteString(text)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// prose writes a sentence in which `backticks` are code.
func prose(sentence string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for i, part := range strings.Split(sentence, "`") {
			text := html.EscapeString(part)
			if i%2 == 1 {
				text = "<code>" + text + "</code>"
			}
			b.WriteString(text)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// breakable writes a tool's name with a place to break after its prefix.
func breakable(name string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.ReplaceAll(html.EscapeString(shown(name)), "__", "__<wbr>"))
		return err
	})
}
