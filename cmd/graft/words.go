package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// words are what a person at a terminal is told: a refusal without its word, a database that is not reached in one
// line, anything else as it is.
func words(err error) string {
	var r *reason.Refusal
	if errors.As(err, &r) && r.Word != reason.Unavailable {
		return r.Message
	}
	if line, ok := store.Unreached(err); ok {
		return line
	}
	var held *embedpg.HeldError
	if errors.As(err, &held) {
		return fmt.Sprintf("Graft already runs on %s%s. Stop it, or give this one another GRAFT_DATA_DIR.", held.Dir, process(held))
	}
	return err.Error()
}

// process names who holds a folder, where that is known.
func process(held *embedpg.HeldError) string {
	if held.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", held.PID)
}

// sentence begins s with a capital, unless it begins with what is no word (an address, a path, a variable), and ends
// it with a full stop.
func sentence(s string) string {
	first, _, _ := strings.Cut(s, " ")
	first = strings.TrimRight(first, ":,;")
	if strings.IndexFunc(first, func(r rune) bool { return !unicode.IsLower(r) }) < 0 && first != "" {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if s != "" && !strings.ContainsRune(".!?", rune(s[len(s)-1])) {
		s += "."
	}
	return s
}

// count is n with the word that goes with it.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
