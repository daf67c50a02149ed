package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json (go doc cmd/test2json).
type event struct {
	Action  string // start, run, output, pass, fail, skip, build-output, …
	Package string
	Test    string // empty: the package's own
	Output  string
	Elapsed float64 // seconds, at the end of a test or package
}

// report is what is known of a run so far.
type report struct {
	out      io.Writer
	packages map[string]*packageRun
}

type packageRun struct {
	tests  map[string]*testRun
	output []string // the package's own lines
	line   string   // its closing line, as go test prints it: ok, FAIL or [no test files]
	failed bool
}

type testRun struct {
	name    string
	order   int
	output  []string
	end     string // pass, fail, skip; empty while it runs or if it never ended
	seconds float64
	parent  bool // it has subtests
}

// fuzzTarget is a fuzz test whose seeds passed.
type fuzzTarget struct{ pkg, name string }

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageRun{}}
}

// read takes in events until the stream ends.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			r.printf("%s\n", lines.Bytes()) // go test prints some complaints as they are
			continue
		}
		r.take(e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read go test: %w", err)
	}
	return nil
}

func (r *report) take(e event) {
	switch {
	case e.Action == "build-output":
		r.printf("%s", e.Output)
	case e.Package == "":
	case e.Test == "":
		r.takePackage(e)
	default:
		r.packageRun(e.Package).take(e)
	}
}

func (r *report) takePackage(e event) {
	p := r.packageRun(e.Package)
	switch e.Action {
	case "output":
		if isClosing(e.Output) {
			p.line = strings.TrimSuffix(e.Output, "\n")
		} else {
			p.output = append(p.output, e.Output)
		}
	case "pass", "fail", "skip": // skip: no test files
		p.failed = e.Action == "fail"
		r.showEnd(e.Package, p, e.Elapsed)
	}
}

// isClosing tells go test's last line about a package from its other output.
func isClosing(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}

// showEnd prints why a package failed, or that it is done.
func (r *report) showEnd(name string, p *packageRun, seconds float64) {
	for _, t := range p.inOrder() {
		if t.end == "fail" || t.end == "skip" || p.failed && t.end == "" {
			r.printf("%s", strings.Join(t.output, ""))
		}
		if t.end == "skip" {
			r.printf("    %s: a skipped test proves nothing, so the run fails\n", t.name)
			p.failed = true
		}
	}
	if !p.failed {
		r.printf("done  %7.1fs  %s\n", seconds, name)
		return
	}
	r.printf("%s", strings.Join(p.output, ""))
	if !strings.HasPrefix(p.line, "FAIL\t") {
		p.line = fmt.Sprintf("FAIL\t%s\t%.3fs", name, seconds)
	}
	r.printf("%s\n", p.line)
}

func (p *packageRun) take(e event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &testRun{name: e.Test, order: len(p.tests)}
		p.tests[e.Test] = t
		if cut := strings.LastIndexByte(e.Test, '/'); cut > 0 && p.tests[e.Test[:cut]] != nil {
			p.tests[e.Test[:cut]].parent = true
		}
	}
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME
			t.output = append(t.output, e.Output)
		}
	case "pass", "fail", "skip":
		t.end, t.seconds = e.Action, e.Elapsed
	}
}

func (p *packageRun) inOrder() []*testRun {
	return slices.SortedFunc(maps.Values(p.tests), func(a, b *testRun) int { return cmp.Compare(a.order, b.order) })
}

// ok reports whether some test ran and none failed or was skipped.
func (r *report) ok() bool {
	ran := false
	for _, p := range r.packages {
		if p.failed {
			return false
		}
		ran = ran || len(p.tests) > 0
	}
	return ran
}

// fuzzTargets returns the fuzz tests that ran their seeds, by package and name.
func (r *report) fuzzTargets() []fuzzTarget {
	var targets []fuzzTarget
	for _, pkg := range slices.Sorted(maps.Keys(r.packages)) {
		for _, name := range slices.Sorted(maps.Keys(r.packages[pkg].tests)) {
			if strings.HasPrefix(name, "Fuzz") && !strings.Contains(name, "/") {
				targets = append(targets, fuzzTarget{pkg, name})
			}
		}
	}
	return targets
}

// summary prints the n slowest tests, then go test's closing lines once more, together.
func (r *report) summary(n int) {
	type timed struct {
		pkg string
		*testRun
	}
	var leaves []timed
	for pkg, p := range r.packages {
		for _, t := range p.tests {
			if !t.parent {
				leaves = append(leaves, timed{pkg, t})
			}
		}
	}
	slices.SortFunc(leaves, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	r.printf("\n%d tests in %d packages. The slowest:\n", len(leaves), len(r.packages))
	for _, t := range leaves[:min(n, len(leaves))] {
		r.printf("%8.2fs  %s  %s\n", t.seconds, t.pkg, t.name)
	}
	r.printf("\n")
	for _, pkg := range slices.Sorted(maps.Keys(r.packages)) {
		if p := r.packages[pkg]; p.line != "" {
			r.printf("%s\n", p.line)
		} else {
			r.printf("FAIL\t%s [did not end]\n", pkg)
		}
	}
}

func (r *report) packageRun(name string) *packageRun {
	p := r.packages[name]
	if p == nil {
		p = &packageRun{tests: map[string]*testRun{}}
		r.packages[name] = p
	}
	return p
}

// printf writes to the person at the terminal; there is nobody to tell when that fails.
func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}
