package embedpg_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/getgraft/graft/internal/embedpg"
)

func heldBy(err error) *embedpg.HeldError {
	var held *embedpg.HeldError
	_ = errors.As(err, &held)
	return held
}

func TestSecondStartNamesTheHolder(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	g := newGateway(t, cfg, nil)
	if says := g.started(t); says.Error != "" {
		t.Fatal(says.Error)
	}
	_, err := embedpg.Start(t.Context(), cfg)
	if held := heldBy(err); held == nil || held.PID != g.cmd.Process.Pid || held.Dir != cfg.DataDir {
		t.Fatalf("Start() = %v, want a HeldError for %s and process %d", err, cfg.DataDir, g.cmd.Process.Pid)
	}
	if want := cfg.DataDir + " is held by process " + strconv.Itoa(g.cmd.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("Start() = %v, want %q in it", err, want)
	}
}

func TestOfTwoStartsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	a, b := newGateway(t, cfg, nil), newGateway(t, cfg, nil)
	winner, won, lost := a, a.started(t), b.started(t)
	if won.Error != "" {
		winner, won, lost = b, lost, won
	}
	if won.Error != "" {
		t.Fatalf("both lost: %s; %s", won.Error, lost.Error)
	}
	if lost.Held == nil || lost.Held.PID != winner.cmd.Process.Pid {
		t.Errorf("loser says %+v, want a HeldError for process %d", lost, winner.cmd.Process.Pid)
	}
	run(t, won.URL, "SELECT 1")
}

func TestSignalToTheGroupSparesPostgres(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embedpg.Config{DataDir: openDir(t), Throwaway: true}, nil)
	says := g.started(t)
	conn := connect(t, says.URL)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := syscall.Kill(-g.cmd.Process.Pid, sig); err != nil {
			t.Fatal(err)
		}
		// Postgres acts on either by ending its connections.
		if _, err := conn.Exec(t.Context(), "SELECT pg_sleep(0.2)"); err != nil {
			t.Errorf("query after %v to the group = %v", sig, err)
		}
	}
	if err := g.stop(); err != nil {
		t.Errorf("gateway = %v, want a clean stop", err)
	}
}

func TestKilledGatewayTakesPostgresAlong(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	g := newGateway(t, cfg, nil)
	says := g.started(t)
	pid := postmasterPID(t, says.URL)
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "postgres ends with its gateway", func() bool {
		return len(processesOf(t, cfg.DataDir)) == 0
	})
	if got := start(t, cfg); postmasterPID(t, got.URL("")) == pid {
		t.Errorf("postmaster after the crash = %d, the one before it", pid)
	}
}

func TestStartRightAfterAKill(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t)}
	for range 3 {
		g := newGateway(t, cfg, nil)
		says := g.started(t)
		if says.Error != "" {
			t.Fatalf("Start() after kill -9 = %s", says.Error)
		}
		run(t, says.URL, "CREATE TABLE IF NOT EXISTS kept (); INSERT INTO kept DEFAULT VALUES")
		if err := g.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = g.cmd.Wait()
	}
	if got := ask(t, start(t, cfg).URL(""), "SELECT count(*)::text FROM kept"); got != "3" {
		t.Errorf("committed rows = %s, want 3", got)
	}
}

func TestHalfMadeClusterDoesNotStopTheNextStart(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	g := newGateway(t, cfg, nil)
	eventually(t, "initdb is at work", func() bool {
		found, _ := filepath.Glob(filepath.Join(cfg.DataDir, "pg/new-*/base"))
		return len(found) == 1
	})
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.cmd.Wait()
	if found, _ := filepath.Glob(filepath.Join(cfg.DataDir, "pg/*/base")); len(found) != 1 || strings.Contains(found[0], "/data/") {
		t.Fatalf("killed too late: %q", found)
	}
	run(t, start(t, cfg).URL(""), "SELECT 1")
}

// byHand is a process of Postgres's uid that no gateway started.
type byHand struct {
	*os.Process
	ended chan error // its exit, once
}

// startByHand starts one and reaps it.
func startByHand(t *testing.T, name string, args ...string) byHand {
	t.Helper()
	uid, root, err := embedpg.Runner()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Dir = "/"
	if root {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, reaped := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(reaped)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-reaped
	})
	return byHand{cmd.Process, ended}
}

// startOrphan runs postgres on a stopped cluster as an earlier start would have.
func startOrphan(t *testing.T, cfg embedpg.Config) byHand {
	t.Helper()
	bin, err := embedpg.FindBinaries("")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(cfg.DataDir, "pg")
	orphan := startByHand(t, filepath.Join(bin, "postgres"), "-D", home+"/data", "-k", home+"/run", "-p", "5432", "-c", "listen_addresses=")
	eventually(t, "postgres is up", func() bool {
		text, _ := os.ReadFile(home + "/data/postmaster.pid")
		return strings.Contains(string(text), "ready")
	})
	return orphan
}

func TestOrphanIsStoppedFirst(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	stop(t, start(t, cfg))
	orphan := startOrphan(t, cfg)
	c := start(t, cfg)
	if err := <-orphan.ended; err != nil {
		t.Errorf("orphan = %v, want a clean shutdown", err)
	}
	run(t, c.URL(""), "SELECT 1")
}

func TestStuckOrphanIsWaitedForUntilContextEnds(t *testing.T) {
	t.Parallel()
	log := &lines{}
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true, Log: log.logger()}
	stop(t, start(t, cfg))
	orphan := startOrphan(t, cfg)
	if err := orphan.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := embedpg.Start(ctx, cfg)
		failed <- err
	}()
	eventually(t, "the orphan is told to stop", func() bool { return strings.Contains(log.String(), "left behind") })
	select {
	case err := <-failed:
		t.Fatalf("Start() beside a stuck postgres = %v, want it to wait", err)
	default:
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Start() = %v, want canceled", err)
	}
	if err := orphan.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	start(t, cfg)
}

func TestStrangerWithTheNumberOfADeadPostmasterIsSpared(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	stop(t, start(t, cfg))
	stranger := startByHand(t, "sleep", "600")
	home := filepath.Join(cfg.DataDir, "pg")
	for _, name := range []string{"data/postmaster.pid", "run/.s.PGSQL.5432.lock"} {
		text := strconv.Itoa(stranger.Pid) + "\n" + home + "/data\n1\n5432\n" + home + "/run\n\n0 0\n"
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, start(t, cfg).URL(""), "SELECT 1")
	select {
	case err := <-stranger.ended:
		t.Errorf("stranger ended: %v, want it alive", err)
	default:
	}
}

func TestCrashOfPostgresClosesDoneAndNextStartRecovers(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t)}
	c, err := embedpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, c.URL(""), "CREATE TABLE kept AS SELECT 1")
	// A backend in a long computation does not notice that its postmaster is gone.
	pid, busy := postmasterPID(t, c.URL("")), connect(t, c.URL(""))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _ = busy.Exec(context.WithoutCancel(t.Context()), "SELECT count(*) FROM generate_series(1, 10000000), (SELECT pg_advisory_lock(1)) AS l")
	}()
	eventually(t, "the backend is busy", func() bool {
		return ask(t, c.URL(""), "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory'") == "1"
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err() = %v, want that it was killed", err)
	}
	if err := c.Stop(t.Context()); !errors.Is(err, c.Err()) {
		t.Errorf("Stop() after a crash = %v, want what Err says: %v", err, c.Err())
	}
	next := start(t, cfg)
	<-finished
	run(t, next.URL(""), "SELECT FROM kept")
}
