package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
)

var corpusIndex = sync.OnceValues(func() (*catalog.Index, error) {
	list, err := corpus()
	return catalog.NewIndex(list), err
})

func newCorpusIndex(t testing.TB) *catalog.Index {
	t.Helper()
	x, err := corpusIndex()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// bar is the share of questions whose right tool must be among the first five.
const bar = 0.94

// Which of the questions miss is told of the open half alone, so that nobody tunes to the others.
func TestFindMeetsItsBar(t *testing.T) {
	t.Parallel()
	x := newCorpusIndex(t)
	var right, all [5]int
	var missed []string
	of := [5]string{"held out", "open", "unseen", "drawn, held out", "drawn, open"}
	for n, file := range []string{openQuestions, unseenQuestions, blindQuestions} {
		asked, err := readQuestions(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range asked {
			hits, err := x.Find(q.text, nil)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, q.line, err)
			}
			part := [...]int{q.line % 2, 2, 3 + q.line%2}[n]
			all[part]++
			top := wires(hits, 5)
			if slices.ContainsFunc(top, func(w string) bool { return slices.Contains(q.right, w) }) {
				right[part]++
			} else if part == 1 {
				missed = append(missed, fmt.Sprintf("line %d: %s\n\twant one of %v\n\tgot %v", q.line, q.text, q.right, top))
			}
		}
	}
	for i, name := range of {
		t.Logf("right among the first five: %d of %d %s, %.1f %%", right[i], all[i], name, 100*float64(right[i])/float64(all[i]))
	}
	t.Logf("missed of the open ones:\n%s", strings.Join(missed, "\n"))
	rightOfAll, questions := 0, 0
	for i := range of {
		rightOfAll, questions = rightOfAll+right[i], questions+all[i]
	}
	if got := float64(rightOfAll) / float64(questions); got < bar {
		t.Errorf("%.1f %% of all, want %.1f %%", 100*got, 100*bar)
	}
}

func wires(hits []catalog.Hit, most int) []string {
	var out []string
	for _, h := range hits[:min(most, len(hits))] {
		out = append(out, h.Wire())
	}
	return out
}

func entries(tools ...catalog.Tool) []*catalog.Entry {
	var list []*catalog.Entry
	for _, t := range tools {
		if t.InputSchema == nil {
			t.InputSchema = []byte(`{"type":"object"}`)
		}
		list = append(list, &catalog.Entry{Tool: t})
	}
	return list
}

func TestFindReadsWhatIsAsked(t *testing.T) {
	t.Parallel()
	x := catalog.NewIndex(entries(
		catalog.Tool{Vendor: "acme", VendorNames: []string{"Acme Time Clock"}, Name: "createPullRequest", Description: "Proposes a change."},
		catalog.Tool{Vendor: "acme", Name: "listPullRequests", ReadOnly: true},
		catalog.Tool{Vendor: "shop", Name: "get_time_zone", ReadOnly: true, InputSchema: []byte(`{"type":"object","properties":{"lat":{"title":"Latitude"},"any":true}}`)},
		catalog.Tool{Vendor: "shop", Name: "delete-customer", Destructive: true},
		catalog.Tool{Vendor: "wetter", Name: "vorhersage", Title: "Wettervorhersage für Köln", ReadOnly: true},
		catalog.Tool{Vendor: "tenki", Name: "forecast_jp", Title: "天気予報を調べる", ReadOnly: true},
		catalog.Tool{Vendor: "pogoda", Name: "prognoz", Title: "Прогноз погоды", ReadOnly: true},
		catalog.Tool{Vendor: "mausam", Name: "purvanuman", Title: "मौसम का पूर्वानुमान", ReadOnly: true},
	))
	for question, want := range map[string]string{
		"show PRs":              "acme__listPullRequests",
		"open a PR":             "acme__createPullRequest",
		"createPullRequest":     "acme__createPullRequest",
		"timezone":              "shop__get_time_zone",
		"latitude":              "shop__get_time_zone",
		"drop the client":       "shop__delete-customer",
		"custmoer":              "shop__delete-customer",
		"remvoe a customer":     "shop__delete-customer",
		"custom":                "shop__delete-customer",
		"koln":                  "wetter__vorhersage",
		"WETTERVORHERSAGE":      "wetter__vorhersage",
		"天気":                    "tenki__forecast_jp",
		"明日の予報は":                "tenki__forecast_jp",
		"прогноз":               "pogoda__prognoz",
		"मौसम":                  "mausam__purvanuman",
		"the acmetimeclock":     "acme__createPullRequest",
		"get rid of a customer": "shop__delete-customer",
		"please GET RID OF the customer see https://time.zone.example/get_time_zone": "shop__delete-customer",
		"https://time.zone.example/": "shop__get_time_zone",
	} {
		hits, err := x.Find(question, nil)
		if got := wires(hits, 1); err != nil || !slices.Contains(got, want) {
			t.Errorf("%q = %v, %v, want %s first", question, got, err, want)
		}
	}
	for _, question := range []string{"", " ", "a b c", "…!?", "é"} {
		var r *reason.Refusal
		if _, err := x.Find(question, nil); !errors.As(err, &r) || r.Word != reason.InputInvalid {
			t.Errorf("%q: %v, want it refused as input_invalid", question, err)
		}
	}
	if hits, err := x.Find("zzzzzzzz qqqqqqqq", nil); err != nil || len(hits) != 0 {
		t.Errorf("words that no tool has = %v, %v, want nothing found", wires(hits, 5), err)
	}
	if hits, err := catalog.NewIndex(nil).Find("anything", nil); err != nil || len(hits) != 0 {
		t.Errorf("of no tools = %v, %v", hits, err)
	}
}

