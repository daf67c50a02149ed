package embedpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HeldError says that another process uses the folder.
type HeldError struct {
	Dir string
	PID int // 0: not known
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is held by another process", e.Dir)
	}
	return fmt.Sprintf("%s is held by process %d", e.Dir, e.PID)
}

// lockFile locks a data folder by a file in it that says who holds it. The kernel frees the lock when the holder ends, however
// that was, so the file may stay.
func lockFile(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = flock(file)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &HeldError{Dir: dir, PID: holder(file)}
	}
	if err == nil {
		err = writePID(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// lockDir locks the folder itself, so that nothing need be written where Postgres's uid could plant a link.
func lockDir(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock cluster: %w", err)
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Dir: dir}
		}
		return nil, err
	}
	return file, nil
}

func flock(file *os.File) error {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// holder reads who holds the lock. It may look just before the holder wrote its number, while an ended one's or none is there:
// for a second it waits for the number of a living process.
func holder(file *os.File) int {
	for range 100 {
		text := make([]byte, 32)
		n, _ := file.ReadAt(text, 0)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil && alive(pid) {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
