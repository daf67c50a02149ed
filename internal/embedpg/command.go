package embedpg

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// command is a child that runs as o. It gets none of our environment (keys may be in it) and a process group of its own, so
// that a ctrl-C in the terminal or a signal to our group does not reach it. death is what it gets when we die.
func (o owner) command(ctx context.Context, death syscall.Signal, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = inOwnGroup(cmd, death)
	if o.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return cmd
}

// inOwnGroup makes cmd the leader of a process group that is killed as a whole when cmd's context ends.
func inOwnGroup(cmd *exec.Cmd, death syscall.Signal) *syscall.SysProcAttr {
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a grandchild may hold our end of the output open
	attr := &syscall.SysProcAttr{Setpgid: true}
	setDeathSignal(attr, death)
	return attr
}

// output runs cmd and returns what it wrote, of which the end is in the error. It keeps to one thread: the death signal comes
// when the thread that forked ends, not when the process does.
func output(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		lines = lines[max(0, len(lines)-tailLines):]
		return out, fmt.Errorf("%w: %s", err, bytes.Join(lines, []byte("\n")))
	}
	return out, nil
}
