package graft_test

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one of a Dockerfile: COPY --from=build /a /b.
type instruction struct {
	name  string            // upper case
	flags map[string]string // from: build
	args  string            // the rest, one line
	stage string            // the stage it stands in, the last one is ""
}

// dockerfile reads a Dockerfile as far as ours uses the language: comments, continued lines, flags, stages.
func dockerfile(text string) []instruction {
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	var all []instruction
	stage := ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		in := instruction{name: strings.ToUpper(words[0]), flags: map[string]string{}}
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "--") {
			key, value, _ := strings.Cut(words[0][2:], "=")
			in.flags[key], words = value, words[1:]
		}
		in.args = strings.Join(words, " ")
		if in.name == "FROM" {
			stage = ""
			if len(words) == 3 && strings.EqualFold(words[1], "as") {
				stage = words[2]
			}
		}
		in.stage = stage
		all = append(all, in)
	}
	return all
}

// stageOf returns the instructions of one stage.
func stageOf(all []instruction, stage string) (of []instruction) {
	for _, in := range all {
		if in.stage == stage {
			of = append(of, in)
		}
	}
	return of
}

// last returns what the last instruction of that name says; "" without one.
func last(of []instruction, name string) string {
	args := ""
	for _, in := range of {
		if in.name == name {
			args = in.args
		}
	}
	return args
}

// words reads the exec form of a command: ["/graft", "health"].
func words(args string) []string {
	var list []string
	if json.Unmarshal([]byte(args), &list) != nil {
		return nil
	}
	return list
}

// dockerIgnores reports whether .dockerignore keeps a file out of the build: the last pattern that matches decides.
func dockerIgnores(patterns, name string) bool {
	ignored := false
	for line := range strings.Lines(patterns) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, kept := strings.CutPrefix(line, "!")
		if dockerMatches(pattern, name) {
			ignored = !kept
		}
	}
	return ignored
}

// dockerMatches reports whether a pattern names a file or a folder above it.
func dockerMatches(pattern, name string) bool {
	anywhere, ok := strings.CutPrefix(pattern, "**/")
	for at := name; at != "."; at = path.Dir(at) {
		subject := at
		if ok {
			subject, pattern = path.Base(at), anywhere
		}
		if matched, err := path.Match(pattern, subject); err == nil && matched {
			return true
		}
	}
	return false
}

// imageSources: what the image is built from is there and not kept out.
func imageSources(tr tree) (problems []string) {
	all, ignore := dockerfile(tr.read("Dockerfile")), tr.read(".dockerignore")
	made := []string{"/etc/"} // of the base image
	for _, in := range stageOf(all, "build") {
		if in.name == "RUN" {
			made = append(made, strings.Fields(in.args)...)
		}
	}
	for _, in := range all {
		if in.name != "COPY" && in.name != "ADD" {
			continue
		}
		paths := strings.Fields(in.args)
		for _, source := range paths[:len(paths)-1] {
			switch from := in.flags["from"]; {
			case from != "" && len(stageOf(all, from)) == 0:
				problems = append(problems, fmt.Sprintf("Dockerfile: COPY --from=%s: no such stage", from))
			case from != "" && !slices.ContainsFunc(made, func(m string) bool { return m == source || strings.HasSuffix(m, "/") && strings.HasPrefix(source, m) }):
				problems = append(problems, fmt.Sprintf("Dockerfile: COPY --from=%s %s: nothing there makes it", from, source))
			case from == "" && source != "." && (tr.read(source) == "" || dockerIgnores(ignore, source)):
				problems = append(problems, fmt.Sprintf("Dockerfile: COPY %s: not in the tree, or ignored", source))
			}
		}
	}
	for _, name := range tr.filesOf("cmd/graft") {
		if dockerIgnores(ignore, name) {
			problems = append(problems, fmt.Sprintf(".dockerignore: %s is kept out, but the binary is built from it", name))
		}
	}
	for _, secret := range []string{".env", ".git/config", "data/master.key", "internal/e2e/node_modules/a/b.js"} {
		if !dockerIgnores(ignore, secret) {
			problems = append(problems, fmt.Sprintf(".dockerignore: %s would go into the build", secret))
		}
	}
	return problems
}

