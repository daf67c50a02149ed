package embedpg_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/embedpg"
)

// TestMain lets the test binary be a gateway of its own where a test needs one to kill, or one that is not root.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "gateway" {
		runGateway(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// started is the one line that a gateway process prints.
type started struct {
	URL   string
	Error string
	Held  *embedpg.HeldError
}

// runGateway starts a cluster, says so and stops it at the end of its input; signals it leaves to others.
func runGateway(config string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	var cfg embedpg.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		panic(err)
	}
	var says started
	c, err := embedpg.Start(context.Background(), cfg)
	if err != nil {
		says.Error = err.Error()
		_ = errors.As(err, &says.Held)
	} else {
		says.URL = c.URL("")
	}
	if err := json.NewEncoder(os.Stdout).Encode(says); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if c == nil {
		return
	}
	if err := c.Stop(context.Background()); err != nil {
		panic(err)
	}
}

// gateway is such a process.
type gateway struct {
	cmd   *exec.Cmd
	input io.Closer
	says  *json.Decoder
}

// newGateway starts one, as another uid if cred says so. Its Log cannot be given.
func newGateway(t *testing.T, cfg embedpg.Config, cred *syscall.Credential) *gateway {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cred != nil { // go test's own folder is closed to it
		self = copyFile(t, self, filepath.Join(openDir(t), "gateway"))
	}
	cfg.Log = nil
	config, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), self, "gateway", string(config))
	cmd.Dir = "/"
	cmd.Env = append(cmd.Environ(), "GRAFT_MASTER_KEY=canary")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &gateway{cmd: cmd, input: input, says: json.NewDecoder(output)}
	t.Cleanup(func() { _ = g.stop() })
	return g
}

func (g *gateway) started(t *testing.T) started {
	t.Helper()
	var says started
	if err := g.says.Decode(&says); err != nil {
		t.Fatalf("gateway said nothing: %v", err)
	}
	return says
}

func (g *gateway) stop() error {
	_ = g.input.Close()
	return g.cmd.Wait()
}

// start is Start with t's own log, stopped at the end of t.
func start(t *testing.T, cfg embedpg.Config) *embedpg.Cluster {
	t.Helper()
	c, err := embedpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *embedpg.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Errorf("Stop() = %v", err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect %s: %v", url, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func run(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask(t *testing.T, url, sql string) string {
	t.Helper()
	var answer string
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// postmasterPID asks the cluster itself.
func postmasterPID(t *testing.T, url string) int {
	t.Helper()
	pid, err := strconv.Atoi(ask(t, url, `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// openDir is a temporary folder that any uid may enter, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, dir := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// removeHome removes the folder of a cluster that is kept outside of data.
func removeHome(t *testing.T, data string) {
	t.Helper()
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(data, "pg.path"))
		if err == nil {
			err = os.RemoveAll(strings.TrimSpace(string(text)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func copyFile(t *testing.T, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// eventually waits for a condition that nothing announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		<-tick.C
	}
}

// processesOf are the commands that run with dir in their arguments.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-e", "-ww", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) && !strings.Contains(line, " gateway ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	got strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
