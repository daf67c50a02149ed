package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store"
)

// The operator's day, on one data folder: start, begin, make, look, stop, crash, start again.
// sealedKeys is what doctor says of them: one for sessions, and one for signing once a checkpoint was made.
var sealedKeys = regexp.MustCompile(`opens the (1 key|2 keys) sealed under it`)

func TestServeAndTheCommandsBesideIt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := h.serve()
	welcome := lastWord(s.first)
	if !strings.HasPrefix(s.first, "Open this link to begin: ") || !link.MatchString(welcome) {
		t.Fatalf("serve printed %q, want one line with the welcome link", s.first)
	}
	if got := h.ok("health"); got != "ok\n" {
		t.Errorf("health = %q", got)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "master.key": 0o600, "database.url": 0o600} {
		info, err := os.Stat(filepath.Join(h.dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q has mode %v (%v), want %v", name, info.Mode(), err, mode)
		}
	}

	// A second start on the folder says who holds it, on the same port, which is taken too, and on another.
	held := fmt.Sprintf("graft: Graft already runs on %s (process %d). Stop it, or give this one another GRAFT_DATA_DIR.\n", h.dir, s.cmd.Process.Pid)
	for _, listen := range []string{h.listen, "127.0.0.1:0"} {
		if second := h.run("GRAFT_LISTEN="+listen, "serve"); second.code != 1 || second.errout != held {
			t.Errorf("a second serve on %s = exit %d %q, want %q", listen, second.code, second.errout, held)
		}
	}
	// Another folder's doctor takes the gateway for no one of its own.
	other := newHome(t)
	if got := other.run("GRAFT_LISTEN="+h.listen, "doctor"); got.code != 1 || !strings.Contains(got.out, "a gateway answers on "+h.listen+", but not from this data folder") {
		t.Errorf("doctor of another folder = exit %d\n%s", got.code, got.out)
	}

	// People and agents, while it serves.
	if got := h.run("agent", "list"); got.code != 1 || !strings.Contains(got.errout, "no organisation yet") {
		t.Errorf("agent list on an empty database = %+v", got)
	}
	one, two := h.ok("user", "add", "--email", "Ana@Example.com"), h.ok("user", "add", "--email", "ana@example.com", "--role", "owner")
	if !link.MatchString(strings.TrimSpace(one)) || one == two || get(t, strings.TrimSpace(one)) != http.StatusOK {
		t.Errorf("user add printed %q and %q, want a fresh link each time, alone on stdout", one, two)
	}
	if got := h.run("agent", "list"); got != (outcome{0, "", "No agents yet.\n"}) {
		t.Errorf("agent list without agents = %+v", got)
	}
	token := strings.TrimSpace(h.ok("agent", "add", "--name", "hermes"))
	if !store.WellFormed(store.StaticTokenPrefix, token) {
		t.Errorf("agent add printed %q, want the token alone", token)
	}
	if got := h.run("agent", "add", "--name", "HERMES"); got.code != 1 || !strings.Contains(got.errout, `A live agent is called "HERMES" already. Choose another name.`) || got.out != "" {
		t.Errorf("agent add of a taken name = %+v", got)
	}
	if got := h.run("agent", "add", "--name", "x", "--user", "nobody@example.com"); got.code != 1 || !strings.Contains(got.errout, "not a member") {
		t.Errorf("agent add for a stranger = %+v", got)
	}
	if status := post(t, "http://"+h.listen+"/mcp", token); status != http.StatusBadRequest {
		t.Errorf("the new token = %d, want it let through to 400 session_required", status)
	}
	var list []struct{ ID, Name, User, RevokedAt string }
	if err := json.Unmarshal([]byte(h.ok("agent", "list", "--json")), &list); err != nil || len(list) != 1 || list[0].Name != "hermes" || list[0].User != "ana@example.com" {
		t.Errorf("agent list --json = %+v, %v", list, err)
	}
	if got := h.ok("agent", "revoke", "--name", "Hermes"); got != "hermes is revoked.\n" {
		t.Errorf("agent revoke = %q", got)
	}
	for revoked := time.Now(); post(t, "http://"+h.listen+"/mcp", token) != http.StatusUnauthorized; {
		if time.Since(revoked) > time.Second { // the gateway hears it over the bus
			t.Fatal("the revoked token is still taken after a second")
		}
	}
	if got := h.run("agent", "revoke", "--name", "hermes"); got.code != 1 || !strings.Contains(got.errout, "no live agent") {
		t.Errorf("agent revoke again = %+v", got)
	}
	if got := h.ok("doctor"); !strings.Contains(got, "11 checks, 0 failed") {
		t.Errorf("doctor while serving:\n%s", got)
	}
	if got := h.ok("migrate", "--json"); !regexp.MustCompile(`^{"schema":\d+}\n$`).MatchString(got) {
		t.Errorf("migrate --json = %q", got)
	}
	if got := h.ok("health", "--json"); got != "{\"ok\":true}\n" {
		t.Errorf("health --json = %q", got)
	}
	if got := h.ok("migrate"); !regexp.MustCompile(`^schema \d+\n$`).MatchString(got) {
		t.Errorf("migrate = %q", got)
	}
	// The welcome link is dead: a user exists.
	if status := get(t, welcome); status != http.StatusGone {
		t.Errorf("the welcome link with a user there = %d, want 410", status)
	}

	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM: %v\n%s", err, s.errout)
	}
	if end := regexp.MustCompile(`(?s)msg=stopping\n.*msg=stopped\n$`); !end.MatchString(s.errout.String()) {
		t.Errorf("the log does not end with stopping and stopped:\n%s", s.errout)
	}
	if at, err := os.ReadFile(filepath.Join(h.dir, "pg.path")); err == nil && !strings.Contains(s.errout.String(), "cluster="+strings.TrimSpace(string(at))) {
		t.Errorf("the log does not say that the cluster is in %s:\n%s", at, s.errout)
	}
	if strings.Contains(s.errout.String(), "level=ERROR") || strings.Contains(s.errout.String(), token) || strings.Contains(s.errout.String(), "grftl_") {
		t.Errorf("the log has an error or a secret:\n%s", s.errout)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "database.url")); !os.IsNotExist(err) {
		t.Errorf("database.url after a clean stop: %v, want it gone", err)
	}
	// Stopped, the commands start the database for themselves.
	if got := h.ok("agent", "list"); !strings.Contains(got, "hermes") || !strings.Contains(got, "revoked") {
		t.Errorf("agent list without serve:\n%s", got)
	}
	if got := h.run("health"); got.code != 1 || !strings.Contains(got.errout, "Nothing answers") {
		t.Errorf("health without serve = %+v", got)
	}
	if got := h.run("health", "--json"); got.code != 1 || got.out != "{\"ok\":false}\n" {
		t.Errorf("health --json without serve = %+v", got)
	}
	if got := h.ok("doctor"); !strings.Contains(got, "11 checks, 0 failed\n") || !sealedKeys.MatchString(got) {
		t.Errorf("doctor without serve:\n%s", got)
	}

	// A crash leaves nothing behind that stops the next start.
	crashed := h.serve()
	if want := "Graft is at http://localhost:"; !strings.HasPrefix(crashed.first, want) {
		t.Errorf("with a user there serve printed %q, want %q and the port", crashed.first, want)
	}
	_ = crashed.end(syscall.SIGKILL)
	again := h.serve()
	if got := h.ok("agent", "list"); !strings.Contains(got, "hermes") {
		t.Errorf("agent list after a crash:\n%s", got)
	}
	if err := again.end(syscall.SIGINT); err != nil {
		t.Errorf("SIGINT: %v\n%s", err, again.errout)
	}
}

