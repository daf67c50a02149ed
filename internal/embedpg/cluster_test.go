package embedpg_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/embedpg"
)

func TestStartMakesAPrivateCluster(t *testing.T) {
	t.Parallel()
	data := openDir(t)
	c := start(t, embedpg.Config{DataDir: data})

	got := map[string]string{}
	for _, setting := range []string{"listen_addresses", "server_encoding", "data_checksums", "fsync", "unix_socket_permissions"} {
		got[setting] = ask(t, c.URL(""), "SHOW "+setting)
	}
	got["database"] = ask(t, c.URL(""), "SELECT current_database()")
	got["user"] = ask(t, c.URL("postgres"), "SELECT current_user")
	got["superuser"] = ask(t, c.URL(""), "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user")
	got["hba"] = ask(t, c.URL(""), "SELECT string_agg(DISTINCT type || ' ' || auth_method, ', ' ORDER BY type || ' ' || auth_method) FROM pg_hba_file_rules")
	got["order"] = ask(t, c.URL(""), "SELECT ('Z' < 'a' AND lower('Ä') = 'ä')::text")
	want := map[string]string{
		"listen_addresses": "", "server_encoding": "UTF8", "data_checksums": "on", "fsync": "on", "unix_socket_permissions": "0700",
		"database": "graft", "user": "graft", "superuser": "true", "hba": "host reject, local trust", "order": "true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	uid, _, err := embedpg.Runner()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pg", "pg/data", "pg/run"} {
		checkPrivate(t, filepath.Join(data, name), uid)
	}
	checkUIDs(t, postmasterPID(t, c.URL("")), uid)
}

func checkPrivate(t *testing.T, dir string, uid uint32) {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("mode of %s = %o, want 700", dir, mode)
	}
	if got := info.Sys().(*syscall.Stat_t).Uid; got != uid {
		t.Errorf("owner of %s = %d, want %d", dir, got, uid)
	}
}

// checkUIDs holds that real, effective, saved and file system uid are all uid, and not root's.
func checkUIDs(t *testing.T, pid int, uid uint32) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("\nUid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid)
	if uid == 0 || !strings.Contains(string(status), want) {
		t.Errorf("status of postgres = %s, want%s", status, want)
	}
}

func TestPostgresGetsNoneOfOurEnvironment(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embedpg.Config{DataDir: openDir(t), Throwaway: true}, nil)
	pid := postmasterPID(t, g.started(t).URL)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environ), "canary") || !strings.Contains(string(environ), "LC_ALL=C") {
		t.Errorf("environment of postgres = %q, want no key in it", environ)
	}
}

func TestDataSurvivesAStop(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t)}
	c := start(t, cfg)
	run(t, c.URL(""), "CREATE TABLE kept AS SELECT 'yes' AS word")
	stop(t, c)
	stop(t, c)
	select {
	case <-c.Done():
	default:
		t.Error("Done() is open after Stop")
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err() = %v, want nil after Stop", err)
	}
	if left := processesOf(t, cfg.DataDir); len(left) > 0 {
		t.Errorf("processes after Stop = %q, want none", left)
	}
	if got := ask(t, start(t, cfg).URL(""), "SELECT word FROM kept"); got != "yes" {
		t.Errorf("word = %q, want yes", got)
	}
}

func TestThrowawayIsFastAndLeavesNothingOutside(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data") // closed to any other uid
	c := start(t, embedpg.Config{DataDir: data, Throwaway: true})
	got := map[string]string{}
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes", "max_connections"} {
		got[setting] = ask(t, c.URL(""), "SHOW "+setting)
	}
	want := map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "300"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	home := filepath.Dir(ask(t, c.URL(""), "SHOW data_directory"))
	stop(t, c)
	_, root, err := embedpg.Runner()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); os.IsNotExist(err) != root {
		t.Errorf("folder %s after Stop: %v, want it removed only where it is outside of the data folder", home, err)
	}
	stop(t, start(t, embedpg.Config{DataDir: data, Throwaway: true}))
}

