package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/store/storetest"
)

// binary is the program itself, built once for all tests of the package.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "graft-cmd-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "graft")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if party() {
		return
	}
	storetest.Main(m, func() {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	})
}

// A home is a folder to serve from, and the environment that names it.
type home struct {
	t      testing.TB
	dir    string
	listen string
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, dir: filepath.Join(t.TempDir(), "data"), listen: storetest.Address(t)}
	t.Cleanup(h.removeCluster)
	return h
}

// removeCluster removes the cluster where it is not in the folder: as root it is not.
func (h *home) removeCluster() {
	if at, err := os.ReadFile(filepath.Join(h.dir, "pg.path")); err == nil {
		_ = os.RemoveAll(strings.TrimSpace(string(at)))
	}
}

func (h *home) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	h.t.Helper()
	path, err := binary()
	if err != nil {
		h.t.Fatalf("build: %v", err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = h.t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GRAFT_DATA_DIR=" + h.dir, "GRAFT_LISTEN=" + h.listen}, env...)
	return cmd
}

// An outcome is what a finished command left.
type outcome struct {
	code        int
	out, errout string
}

// run runs a command to its end. Each leading argument with a = is a variable.
func (h *home) run(args ...string) outcome {
	h.t.Helper()
	var env []string
	for len(args) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(args[0]) {
		env, args = append(env, args[0]), args[1:]
	}
	cmd := h.command(h.t.Context(), env, args...)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("run %v: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// ok runs a command that must succeed, and returns its stdout.
func (h *home) ok(args ...string) string {
	h.t.Helper()
	o := h.run(args...)
	if o.code != 0 {
		h.t.Fatalf("graft %v = exit %d\n%s%s", args, o.code, o.out, o.errout)
	}
	return o.out
}

// A serving is a running serve.
type serving struct {
	t      testing.TB
	cmd    *exec.Cmd
	first  string // the line it printed
	errout *bytes.Buffer
	done   chan error
	at     *url.URL // where a balancer reaches it
}

// serve starts the gateway and waits for its line.
func (h *home) serve(env ...string) *serving {
	h.t.Helper()
	return h.serveTo(nil, env...)
}

// serveTo is serve with the log in a file, or in errout where that is nil.
func (h *home) serveTo(log *os.File, env ...string) *serving {
	h.t.Helper()
	cmd := h.command(context.WithoutCancel(h.t.Context()), env, "serve")
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	s := &serving{t: h.t, cmd: cmd, errout: &bytes.Buffer{}, done: make(chan error, 1)}
	cmd.Stderr = s.errout
	if log != nil {
		cmd.Stderr = log // the process writes there itself
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		r := bufio.NewScanner(out)
		for r.Scan() {
			line <- r.Text()
		}
		close(line)
		s.done <- cmd.Wait()
	}()
	select {
	case s.first = <-line:
	case <-time.After(2 * time.Minute):
	}
	if s.first == "" {
		_ = cmd.Process.Kill()
		if err := <-s.done; err == nil {
			h.t.Error("serve ended well and printed nothing")
		}
		h.t.Fatalf("serve printed nothing:\n%s", s.errout)
	}
	h.t.Cleanup(func() { _ = s.end(syscall.SIGKILL) })
	return s
}

// end signals the gateway and waits for it; it returns how it ended. A second end does nothing.
func (s *serving) end(sig syscall.Signal) error {
	if s.done == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(sig)
	err := <-s.done
	s.done = nil
	return err
}

var link = regexp.MustCompile(`^http://localhost:[0-9]+/setup/grftl_[A-Za-z0-9_-]{49}$`)

func lastWord(s string) string {
	f := strings.Fields(s)
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1]
}
