package web

import (
	"fmt"
	"time"
)

// ago is how long before now t was, in words: "12 s ago", "5 h ago", "9 d ago",
// a date from 30 days on, "never" for the zero time. graft.js says the same words.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	case d < 30*day:
		return fmt.Sprintf("%d d ago", d/day)
	}
	return date(t, now)
}

const day = 24 * time.Hour

// date is the day of t, with its year where that is not this one.
func date(t, now time.Time) string {
	if t.UTC().Year() == now.UTC().Year() {
		return t.UTC().Format("2 Jan")
	}
	return t.UTC().Format("2 Jan 2006")
}

func full(t time.Time) string {
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

// left is how long from now t is, in words: "in 14 min"; "now" once it is over.
// graft.js says the same words.
func left(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("in %d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("in %d min", d/time.Minute)
	case d < day:
		return fmt.Sprintf("in %d h", d/time.Hour)
	}
	return fmt.Sprintf("in %d d", d/day)
}

// exact is t to the millisecond, for what is compared with a log.
func exact(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05.000 UTC") }
