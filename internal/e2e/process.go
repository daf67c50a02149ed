package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Process is a client program that a test talks to in JSON lines; it ends with the test.
type Process struct {
	t      testing.TB
	name   string
	stdin  io.WriteCloser
	lines  chan []byte // what it said, a line each; closed when it has ended
	stderr *buffer
}

// StartClient runs one of the programs in clients/ under Node.
func StartClient(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	return startNode(t, name, append([]string{Client(t, name)}, args...))
}

// StartScript runs an npm command under Node, one that speaks JSON lines: mcp-remote.
func StartScript(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	return startNode(t, name, append([]string{Script(t, name)}, args...))
}

func startNode(t testing.TB, name string, args []string) *Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Node(t), args...)
	cmd.Env = clientEnv(t, cmd)
	p := &Process{t: t, name: name, lines: make(chan []byte, 64), stderr: &buffer{}}
	cmd.Stderr = p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	p.stdin = stdin
	go p.read(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		for range p.lines { // until read is done
		}
		_ = cmd.Wait() // killed: the error says only that
	})
	return p
}

// clientEnv gives a client an empty home, so that no test sees another's files or a developer's.
func clientEnv(t testing.TB, cmd *exec.Cmd) []string {
	t.Helper()
	home := t.TempDir()
	return append(cmd.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "MCP_REMOTE_CONFIG_DIR="+home)
}

func (p *Process) read(stdout io.Reader) {
	defer close(p.lines)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		p.lines <- append([]byte(nil), scanner.Bytes()...)
	}
}

// Send writes one JSON line to the program.
func (p *Process) Send(message any) {
	p.t.Helper()
	line, err := json.Marshal(message)
	if err == nil {
		_, err = p.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		p.t.Fatalf("tell %s: %v\n%s", p.name, err, p.stderr)
	}
}

// Next decodes the program's next line into answer, waiting at most patience.
func (p *Process) Next(answer any) {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("%s ended\n%s", p.name, p.stderr)
		}
		if err := json.Unmarshal(line, answer); err != nil {
			p.t.Fatalf("%s said %q: %v", p.name, line, err)
		}
	case <-time.After(patience):
		p.t.Fatalf("%s said nothing for %s\n%s", p.name, patience, p.stderr)
	}
}

// RunScript runs an npm command under Node to its end, a minute at most, and returns what it printed and its exit code.
func RunScript(t testing.TB, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Node(t), append([]string{Script(t, name)}, args...)...)
	cmd.Env = clientEnv(t, cmd)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", name, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// buffer keeps what a program says on stderr while it runs.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