func TestFindPutsThePromotedFirstAmongEquals(t *testing.T) {
	t.Parallel()
	x := catalog.NewIndex(entries(
		catalog.Tool{Vendor: "a", Name: "list_orders", ReadOnly: true},
		catalog.Tool{Vendor: "b", Name: "list_orders", ReadOnly: true},
		catalog.Tool{Vendor: "c", Name: "cancel_order"},
	))
	for _, test := range []struct {
		question string
		promoted map[string]bool
		want     []string
	}{
		{"list orders", nil, []string{"a__list_orders", "b__list_orders", "c__cancel_order"}},
		{"list orders", map[string]bool{"b__list_orders": true}, []string{"b__list_orders", "a__list_orders", "c__cancel_order"}},
		{"orders", map[string]bool{"c__cancel_order": true}, []string{"c__cancel_order", "a__list_orders", "b__list_orders"}},
		{"cancel an order", map[string]bool{"b__list_orders": true}, []string{"c__cancel_order", "b__list_orders", "a__list_orders"}},
	} {
		hits, err := x.Find(test.question, test.promoted)
		if diff := cmp.Diff(test.want, wires(hits, 5)); err != nil || diff != "" {
			t.Errorf("%s with %v: %v (-want +got):\n%s", test.question, test.promoted, err, diff)
		}
	}
}

func TestFindMinds(t *testing.T) {
	t.Parallel()
	x := catalog.NewIndex(entries(
		catalog.Tool{Vendor: "a", Name: "add_mailbox", Description: "A mailbox may be deleted later."},
		catalog.Tool{Vendor: "a", Name: "mailbox_remove", Description: "Removes it."},
		catalog.Tool{Vendor: "a", Name: "export_mailbox"},
		catalog.Tool{Vendor: "b", Name: "add_boat"},
		catalog.Tool{Vendor: "b", Name: "get_boat", ReadOnly: true},
		catalog.Tool{Vendor: "b", Name: "get_boat_document", ReadOnly: true},
		catalog.Tool{Vendor: "c", Name: "get_license", Description: "Of a boat or its owner.", ReadOnly: true},
		catalog.Tool{Vendor: "c", Name: "get_owner", Description: "Of a shop.", ReadOnly: true},
	))
	for what, test := range map[string]struct{ question, first string }{
		"what is done to a thing":      {"delete a mailbox", "a__mailbox_remove"},
		"a verb of two words":          {"throw away the mailbox", "a__mailbox_remove"},
		"a verb that only leads":       {"onboard a mailbox", "a__add_mailbox"},
		"a verb that is not usual":     {"export the mailbox", "a__export_mailbox"},
		"a verb that is a thing too":   {"file a boat", "b__add_boat"},
		"how much of a question it is": {"license of the owner of a boat", "c__get_license"},
	} {
		if hits, err := x.Find(test.question, nil); err != nil || !slices.Equal(wires(hits, 1), []string{test.first}) {
			t.Errorf("%s: %q = %v, %v, want %s first", what, test.question, wires(hits, 3), err, test.first)
		}
	}
}

// Two indexes of the same tools agree, whatever order Go's maps are in, and may be asked at once.
func TestFindIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	list, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := readQuestions(openQuestions)
	if err != nil {
		t.Fatal(err)
	}
	a, b := newCorpusIndex(t), catalog.NewIndex(list)
	questions := []string{"sheduled mesages", "invocie custmer wier"}
	for _, q := range asked[:40] {
		questions = append(questions, q.text)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, q := range questions {
				first, err := a.Find(q, nil)
				second, err2 := b.Find(q, nil)
				if diff := cmp.Diff(wires(first, len(first)), wires(second, len(second))); err != nil || err2 != nil || diff != "" {
					t.Errorf("%q: %v, %v, two answers:\n%s", q, err, err2, diff)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzFind(f *testing.F) {
	x := newCorpusIndex(f)
	for _, q := range []string{"list issues", "\xff\xfe", "天気 เชียงใหม่ 서울", strings.Repeat("unknwon wrods ", 2000), strings.Repeat("x", 1<<16), "e\u0301\u0301", "İıſK", "PRsURLs"} { //nolint:misspell // meant
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, question string) {
		hits, err := x.Find(question, nil)
		var r *reason.Refusal
		if err != nil && !errors.As(err, &r) {
			t.Errorf("%q: %v, want hits or a refusal", question, err)
		}
		for i := range hits[min(1, len(hits)):] {
			if hits[i].Score < hits[i+1].Score {
				t.Errorf("%q: hit %d scores less than the next", question, i)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	x := newCorpusIndex(b)
	asked, err := readQuestions(openQuestions)
	if err != nil {
		b.Fatal(err)
	}
	unseen, err := readQuestions(unseenQuestions)
	if err != nil {
		b.Fatal(err)
	}
	asked = append(asked, unseen...)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if _, err := x.Find(asked[i%len(asked)].text, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkFindWorst is the longest question there is, of words that are all misspelt.
func BenchmarkFindWorst(b *testing.B) {
	x := newCorpusIndex(b)
	question := strings.Repeat("subscribtoin invioces repositroies shceduled transactoins permisions messgaes calandars notifcations ", 200) //nolint:misspell // meant
	for b.Loop() {
		if _, err := x.Find(question, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewIndex(b *testing.B) {
	list, err := corpus()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		catalog.NewIndex(list)
	}
}
