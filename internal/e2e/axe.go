package e2e

import (
	"fmt"
	"os"
	"strings"

	"github.com/chromedp/chromedp"
)

// Violation is one accessibility rule that a page breaks.
type Violation struct {
	Rule   string   `json:"id"`
	Help   string   `json:"help"`
	Impact string   `json:"impact"` // minor, moderate, serious or critical
	Nodes  []string `json:"nodes"`  // the elements at fault, as HTML
}

// Axe fails the test for every accessibility rule that the page now shown breaks.
func (p *Page) Axe() {
	p.t.Helper()
	for _, v := range p.Violations() {
		p.t.Errorf("axe: %s", v)
	}
}

// Violations runs axe-core over the page now shown and returns what it found. axe-core waits for timers, so scripts are
// allowed while it runs; those of a page loaded without them do not start late.
func (p *Page) Violations() []Violation {
	p.t.Helper()
	axe, err := os.ReadFile(Module(p.t, "axe-core/axe.min.js"))
	if err != nil {
		p.t.Fatalf("read axe-core: %v", err)
	}
	p.Do(scripts(true), chromedp.Evaluate[chromedp.Void](string(axe)))
	defer p.Do(scripts(!p.view.NoScript))
	return Read(p, chromedp.Evaluate[[]Violation](`axe.run({resultTypes: ["violations"]}).then(result => result.violations.map(v =>
		({id: v.id, help: v.help, impact: v.impact, nodes: v.nodes.map(n => n.html)})))`, chromedp.EvalAwaitPromise))
}

// String says the rule and the elements, one a line.
func (v Violation) String() string {
	return fmt.Sprintf("%s (%s): %s\n\t%s", v.Rule, v.Impact, v.Help, strings.Join(v.Nodes, "\n\t"))
}
