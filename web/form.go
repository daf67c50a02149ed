package web

import "strings"

// Field is one answer of a form: what was typed, and what is wrong with it in a
// sentence that says how to put it right. A secret's Value is never filled in.
type Field struct {
	Value string
	Error string
}

// input is how one field is drawn.
type input struct {
	ID           string // of the control; its name too
	Label        string
	Type         string // "text", "email", "password"
	Field        Field
	Help         string
	Autocomplete string
	MinLength    int // 0: none
	Required     bool
	ReadOnly     bool
	Focus        bool   // where typing starts
	List         string // the id of a datalist to choose from
	Code         bool   // what a machine reads: mono, no spelling
}

// tick is a box to tick, with one sentence that says what it means.
type tick struct {
	ID    string // of the control; its name too
	Label string
	Help  string
	On    bool
}

// describedBy names the sentences under the control that there are.
func (in input) describedBy() string {
	var ids []string
	if in.Field.Error != "" {
		ids = append(ids, in.ID+"-error")
	}
	if in.Help != "" {
		ids = append(ids, in.ID+"-help")
	}
	return strings.Join(ids, " ")
}