func TestWrongSettingsAreAllNamedWithExit2(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	o := h.run("GRAFT_LISTEN=nowhere", "GRAFT_RATE_MCP=lots", "GRAFT_LOG=xml", "GRAFT_DATABASE_CONNS=many", "GRAFT_MASTER_KEY=abc",
		"GRAFT_MASTER_KEY_FILE=/nope", "GRAFT_DATABASE_URL=nonsense", "GRAFT_DATABASE_URL_DIRECT=nonsense", "GRAFT_PG_BIN=/nope", "serve")
	if o.code != 2 || o.out != "" || !strings.HasPrefix(o.errout, "graft: 10 settings are wrong:\n") {
		t.Errorf("exit %d, stdout %q, stderr\n%s\nwant 2, nothing, and ten settings", o.code, o.out, o.errout)
	}
	for _, name := range []string{
		"GRAFT_LISTEN must", "GRAFT_RATE_MCP must", "GRAFT_LOG must", "GRAFT_DATABASE_CONNS must", "GRAFT_MASTER_KEY is no key", "GRAFT_MASTER_KEY and",
		"GRAFT_MASTER_KEY_FILE names no file", "GRAFT_DATABASE_URL cannot", "GRAFT_DATABASE_URL_DIRECT cannot", "GRAFT_PG_BIN must",
	} {
		if !strings.Contains(o.errout, "\n  "+name) {
			t.Errorf("no line says %s:\n%s", name, o.errout)
		}
	}
	// One mistake is one line: an origin that follows from the address is not wrong too.
	if o := h.run("GRAFT_LISTEN=nowhere", "user", "add", "--email", "ana@example.com"); o.code != 2 || o.errout != "graft: 1 setting is wrong:\n  GRAFT_LISTEN must be host:port, not \"nowhere\"\n" {
		t.Errorf("a wrong address = exit %d %s", o.code, o.errout)
	}
	if o := h.run("GRAFT_ORIGIN=http://graft.example", "serve"); o.code != 2 || !strings.Contains(o.errout, "GRAFT_ORIGIN must be https") {
		t.Errorf("a wrong origin = exit %d %s", o.code, o.errout)
	}
	if o := h.run("GRAFT_DATABASE_URL=postgres://127.0.0.1:1/x", "agent", "list"); o.code != 2 || !strings.Contains(o.errout, "GRAFT_MASTER_KEY") {
		t.Errorf("a database without a master key = exit %d %s", o.code, o.errout)
	}
	if o := h.run("GRAFT_DATABASE_URL=postgres://127.0.0.1:1/x", "GRAFT_MASTER_KEY=short", "doctor"); o.code != 1 || strings.Contains(o.out, "short") {
		t.Errorf("doctor with a bad key = exit %d %s", o.code, o.out)
	}
}

