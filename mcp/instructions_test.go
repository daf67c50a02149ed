package mcp

import (
	"regexp"
	"strings"
	"testing"
)

// all is everything that sentences speak of.
func all() map[string]bool {
	served := map[string]bool{}
	for _, topic := range topics {
		for _, s := range topic {
			for _, n := range s.needs {
				served[n] = true
			}
		}
	}
	return served
}

func TestInstructionsFitTheirBudget(t *testing.T) {
	t.Parallel()
	whole := instructions(all())
	if n := len(whole); n > 1500 {
		t.Errorf("the five topics take %d characters, want at most 1500 of the %d", n, maxInstructions)
	}
	order, _, _ := strings.Cut(whole, "\n\n")
	for _, tool := range []string{"find_tool", "promote", "request_connection", "acquire", "acquire_status"} {
		if i := strings.Index(order, tool); i < 0 || i+len(tool) > 512 {
			t.Errorf("%s stands at %d of the order of work, want it inside the first 512 characters", tool, i)
		}
	}
	if n := strings.Count(whole, "\n\n") + 1; n != 5 {
		t.Errorf("%d topics, want 5", n)
	}
}

var toolWord = regexp.MustCompile(`\b(find_tool|promote|demote|run_tool|run_status|read_result|request_connection|request_credential|acquire|acquire_status|acquire_cancel)\b`)

// A sentence that names a tool is tied to it, so that nothing is recommended that is not there.
func TestSentencesAreTiedToTheToolsTheyName(t *testing.T) {
	t.Parallel()
	for _, topic := range topics {
		for _, s := range topic {
			needs := map[string]bool{}
			for _, n := range s.needs {
				needs[n] = true
			}
			for _, named := range toolWord.FindAllString(s.text, -1) {
				if !needs[named] && !(named == "acquire" && needs["acquire_status"]) {
					t.Errorf("%q names %s and does not need it", s.text, named)
				}
			}
		}
	}
}

func TestInstructionsLeaveOutWhatIsNotServed(t *testing.T) {
	t.Parallel()
	served := map[string]bool{}
	for _, tool := range metaTools() {
		served[tool.Name] = true
	}
	now := instructions(served)
	for _, named := range toolWord.FindAllString(now, -1) {
		if !served[named] {
			t.Errorf("the instructions name %s, which is not served:\n%s", named, now)
		}
	}
	for _, word := range []string{"awaiting_", "approval", "author", "Handoffs"} {
		if strings.Contains(now, word) {
			t.Errorf("the instructions speak of %q, which is not served:\n%s", word, now)
		}
	}
	for _, must := range []string{"find_tool", "run_tool", "never ask for an API key"} {
		if !strings.Contains(now, must) {
			t.Errorf("the instructions lack %q:\n%s", must, now)
		}
	}
	if instructions(nil) == "" {
		t.Error("the rule about secrets is left out where nothing is served")
	}
}
