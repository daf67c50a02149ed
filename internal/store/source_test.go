package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// source is the package as it is written: its files by name.
type source struct {
	set   *token.FileSet
	files map[string]*ast.File
}

// parse reads Go files, given by name and text.
func parse(t *testing.T, texts map[string]string) source {
	t.Helper()
	s := source{set: token.NewFileSet(), files: map[string]*ast.File{}}
	for name, text := range texts {
		file, err := parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files[name] = file
	}
	return s
}

// own is this package: its code, or its tests.
func own(t *testing.T, tests bool) source {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return parse(t, texts)
}

func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// functions calls fn with every function, in the order of the files' names.
func (s source) functions(fn func(file string, f *ast.FuncDecl)) {
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		for _, d := range s.files[name].Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				fn(name, f)
			}
		}
	}
}

// receiver is the name of a method's type, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// crossing are the files of what crosses tenants: the look-ups, and beside them, too long for one page, the chains of
// the audit log, which one writer appends to for all organisations, the keys that sign them, what the authorization
// server looks up before it knows whose it is, and invites, whose holders belong to no organisation yet.
var crossing = []string{"account.go", "chain.go", "clientdocument.go", "identity.go", "invitelookup.go", "lookup.go", "oauthclient.go", "oauthlookup.go", "oauthrequest.go", "passkey.go", "signingkey.go"}

// strays are methods of System outside those files, and of Tx in them.
func (s source) strays() (found []string) {
	s.functions(func(file string, f *ast.FuncDecl) {
		switch of := receiver(f); {
		case of == "System" && !slices.Contains(crossing, file):
			found = append(found, s.at(f)+": "+f.Name.Name+" of System belongs into lookup.go")
		case of == "Tx" && slices.Contains(crossing, file):
			found = append(found, s.at(f)+": "+f.Name.Name+" of Tx does not belong into "+file)
		}
	})
	return found
}

// sqlAt says which argument of a function is SQL.
var sqlAt = map[string]int{"all": 2, "one": 2, "value": 2, "exec": 2, "run": 1, "Exec": 1, "Query": 1, "QueryRow": 1, "Prepare": 2, "Queue": 0, "links": 1, "look": 2, "act": 2}

// helpers pass on the SQL they are given, by a parameter of that name.
var helpers = map[string]string{"all": "sql", "one": "sql", "value": "sql", "exec": "sql", "run": "begin", "links": "sql", "look": "sql", "act": "sql"}

// variableSQL are SQL texts that are not constant.
func (s source) variableSQL() (found []string) {
	constants := map[string]bool{}
	for _, file := range s.files {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							constants[name.Name] = true
						}
					}
				}
			}
		}
	}
	var constant func(e ast.Expr) bool
	constant = func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.BasicLit:
			return true
		case *ast.Ident:
			return constants[e.Name]
		case *ast.ParenExpr:
			return constant(e.X)
		case *ast.BinaryExpr:
			return constant(e.X) && constant(e.Y)
		}
		return false
	}
	s.functions(func(_ string, f *ast.FuncDecl) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := called(call)
			index, isSQL := sqlAt[name]
			if !isSQL || len(call.Args) <= index || constant(call.Args[index]) {
				return true
			}
			id, isIdent := call.Args[index].(*ast.Ident)
			passedOn := isIdent && id.Name == helpers[f.Name.Name]
			ofCaller := isIdent && id.Name == "begin" && f.Name.Name == "As" && receiver(f) == "DB"
			if _, isFunc := call.Args[index].(*ast.FuncLit); !passedOn && !ofCaller && !isFunc {
				found = append(found, s.at(call)+": the SQL of "+name+" is not a constant")
			}
			return true
		})
	})
	return found
}

// called is the name of what a call calls, without receiver and type arguments.
func called(call *ast.CallExpr) string {
	if i, ok := call.Fun.(*ast.IndexExpr); ok {
		return nameOf(i.X)
	}
	return nameOf(call.Fun)
}

// nameOf is the last name of an expression: of a.b and of a.b() it is b.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return called(e)
	}
	return ""
}

// beginning is the text of As's BEGIN: the one SQL that is put together, of a literal, an id in hex and a literal.
func (s source) beginning(t *testing.T) string {
	t.Helper()
	var text string
	s.functions(func(_ string, f *ast.FuncDecl) {
		if f.Name.Name != "As" || receiver(f) != "DB" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
				if id, ok := a.Lhs[0].(*ast.Ident); ok && id.Name == "begin" {
					text += spell(a.Rhs[0]) + ";"
				}
			}
			return true
		})
	})
	return text
}

