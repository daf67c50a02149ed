package web

import (
	"strings"
	"unicode/utf8"
)

// Shell is the frame of a page for somebody who is signed in.
type Shell struct {
	Org   string     // the organisation's name
	User  string     // who is signed in, by e-mail; "" draws no shell
	Theme string     // "light" or "dark"; "" follows the system
	Flash string     // one sentence about what was just done, shown once
	Nav   []NavGroup // only what is served
	Foot  []NavItem  // what stands below, beside who is signed in
}

// NavGroup is a few entries of the side list under one label.
type NavGroup struct {
	Label string // "" draws none
	Items []NavItem
}

// NavItem is one entry of the side list.
type NavItem struct {
	Label   string
	URL     string
	Icon    string // a name in icons
	Current bool   // this page, or one below it
	Waiting int    // what waits for the person behind it
}

// waiting is the entry behind which something waits, for the bar that a phone
// shows instead of the list.
func (s Shell) waiting() NavItem {
	for _, group := range s.Nav {
		for _, item := range group.Items {
			if item.Waiting > 0 {
				return item
			}
		}
	}
	return NavItem{}
}

// Focus is the frame of a page with one question, for anybody.
type Focus struct {
	Host  string // where this is: graft.example.org
	User  string // who is signed in, by e-mail; "" says nothing of it
	Theme string // as in Shell
	Flash string // as in Shell
	Back  string // the page to come back to as somebody else; "" offers no such way

	onward string // where the page goes on to by itself
}

// theme lets through the two themes there are.
func theme(s string) string {
	if s == "light" || s == "dark" {
		return s
	}
	return ""
}

// initial is the letter on a person's tile.
func initial(name string) string {
	_, size := utf8.DecodeRuneInString(name)
	return strings.ToUpper(name[:size])
}