func TestSocketFallsBackToAShortPath(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{"long": strings.Repeat("long/", 30) + "data", "comma": "one,two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(openDir(t), folder)
			if err := os.MkdirAll(data, 0o755); err != nil {
				t.Fatal(err)
			}
			c := start(t, embedpg.Config{DataDir: data, Throwaway: true})
			sockets := ask(t, c.URL(""), "SHOW unix_socket_directories")
			if !strings.HasPrefix(sockets, "/tmp/graft-") {
				t.Errorf("socket folder = %q, want one in /tmp", sockets)
			}
			uid, _, err := embedpg.Runner()
			if err != nil {
				t.Fatal(err)
			}
			checkPrivate(t, sockets, uid)
			stop(t, c)
			if _, err := os.Stat(sockets); !os.IsNotExist(err) {
				t.Errorf("socket folder after Stop: %v, want it gone", err)
			}
			// Somebody else's folder of that name, or an open one, is not trusted and not mended.
			if err := os.Mkdir(sockets, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(sockets) })
			_, err = embedpg.Start(t.Context(), embedpg.Config{DataDir: data})
			if err == nil || !strings.Contains(err.Error(), sockets+" is drwxr-xr-x") {
				t.Errorf("Start() on an open socket folder = %v, want an error that names it", err)
			}
			if info, err := os.Stat(sockets); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("open socket folder after Start = %v, %v, want it untouched", info, err)
			}
		})
	}
}

func TestFailedStartQuotesPostgres(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	stop(t, start(t, cfg))
	conf := filepath.Join(cfg.DataDir, "pg/data/postgresql.conf")
	file, err := os.OpenFile(conf, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString("no_such_setting = 1\n"); err != nil {
		t.Fatal(err)
	}
	_, err = embedpg.Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("Start() = %v, want Postgres's own words about no_such_setting", err)
	}
}

func TestLogHasLevelsAndNoQueries(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c := start(t, embedpg.Config{DataDir: openDir(t), Throwaway: true, Log: log.logger()})
	conn := connect(t, c.URL(""))
	for _, sql := range []string{
		"SELECT 'canary-1'::uuid",
		"CREATE TABLE u (v text UNIQUE)", "INSERT INTO u VALUES ('canary-2')", "INSERT INTO u VALUES ('canary-2')",
		"DO $$ BEGIN RAISE LOG 'a log line'; RAISE WARNING 'a warning line'; END $$",
	} {
		_, _ = conn.Exec(t.Context(), sql)
	}
	stop(t, c)
	for _, want := range []string{`level=DEBUG msg=postgres line="LOG:  a log line"`, `level=WARN msg=postgres line="WARNING:  a warning line"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log = %s, want %s in it", log, want)
		}
	}
	if strings.Contains(log.String(), "canary") {
		t.Errorf("log = %s, want no values of queries in it", log)
	}
}

func TestStopEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	c, err := embedpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, c.URL(""))
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil { // never answers a fast shutdown
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = c.Stop(ctx)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("Stop() took %v, want about the 5 s that Postgres gives its processes", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop() = %v, want deadline exceeded", err)
	}
	if left := processesOf(t, cfg.DataDir); len(left) > 0 {
		t.Errorf("processes after Stop = %q, want none", left)
	}
}

func TestCancelledStartLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	cfg := embedpg.Config{DataDir: openDir(t), Throwaway: true}
	cancelAfter := func(wait time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		c, err := embedpg.Start(ctx, cfg)
		if err == nil {
			stop(t, c)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start() for %v = %v, want deadline exceeded", wait, err)
		}
		// What was killed in initdb's group may still be on its way out.
		eventually(t, "nothing runs after a cancelled start", func() bool { return len(processesOf(t, cfg.DataDir)) == 0 })
	}
	for _, ms := range []time.Duration{0, 50, 200, 400} { // in initdb, which takes about a second
		cancelAfter(ms * time.Millisecond)
	}
	stop(t, start(t, cfg))
	for ms := range time.Duration(12) { // from the search for binaries to the first answer
		cancelAfter(ms * 10 * time.Millisecond)
	}
	start(t, cfg)
}
