package embedpg

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// initdb makes the cluster beside its place and renames it there, so that a half-made one is never taken for a cluster.
func initdb(ctx context.Context, h *home, bin binaries, cfg Config) error {
	leftovers, err := filepath.Glob(filepath.Join(h.dir, "new-*"))
	if err != nil {
		return fmt.Errorf("look for half-made clusters: %w", err)
	}
	dir, err := os.MkdirTemp(h.dir, "new-*")
	if err != nil {
		return fmt.Errorf("make cluster: %w", err)
	}
	for _, old := range append(leftovers, dir) {
		defer func() { _ = os.RemoveAll(old) }()
	}
	if h.owner.drop {
		if err := os.Lchown(dir, int(h.owner.uid), int(h.owner.gid)); err != nil {
			return fmt.Errorf("make cluster: %w", err)
		}
	}
	args := []string{"-D", dir, "-U", superuser, "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--data-checksums", "--no-instructions"}
	args = append(args, localeArgs(bin.major)...)
	if cfg.Throwaway {
		args = append(args, "--no-sync")
	}
	if _, err := output(h.owner.command(ctx, syscall.SIGKILL, filepath.Join(bin.dir, "initdb"), args...)); err != nil {
		return fmt.Errorf("run initdb: %w", cmp.Or(context.Cause(ctx), err))
	}
	if err := os.Rename(dir, h.data()); err != nil {
		return fmt.Errorf("put cluster in its place: %w", err)
	}
	return syncDir(h.dir)
}

// localeArgs ask for code point order and Unicode case, the same on every machine: built in since 17, before that the
// system's, which macOS does not have.
func localeArgs(major int) []string {
	switch {
	case major >= 17:
		return []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}
	case runtime.GOOS == "linux":
		return []string{"--locale=C.UTF-8"}
	default:
		return []string{"--locale=C"}
	}
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
