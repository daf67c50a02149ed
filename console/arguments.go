package console

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/web"
)

// argumentRows is how many arguments of a call stand one by one. The JSON below them has all.
const argumentRows = 40

// arguments is a call's arguments as a person reads them: each by its name, in the order they were sent, numbers to the
// last digit. What is no plain object has no rows, and its JSON alone is shown.
func arguments(raw jsontext.Value) (rows []web.Argument, pretty string) {
	laid := raw.Clone()
	if err := laid.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, string(raw)
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, string(laid)
	}
	for len(rows) < argumentRows {
		token, err := d.ReadToken()
		if err != nil || token.Kind() != '"' {
			break
		}
		name := token.String() // the token is good until the next read
		value, err := d.ReadValue()
		if err != nil {
			break
		}
		rows = append(rows, argument(name, value))
	}
	return rows, string(laid)
}

func argument(name string, value jsontext.Value) web.Argument {
	a := web.Argument{Name: name, Value: string(value), JSON: true}
	if value.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, value); err == nil {
			a.Value, a.JSON = string(text), false
		}
	}
	a.Value, a.Cut = web.CutArgument(a.Value)
	return a
}
