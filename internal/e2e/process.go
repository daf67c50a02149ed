package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is a client run by Node, with a home of its own that lasts as long as the test: no test sees another's files,
// or a developer's.
type Program struct {
	t    testing.TB
	path string
	env  []string
}

// NewProgram prepares the program at path, from Client, Script or Module, with variables beside those of the test.
func NewProgram(t testing.TB, path string, env ...string) *Program {
	t.Helper()
	home := t.TempDir()
	return &Program{t: t, path: path, env: append([]string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "MCP_REMOTE_CONFIG_DIR=" + home,
	}, env...)}
}

func (p *Program) command(ctx context.Context, args []string) *exec.Cmd {
	p.t.Helper()
	return withChildren(ctx, append(os.Environ(), p.env...), append([]string{Node(p.t), p.path}, args...))
}

// withChildren is a command that ends with the programs it started: the vendors' clients are a program in Node that starts
// the real one, which would go on and keep our end of its output open.
func withChildren(ctx context.Context, env, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// Run runs the program to its end, a minute at most, and returns what it printed and its exit code.
func (p *Program) Run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	return p.RunWithin(2*patience, args...)
}

// RunWithin is Run for a program that may take longer.
func (p *Program) RunWithin(limit time.Duration, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	cmd := p.command(ctx, args)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("run %s: %v", p.path, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Start starts the program for a talk in JSON lines; it ends with the test.
func (p *Program) Start(args ...string) *Process {
	p.t.Helper()
	return p.start(p.command(p.t.Context(), args))
}

// StartInTerminal is Start for a program that wants a person at a terminal, which util-linux's script makes for it.
func (p *Program) StartInTerminal(args ...string) *Process {
	p.t.Helper()
	cmd := p.command(p.t.Context(), args)
	quoted := make([]string, len(cmd.Args))
	for i, arg := range cmd.Args {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return p.start(withChildren(p.t.Context(), append(cmd.Env, "TERM=xterm", "SHELL=/bin/sh"),
		[]string{terminal(p.t), "--quiet", "--return", "--command", "exec " + strings.Join(quoted, " "), "/dev/null"}))
}

func (p *Program) start(cmd *exec.Cmd) *Process {
	p.t.Helper()
	proc := &Process{t: p.t, name: filepath.Base(p.path), lines: make(chan []byte, 64), stderr: &buffer{}}
	cmd.Stderr = proc.stderr
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		p.t.Fatalf("start %s: %v", p.path, err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.path, err)
	}
	proc.stdin = stdin
	go proc.read(stdout)
	p.t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Cancel()
		for range proc.lines { // until read is done
		}
		_ = cmd.Wait() // killed: the error says only that
	})
	return proc
}

// Process is a running program that a test talks to in JSON lines.
type Process struct {
	t      testing.TB
	name   string
	stdin  io.WriteCloser
	lines  chan []byte // what it said, a line each; closed when it has ended
	stderr *buffer
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
	line, ok := p.Line()
	if !ok {
		p.t.Fatalf("%s ended\n%s", p.name, p.stderr)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		p.t.Fatalf("%s said %q: %v", p.name, line, err)
	}
}

// Line returns the program's next line, waiting at most patience; ok is false once it has ended.
func (p *Process) Line() (line []byte, ok bool) {
	p.t.Helper()
	select {
	case line, ok = <-p.lines:
	case <-time.After(patience):
		p.t.Fatalf("%s said nothing for %s\n%s", p.name, patience, p.stderr)
	}
	return line, ok
}

// Drain reads on until the program has ended by itself, which takes it patience at most, and returns what it said.
func (p *Process) Drain() string {
	p.t.Helper()
	var said strings.Builder
	late := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return said.String()
			}
			said.Write(append(line, '\n'))
		case <-late:
			p.t.Fatalf("%s has not ended after %s: %s\n%s", p.name, patience, said.String(), p.stderr)
		}
	}
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
