package embedpg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	systemHomes = "/var/lib/graft" // of clusters whose data folder is closed to Postgres
	lockName    = "graft.lock"
	pointerName = "pg.path"
)

// home is the folder of one cluster, held for this process: data/ is Postgres's, run/ has its socket.
type home struct {
	dir     string
	sockets string
	outside bool // made just now, and not in the data folder
	owner   owner
	locks   []*os.File
	cleanup []string // what to remove at close
}

// openHome finds or makes the cluster's folder for dataDir and locks both: dataDir as what people name, the cluster's folder
// because a copy of dataDir points at the same one.
func openHome(dataDir string, throwaway bool) (*home, error) {
	dataDir, err := makeDataDir(dataDir)
	if err != nil {
		return nil, err
	}
	h := &home{}
	lock, err := lockFile(dataDir)
	if err != nil {
		return nil, err
	}
	h.locks = append(h.locks, lock)
	if err := h.settle(dataDir, throwaway); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func makeDataDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make data folder: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

func (h *home) settle(dataDir string, throwaway bool) error {
	who, err := runner()
	if err != nil {
		return err
	}
	if h.dir, err = locateHome(dataDir, who); err != nil {
		return err
	}
	switch {
	case h.dir != "":
	case throwaway:
		if h.dir, err = makeOutside(dataDir, "/tmp/graft-throwaway-"); err != nil {
			return err
		}
		h.cleanup = append(h.cleanup, h.dir, filepath.Join(dataDir, pointerName))
	default:
		if err := makeTraversable(systemHomes); err != nil {
			return err
		}
		if h.dir, err = makeOutside(dataDir, systemHomes+"/"); err != nil {
			return err
		}
		h.outside = true
	}
	if h.owner, err = ownerOf(h.dir, who); err != nil {
		return err
	}
	if err := h.owner.makePrivate(h.dir); err != nil {
		return err
	}
	lock, err := lockDir(h.dir)
	if err != nil {
		return err
	}
	h.locks = append(h.locks, lock)
	return h.settleSockets()
}

// locateHome says where dataDir's cluster lives or, if there is none, may live; "" is outside of dataDir.
func locateHome(dataDir string, who owner) (string, error) {
	pointer := filepath.Join(dataDir, pointerName)
	inside := filepath.Join(dataDir, "pg")
	switch text, err := os.ReadFile(pointer); {
	case err == nil:
		dir := strings.TrimSpace(string(text))
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("the cluster named in %s is not there (put it back, or remove that file to begin with an empty database): %w", pointer, err)
		}
		return dir, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("find cluster: %w", err)
	}
	if _, err := os.Lstat(inside); err == nil || who.reaches(dataDir) {
		return inside, nil
	}
	return "", nil
}

// makeOutside makes a new folder for dataDir's cluster and, before anything is in it, the pointer to it. A folder that is
// there already belongs to an earlier dataDir of that name and is left alone.
func makeOutside(dataDir, prefix string) (string, error) {
	base := prefix + hashOf(dataDir)
	dir := base
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make cluster folder: %w", err)
		}
		dir = base + "-" + strconv.Itoa(n)
	}
	if err := writePointer(dataDir, dir); err != nil {
		return "", fmt.Errorf("write pointer to cluster: %w", err)
	}
	return dir, nil
}

// writePointer returns when the pointer would survive a power cut: without it the data would be lost sight of.
func writePointer(dataDir, dir string) error {
	pointer := filepath.Join(dataDir, pointerName)
	file, err := os.OpenFile(pointer+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString(dir + "\n"); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), pointer); err != nil {
		return err
	}
	return syncDir(dataDir)
}

func (h *home) data() string { return filepath.Join(h.dir, "data") }

// major is the version that made the data; 0: there is none yet.
func (h *home) major() (int, error) {
	if _, err := os.Lstat(h.data()); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	text, err := os.ReadFile(filepath.Join(h.data(), "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("read version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major <= 0 {
		return 0, fmt.Errorf("read version of the data: no number in %s/PG_VERSION", h.data())
	}
	return major, nil
}

// settleSockets takes run/ or, where a socket's path there is longer than a socket address holds (103 bytes on macOS, 107 on
// Linux) or has a character that splits lists of hosts, a folder of ours in /tmp.
func (h *home) settleSockets() error {
	h.sockets = filepath.Join(h.dir, "run")
	if len(h.sockets)+len("/.s.PGSQL."+port) <= 103 && !strings.ContainsAny(h.sockets, `,"`) {
		return h.owner.makePrivate(h.sockets)
	}
	h.sockets = "/tmp/graft-" + hashOf(h.dir)
	if err := h.owner.makePrivate(h.sockets); err != nil {
		return err
	}
	h.cleanup = append(h.cleanup, h.sockets)
	return nil
}

func (h *home) close() {
	for _, path := range h.cleanup {
		_ = os.RemoveAll(path)
	}
	for _, lock := range h.locks {
		_ = lock.Close()
	}
}

func hashOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}
