package main_test

import (
	"os"
	"testing"
)

// nothingLeft holds that the data folder was not made.
func (h *home) nothingLeft(after string) {
	h.t.Helper()
	if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
		h.t.Errorf("the data folder after %s: %v, want none", after, err)
	}
}

func TestCommandsMakeNoSecondHouse(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	want := "graft: There is no Graft in " + h.dir + ". Run this where graft serve runs, or set GRAFT_DATA_DIR.\n"
	for _, args := range [][]string{{"agent", "list"}, {"agent", "add", "--name", "hermes"}, {"agent", "revoke", "--name", "hermes"}} {
		if got := h.run(args...); got != (outcome{1, "", want}) {
			t.Errorf("%v = %+v, want exit 1 and %q", args, got, want)
		}
	}
	h.nothingLeft("commands")

	// The same in a folder that is there and empty.
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := h.run("agent", "list"); got.errout != want {
		t.Errorf("agent list in an empty folder = %+v, want %q", got, want)
	}
	if left, err := os.ReadDir(h.dir); err != nil || len(left) > 0 {
		t.Errorf("left in an empty folder: %v, %v", left, err)
	}
}
