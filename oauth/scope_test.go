package oauth

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGrantScope(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"":                               "mcp",
		"mcp":                            "mcp",
		"mcp offline_access":             "mcp offline_access",
		"offline_access mcp":             "mcp offline_access",
		"mcp mcp":                        "mcp",
		"offline_access":                 "mcp offline_access",
		"claudeai":                       "mcp",
		"openid profile offline_access":  "mcp offline_access",
		"MCP":                            "mcp",
		"https://a.example/scope:x !#[]": "mcp",
	} {
		if got, ok := grantScope(asked); !ok || got != want {
			t.Errorf("grantScope(%q) = %q, %v, want %q", asked, got, ok, want)
		}
	}
	for _, asked := range []string{" ", " mcp", "mcp ", "mcp  offline_access", "mcp\tx", "mcp\n", `"mcp"`, `mcp\`, "m\u00e4p", "\x00", "mcp\x7f", "\xff", "mcp,offline_access\n"} {
		if got, ok := grantScope(asked); ok || got != "" {
			t.Errorf("grantScope(%q) = %q, %v, want it refused", asked, got, ok)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		granted, asked string
		want           bool
	}{
		{"mcp", "", true},
		{"mcp", "mcp", true},
		{"mcp", "mcp mcp", true},
		{"mcp offline_access", "offline_access", true},
		{"mcp offline_access", "offline_access mcp", true},
		{"mcp", "mcp offline_access", false},
		{"mcp", "openid", false},
		{"mcp offline_access", "mc", false},
		{"mcp", "mcp ", false},
		{"mcp", "\x00", false},
		{"", "mcp", false},
	} {
		if got := within(tt.granted, tt.asked); got != tt.want {
			t.Errorf("within(%q, %q) = %v, want %v", tt.granted, tt.asked, got, tt.want)
		}
	}
}

// holdScope holds that what is granted is a scope of ours with mcp in it, that lies within what was asked for or is mcp.
func holdScope(t interface{ Fatalf(string, ...any) }, asked string) {
	granted, ok := grantScope(asked)
	if !ok {
		if within("mcp offline_access", asked) {
			t.Fatalf("%q is no scope, and within one", asked)
		}
		return
	}
	tokens := strings.Split(granted, " ")
	if tokens[0] != scopeMCP || !within(strings.Join(supportedScopes, " "), granted) || !within("mcp "+asked, granted) && asked != "" {
		t.Fatalf("grantScope(%q) = %q", asked, granted)
	}
	if again, ok := grantScope(granted); !ok || again != granted {
		t.Fatalf("grantScope(%q) = %q, want the same", granted, again)
	}
	for _, s := range supportedScopes {
		if slices.Contains(strings.Split(asked, " "), s) && !slices.Contains(tokens, s) {
			t.Fatalf("grantScope(%q) = %q, without %s", asked, granted, s)
		}
	}
}

func TestWhatIsGrantedIsOurs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"mcp", "offline_access", "openid", "mcp:tools", "", "\"", "MCP"}), 0, 6).Draw(t, "tokens")
		holdScope(t, strings.Join(tokens, " "))
	})
}

func FuzzScope(f *testing.F) {
	for _, s := range []string{"", "mcp", "mcp offline_access", "openid  x", "\"", "mcp\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, asked string) { holdScope(t, asked) })
}
