// Testrun runs go test over the module, then every fuzz target it met for a while, and says at the end which tests were
// slowest. It exists because `go test` alone passes a run whose tests skipped themselves, and tells no test's time.
//
//	testrun [-fuzz DURATION] GO-TEST-ARGUMENTS
//
// What must always hold:
//   - It fails when go test fails, when any test was skipped, when no test ran, and when a fuzz target fails.
//   - Output of passing tests stays unseen; of failing ones nothing is lost. The last lines are go test's own package lines.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fuzz := flag.Duration("fuzz", 0, "run every fuzz target of the packages for this long (0: only their seeds)")
	flag.Parse()
	if !run(ctx, os.Stdout, flag.Args(), *fuzz) {
		stop()
		os.Exit(1)
	}
}

// run tests, fuzzes and sums up; it reports whether all is well.
func run(ctx context.Context, out io.Writer, args []string, fuzz time.Duration) bool {
	r := newReport(out)
	tested := goTest(ctx, append([]string{"-json"}, args...), r)
	fuzzed := true
	if fuzz > 0 && tested == nil {
		for _, target := range r.fuzzTargets() {
			fuzzed = fuzzOne(ctx, out, target, fuzz) && fuzzed
		}
	}
	r.summary(10)
	ok := tested == nil && r.ok() && fuzzed
	if !ok {
		_, _ = fmt.Fprintln(out, "FAIL")
	}
	return ok
}

// goTest runs go test -json and feeds its events to r.
func goTest(ctx context.Context, args []string, r *report) error {
	cmd := goCommand(ctx, append([]string{"test"}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	if err := r.read(events); err != nil {
		_ = cmd.Wait()
		return err
	}
	return cmd.Wait()
}

// fuzzOne runs one fuzz target. Its new inputs stay in Go's cache; a failing one is written beside the test.
func fuzzOne(ctx context.Context, out io.Writer, target fuzzTarget, d time.Duration) bool {
	cmd := goCommand(ctx, "test", "-run", "^$", "-fuzz", "^"+target.name+"$", "-fuzztime", d.String(), target.pkg)
	cmd.Stdout = out
	_, _ = fmt.Fprintf(out, "fuzz %s in %s for %s\n", target.name, target.pkg, d)
	return cmd.Run() == nil
}

// goCommand prepares the go command; told to stop, it is interrupted first, so that tests can clean up.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}
