package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endOrphan ends the postmaster that a crashed process of ours left on h: the locks say that nobody else serves it. The death
// signal has usually told it already.
func endOrphan(ctx context.Context, h *home, log *slog.Logger) error {
	signal, next := syscall.SIGINT, time.Now()
	for {
		pid, err := orphanOf(ctx, h)
		if err != nil || pid == 0 {
			return err
		}
		if now := time.Now(); !now.Before(next) {
			log.Warn("stopping a postgres that a crash left behind", "pid", pid, "signal", signal.String())
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop orphaned postgres %d: %w", pid, err)
			}
			signal, next = syscall.SIGQUIT, now.Add(10*time.Second)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for orphaned postgres %d: %w", pid, err)
		}
	}
}

// orphanOf is the process in postmaster.pid if it is a postgres of this very cluster, else 0. Where another program has got
// that number since, as in containers, whose numbers are few, postgres would take it for a postmaster: the stale files go.
func orphanOf(ctx context.Context, h *home) (int, error) {
	pidFile := filepath.Join(h.data(), "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for an orphaned postgres: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first) // 0 where a crash cut it short
	if pid <= 1 || !alive(pid) {
		return 0, nil
	}
	command, err := commandOf(ctx, pid)
	if err != nil || command == "" {
		return 0, err
	}
	if strings.Contains(command, "/postgres -D "+h.data()+" -k ") {
		return pid, nil
	}
	// A postgres of whatever cluster, perhaps this one under an earlier path: postgres itself decides.
	program, _, _ := strings.Cut(command, " ")
	if strings.HasPrefix(filepath.Base(program), "postgres") || strings.Contains(command, "/postgres -D ") {
		return 0, nil
	}
	for _, stale := range []string{filepath.Join(h.sockets, ".s.PGSQL."+port+".lock"), pidFile} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("remove stale pid file: %w", err)
		}
	}
	return 0, nil
}