// filesOf returns every file that a package is built from, our own packages below it included.
func (tr tree) filesOf(dir string) []string {
	seen, names := map[string]bool{}, []string{}
	var walk func(dir string)
	walk = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		for _, f := range tr.files {
			if f.isTest() || !under(f.path, dir) || f.dir() != dir && (f.ast != nil || strings.Contains(f.path, "/testdata/")) {
				continue
			}
			names = append(names, f.path) // embedded files lie below their package
			if f.ast != nil {
				for _, imported := range f.ownImports() {
					walk(imported)
				}
			}
		}
	}
	walk(dir)
	return names
}

// imageRuns: static, of the module's Go, without rights, and watched.
func imageRuns(tr tree) (problems []string) {
	all := dockerfile(tr.read("Dockerfile"))
	wrong := func(format string, args ...any) {
		problems = append(problems, "Dockerfile: "+fmt.Sprintf(format, args...))
	}
	build := stageOf(all, "build")
	if version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(tr.read("go.mod")); version != nil && last(build, "FROM") != "golang:"+version[1]+" AS build" {
		wrong("FROM %s: go.mod wants Go %s", last(build, "FROM"), version[1])
	}
	if !slices.ContainsFunc(build, func(in instruction) bool {
		return strings.HasPrefix(in.args, "CGO_ENABLED=0 go build ") && strings.HasSuffix(in.args, " ./cmd/graft")
	}) {
		wrong("no static build of ./cmd/graft")
	}
	for _, stage := range []string{"init", ""} {
		if uid, _, _ := strings.Cut(last(stageOf(all, stage), "USER"), ":"); strings.Trim(uid, "0123456789") != "" || strings.Trim(uid, "0") == "" {
			wrong("stage %q runs as user %q, want a number that is not 0", stage, uid)
		}
	}
	end := stageOf(all, "")
	if check, ok := strings.CutPrefix(last(end, "HEALTHCHECK"), "CMD "); !ok || !slices.Equal(words(check), []string{"/graft", "health"}) {
		wrong("HEALTHCHECK %q, want graft health", check)
	}
	if _, port, err := net.SplitHostPort(assignments(last(end, "ENV"))["GRAFT_LISTEN"]); err != nil || port != last(end, "EXPOSE") {
		wrong("EXPOSE %s, but GRAFT_LISTEN has port %q", last(end, "EXPOSE"), port)
	}
	return problems
}

// assignments reads A=1 B=2.
func assignments(args string) map[string]string {
	of := map[string]string{}
	for _, word := range strings.Fields(args) {
		if name, value, ok := strings.Cut(word, "="); ok {
			of[name] = value
		}
	}
	return of
}

func TestDockerIgnores(t *testing.T) {
	t.Parallel()
	const patterns = "# a comment\n**/*_test.go\ndeploy\n!deploy/init\n*.md\n**/node_modules\n"
	for name, want := range map[string]bool{
		"a_test.go": true, "mcp/a_test.go": true, "mcp/a.go": false,
		"deploy/Caddyfile": true, "deploy/init": false,
		"README.md": true, "docs/a.md": false,
		"internal/e2e/node_modules/a/b.js": true, "node_modules/a": true,
	} {
		if got := dockerIgnores(patterns, name); got != want {
			t.Errorf("dockerIgnores(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	all := dockerfile("# one\nFROM a:1 AS build\nRUN b \\\n  && c\nFROM scratch\nCOPY --from=build --chown=1:1 /x /y\nCMD [\"/y\", \"z\"]\n")
	if got, want := last(stageOf(all, "build"), "RUN"), "b && c"; got != want {
		t.Errorf("RUN = %q, want %q", got, want)
	}
	end := stageOf(all, "")
	if len(end) != 3 || end[1].flags["from"] != "build" || end[1].args != "/x /y" {
		t.Errorf("last stage = %+v, want FROM, COPY from build, CMD", end)
	}
	if got := words(last(end, "CMD")); len(got) != 2 || got[1] != "z" {
		t.Errorf("CMD = %q, want two words", got)
	}
}
