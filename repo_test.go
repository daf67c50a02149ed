package graft_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHouse holds what is true of every file and folder.
func TestHouse(t *testing.T) {
	t.Parallel()
	check(t, packageComments, ownFiles, finishedWords, honestTests, twoCommands)
}

// sentence is the end of one.
var sentence = regexp.MustCompile(`[.!?](\s|$)`)

// packageComments: every package says in doc.go, in an opening paragraph of two sentences or more, what it does. A command may say it in
// main.go; a folder of tests alone, such as the root, says nothing.
func packageComments(tr tree) (problems []string) {
	comments, seen := map[string]string{}, map[string]bool{}
	for _, f := range tr.files {
		if f.ast == nil || f.isTest() {
			continue
		}
		seen[f.dir()] = true
		if base := path.Base(f.path); base == "doc.go" || base == "main.go" && f.isCommand() {
			opening, _, _ := strings.Cut(f.ast.Doc.Text(), "\n\n")
			comments[f.dir()] += opening
		} else if f.ast.Doc != nil && !ast.IsGenerated(f.ast) {
			problems = append(problems, f.path+": the package's comment belongs into doc.go")
		}
	}
	for dir := range seen {
		if n := len(sentence.FindAllString(comments[dir], -1)); n < 2 {
			problems = append(problems, fmt.Sprintf("%s/doc.go: %d sentences, want two or more that say what the package does", dir, n))
		}
	}
	slices.Sort(problems)
	return problems
}

// foreign are endings of files that somebody else made, or a program.
var foreign = []string{".min.js", ".min.css", ".map", ".wasm", ".woff", ".woff2", ".ttf", ".exe", ".so", ".a", ".jar", ".zip", ".gz", ".br"}

// ownFiles: dependencies come through go.mod and package.json, never as files; the word vendor is taken.
func ownFiles(tr tree) (problems []string) {
	for _, f := range tr.files {
		if slices.Contains(strings.Split(strings.TrimSuffix(f.path, path.Ext(f.path)), "/"), "vendor") {
			problems = append(problems, f.path+": nothing here is named vendor, which is a service on the other side")
		}
		if slices.ContainsFunc(foreign, func(ending string) bool { return strings.HasSuffix(f.path, ending) }) {
			problems = append(problems, f.path+": built or third-party files do not belong into the tree")
		}
	}
	return problems
}

// unfinished are the words for work put off, spelt so that this file does not find itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// finishedWords: what is not done is an issue, not a comment.
func finishedWords(tr tree) (problems []string) {
	for _, f := range tr.files {
		for i, line := range strings.Split(f.text, "\n") {
			if word := unfinished.FindString(line); word != "" && path.Base(f.path) != "package-lock.json" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: finish it, or write an issue", f.path, i+1, word))
			}
		}
	}
	return problems
}

// honestTests: a test that skips proves nothing, one that sleeps proves it slowly or not at all.
func honestTests(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		if !f.isTestHelp() {
			continue
		}
		report := func(at ast.Node, what string) { problems = append(problems, f.at(at)+": "+what) }
		f.uses("time", func(name string, at ast.Node) {
			if name == "Sleep" {
				report(at, "time.Sleep: wait for the event, or use synctest")
			}
		})
		f.uses("testing", func(name string, at ast.Node) {
			if name == "Short" {
				report(at, "testing.Short: every test always runs")
			}
		})
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && isSkip(call) {
				report(call, "a test that skips itself: make what it needs, or fail and say what is missing")
			}
			return true
		})
	}
	return problems
}

// isSkip recognises t.Skip and its sisters by the names that tests give to t.
func isSkip(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name)
}

// twoCommands: the README names them, and CI runs the second.
func twoCommands(tr tree) (problems []string) {
	for _, want := range []struct{ file, line string }{
		{"README.md", "go run ./cmd/graft serve"},
		{"README.md", "make test"},
		{".ci/run", "make test"},
	} {
		lines := strings.Split(tr.read(want.file), "\n")
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) == want.line }) {
			problems = append(problems, fmt.Sprintf("%s: no line %q", want.file, want.line))
		}
	}
	return problems
}

