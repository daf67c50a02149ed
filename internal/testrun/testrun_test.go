package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// module writes a module of one test file and moves the test into it; go test runs in the working folder.
func module(t *testing.T, test string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26\n",
		"m.go":      "package m\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\n" + test,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestRun is not parallel: each case is a module of its own in the working folder.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		args []string
		fuzz time.Duration
		ok   bool
		want []string // in the output, in this order
		last string   // the last line begins so
	}{
		"passes": {
			code: `func TestA(t *testing.T) { t.Log("unseen"); t.Run("sub", func(*testing.T) {}) }`,
			args: []string{"./..."},
			ok:   true, want: []string{"1 tests in 1 packages", "TestA/sub", "ok  \texample.com/m\t"}, last: "ok  \texample.com/m\t",
		},
		"fails": {
			code: `func TestA(t *testing.T) { t.Error("broken") }` + "\n" + `func TestB(t *testing.T) {}`,
			args: []string{"./..."},
			want: []string{"broken", "--- FAIL: TestA", "FAIL\texample.com/m\t", "2 tests in 1 packages", "FAIL\texample.com/m\t"}, last: "FAIL",
		},
		"skips": {
			code: `func TestA(t *testing.T) { t.` + `Skip("not today") }`,
			args: []string{"./..."},
			want: []string{"not today", "a skipped test proves nothing", "FAIL\texample.com/m\t"}, last: "FAIL",
		},
		"panics": {
			code: `func TestA(t *testing.T) { panic("astray") }`,
			args: []string{"./..."},
			want: []string{"panic: astray", "FAIL\texample.com/m\t"}, last: "FAIL",
		},
		"does not compile": {
			code: `func TestA(t *testing.T) { return 1 }`,
			args: []string{"./..."},
			want: []string{"too many return values", "FAIL\texample.com/m [build failed]"}, last: "FAIL",
		},
		"has no test": {code: "var _ testing.TB", args: []string{"./..."}, last: "FAIL"},
		"fuzzes": {
			code: `func FuzzA(f *testing.F) { f.Add("seed"); f.Fuzz(func(t *testing.T, s string) {}) }`,
			args: []string{"-run", "^Fuzz", "./..."}, fuzz: time.Second,
			ok: true, want: []string{"fuzz FuzzA in example.com/m for 1s", "FuzzA/seed#0"}, last: "ok  \texample.com/m\t",
		},
		"fuzzing finds": {
			code: `func FuzzA(f *testing.F) { f.Fuzz(func(t *testing.T, n uint8) { if n != 48 { t.Error("found") } }) }`,
			args: []string{"./..."}, fuzz: 20 * time.Second,
			want: []string{"found"}, last: "FAIL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			module(t, test.code)
			var out bytes.Buffer
			r := runner{out: &out, fuzz: test.fuzz}
			if got := r.run(t.Context(), append([]string{"-count=1"}, test.args...)); got != test.ok {
				t.Errorf("run() = %t, want %t\n%s", got, test.ok, &out)
			}
			rest := out.String()
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("output = %q, want %q in this place", &out, want)
				}
				rest = after
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; !strings.HasPrefix(got, test.last) {
				t.Errorf("last line = %q, want %q", got, test.last)
			}
			if strings.Contains(out.String(), "unseen") {
				t.Errorf("output = %q, want nothing of passing tests", &out)
			}
		})
	}
}

func TestRunOnCluster(t *testing.T) {
	module(t, `func TestA(t *testing.T) { t.Error("at " + os.Getenv("GRAFT_TEST_CLUSTER")) }`)
	rewrite(t, "m_test.go", `import "testing"`, "import (\n\"os\"\n\"testing\"\n)")
	var out bytes.Buffer
	if (runner{out: &out}).runOnCluster(t.Context(), []string{"./..."}) {
		t.Errorf("runOnCluster() = true, want false\n%s", &out)
	}
	match := regexp.MustCompile(`at (postgres://\S+)`).FindStringSubmatch(out.String())
	if match == nil {
		t.Fatalf("output = %q, want the cluster's address in it", &out)
	}
	dsn, err := url.Parse(match[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dsn.Query().Get("host")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat(%s) = %v, want the cluster gone with the run", dsn.Query().Get("host"), err)
	}
}

func TestLostRaceIsToldFromAFinding(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"fuzz: elapsed: 10s, execs: 9 (0/sec)\n--- FAIL: FuzzA (10.05s)\n    context deadline exceeded\nFAIL\nexit status 1\n":                                                   true,
		"--- FAIL: FuzzA (0.02s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:5: context deadline exceeded\n    \n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n": false,
		"--- FAIL: FuzzA (0.02s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n":                                                                    false,
	} {
		if got := lostRace.MatchString(said); got != want {
			t.Errorf("lostRace(%q) = %t, want %t", said, got, want)
		}
	}
}

func rewrite(t *testing.T, file, old, replacement string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(old), []byte(replacement), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}
