package reason_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
)

func TestPageInDocsIsTheTable(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reason.Page(), string(got)); diff != "" {
		t.Errorf("docs/reasons.md is not what the table says; run go generate ./internal/reason (-want +got):\n%s", diff)
	}
}

func TestEveryWordStandsInTheTableOnce(t *testing.T) {
	t.Parallel()
	seen := map[reason.Word]int{}
	shape := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, e := range reason.Table {
		seen[e.Word]++
		if !shape.MatchString(string(e.Word)) {
			t.Errorf("word %q is not lower case words joined by underscores", e.Word)
		}
		if e.When == "" || e.Next == "" || e.Status < 400 || e.Status > 599 {
			t.Errorf("row %+v lacks a part", e)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Word" {
			return true
		}
		constants++
		lit := spec.Values[0].(*ast.BasicLit).Value
		if n := seen[reason.Word(lit[1:len(lit)-1])]; n != 1 {
			t.Errorf("word %s stands in the table %d times, want 1", lit, n)
		}
		return true
	})
	if constants != len(reason.Table) {
		t.Errorf("%d words declared, %d rows", constants, len(reason.Table))
	}
}

func TestOfFindsTheRefusalAndWithholdsTheRest(t *testing.T) {
	t.Parallel()
	r := reason.Refuse(reason.NameTaken, "%q is taken", "hermes").Field("name")
	got := reason.Of(fmt.Errorf("create agent: %w", r))
	if got.Word != reason.NameTaken || got.Details["field"] != "name" {
		t.Errorf("Of(wrapped) = %+v, want the refusal inside", got)
	}
	got = reason.Of(errors.New("password is hunter2"))
	if got.Word != reason.Internal || regexp.MustCompile("hunter2").MatchString(got.Error()) {
		t.Errorf("Of(plain) = %v, want internal without its text", got)
	}
	if !errors.Is(fmt.Errorf("load: %w", reason.Refuse(reason.NotFoundWord, "no agent")), reason.NotFound) {
		t.Error("a not_found refusal with its own message is not reason.NotFound")
	}
	if errors.Is(r, reason.NotFound) {
		t.Error("name_taken is reason.NotFound")
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	base := reason.Refuse(reason.InputInvalid, "no")
	a, b := base.With("x", 1), base.With("y", 2)
	if base.Details != nil || len(a.Details) != 1 || len(b.Details) != 1 {
		t.Errorf("details = %v, %v, %v, want none, one, one", base.Details, a.Details, b.Details)
	}
}
