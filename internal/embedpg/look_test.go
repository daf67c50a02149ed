package embedpg_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/embedpg"
)

func TestLookTellsAndTouchesNothing(t *testing.T) {
	t.Parallel()
	data := filepath.Join(openDir(t), "data")
	look := func(when string, want embedpg.State) {
		t.Helper()
		got, err := embedpg.Look(data)
		if err != nil || got.Made != want.Made || (got.Held == nil) != (want.Held == nil) {
			t.Errorf("Look() %s = %+v, %v, want %+v", when, got, err, want)
		} else if want.Held != nil && *got.Held != *want.Held {
			t.Errorf("Look() %s: held = %+v, want %+v", when, *got.Held, *want.Held)
		}
	}
	look("without a folder", embedpg.State{})
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("Look() made the folder: %v", err)
	}
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	look("into an empty folder", embedpg.State{})
	if list, err := os.ReadDir(data); err != nil || len(list) > 0 {
		t.Errorf("Look() left %v, %v, want nothing", list, err)
	}
	c := start(t, embedpg.Config{DataDir: data})
	look("while it runs", embedpg.State{Made: true, Held: &embedpg.HeldError{Dir: data, PID: os.Getpid()}})
	stop(t, c)
	look("after it ran", embedpg.State{Made: true})
}

func TestLookFollowsThePointer(t *testing.T) {
	t.Parallel()
	data := openDir(t)
	elsewhere := filepath.Join(openDir(t), "cluster")
	if err := os.WriteFile(filepath.Join(data, "pg.path"), []byte(elsewhere+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedpg.Look(data); err == nil || !strings.Contains(err.Error(), "pg.path") {
		t.Errorf("Look() where the pointer leads nowhere = %v, want an error that names it", err)
	}
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if s, err := embedpg.Look(data); err != nil || s.Made {
		t.Errorf("Look() before the data is there = %+v, %v, want none made", s, err)
	}
	if err := os.Mkdir(filepath.Join(elsewhere, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "data", "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := embedpg.Look(data); err != nil || !s.Made {
		t.Errorf("Look() with the data there = %+v, %v, want it made", s, err)
	}
}
