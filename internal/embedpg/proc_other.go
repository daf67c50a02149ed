//go:build !linux

package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal does nothing: only Linux has it. Elsewhere the next start ends the orphan.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// commandOf is the command line of a process, "" if it has gone.
func commandOf(ctx context.Context, pid int) (string, error) {
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if gone := new(exec.ExitError); errors.As(err, &gone) && len(out) == 0 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read command line of process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(out)), nil
}
