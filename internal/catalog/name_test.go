package catalog_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
)

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func wire(vendor, original string) string {
	return catalog.Tool{Vendor: vendor, Name: catalog.WireName(vendor, original)}.Wire()
}

// A name is written into approvals and working sets: what it is today it must be after every upgrade.
func TestWireNamesStay(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ vendor, original, want string }{
		{"github", "search", "search"},
		{"github", "_x", "_x"},
		{"github", "1st", "1st"},
		{"github", "list-issues_2", "list-issues_2"},
		{"github", strings.Repeat("n", 40), strings.Repeat("n", 40)},
		{"github", "Search", "Search-01"},
		{"github", "getJiraIssue", "getJiraIssue-048"},
		{"github", "a.b/c", "a_b_c-0vhudjh70ee"},
		{"github", "get user", "get_user-0qtuovf076j"},
		{"github", strings.Repeat("n", 41), strings.Repeat("n", 28) + "-02t7h80p643"},
		{"github", strings.Repeat("n", 128), strings.Repeat("n", 28) + "-0rki13ebgqr"},
		{"github", "search-01", "search-01-08r1mh3vc2v"},
		{"github", "搜索", "tool-08j77lq89ne"},
		{"github", "", "tool-0seoc8gkovg"},
		{strings.Repeat("v", 24), strings.Repeat("n", 23), strings.Repeat("n", 10) + "-0l95d4g7qs0"},
	} {
		if got := catalog.WireName(x.vendor, x.original); got != x.want {
			t.Errorf("WireName(%q, %q) = %q, want %q", x.vendor, x.original, got, x.want)
		}
	}
}

// Names that look like what other names become are drawn on purpose.
func originals() *rapid.Generator[string] {
	plain := rapid.StringMatching(`[a-zA-Z0-9_-]{0,50}`)
	return rapid.OneOf(plain, rapid.String(), rapid.StringMatching(`n{20,130}`), rapid.StringMatching(`[aA]{1,4}(-0[0-9a-vA-V]{1,11})?`),
		rapid.Map(plain, func(s string) string { return catalog.WireName("github", s) }),
		rapid.Map(plain, func(s string) string { return strings.ToLower(catalog.WireName("github", s)) }))
}

func TestWireNamesFitAndNeverMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		vendor := rapid.StringMatching(`[a-z][a-z0-9]{0,23}`).Draw(t, "vendor")
		a, b := originals().Draw(t, "a"), originals().Draw(t, "b")
		wa, wb := wire(vendor, a), wire(vendor, b)
		for _, w := range []string{wa, wb} {
			if !wireName.MatchString(w) || len(w) > catalog.MaxWire {
				t.Fatalf("wire name %q of %d characters, want at most %d of %s", w, len(w), catalog.MaxWire, wireName)
			}
			if v, _, _ := strings.Cut(w, "__"); v != vendor {
				t.Fatalf("%q is of vendor %q, want %q", w, v, vendor)
			}
		}
		if a != b && strings.EqualFold(wa, wb) {
			t.Fatalf("%q and %q are both called %q", a, b, wa)
		}
	})
}

func TestFieldC02NamesAreLegalAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, vendor := range []string{"first", "second"} {
		for _, original := range []string{
			"search", "Search", "SEARCH", "a.b/c", "a_b_c", "a.b.c", "_x", "1st", "get user", "get_user",
			strings.Repeat("n", 127), strings.Repeat("n", 128),
		} {
			w := wire(vendor, original)
			if other, taken := seen[strings.ToLower(w)]; taken || !wireName.MatchString(w) || w != wire(vendor, original) {
				t.Errorf("%s of %s is called %q, as is %q", original, vendor, w, other)
			}
			seen[strings.ToLower(w)] = vendor + " " + original
		}
	}
}

func TestCheckVendorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"a", "github", "issue-tracker", "s3", "a-1-b", strings.Repeat("v", 24)} {
		if err := catalog.CheckVendor(ok); err != nil {
			t.Errorf("CheckVendor(%q) = %v, want nil", ok, err)
		}
	}
	for name, says := range map[string]string{
		"": "missing", strings.Repeat("v", 25): "25 characters", "GitHub": "kebab case", "a_b": "kebab case", "a__b": "kebab case", "-a": "kebab case",
		"a-": "kebab case", "a--b": "kebab case", "1password": "kebab case", "a b": "kebab case", "ä": "kebab case", "a\n": "kebab case",
		"execute": "kept", "plan": "kept", "builtin": "kept", "user": "kept", "core": "kept", "workbench": "kept", "graph": "kept", "graft": "kept",
	} {
		r := reason.Of(catalog.CheckVendor(name))
		if r.Word != reason.InputInvalid || r.Details["field"] != "name" || !strings.Contains(r.Message, says) {
			t.Errorf("CheckVendor(%q) = %v %v, want input_invalid of field name that says %q", name, r, r.Details, says)
		}
	}
}
