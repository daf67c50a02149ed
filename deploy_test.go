package graft_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"
)

// TestDeployment reads Dockerfile and docker-compose.yml, which no test here runs, against the code they start.
func TestDeployment(t *testing.T) {
	t.Parallel()
	check(t, imageSources, imageRuns, composeServices, composeFront, deploymentVariables, deploymentCommands)
}

// composition is the part of a compose file that ours uses.
type composition struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       any // "." or {context, target}
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
	ReadOnly    bool `yaml:"read_only"`
	Restart     string
}

func compose(tr tree) (composition, []string) {
	var c composition
	if err := yaml.Unmarshal([]byte(tr.read("docker-compose.yml")), &c); err != nil {
		return c, []string{fmt.Sprintf("docker-compose.yml: %v", err)}
	}
	return c, nil
}

// target is the stage of the Dockerfile that the service runs, and whether it runs one.
func (s service) target() (string, bool) {
	if fields, ok := s.Build.(map[string]any); ok {
		target, _ := fields["target"].(string)
		return target, true
	}
	return "", s.Build != nil
}

// composeServices: what a service names is there.
func composeServices(tr tree) (problems []string) {
	c, problems := compose(tr)
	all := dockerfile(tr.read("Dockerfile"))
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		wrong := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("docker-compose.yml: %s: %s", name, fmt.Sprintf(format, args...)))
		}
		if target, ours := s.target(); ours && len(stageOf(all, target)) == 0 {
			wrong("the Dockerfile has no stage %q", target)
		} else if ours && target == "" && (!s.ReadOnly || len(s.Ports) > 0) {
			wrong("a gateway has a read-only file system and publishes no port")
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if file, ok := strings.CutPrefix(source, "./"); ok && tr.read(file) == "" {
				wrong("%s is not in the tree", file)
			} else if _, declared := c.Volumes[source]; !ok && !declared {
				wrong("volume %s is not declared", source)
			}
		}
		for other, need := range s.DependsOn {
			on, exists := c.Services[other]
			_, ours := on.target() // whose image has a health check
			switch {
			case !exists:
				wrong("depends on %s, which does not exist", other)
			case need.Condition == "service_healthy" && !ours && len(on.Healthcheck.Test) == 0:
				wrong("waits for the health of %s, which has no check", other)
			case need.Condition == "service_completed_successfully" && on.Restart != "no":
				wrong("waits for the end of %s, which restarts", other)
			}
		}
	}
	return problems
}

// composeFront: Caddy is the only way in, knows every gateway by its port, and asks them a path that is served.
func composeFront(tr tree) (problems []string) {
	c, problems := compose(tr)
	caddy := tr.read("deploy/Caddyfile")
	port := last(stageOf(dockerfile(tr.read("Dockerfile")), ""), "EXPOSE")
	var want []string
	for name, s := range c.Services {
		if target, ours := s.target(); ours && target == "" {
			want = append(want, name+":"+port)
		}
		if len(s.Ports) > 0 && name != "caddy" {
			problems = append(problems, fmt.Sprintf("docker-compose.yml: %s publishes a port; only caddy does", name))
		}
	}
	slices.Sort(want)
	proxy := regexp.MustCompile(`(?m)^\s*reverse_proxy (.*) \{`).FindStringSubmatch(caddy)
	if proxy == nil || !slices.Equal(strings.Fields(proxy[1]), want) || len(want) < 2 {
		problems = append(problems, fmt.Sprintf("deploy/Caddyfile: forwards to %q, want every gateway: %q", proxy, want))
	}
	if !slices.Contains(c.Services["caddy"].Ports, "127.0.0.1:8080:8080") {
		problems = append(problems, "docker-compose.yml: caddy: without a domain it is reached on 127.0.0.1:8080 alone")
	}
	health := regexp.MustCompile(`(?m)^\s*health_uri (\S+)`).FindStringSubmatch(caddy)
	if health == nil || !slices.ContainsFunc(tr.files, func(f file) bool {
		return f.dir() == "server" && !f.isTest() && strings.Contains(f.text, strconv.Quote(health[1]))
	}) {
		problems = append(problems, fmt.Sprintf("deploy/Caddyfile: health path %q is no route of the server", health))
	}
	return problems
}

