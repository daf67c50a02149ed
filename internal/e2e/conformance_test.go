package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
)

// TestConformance runs the protocol's own suites against the gateway and holds each check to what conformance/ says
// of it: one that fails and is not listed fails the test, and so does one that is listed and passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, suite := range []struct {
		expected string // in conformance/
		tool     string // npm package
		args     []string
		replicas int
	}{
		{"0.1.16.yml", "conformance-0.1", []string{"--suite", "all"}, 2},
		// One: server-session-lifecycle wants an ended session gone with the answer to DELETE, and another replica hears of
		// it a moment later.
		{"2025-11-25.yml", "conformance-0.2", []string{"--requirements", "2025-11-25"}, 1},
		{"2026-07-28.yml", "conformance-0.2", []string{"--requirements", "2026-07-28"}, 2},
	} {
		t.Run(strings.TrimSuffix(suite.expected, ".yml"), func(t *testing.T) {
			t.Parallel()
			results := t.TempDir()
			tool := e2e.NewProgram(t, e2e.Module(t, suite.tool+"/dist/index.js"))
			args := append([]string{"server", "--url", fixtureURL(t, suite.replicas), "--output-dir", results}, suite.args...)
			stdout, stderr, _ := tool.RunWithin(5*time.Minute, args...) // it exits 1 for any failure; which ones, its results say
			checks, scenarios := readChecks(t, results)
			if announced := announcement.FindStringSubmatch(stdout); announced == nil || announced[1] != strconv.Itoa(scenarios) {
				t.Errorf("%d scenarios left results, want what was announced\n%s%s", scenarios, stdout, stderr)
			}
			judge(t, checks, readExpected(t, filepath.Join("conformance", suite.expected)))
		})
	}
}

// TestAuthorizationConformance runs the protocol's own suite for authorization servers. It has a person allow what its client
// asks for; here that is the test.
func TestAuthorizationConformance(t *testing.T) {
	t.Parallel()
	kit := servertest.Start(t, servertest.Options{})
	owner := newPerson(t, kit)
	client, err := oauthex.RegisterClient(t.Context(), kit.URL+"/mcp/oauth/register", &oauthex.ClientRegistrationMetadata{
		ClientName: "Conformance", RedirectURIs: []string{"http://127.0.0.1/callback"}, TokenEndpointAuthMethod: "none",
	}, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string][]string{"with resource": {"--resource", kit.URL + "/mcp"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			results := t.TempDir()
			args := append([]string{
				"authorization", "--url", kit.URL, "--client-id", client.ClientID, "--port", freePort(t), "--output-dir", results,
			}, more...)
			tool := e2e.NewProgram(t, e2e.Module(t, "conformance-0.2/dist/index.js")).Start(args...)
			var said strings.Builder
			for line, ok := tool.Line(); ok; line, ok = tool.Line() {
				fmt.Fprintf(&said, "%s\n", line)
				if strings.HasPrefix(string(line), kit.URL+"/mcp/oauth/authorize?") {
					if _, _, err := owner.open(http.MethodGet, owner.allow(string(line), "Conformance").String(), nil); err != nil {
						t.Error(err)
					}
				}
			}
			checks, scenarios := readChecks(t, results)
			if announced := announcement.FindStringSubmatch(said.String()); announced == nil || announced[1] != strconv.Itoa(scenarios) {
				t.Errorf("%d scenarios left results, want what was announced\n%s", scenarios, &said)
			}
			judge(t, checks, nil)
			if got := checks["authorization-code-grant:authorization-code-grant"].Status; got != "SUCCESS" {
				t.Errorf("the code grant = %q, want SUCCESS\n%s", got, &said)
			}
		})
	}
}

// freePort is a port of 127.0.0.1 that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// announcement is the line in which the tool says how much it will run.
var announcement = regexp.MustCompile(`(?m)^Running .*\((\d+) scenarios\)`)

// fixtureURL starts a gateway with the fixture behind a proxy that adds the bearer: the suites cannot send one. The
// proxy is the gateway's origin, and Host stays the client's, so that the gateway judges Host and Origin itself.
func fixtureURL(t *testing.T, replicas int) string {
	t.Helper()
	var gateway *url.URL
	var token string
	proxy := httptest.NewUnstartedServer(servertest.WithoutLoss(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(gateway)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // clients leave
	}))
	t.Cleanup(proxy.Close)
	_, port, _ := strings.Cut(proxy.Listener.Addr().String(), ":")
	origin := "http://localhost:" + port
	_, kit, token := startFixture(t, servertest.Options{Origin: origin, Replicas: replicas})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kit.Log.Warnings())
		}
	})
	gateway, err := url.Parse(kit.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Start()
	return origin + "/mcp"
}

// A check is one thing that a scenario found.
type check struct {
	ID           string
	Status       string
	ErrorMessage string
}

// rank says which of the findings under one name counts: the worst.
func (c check) rank() int {
	return slices.Index([]string{"INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE"}, c.Status)
}

func (c check) failed() bool { return c.Status == "WARNING" || c.Status == "FAILURE" }

// readChecks reads what a run found, by scenario:check, and counts its scenarios.
func readChecks(t *testing.T, dir string) (checks map[string]check, scenarios int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	checks = map[string]check{}
	for _, file := range files {
		scenario := resultFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if scenario == nil {
			t.Fatalf("%s is not named after a scenario", filepath.Dir(file))
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []check
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		for _, c := range list {
			name := scenario[1] + ":" + c.ID
			if known, ok := checks[name]; !ok || c.rank() > known.rank() {
				checks[name] = c
			}
		}
	}
	return checks, len(files)
}

// resultFolder is the folder of a scenario's results: its name, then the time.
var resultFolder = regexp.MustCompile(`^(?:authorization-)?server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readExpected reads a list of expected failures: scenario or scenario:check, an entry a line as the tool's own
// --expected-failures takes it, below a comment that says why. It returns the reasons.
func readExpected(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	reason := ""
	for line := range strings.Lines(string(text)) {
		entry, isEntry := strings.CutPrefix(strings.TrimSpace(line), "- ")
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		switch {
		case strings.TrimSpace(line) == "":
			reason = ""
		case isComment:
			reason += comment + " "
		case isEntry && reason == "":
			t.Errorf("%s: %s has no reason above it", file, entry)
		case isEntry:
			reasons[entry] = strings.TrimSpace(reason)
		case strings.TrimSpace(line) != "server:":
			t.Fatalf("%s: cannot read %q", file, line)
		}
	}
	return reasons
}

// judge compares what failed with what was expected to. An entry without a check stands for every check of a scenario.
func judge(t *testing.T, checks map[string]check, expected map[string]string) {
	t.Helper()
	failed := map[string]bool{} // of the expected
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		c := checks[name]
		if !c.failed() {
			continue
		}
		scenario, _, _ := strings.Cut(name, ":")
		_, listed := expected[name]
		_, whole := expected[scenario]
		if !listed && !whole {
			t.Errorf("%s: %s: %s", name, c.Status, c.ErrorMessage)
		}
		failed[name], failed[scenario] = true, true
	}
	for _, entry := range slices.Sorted(maps.Keys(expected)) {
		if !failed[entry] {
			t.Errorf("%s is expected to fail and did not: take it off the list", entry)
		}
	}
}
