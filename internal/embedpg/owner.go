package embedpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is whom Postgres runs as and whose its folders are.
type owner struct {
	uid, gid uint32
	drop     bool // we are root and must become it
}

// runner is ourselves or, since Postgres refuses to run as root, an account of this machine that is there for it: a uid of its
// own if possible, because other processes of the same uid can read the data.
func runner() (owner, error) {
	if uid := os.Geteuid(); uid != 0 {
		return owner{uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			continue
		}
		return owner{uid: uint32(uid), gid: uint32(gid), drop: true}, nil
	}
	return owner{}, errors.New("postgres cannot run as root and there is no user postgres or nobody: make one, or start as another user")
}

// ownerOf is who owns a cluster's folder, so that root can serve a cluster that another user made, and who if nobody but root
// does yet.
func ownerOf(dir string, who owner) (owner, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return who, nil
	}
	if err != nil {
		return owner{}, fmt.Errorf("find owner of cluster: %w", err)
	}
	if stat := statOf(info); who.drop && stat.Uid != 0 {
		return owner{uid: stat.Uid, gid: stat.Gid, drop: true}, nil
	}
	return who, nil
}

// makePrivate makes dir with mode 0700 for o. One that is there must be so already, but may still be root's where a start
// ended between making it and giving it away.
func (o owner) makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make private folder: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check private folder: %w", err)
	}
	uid := statOf(info).Uid
	if !info.IsDir() || info.Mode().Perm() != 0o700 || uid != o.uid && (uid != 0 || !o.drop) {
		return fmt.Errorf("%s is %v of uid %d, want a folder with mode 0700 of uid %d", dir, info.Mode(), uid, o.uid)
	}
	if uid == o.uid {
		return nil
	}
	if err := os.Lchown(dir, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give private folder away: %w", err)
	}
	return nil
}

// reaches reports whether o may enter dir and every folder above it, by their modes.
func (o owner) reaches(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		enter := fs.FileMode(0o001)
		switch stat := statOf(info); {
		case stat.Uid == o.uid:
			enter = 0o100
		case stat.Gid == o.gid:
			enter = 0o010
		}
		if info.Mode()&enter == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// makeTraversable makes dir and what is missing above it; dir, if it was missing, with mode 0755 whatever the umask.
func makeTraversable(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

func statOf(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }
