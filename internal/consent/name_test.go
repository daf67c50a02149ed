package consent_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/consent"
)

func TestNamesOfAppsHoldOnlyWhatIsSeen(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Claude":                            "Claude",
		"  Claude \n\t Code ":               "Claude Code",
		"<script>alert(1)</script>":         "<script>alert(1)</script>", // the page escapes it
		"Graft Console (verified)":          "Graft Console (verified)",
		"\u202egnp.exe\u2066":               "gnp.exe",
		"Cl\u200ba\u200du\ufeffde\u00ad":    "Claude",
		"a\x00b\x07c\x1b[31m":               "abc[31m",
		"tag\U000e0041\U000e0042":           "tag",
		"x\ufe0f\u034f":                     "x",
		"\u3164\u115f\u2800\u200b":          "An app without a name",
		"":                                  "An app without a name",
		"bad \xff bytes":                    "bad bytes",
		"e" + strings.Repeat("\u0301", 50):  "e\u0301\u0301\u0301",
		"日本語 アプリ":                           "日本語 アプリ",
		strings.Repeat("a", 10<<10):         strings.Repeat("a", 79) + "…",
		strings.Repeat("é", 80):             strings.Repeat("é", 80),
		strings.Repeat("a", 78) + " bcdefg": strings.Repeat("a", 78) + "…",
	} {
		if got := consent.AppName(in); got != want {
			t.Errorf("AppName(%.60q) = %q, want %q", in, got, want)
		}
	}
}

// agentName is what the store takes.
var agentName = regexp.MustCompile(`^[\pL\pN][\pL\pN ._-]{0,63}$`)

func TestNamesOfAppsBecomeNamesOfAgents(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Claude":                         "Claude",
		"Claude Code (laptop)":           "Claude Code laptop",
		"github.com/acme/tool":           "github.com acme tool",
		"-- Cursor_1.0":                  "Cursor_1.0",
		"<script>":                       "script",
		"\u202eevil":                     "evil",
		"":                               "App",
		"★☆":                             "App",
		"...":                            "App",
		"Cafe\u0301":                     "Cafe",
		"日本語":                            "日本語",
		strings.Repeat("b", 200):         strings.Repeat("b", 64),
		strings.Repeat("c", 63) + " dee": strings.Repeat("c", 63),
	} {
		got := consent.AgentName(in)
		if got != want || !agentName.MatchString(got) {
			t.Errorf("AgentName(%.60q) = %q, want %q, a name that the store takes", in, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("Claude")
	f.Add("\u202e\u0301\u3164<b>")
	f.Fuzz(func(t *testing.T, s string) {
		if got := consent.AgentName(s); !agentName.MatchString(got) {
			t.Errorf("AgentName(%q) = %q, want a name that the store takes", s, got)
		}
		if got := consent.AppName(s); got == "" || utf8.RuneCountInString(got) > 80 {
			t.Errorf("AppName(%q) = %q, want 1 to 80 characters", s, got)
		}
	})
}
