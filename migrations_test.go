package graft_test

import (
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMigrations holds that the way of a database only goes on: numbered without gaps, and never rewritten.
func TestMigrations(t *testing.T) {
	t.Parallel()
	check(t, migrationNames, migrationHashes)
}

// pins lists the SHA-256 of every migration, as sha256sum prints them.
const pins = "testdata/migrations.sha256"

// migrationName is NNNNN_words, in SQL or, where SQL cannot say it, in Go.
var migrationName = regexp.MustCompile(`^(\d{5})_[a-z0-9]+(_[a-z0-9]+)*\.(sql|go)$`)

func (tr tree) migrations() []file {
	var found []file
	for _, f := range tr.files {
		base := path.Base(f.path)
		if f.dir() == "migrations" && (path.Ext(base) == ".sql" || base[0] >= '0' && base[0] <= '9') && !f.isTest() {
			found = append(found, f)
		}
	}
	return found
}

func migrationNames(tr tree) (problems []string) {
	next := 1
	for _, f := range tr.migrations() {
		match := migrationName.FindStringSubmatch(path.Base(f.path))
		if match == nil {
			problems = append(problems, f.path+": want a name like 00042_some_words.sql")
			continue
		}
		number, err := strconv.Atoi(match[1])
		if err != nil || number != next {
			problems = append(problems, fmt.Sprintf("%s: want number %05d: no gap, no number twice", f.path, next))
		}
		next = number + 1
	}
	return problems
}

// migrationHashes: databases out there have run what was merged, so a change to it reaches none of them.
func migrationHashes(tr tree) (problems []string) {
	pinned := map[string]string{}
	for line := range strings.Lines(tr.read(pins)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			pinned[name] = hash
		}
	}
	for _, f := range tr.migrations() {
		want, ok := pinned[f.path]
		delete(pinned, f.path)
		switch got := fmt.Sprintf("%x", sha256.Sum256([]byte(f.text))); {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: a new migration; before it is merged, pin it with this line in %s:\n%s  %s", f.path, pins, got, f.path))
		case got != want:
			problems = append(problems, fmt.Sprintf("%s: a merged migration was edited; undo that and write the next one instead\n(not merged yet? then its line in %s is: %s  %s)", f.path, pins, got, f.path))
		}
	}
	for name := range pinned {
		problems = append(problems, fmt.Sprintf("%s: a merged migration is missing; %s names it", name, pins))
	}
	return problems
}

func TestMigrationRulesBite(t *testing.T) {
	t.Parallel()
	const sql = "select 1;\n"
	pin := fmt.Sprintf("%x  migrations/00001_one.sql\n", sha256.Sum256([]byte(sql)))
	for _, p := range []planted{
		{"in order", migrationNames, map[string]string{"migrations/00001_one.sql": sql, "migrations/00002_two.go": "package migrations\n", "migrations/doc.go": "package migrations\n"}, ""},
		{"a gap", migrationNames, map[string]string{"migrations/00001_one.sql": sql, "migrations/00003_three.sql": sql}, "want number 00002"},
		{"a number twice", migrationNames, map[string]string{"migrations/00001_one.sql": sql, "migrations/00001_uno.sql": sql}, "want number 00002"},
		{"no number", migrationNames, map[string]string{"migrations/one.sql": sql}, "want a name like"},
		{"pinned", migrationHashes, map[string]string{"migrations/00001_one.sql": sql, pins: pin}, ""},
		{"edited", migrationHashes, map[string]string{"migrations/00001_one.sql": sql + sql, pins: pin}, "was edited"},
		{"not pinned", migrationHashes, map[string]string{"migrations/00001_one.sql": sql}, strings.TrimSpace(pin)},
		{"gone", migrationHashes, map[string]string{pins: pin}, "is missing"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}
