package embedpg

import (
	"context"
	"fmt"
	"os"
)

// For tests of what a machine that has binaries, like the one they run on, never reaches through Start.
var (
	Fetch   = fetch
	Missing = missing
	Intact  = intact
)

const UnpackedBytes, UnpackedFiles = unpackedBytes, unpackedFiles

// Unpack is what fetch does with a tarball whose sum it knows.
func Unpack(tarball []byte, dir string) error { return unpackTree(tarball, dir) }

// FindFor is the search of a cluster of version major with nothing but cache to look in beside the machine's own.
func FindFor(ctx context.Context, cache string, major int) (string, error) {
	who, err := runner()
	if err != nil {
		return "", fmt.Errorf("find: %w", err)
	}
	bin, err := finder{cache: cache, who: who}.find(ctx, major)
	return bin.dir, err
}

// Runner is the uid that Postgres gets.
func Runner() (uid uint32, root bool, err error) {
	who, err := runner()
	return who.uid, os.Geteuid() == 0, err
}
