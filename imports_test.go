package graft_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestImports holds "Who may import whom" of ARCHITECTURE.md.
func TestImports(t *testing.T) {
	t.Parallel()
	check(t, thirdPartyImports, ownImports, sharedImports, aliases)
}

// faces are what people and programs meet; they share nothing but what stands below them.
var faces = []string{"console", "mcp", "oauth"}

// thirdParty says which folders may import a module, tests included.
var thirdParty = []struct {
	modules []string
	folders []string
}{
	{[]string{"github.com/jackc/pgx", "github.com/pressly/goose"}, []string{
		"internal/bus", "internal/embedpg", "internal/job", "internal/store", "internal/store/storetest", "migrations", "server",
	}},
	{[]string{"github.com/mark3labs/mcp-go"}, []string{"internal/e2e", "internal/upstream", "mcp"}}, // e2e: what an mcp.Offer gives
	{[]string{"github.com/golang-jwt/jwt"}, []string{"internal/egress", "oauth"}},
	{[]string{"github.com/go-chi"}, []string{"console", "server"}},                 // where routes are mounted
	{[]string{"github.com/modelcontextprotocol/go-sdk"}, []string{"internal/e2e"}}, // clients of ours
	{[]string{"golang.org/x/oauth2"}, []string{"internal/e2e", "internal/oidc"}},   // beside e2e's clients of ours, we as one
	{[]string{"github.com/coreos/go-oidc"}, []string{"internal/oidc"}},
	{[]string{"github.com/chromedp"}, []string{"console", "internal/e2e"}},
}

func thirdPartyImports(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		for importPath := range f.imports() {
			for _, r := range thirdParty {
				if under(importPath, r.modules...) && !slices.Contains(r.folders, f.dir()) {
					problems = append(problems, fmt.Sprintf("%s imports %s: only %s may", f.path, importPath, strings.Join(r.folders, ", ")))
				}
			}
		}
	}
	return problems
}

// leaves are packages that the rest stands on, with all that they may import of ours. Their tests may use the kits.
var leaves = map[string][]string{
	"internal/reason":  nil,
	"internal/oidc":    {"internal/egress", "internal/reason", "internal/vault"},
	"internal/store":   {"internal/bus", "internal/reason"},
	"internal/vault":   {"internal/reason"},
	"internal/bus":     {"internal/reason"},
	"internal/rpc":     {"internal/reason"},
	"internal/testrun": {"internal/embedpg"},
	"migrations":       nil,
	"web":              nil,
}

// importers says who may import a package; the package's own tests always may.
var importers = map[string][]string{
	"server":              {"cmd", "internal/servertest"},
	"internal/invoke":     {"mcp", "console", "internal/plan", "internal/acquire", "server", "internal/servertest"},
	"internal/servertest": nil, // tests only
	"internal/e2e":        nil,
}

// strangers are groups of packages that never import one another.
var strangers = [][]string{
	faces,
	{"internal/toolbox", "internal/upstream", "internal/plan"}, // sources of the catalogue
}

func ownImports(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		if f.isTestHelp() {
			continue // a test may use what it tests through the kits
		}
		allowed, isLeaf := leaves[f.dir()]
		for _, imported := range f.ownImports() {
			if isLeaf && !slices.Contains(allowed, imported) {
				problems = append(problems, fmt.Sprintf("%s imports %s: of ours it may import only %q", f.path, imported, allowed))
			}
			for _, group := range strangers {
				if imported != f.dir() && slices.Contains(group, f.dir()) && slices.Contains(group, imported) {
					problems = append(problems, fmt.Sprintf("%s imports %s: these never import one another", f.path, imported))
				}
			}
			if under(f.dir(), "internal") && !under(imported, "internal", "migrations") {
				problems = append(problems, fmt.Sprintf("%s imports %s: what stands below never looks up", f.path, imported))
			}
		}
	}
	return problems
}

// sharedImports holds who may import a package; unlike ownImports it looks at tests too.
func sharedImports(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		for _, imported := range f.ownImports() {
			allowed, ruled := importers[imported]
			if !ruled || under(f.dir(), append(slices.Clone(allowed), imported)...) {
				continue
			}
			if allowed == nil && f.isTestHelp() {
				continue
			}
			problems = append(problems, fmt.Sprintf("%s imports %s: only %q may", f.path, imported, allowed))
		}
	}
	return problems
}

// aliases are the names under which packages are known here, because their own say too little.
func aliases(tr tree) (problems []string) {
	for _, f := range tr.goFiles() {
		imports := f.imports()
		for _, importPath := range slices.Sorted(maps.Keys(imports)) {
			name, ok := strings.CutPrefix(importPath, "github.com/mark3labs/mcp-go/")
			if want := "mcpgo"; ok && name == "mcp" && imports[importPath] != want {
				problems = append(problems, fmt.Sprintf("%s imports %s as %s, want %s", f.path, importPath, imports[importPath], want))
			} else if want := "mcp" + name; ok && (name == "server" || name == "client") && imports[importPath] != want {
				problems = append(problems, fmt.Sprintf("%s imports %s as %s, want %s", f.path, importPath, imports[importPath], want))
			}
		}
	}
	return problems
}

