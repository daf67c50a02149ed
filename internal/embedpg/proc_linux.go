package embedpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// setDeathSignal has the kernel send sig to the child when the thread that starts it ends.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// commandOf is the command line of a process, "" if it has gone. Unlike cwd and exe it can be read of another uid's process
// without CAP_SYS_PTRACE, which root in a container does not have.
func commandOf(_ context.Context, pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read command line of process %d: %w", pid, err)
	}
	return string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})), nil
}
