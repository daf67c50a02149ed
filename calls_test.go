package graft_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestCalls holds what may be called, or made, in few places only.
func TestCalls(t *testing.T) {
	t.Parallel()
	check(t, environment, defaultHTTP, reveals, callers)
}

// environment: configuration is read once, in cmd.
func environment(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		if under(f.dir(), "cmd") || f.isTestHelp() {
			continue
		}
		f.uses("os", func(name string, at ast.Node) {
			if slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, name) {
				problems = append(problems, fmt.Sprintf("%s: os.%s: only cmd reads the environment, once, into a Config", f.at(at), name))
			}
		})
	}
	return problems
}

// defaultHTTP: what leaves leaves through egress. Tests have clients of their own.
func defaultHTTP(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		f.uses("net/http", func(name string, at ast.Node) {
			shared := name == "DefaultClient"
			calling := slices.Contains([]string{"DefaultTransport", "Get", "Head", "Post", "PostForm"}, name) && !under(f.dir(), "internal/egress")
			if shared || calling {
				problems = append(problems, fmt.Sprintf("%s: http.%s: the only way out is internal/egress", f.at(at), name))
			}
		})
	}
	return problems
}

// reveals: a secret opens inside egress alone.
func reveals(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		if under(f.dir(), "internal/egress") || f.dir() == "internal/vault" && f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == "Reveal" {
				problems = append(problems, fmt.Sprintf("%s: a secret is revealed: only internal/egress may", f.at(selector)))
			}
			return true
		})
	}
	return problems
}

// callerMakers are the four places that make a store.Caller: the bearer, the web session, the CLI, a job.
var callerMakers = []string{"oauth", "console", "cmd", "internal/job"}

// callers: nobody acts for an organisation but who proved to be one of its own.
func callers(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		if under(f.dir(), callerMakers...) || f.isTestHelp() {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if literal, ok := node.(*ast.CompositeLit); ok && len(literal.Elts) > 0 && f.isCaller(literal.Type) {
				problems = append(problems, fmt.Sprintf("%s: a store.Caller is made: only %s may", f.at(literal), strings.Join(callerMakers, ", ")))
			}
			return true
		})
	}
	return problems
}

// isCaller reports whether a type expression is store.Caller as this file writes it.
func (f file) isCaller(typ ast.Expr) bool {
	switch typ := typ.(type) {
	case *ast.Ident:
		return typ.Name == "Caller" && f.dir() == "internal/store"
	case *ast.SelectorExpr:
		x, ok := typ.X.(*ast.Ident)
		return ok && typ.Sel.Name == "Caller" && x.Name == f.imports()[module+"/internal/store"]
	}
	return false
}

func TestCallRulesBite(t *testing.T) {
	t.Parallel()
	code := func(pkg, importPath, statement string) string {
		return fmt.Sprintf("package %s\n\nimport %s\n\nfunc f() { %s }\n", pkg, importPath, statement)
	}
	store := fmt.Sprintf("%q", module+"/internal/store")
	for _, p := range []planted{
		{"the environment outside cmd", environment, map[string]string{"server/a.go": code("server", `"os"`, `_ = os.Getenv("A")`)}, "server/a.go:5: os.Getenv"},
		{"under another name", environment, map[string]string{"mcp/a.go": code("mcp", `sys "os"`, `_, _ = sys.LookupEnv("A")`)}, "os.LookupEnv"},
		{"the environment in cmd", environment, map[string]string{"cmd/graft/a.go": code("main", `"os"`, `_ = os.Getenv("A")`)}, ""},
		{"the environment in a kit", environment, map[string]string{"internal/servertest/a.go": code("servertest", `"os"`, `_ = os.Environ()`)}, ""},
		{"the default client", defaultHTTP, map[string]string{"mcp/a.go": code("mcp", `"net/http"`, `_ = http.DefaultClient`)}, "http.DefaultClient"},
		{"the default client in egress", defaultHTTP, map[string]string{"internal/egress/a.go": code("egress", `"net/http"`, `_ = http.DefaultClient`)}, "http.DefaultClient"},
		{"a call past egress", defaultHTTP, map[string]string{"oauth/a_test.go": code("oauth", `"net/http"`, `_, _ = http.Get("https://a.example")`)}, "http.Get"},
		{"the transport in egress", defaultHTTP, map[string]string{"internal/egress/a.go": code("egress", `"net/http"`, `_ = http.DefaultTransport`)}, ""},
		{"a secret opened elsewhere", reveals, map[string]string{"mcp/a.go": code("mcp", `"os"`, `_ = secret.Reveal(nil)`)}, "only internal/egress"},
		{"a secret opened in egress", reveals, map[string]string{"internal/egress/a.go": code("egress", `"os"`, `_ = secret.Reveal(nil)`)}, ""},
		{"a caller out of thin air", callers, map[string]string{"mcp/a.go": code("mcp", store, `_ = store.Caller{Via: 1}`)}, "mcp/a.go:5: a store.Caller is made"},
		{"a caller made by the store", callers, map[string]string{"internal/store/a.go": code("store", `"os"`, `_ = Caller{Via: 1}`)}, "a store.Caller is made"},
		{"the zero caller", callers, map[string]string{"mcp/a.go": code("mcp", store, `_ = store.Caller{}`)}, ""},
		{"a caller of the bearer", callers, map[string]string{"oauth/a.go": code("oauth", store, `_ = store.Caller{Via: 1}`)}, ""},
		{"another Caller", callers, map[string]string{"mcp/a.go": code("mcp", `"os"`, `_ = Caller{Via: 1}`)}, ""},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}