// spell writes a concatenation of literals and calls.
func spell(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return spell(e.X) + " " + e.Op.String() + " " + spell(e.Y)
	case *ast.BasicLit:
		return e.Value
	case *ast.CallExpr:
		return spell(e.Fun) + "()"
	case *ast.SelectorExpr:
		return spell(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// clockInSQL finds the database's clock, which no test can set, and filters by org_id outside what crosses
// tenants and diagnose.go, which row-level security makes needless and a reader takes for the lock.
var (
	clockInSQL  = regexp.MustCompile(`(?i)\b(now|(clock|statement|transaction)_timestamp|timeofday)\(\)|\bcurrent_(time|date|timestamp)\b|\blocaltime`)
	filterByOrg = regexp.MustCompile(`\borg_id\s*(=|<>|IN\b)`)
)

func (s source) oddSQL() (found []string) {
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		ast.Inspect(s.files[name], func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || !regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|WHERE)\b`).MatchString(lit.Value) {
				return true
			}
			if m := clockInSQL.FindString(lit.Value); m != "" && name != "diagnose.go" {
				found = append(found, s.at(lit)+": "+m+" in SQL: the time is an argument")
			}
			if m := filterByOrg.FindString(lit.Value); m != "" && !slices.Contains(crossing, name) && name != "diagnose.go" {
				found = append(found, s.at(lit)+": SQL filters by org_id: the transaction knows")
			}
			return true
		})
	}
	return found
}

// txMakers are the functions that make a Tx.
func (s source) txMakers() (found []string) {
	s.functions(func(_ string, f *ast.FuncDecl) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if id, ok := lit.Type.(*ast.Ident); ok && id.Name == "Tx" {
					found = append(found, f.Name.Name)
				}
			}
			if call, ok := n.(*ast.CallExpr); ok && called(call) == "new" && len(call.Args) == 1 {
				if id, ok := call.Args[0].(*ast.Ident); ok && id.Name == "Tx" {
					found = append(found, f.Name.Name)
				}
			}
			return true
		})
	})
	return found
}

// untested are exported methods of Tx, System and DB that no test calls.
func untested(code, tests source) (found []string) {
	calls := map[string]bool{}
	for _, file := range tests.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"tx", "db", "sys", "System", "Open", "kept"}, nameOf(sel.X)) {
				calls[sel.Sel.Name] = true
			}
			return true
		})
	}
	code.functions(func(_ string, f *ast.FuncDecl) {
		of := receiver(f)
		if (of == "Tx" || of == "System" || of == "DB") && f.Name.IsExported() && !calls[f.Name.Name] {
			found = append(found, of+"."+f.Name.Name)
		}
	})
	return found
}

func TestTheSourceHoldsItsRules(t *testing.T) {
	t.Parallel()
	code, tests := own(t, false), own(t, true)
	for name, found := range map[string][]string{
		"methods on the wrong page":     code.strays(),
		"SQL that is not constant":      code.variableSQL(),
		"SQL that knows too much":       code.oddSQL(),
		"methods that no test calls":    untested(code, tests),
		"makers of a Tx other than As":  slices.DeleteFunc(code.txMakers(), func(f string) bool { return f == "As" }),
		"the BEGIN of As, put together": beginsOtherThan(code.beginning(t), `"BEGIN; SET LOCAL ROLE graft_app; SET LOCAL graft.org = '" + c.Org.hex() + "'";`),
	} {
		if len(found) > 0 {
			t.Errorf("%s:\n%s", name, strings.Join(found, "\n"))
		}
	}
}

func beginsOtherThan(got, want string) []string {
	if got == want {
		return nil
	}
	return []string{got}
}

func TestSourceRulesBite(t *testing.T) {
	t.Parallel()
	const broken = `package store
const part = "SELECT id FROM agent"
var word = "SELECT"
func (s *System) Lost() { _, _ = all[int](ctx, tx, part+" WHERE id = @id", nil) }
func (tx *Tx) A(name string) {
	_, _ = one[int](ctx, tx, "SELECT "+name, nil)
	_, _ = exec(ctx, tx.tx, fmt.Sprintf("DELETE FROM %s", name), nil)
	_, _ = tx.tx.Query(ctx, word)
	_, _ = tx.tx.Exec(ctx, name)
	_, _ = tx.tx.Exec(ctx, (part + part))
	_, _ = value[int](ctx, tx, "SELECT now() WHERE org_id = @org", nil)
	run(ctx, name, func(tx pgx.Tx) error { return nil })
}
func exec(sql string) { tx.Exec(ctx, sql) }
func other() *Tx { return &Tx{} }
func (db *DB) As() { begin := "BEGIN" + name; run(ctx, begin, nil) }
`
	code := parse(t, map[string]string{"agent.go": broken, "lookup.go": "package store\nfunc (tx *Tx) Wrong() {}\nfunc (s *System) Right() { s.run(ctx, func(tx pgx.Tx) error { return nil }) }\n"})
	tests := parse(t, map[string]string{"a_test.go": "package store_test\nfunc TestA() { tx.A(1); sys.Right(); db.As() }\n"})
	for name, tt := range map[string]struct{ got, want []string }{
		"strays": {code.strays(), []string{"agent.go:4: Lost of System belongs into lookup.go", "lookup.go:2: Wrong of Tx does not belong into lookup.go"}},
		"variableSQL": {code.variableSQL(), []string{
			"agent.go:6: the SQL of one is not a constant", "agent.go:7: the SQL of exec is not a constant",
			"agent.go:8: the SQL of Query is not a constant", "agent.go:9: the SQL of Exec is not a constant",
			"agent.go:12: the SQL of run is not a constant",
		}},
		"oddSQL":    {code.oddSQL(), []string{"agent.go:11: now() in SQL: the time is an argument", "agent.go:11: SQL filters by org_id: the transaction knows"}},
		"txMakers":  {code.txMakers(), []string{"other"}},
		"untested":  {untested(code, tests), []string{"System.Lost", "Tx.Wrong"}},
		"beginning": {[]string{code.beginning(t)}, []string{`"BEGIN" + name;`}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
