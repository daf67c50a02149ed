package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// errLingering is a start refused because backends of a killed postmaster still run.
var errLingering = errors.New("processes of an earlier start are still ending")

// postmaster is one run of postgres, a child of ours.
type postmaster struct {
	cmd     *exec.Cmd
	journal *journal
	hurried atomic.Bool // a fast shutdown took too long
	exited  chan struct{}
	err     error // of its exit, set before exited closes; nil for status 0
}

func runPostmaster(ctx context.Context, h *home, bin binaries, cfg Config) (*postmaster, error) {
	settings := []string{
		"listen_addresses=", "unix_socket_permissions=0700", "timezone=UTC", "log_timezone=UTC",
		"log_destination=stderr", "logging_collector=off", "log_line_prefix=",
		// What people sent stays out of the log: no statements, details or contexts.
		"log_error_verbosity=terse", "log_min_error_statement=panic",
	}
	if cfg.Throwaway {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
	}
	args := []string{"-D", h.data(), "-k", h.sockets, "-p", port} // orphanOf looks for this beginning
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	p := &postmaster{journal: &journal{log: cfg.Log}, exited: make(chan struct{})}
	p.cmd = h.owner.command(context.WithoutCancel(ctx), syscall.SIGINT, filepath.Join(bin.dir, "postgres"), args...)
	p.cmd.Stdout, p.cmd.Stderr = p.journal, p.journal
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("run postgres: %w", err)
	}
	return p, nil
}

// run keeps the thread that forked postgres for as long as it lives: the death signal comes when that thread ends, not when
// the process does.
func (p *postmaster) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	if err := p.cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		p.err = err
	}
	close(p.exited)
}

// failure says why postgres exited, with its last lines; only after exited.
func (p *postmaster) failure() error {
	status := "postgres exited by itself"
	if p.err != nil {
		status = "postgres ended with " + p.err.Error()
	}
	tail := p.journal.last()
	if strings.Contains(tail, "pre-existing shared memory block") {
		return fmt.Errorf("%w: %s: %s", errLingering, status, tail)
	}
	return fmt.Errorf("%s: %s", status, tail)
}

// stop asks for a fast shutdown and waits; when ctx ends, for an immediate one, in which postgres itself kills what has not
// gone within five seconds.
func (p *postmaster) stop(ctx context.Context) {
	p.signal(syscall.SIGINT)
	select {
	case <-p.exited:
		return
	case <-ctx.Done():
	}
	select {
	case <-p.exited: // as well
		return
	default:
	}
	p.hurried.Store(true)
	p.signal(syscall.SIGQUIT)
	select {
	case <-p.exited:
		return
	case <-time.After(15 * time.Second):
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

func (p *postmaster) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // the only error is that it has exited
}

// abandon ends a start that failed, also where ctx, ended, was the reason.
func (p *postmaster) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	p.stop(ctx)
}
