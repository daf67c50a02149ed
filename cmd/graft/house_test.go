package main_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

	got := h.run("doctor")
	if got.code != 0 || !strings.Contains(got.out, "11 checks, 0 failed, 6 not asked\n") || strings.Count(got.out, "not asked: there is no Graft in "+h.dir+" yet") != 6 {
		t.Errorf("doctor where there is no Graft = exit %d\n%s", got.code, got.out)
	}
	h.nothingLeft("doctor")
	var list []struct {
		Check        string
		OK, NotAsked bool
	}
	if err := json.Unmarshal([]byte(h.ok("doctor", "--json")), &list); err != nil || len(list) != 11 || list[10].Check != "master key" || list[10].OK || !list[10].NotAsked {
		t.Errorf("doctor --json = %+v, %v, want eleven findings", list, err)
	}

	// The same in a folder that is there and empty.
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.ok("doctor")
	if got := h.run("agent", "list"); got.errout != want {
		t.Errorf("agent list in an empty folder = %+v, want %q", got, want)
	}
	if left, err := os.ReadDir(h.dir); err != nil || len(left) > 0 {
		t.Errorf("left in an empty folder: %v, %v", left, err)
	}
}

func TestATakenPortIsToldBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", h.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	got := h.run("serve")
	if got.code != 1 || !strings.HasPrefix(got.errout, "graft: "+h.listen+" is taken. Choose another with GRAFT_LISTEN=127.0.0.1:") || strings.Contains(got.errout, "="+h.listen) {
		t.Errorf("serve on a taken port = %+v", got)
	}
	free := newHome(t)
	if got := h.run("GRAFT_METRICS_LISTEN="+h.listen, "GRAFT_LISTEN="+free.listen, "serve"); got.code != 1 || !strings.Contains(got.errout, "GRAFT_METRICS_LISTEN=127.0.0.1:") {
		t.Errorf("serve with metrics on a taken port = %+v", got)
	}
	h.nothingLeft("serve")
}

func TestAMasterKeyThatIsLostIsNotReplaced(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if err := h.serve().end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dir, "master.key")
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what, said string) {
		t.Helper()
		said += ", and this database has things sealed under another key. Put that key back from the backup."
		if got := h.run("serve"); got.code != 1 || got.out != "" || !strings.HasSuffix(got.errout, "graft: "+said+"\n") {
			t.Errorf("serve with %s = %+v, want exit 1 and %q", what, got, said)
		}
		if got := h.run("doctor"); got.code != 1 || !strings.Contains(got.out, "11 checks, 1 failed\n") || !strings.Contains(got.out, said) {
			t.Errorf("doctor with %s = exit %d\n%s\nwant %q", what, got.code, got.out, said)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("no key", file+" is missing")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("master.key after a refused start: %v, want none", err)
	}
	if err := os.WriteFile(file, []byte(h.ok("key", "new")), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another key", file+" is not the key")
	if err := os.WriteFile(file, append([]byte(h.ok("key", "new")), kept...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.serve().end(syscall.SIGTERM); err != nil {
		t.Errorf("serve with the key put back, below a new one: %v", err)
	}
}