// asked are variables that compose itself is given, beside those of the gateway's Config.
var asked = []string{"GRAFT_DOMAIN", "POSTGRES_PASSWORD"}

// deploymentVariables: every variable set for a gateway is one it reads, and every one asked of a person is named above.
func deploymentVariables(tr tree) (problems []string) {
	c, problems := compose(tr)
	known := tr.environmentTags()
	known["PGPASSWORD"] = true // read by pgx beside the URL, so that a password needs no escaping
	set := map[string]string{}
	for _, in := range dockerfile(tr.read("Dockerfile")) {
		if in.name == "ENV" {
			for name := range assignments(in.args) {
				set[name] = "Dockerfile"
			}
		}
	}
	for name, s := range c.Services {
		if _, ours := s.target(); ours {
			for variable := range s.Environment {
				set[variable] = "docker-compose.yml: " + name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !known[name] {
			problems = append(problems, fmt.Sprintf("%s: %s is no setting of the gateway", set[name], name))
		}
	}
	for _, match := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(withoutComments(tr.read("docker-compose.yml")), -1) {
		if !slices.Contains(asked, match[1]) {
			problems = append(problems, fmt.Sprintf("docker-compose.yml: ${%s}: want one of %q", match[1], asked))
		}
	}
	return problems
}

func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "")
}

// environmentTags are the variables that kong reads into the server's Config and the binary's commands.
func (tr tree) environmentTags() map[string]bool {
	known := map[string]bool{}
	for _, f := range tr.files {
		if f.ast == nil || f.isTest() || f.dir() != "server" && f.dir() != "cmd/graft" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if field, ok := node.(*ast.Field); ok {
				for name := range strings.SplitSeq(tagOf(field).Get("env"), ",") {
					known[name] = true
				}
			}
			return true
		})
	}
	return known
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(text)
}

// deploymentCommands: every command line in the image, the compose file and the init script is one of the binary's.
func deploymentCommands(tr tree) (problems []string) {
	known := tr.subcommands()
	used := map[string]string{}
	end := stageOf(dockerfile(tr.read("Dockerfile")), "")
	used[strings.Join(words(last(end, "CMD")), " ")] = "Dockerfile: CMD"
	c, problems := compose(tr)
	for name, s := range c.Services {
		if _, ours := s.target(); ours && len(s.Command) > 0 {
			used[strings.Join(s.Command, " ")] = "docker-compose.yml: " + name
		}
	}
	for _, name := range []string{"deploy/init", "docker-compose.yml"} {
		for _, match := range regexp.MustCompile(`(?m)\bgraft ((?:[a-z]+ ?)+)`).FindAllStringSubmatch(withoutComments(tr.read(name)), -1) {
			used[strings.TrimSpace(match[1])] = name
		}
	}
	for _, command := range slices.Sorted(maps.Keys(used)) {
		if !known[command] {
			problems = append(problems, fmt.Sprintf("%s: graft has no command %q", used[command], command))
		}
	}
	return problems
}

// subcommands reads the binary's grammar: the fields tagged cmd of the struct named cli.
func (tr tree) subcommands() map[string]bool {
	known := map[string]bool{}
	var walk func(prefix string, fields *ast.FieldList)
	walk = func(prefix string, fields *ast.FieldList) {
		for _, field := range fields.List {
			if _, ok := tagOf(field).Lookup("cmd"); !ok {
				continue
			}
			for _, name := range field.Names {
				command := strings.TrimSpace(prefix + " " + strings.ToLower(name.Name))
				if group, ok := field.Type.(*ast.StructType); ok {
					walk(command, group.Fields)
				} else {
					known[command] = true
				}
			}
		}
	}
	for _, f := range tr.files {
		if f.ast == nil || f.dir() != "cmd/graft" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.Name == "cli" {
				if grammar, ok := spec.Type.(*ast.StructType); ok {
					walk("", grammar.Fields)
				}
			}
			return true
		})
	}
	return known
}