func TestHouseRulesBite(t *testing.T) {
	t.Parallel()
	const doc = "// Package a does this. It also does that.\npackage a\n"
	test := func(statement string) string {
		return "package a\n\nimport (\n\"testing\"\n\"time\"\n)\n\nvar _ = time.Now\n\nfunc TestA(t *testing.T) { " + statement + " }\n"
	}
	commands := map[string]string{
		"README.md": "    go run ./cmd/graft serve\n    make test\n", ".ci/run": "make test\n",
	}
	for _, p := range []planted{
		{"a package without a comment", packageComments, map[string]string{"a/a.go": "package a\n"}, "a/doc.go: 0 sentences"},
		{"a comment of one sentence", packageComments, map[string]string{"a/doc.go": "// Package a does this.\npackage a\n"}, "1 sentences"},
		{"a sentence and a list", packageComments, map[string]string{"a/doc.go": "// Package a does this:\n//\n// A. B.\npackage a\n"}, "0 sentences"},
		{"a comment in another file", packageComments, map[string]string{"a/doc.go": doc, "a/b.go": "// Package a is explained twice.\npackage a\n"}, "a/b.go"},
		{"a documented package", packageComments, map[string]string{"a/doc.go": doc, "a/b.go": "package a\n"}, ""},
		{"a command without a comment", packageComments, map[string]string{"cmd/a/main.go": "package main\n"}, "cmd/a/doc.go"},
		{"a documented command", packageComments, map[string]string{"cmd/a/main.go": "// A does this. And that.\npackage main\n"}, ""},
		{"tests alone", packageComments, map[string]string{"a_test.go": "package a_test\n"}, ""},
		{"a folder named vendor", ownFiles, map[string]string{"internal/vendor/a.go": doc}, "internal/vendor/a.go"},
		{"a file named vendor", ownFiles, map[string]string{"internal/catalog/vendor.go": doc}, "vendor.go"},
		{"a third-party script", ownFiles, map[string]string{"web/static/lib.min.js": ""}, "lib.min.js"},
		{"our own script", ownFiles, map[string]string{"web/static/graft.js": ""}, ""},
		{"what npm installed", ownFiles, map[string]string{"internal/e2e/node_modules/a/a.min.js": ""}, ""},
		{"work put off", finishedWords, map[string]string{"a.sql": "-- TO" + "DO: the index\n"}, "a.sql:1"},
		{"a word that contains it", finishedWords, map[string]string{"a.md": "MASTO" + "DON"}, ""},
		{"a skip", honestTests, map[string]string{"a/a_test.go": test(`t.Skipf("not %s", "today")`)}, "a/a_test.go:10: a test that skips"},
		{"a skip in a kit", honestTests, map[string]string{"internal/servertest/a.go": test(`t.SkipNow()`)}, "skips"},
		{"another Skip", honestTests, map[string]string{"a/a_test.go": test(`scanner.Skip()`)}, ""},
		{"a sleep", honestTests, map[string]string{"a/a_test.go": test(`time.Sleep(time.Second)`)}, "time.Sleep"},
		{"a short run", honestTests, map[string]string{"a/a_test.go": test(`_ = testing.Short()`)}, "testing.Short"},
		{"a sleep in the product", honestTests, map[string]string{"a/a.go": test(`time.Sleep(time.Second)`)}, ""},
		{"no README", twoCommands, map[string]string{".ci/run": "go run ./cmd/graft serve\nmake test\n", "README.md": "make test"}, "README.md: no line"},
		{"CI that tests in its own way", twoCommands, map[string]string{"README.md": commands["README.md"], ".ci/run": "go test ./...\n"}, ".ci/run: no line"},
		{"both commands", twoCommands, commands, ""},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}
