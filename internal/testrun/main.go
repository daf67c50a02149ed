// Testrun runs go test over the module, then every fuzz target it met for a while, and says at the end which tests were
// slowest. It exists because `go test` alone passes a run whose tests skipped themselves, tells no test's time, and would
// start a Postgres for each package.
//
//	testrun [-fuzz DURATION] [-cluster] -- GO-TEST-ARGUMENTS
//
// What must always hold:
//   - It fails when go test fails, when any test was skipped, when no test ran, and when a fuzz target fails.
//   - Output of passing tests stays unseen; of failing ones nothing is lost. The last lines are go test's own package lines.
//   - The throw-away Postgres of a run ends with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/getgraft/graft/internal/embedpg"
)

// clusterEnv tells the tests of a running cluster: storetest.ClusterEnv.
const clusterEnv = "GRAFT_TEST_CLUSTER"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	fuzz := flag.Duration("fuzz", 0, "run every fuzz target of the packages for this long (0: only their seeds)")
	cluster := flag.Bool("cluster", false, "start one Postgres for all packages")
	flag.Parse()
	r := runner{out: os.Stdout, fuzz: *fuzz}
	var ok bool
	if *cluster {
		ok = r.runOnCluster(ctx, flag.Args())
	} else {
		ok = r.run(ctx, flag.Args())
	}
	stop()
	if !ok {
		os.Exit(1)
	}
}

// runOnCluster is run with a Postgres of its own, which the tests share.
func (r runner) runOnCluster(ctx context.Context, args []string) bool {
	dir, err := os.MkdirTemp("", "graft-testrun-")
	if err != nil {
		return r.failed("make a folder for Postgres", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cluster, err := embedpg.Start(ctx, embedpg.Config{DataDir: dir, Throwaway: true})
	if err != nil {
		return r.failed("start Postgres", err)
	}
	r.env = append(r.env, clusterEnv+"="+cluster.URL("postgres"))
	ok := r.run(ctx, args)
	if err := cluster.Stop(context.WithoutCancel(ctx)); err != nil {
		return r.failed("stop Postgres", err)
	}
	return ok
}

// failed says why a run could not be, in the form of go test's last line.
func (r runner) failed(what string, err error) bool {
	_, _ = fmt.Fprintf(r.out, "%s: %v\nFAIL\n", what, err)
	return false
}

// command prepares the go command; told to stop, it is interrupted first, so that tests can clean up.
func (r runner) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(cmd.Environ(), r.env...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}
