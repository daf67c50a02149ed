// Repository rules as ordinary tests. Each rule is a function from a tree to what is wrong with it, so that
// TestRulesBite can plant one fault per rule in a small tree and see it found.
package graft_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/getgraft/graft"

// tree is a checkout: every file that belongs to it, ignored and generated folders left out.
type tree struct {
	fsys  fs.FS
	files []file // by path
}

type file struct {
	path string // from the root, with slashes
	text string
	ast  *ast.File // of Go files
	fset *token.FileSet
}

// rule is one thing that must hold of a tree. It returns what does not, a line each.
type rule func(tree) []string

// ignored are the folders that git ignores, or keeps to itself.
var ignored = []string{".git", ".cache", "node_modules"}

// ignoredAtRoot are those of them that only the root has.
var ignoredAtRoot = []string{"data", "bin"}

func load(t testing.TB, fsys fs.FS) tree {
	t.Helper()
	tr := tree{fsys: fsys}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(ignored, entry.Name()) || slices.Contains(ignoredAtRoot, name)):
			return fs.SkipDir
		case entry.Type().IsRegular():
			f, err := loadFile(fsys, name)
			tr.files = append(tr.files, f)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	return tr
}

func loadFile(fsys fs.FS, name string) (file, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return file{}, err
	}
	f := file{path: name, text: string(text)}
	if path.Ext(name) == ".go" && !strings.Contains("/"+name, "/testdata/") {
		f.fset = token.NewFileSet()
		f.ast, err = parser.ParseFile(f.fset, name, text, parser.ParseComments)
	}
	return f, err
}

// dir is the package's folder, "." for the root.
func (f file) dir() string { return path.Dir(f.path) }

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isTestHelp is true of tests and of the kits that only tests import.
func (f file) isTestHelp() bool { return f.isTest() || slices.Contains(testKits, f.dir()) }

// testKits are packages that exist for the tests of others.
var testKits = []string{"internal/e2e", "internal/oidc/oidctest", "internal/servertest", "internal/store/storetest", "internal/upstream/upstreamtest"}

func (f file) isCommand() bool { return f.ast != nil && f.ast.Name.Name == "main" }

// goFiles are the Go files that a person wrote.
func (tr tree) goFiles() []file {
	return slices.DeleteFunc(slices.Clone(tr.files), func(f file) bool { return f.ast == nil || ast.IsGenerated(f.ast) })
}

// read returns a file's text; a missing one is empty.
func (tr tree) read(name string) string {
	text, err := fs.ReadFile(tr.fsys, name)
	if err != nil {
		return ""
	}
	return string(text)
}

// imports returns what a file imports, and under which name it is used there.
func (f file) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}
		names[importPath] = packageName(importPath)
		if spec.Name != nil {
			names[importPath] = spec.Name.Name
		}
	}
	return names
}

// packageName guesses a package's name from its path: the last element that is not a major version.
func packageName(importPath string) string {
	name := path.Base(importPath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(importPath))
	}
	return strings.TrimPrefix(name, "go-")
}

// at formats a place in a Go file.
func (f file) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(node.Pos()).Line)
}

// uses calls visit for each selector expression x.Name whose x is the package importPath.
func (f file) uses(importPath string, visit func(name string, at ast.Node)) {
	local, imported := f.imports()[importPath]
	if !imported {
		return
	}
	ast.Inspect(f.ast, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == local {
			visit(selector.Sel.Name, selector)
		}
		return true
	})
}

// check fails the test for every problem that rules find in this checkout.
func check(t *testing.T, rules ...rule) {
	t.Helper()
	tr := load(t, os.DirFS("."))
	for _, r := range rules {
		for _, problem := range r(tr) {
			t.Error(problem)
		}
	}
}

// planted is a small tree with one fault.
type planted struct {
	name  string
	rule  rule
	files map[string]string
	want  string // in the only problem found; empty: none is found
}

func (p planted) run(t *testing.T) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range p.files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got := p.rule(load(t, fsys))
	switch {
	case p.want == "" && len(got) > 0:
		t.Errorf("problems = %q, want none", got)
	case p.want != "" && (len(got) != 1 || !strings.Contains(got[0], p.want)):
		t.Errorf("problems = %q, want one with %q", got, p.want)
	}
}