func TestDeploymentRulesBite(t *testing.T) {
	t.Parallel()
	whole := load(t, os.DirFS("."))
	for _, fault := range []struct {
		name      string
		rule      rule
		file      string
		old, with string
		want      string
	}{
		{"a source that is not there", imageSources, "Dockerfile", "COPY deploy/init", "COPY deploy/start", "COPY deploy/start"},
		{"a source that is ignored", imageSources, ".dockerignore", "!deploy/init\n", "", "COPY deploy/init"},
		{"code that is ignored", imageSources, ".dockerignore", "**/testdata", "server/config.go", "server/config.go is kept out"},
		{"a product of no step", imageSources, "Dockerfile", "mkdir /out/keys", "true", "/out/keys"},
		{"a stage that is not there", imageSources, "Dockerfile", "COPY --from=build /out/graft /graft", "COPY --from=make /out/graft /graft", "no such stage"},
		{"a secret in the build", imageSources, ".dockerignore", ".env\n", "", ".env"},
		{"another Go", imageRuns, "Dockerfile", "FROM golang:1.", "FROM golang:0.", "go.mod wants"},
		{"cgo", imageRuns, "Dockerfile", "CGO_ENABLED=0 ", "", "no static build"},
		{"root", imageRuns, "Dockerfile", "USER 10001:10001\nENV GRAFT_LISTEN", "USER 0:0\nENV GRAFT_LISTEN", `stage "" runs as user "0"`},
		{"no health check", imageRuns, "Dockerfile", `CMD ["/graft", "health"]`, "NONE", "HEALTHCHECK"},
		{"another port", imageRuns, "Dockerfile", "EXPOSE 8080", "EXPOSE 80", "EXPOSE 80"},
		{"a stage of no image", composeServices, "docker-compose.yml", "target: init", "target: begin", `no stage "begin"`},
		{"a file that is not there", composeServices, "docker-compose.yml", "./deploy/Caddyfile:", "./deploy/caddy:", "deploy/caddy is not in the tree"},
		{"a volume not declared", composeServices, "docker-compose.yml", "caddy:/data", "cady:/data", "cady is not declared"},
		{"a wait for nobody", composeServices, "docker-compose.yml", "      postgres:\n        condition", "      database:\n        condition", "depends on database"},
		{"a wait for no check", composeServices, "docker-compose.yml", "healthcheck:", "x-healthcheck:", "has no check"},
		{"a wait without end", composeServices, "docker-compose.yml", `restart: "no"`, "restart: always", "which restarts"},
		{"a gateway not forwarded to", composeFront, "deploy/Caddyfile", "graft-1:8080 graft-2:8080", "graft-1:8080", "want every gateway"},
		{"a health path not served", composeFront, "deploy/Caddyfile", "/readyz", "/ready", "no route"},
		{"open to the world", composeFront, "docker-compose.yml", `"127.0.0.1:8080:8080"`, `"8080:8080"`, "alone"},
		{"a database open to the world", composeFront, "docker-compose.yml", "    image: postgres:17", "    image: postgres:17\n    ports: [\"5432:5432\"]", "postgres publishes a port"},
		{"a variable nobody reads", deploymentVariables, "docker-compose.yml", "GRAFT_ORIGIN:", "GRAFT_URL:", "GRAFT_URL is no setting"},
		{"one in the image", deploymentVariables, "Dockerfile", "GRAFT_LOG=json", "GRAFT_LOGS=json", "GRAFT_LOGS is no setting"},
		{"a variable not explained", deploymentVariables, "docker-compose.yml", "${GRAFT_DOMAIN:-:8080}", "${GRAFT_SITE:-:8080}", "${GRAFT_SITE}"},
		{"a command that is none", deploymentCommands, "Dockerfile", `CMD ["serve"]`, `CMD ["start"]`, `no command "start"`},
		{"one in the script", deploymentCommands, "deploy/init", "graft key new", "graft key make", `no command "key make"`},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			text := whole.read(fault.file)
			if !strings.Contains(text, fault.old) {
				t.Fatalf("%s has no %q to change", fault.file, fault.old)
			}
			fsys := fstest.MapFS{}
			for _, f := range whole.files {
				if path.Ext(f.path) != ".go" || under(f.path, "server", "cmd") {
					fsys[f.path] = &fstest.MapFile{Data: []byte(f.text)}
				}
			}
			fsys[fault.file] = &fstest.MapFile{Data: []byte(strings.Replace(text, fault.old, fault.with, 1))}
			got := fault.rule(load(t, fsys))
			if len(got) == 0 || !strings.Contains(got[0], fault.want) {
				t.Errorf("problems = %q, want %q", got, fault.want)
			}
		})
	}
}
