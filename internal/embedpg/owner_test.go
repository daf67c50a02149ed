package embedpg_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/getgraft/graft/internal/embedpg"
)

func TestRootKeepsClusterElsewhereWhenParentIsClosed(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	var log, later lines
	cfg := embedpg.Config{DataDir: filepath.Join(parent, "data"), Log: log.logger()}
	removeHome(t, cfg.DataDir)
	c := start(t, cfg)
	uid, root, err := embedpg.Runner()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(ask(t, c.URL(""), "SHOW data_directory"))
	if outside := strings.HasPrefix(home, "/var/lib/graft/"); outside != root {
		t.Errorf("cluster of uid %d in %s, want it in /var/lib/graft only for root", os.Geteuid(), home)
	}
	checkPrivate(t, home, uid)
	checkPrivate(t, parent, uint32(os.Geteuid()))
	checkPrivate(t, cfg.DataDir, uint32(os.Geteuid()))
	run(t, c.URL(""), "CREATE TABLE kept ()")
	stop(t, c)

	// The folder may move: the pointer goes with it.
	moved := filepath.Join(parent, "moved")
	if err := os.Rename(cfg.DataDir, moved); err != nil {
		t.Fatal(err)
	}
	removeHome(t, moved)
	c = start(t, embedpg.Config{DataDir: moved, Log: later.logger()})
	run(t, c.URL(""), "SELECT FROM kept")
	if told, again := strings.Contains(log.String(), "level=INFO") && strings.Contains(log.String(), "cluster="+home),
		strings.Contains(later.String(), "level=INFO"); told != root || again {
		t.Errorf("the log says where the cluster is: %v, and again later: %v; want it once, as root\n%s%s", told, again, &log, &later)
	}

	// A new folder of the old name does not get the old data.
	c = start(t, cfg)
	if got := ask(t, c.URL(""), "SELECT (to_regclass('kept') IS NULL)::text"); got != "true" {
		t.Error("a new data folder was given another one's database")
	}
}

func TestCopyOfADataFolderIsHeldByItsOriginal(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	cfg := embedpg.Config{DataDir: filepath.Join(parent, "data"), Throwaway: true}
	c := start(t, cfg)
	copied := filepath.Join(parent, "copy")
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(ask(t, c.URL(""), "SHOW data_directory"))
	if err := os.WriteFile(filepath.Join(copied, "pg.path"), []byte(home+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: copied})
	if held := heldBy(err); held == nil || held.Dir != home {
		t.Errorf("Start() on a copy = %v, want a HeldError for %s", err, home)
	}
	run(t, c.URL(""), "SELECT 1")
}

func TestPointerToNothingIsAnError(t *testing.T) {
	t.Parallel()
	data := openDir(t)
	pointer := filepath.Join(data, "pg.path")
	if err := os.WriteFile(pointer, []byte("/var/lib/graft/gone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: data})
	if err == nil || !strings.Contains(err.Error(), pointer) {
		t.Errorf("Start() = %v, want an error that names %s", err, pointer)
	}
}

func TestStartIsTheSameForAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	parent, uid := openDir(t), uint32(os.Geteuid())
	var cred *syscall.Credential
	if uid == 0 {
		uid = 65534 // nobody: initdb wants a uid with a name
		cred = &syscall.Credential{Uid: uid, Gid: uid}
		if err := os.Chown(parent, int(uid), int(uid)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := embedpg.Config{DataDir: filepath.Join(parent, "data"), Throwaway: true}
	g := newGateway(t, cfg, cred)
	says := g.started(t)
	if says.Error != "" {
		t.Fatalf("Start() as uid %d = %s", uid, says.Error)
	}
	for _, name := range []string{"", "pg", "pg/data", "pg/run"} {
		checkPrivate(t, filepath.Join(cfg.DataDir, name), uid)
	}
	checkUIDs(t, postmasterPID(t, says.URL), uid)
	run(t, says.URL, "CREATE TABLE kept ()")
	if err := g.stop(); err != nil {
		t.Fatalf("Stop() as uid %d = %v", uid, err)
	}
	// Root serves it as the uid whose it is.
	c := start(t, cfg)
	run(t, c.URL(""), "SELECT FROM kept")
	checkUIDs(t, postmasterPID(t, c.URL("")), uid)
}

func TestFolderOfAnotherUserIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	data := openDir(t)
	pg := filepath.Join(data, "pg")
	if err := os.Mkdir(pg, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := embedpg.Start(t.Context(), embedpg.Config{DataDir: data})
	if err == nil || !strings.Contains(err.Error(), pg+" is drwxr-xr-x") {
		t.Errorf("Start() = %v, want an error that names %s and its mode", err, pg)
	}
	if info, err := os.Stat(pg); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("folder after Start = %v, %v, want it untouched", info, err)
	}
}
