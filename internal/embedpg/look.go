package embedpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// State is what a data folder is found in.
type State struct {
	Made bool       // there is a cluster, here or where the folder points
	Held *HeldError // who uses the folder; nil: nobody
}

// Look says in what state a data folder is. Nothing is made, started or changed, also where there is no folder.
func Look(dataDir string) (State, error) {
	s, err := look(dataDir)
	if err != nil {
		return State{}, fmt.Errorf("look into data folder: %w", err)
	}
	return s, nil
}

func look(dataDir string) (s State, err error) {
	if dataDir, err = filepath.Abs(dataDir); err != nil {
		return State{}, err
	}
	dataDir, err = filepath.EvalSymlinks(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	who, err := runner()
	if err != nil {
		return State{}, err
	}
	dir, err := locateHome(dataDir, who)
	if err != nil {
		return State{}, err
	}
	if dir != "" {
		major, err := (&home{dir: dir}).major()
		if err != nil {
			return State{}, err
		}
		s.Made = major != 0
	}
	s.Held, err = heldBy(dataDir)
	return s, err
}

// heldBy looks who holds dir, through a lock that others may share and that is let go at once.
func heldBy(dir string) (*HeldError, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &HeldError{Dir: dir, PID: holder(file)}, nil
	}
	return nil, err
}
