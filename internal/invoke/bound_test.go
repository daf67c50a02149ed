package invoke_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/invoke"
)

func TestBoundLeavesWhatFits(t *testing.T) {
	t.Parallel()
	fits := jsontext.Value(`"` + strings.Repeat("é", invoke.MaxResult-2) + `"`)
	if got := invoke.Bound(fits, ""); string(got) != string(fits) {
		t.Errorf("Bound of %d characters changed it", utf8.RuneCount(fits))
	}
}

func TestBoundNeverExceedsTheLimitAndIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", `"`, `\`, "\n", "é", "🌱", "\u2028", "\x01", "ab\"c"}).Draw(t, "unit")
		ref := rapid.SampledFrom([]string{"", "res_06h2xte0psved3n53vvg3vnnf0"}).Draw(t, "ref")
		n := rapid.IntRange(invoke.MaxResult/4, invoke.MaxResult+100).Draw(t, "n")
		quoted, err := json.Marshal(strings.Repeat(unit, n))
		if err != nil {
			t.Fatal(err)
		}
		got := invoke.Bound(quoted, ref)
		if c := utf8.RuneCount(got); c > invoke.MaxResult {
			t.Fatalf("Bound returned %d characters, want at most %d", c, invoke.MaxResult)
		}
		if utf8.RuneCount(quoted) <= invoke.MaxResult {
			return
		}
		var v struct {
			Truncated bool
			Head      string
			ResultRef string
		}
		if err := json.Unmarshal(got, &v); err != nil || !v.Truncated || v.ResultRef != ref {
			t.Fatalf("Bound = %.80s…, want an object that says truncated (%v)", got, err)
		}
		if !strings.HasPrefix(string(quoted), v.Head) || len(v.Head) == 0 {
			t.Fatal("head is not the beginning of the value")
		}
	})
}