// ownImports returns the folders of this module that a file imports.
func (f file) ownImports() []string {
	var folders []string
	for importPath := range f.imports() {
		if folder, ok := strings.CutPrefix(importPath, module+"/"); ok {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}

// under reports whether a path is one of folders or lies below one.
func under(name string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || strings.HasPrefix(name, folder+"/")
	})
}

func TestImportRulesBite(t *testing.T) {
	t.Parallel()
	imports := func(pkg string, paths ...string) string {
		for i, p := range paths {
			if !strings.Contains(p, " ") {
				paths[i] = fmt.Sprintf("%q", p)
			}
		}
		return "package " + pkg + "\n\nimport (\n" + strings.Join(paths, "\n") + "\n)\n"
	}
	for _, p := range []planted{
		{"pgx in a face", thirdPartyImports, map[string]string{"console/a.go": imports("console", "github.com/jackc/pgx/v5/pgxpool")}, "console/a.go imports github.com/jackc/pgx/v5/pgxpool"},
		{"pgx in a face's test", thirdPartyImports, map[string]string{"mcp/a_test.go": imports("mcp_test", "github.com/jackc/pgx/v5")}, "mcp/a_test.go"},
		{"pgx in the store", thirdPartyImports, map[string]string{"internal/store/a.go": imports("store", "github.com/jackc/pgx/v5")}, ""},
		{"mcp-go in the console", thirdPartyImports, map[string]string{"console/a.go": imports("console", `mcpgo "github.com/mark3labs/mcp-go/mcp"`)}, "mcp-go"},
		{"the official SDK in a face", thirdPartyImports, map[string]string{"mcp/a.go": imports("mcp", "github.com/modelcontextprotocol/go-sdk/jsonrpc")}, "go-sdk"},
		{"x/oauth2 in the authorization server", thirdPartyImports, map[string]string{"oauth/a_test.go": imports("oauth_test", "golang.org/x/oauth2")}, "golang.org/x/oauth2"},
		{"x/oauth2 at a provider", thirdPartyImports, map[string]string{"internal/oidc/a.go": imports("oidc", "golang.org/x/oauth2")}, ""},
		{"go-oidc in a face", thirdPartyImports, map[string]string{"console/a.go": imports("console", "github.com/coreos/go-oidc/v3/oidc")}, "go-oidc"},
		{"jwt in the server", thirdPartyImports, map[string]string{"server/a.go": imports("server", "github.com/golang-jwt/jwt/v5")}, "golang-jwt"},
		{"chi below", thirdPartyImports, map[string]string{"internal/invoke/a.go": imports("invoke", "github.com/go-chi/chi/v5")}, "go-chi"},
		{"a module of a similar name", thirdPartyImports, map[string]string{"web/a.go": imports("web", "github.com/jackc/pgxother")}, ""},
		{"a face imports a face", ownImports, map[string]string{"mcp/a.go": imports("mcp", module+"/oauth")}, "never import one another"},
		{"a source imports a source", ownImports, map[string]string{"internal/plan/a.go": imports("plan", module+"/internal/toolbox")}, "never import one another"},
		{"reason imports the store", ownImports, map[string]string{"internal/reason/a.go": imports("reason", module+"/internal/store")}, "internal/reason/a.go imports internal/store"},
		{"the store imports the bus", ownImports, map[string]string{"internal/store/a.go": imports("store", module+"/internal/bus")}, ""},
		{"the vault imports the store", ownImports, map[string]string{"internal/vault/a.go": imports("vault", module+"/internal/store")}, "internal/vault"},
		{"a page imports the store", ownImports, map[string]string{"web/a.go": imports("web", module+"/internal/store")}, "web/a.go"},
		{"what stands below looks up", ownImports, map[string]string{"internal/catalog/a.go": imports("catalog", module+"/mcp")}, "never looks up"},
		{"a package imports the server", sharedImports, map[string]string{"console/a.go": imports("console", module+"/server")}, "console/a.go imports server"},
		{"a test imports the server", sharedImports, map[string]string{"console/a_test.go": imports("console_test", module+"/server")}, "console/a_test.go imports server"},
		{"the server's test imports it", sharedImports, map[string]string{"server/a_test.go": imports("server_test", module+"/server")}, ""},
		{"the binary imports the server", sharedImports, map[string]string{"cmd/graft/main.go": imports("main", module+"/server")}, ""},
		{"the store calls tools", sharedImports, map[string]string{"internal/catalog/a.go": imports("catalog", module+"/internal/invoke")}, "internal/invoke"},
		{"a kit in the product", sharedImports, map[string]string{"mcp/a.go": imports("mcp", module+"/internal/servertest")}, "internal/servertest"},
		{"a kit in a test", sharedImports, map[string]string{"mcp/a_test.go": imports("mcp_test", module+"/internal/servertest")}, ""},
		{"mcp-go under its own name", aliases, map[string]string{"mcp/a.go": imports("mcp", "github.com/mark3labs/mcp-go/mcp")}, "as mcp, want mcpgo"},
		{"its server under another", aliases, map[string]string{"mcp/a.go": imports("mcp", `s "github.com/mark3labs/mcp-go/server"`)}, "as s, want mcpserver"},
		{"its client as agreed", aliases, map[string]string{"mcp/a.go": imports("mcp", `mcpclient "github.com/mark3labs/mcp-go/client"`)}, ""},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}
