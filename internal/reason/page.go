package reason

import (
	"fmt"
	"strings"
)

// Page renders the table as the Markdown page docs/reasons.md.
func Page() string {
	var b strings.Builder
	b.WriteString("# Reasons\n\n<!-- Generated from internal/reason by go generate. -->\n\n")
	b.WriteString("Every refusal carries one of these words as `reason`, beside `error` and a `message` for people. ")
	b.WriteString("The status is used where the refusal is the whole HTTP answer; a refusal inside a tool result travels in a 200.\n\n")
	b.WriteString("| reason | status | when | what to do |\n|---|---|---|---|\n")
	for _, e := range Table {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", e.Word, e.Status, e.When, e.Next)
	}
	return b.String()
}