func TestWhatIsTypedWrongEndsWith2(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--no-such-flag"}, "graft: Unknown flag --no-such-flag.\nRun \"graft serve --help\" for what there is.\n"},
		{[]string{"nonsense"}, "graft: Unexpected argument nonsense.\nRun \"graft --help\" for what there is.\n"},
		{[]string{"user", "add", "--email", "ana"}, "graft: Enter an email address such as ana@example.com.\n"},
		{[]string{"user", "add", "--email", "ana@example.com", "--role", "king"}, "graft: \"king\" is not a role. Use owner, admin, member or auditor.\n"},
	} {
		if got := h.run(tt.args...); got != (outcome{2, "", tt.want}) {
			t.Errorf("%v = %+v, want exit 2 and %q", tt.args, got, tt.want)
		}
	}
	if got := h.run(); got.code != 2 || got.out != "" || !strings.Contains(got.errout, "Usage: graft") || !strings.Contains(got.errout, "agent revoke") {
		t.Errorf("graft alone = %+v, want exit 2 and the help", got)
	}
	if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
		t.Errorf("the data folder after that: %v, want none", err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"agent", "add", "--help"}} {
		if got := h.ok(args...); !strings.Contains(got, "Usage: graft") {
			t.Errorf("%v = %q", args, got)
		}
	}
	if got := h.ok("serve", "--help"); !strings.Contains(got, "GRAFT_LISTEN") || !strings.Contains(got, "GRAFT_ORIGINS_ALLOW") {
		t.Errorf("serve --help does not name its variables:\n%s", got)
	}
	if got := h.ok("agent", "add", "--help"); strings.Index(got, "--user") > strings.Index(got, "--database-url") || !strings.Contains(got, "--user") {
		t.Errorf("agent add --help has its own flags after those of every command:\n%s", got)
	}
	if got := h.ok("--version"); strings.TrimSpace(got) == "" {
		t.Errorf("--version = %q", got)
	}
}

func post(t *testing.T, to, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	return send(t, req)
}

func get(t *testing.T, to string) int {
	t.Helper()
	if _, err := url.Parse(to); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, req)
}

func send(t *testing.T, req *http.Request) int {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

// Who starts Graft, perhaps as root, in a folder that somebody prepared writes in that folder alone.
func TestServeFollowsNoLinkInItsFolder(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	url := filepath.Join(h.dir, "database.url")
	if err := os.Symlink(other, url); err != nil {
		t.Fatal(err)
	}
	h.serve()
	if got, err := os.ReadFile(other); err != nil || string(got) != "theirs" {
		t.Errorf("the file that the link points to = %q, %v; want it untouched", got, err)
	}
	if info, err := os.Lstat(url); err != nil || info.Mode() != 0o600 {
		t.Errorf("database.url is %v (%v), want a file of mode 0600", info.Mode(), err)
	}
}
