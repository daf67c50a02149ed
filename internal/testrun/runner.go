package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"time"
)

// slowest is how many of the slowest tests are named.
const slowest = 10

// runner is one run of the tests.
type runner struct {
	out  io.Writer
	fuzz time.Duration // for each target; 0: their seeds alone
	env  []string      // for the tests, beside our own
}

// run tests, fuzzes and sums up; it reports whether all is well.
func (r runner) run(ctx context.Context, args []string) bool {
	report := newReport(r.out)
	tested := r.test(ctx, args, report)
	fuzzed := true
	if r.fuzz > 0 && tested == nil {
		for _, target := range report.fuzzTargets() {
			fuzzed = r.fuzzOne(ctx, target) && fuzzed
		}
	}
	report.summary(slowest)
	ok := tested == nil && report.ok() && fuzzed
	if !ok {
		_, _ = fmt.Fprintln(r.out, "FAIL")
	}
	return ok
}

// test runs go test -json and feeds its events to the report.
func (r runner) test(ctx context.Context, args []string, to *report) error {
	cmd := r.command(ctx, append([]string{"test", "-json"}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	if err := to.read(events); err != nil {
		_ = cmd.Wait()
		return err
	}
	return cmd.Wait()
}

// fuzzOne runs one fuzz target. Its new inputs stay in Go's cache; a failing one is written beside the test.
func (r runner) fuzzOne(ctx context.Context, target fuzzTarget) bool {
	for range fuzzTries {
		_, _ = fmt.Fprintf(r.out, "fuzz %s in %s for %s\n", target.name, target.pkg, r.fuzz)
		var said bytes.Buffer
		cmd := r.command(ctx, "test", "-run", "^$", "-fuzz", "^"+target.name+"$", "-fuzztime", r.fuzz.String(), target.pkg)
		cmd.Stdout = io.MultiWriter(r.out, &said)
		if cmd.Run() == nil {
			return true
		}
		if !lostRace.Match(said.Bytes()) {
			return false
		}
	}
	return false
}

// fuzzTries is how often a target is run whose fuzzing ended in lostRace.
const fuzzTries = 3

// lostRace is how Go's fuzzer, before 1.27, sometimes ends when -fuzztime is over on a busy machine, with nothing found:
// go.dev/issue/75804. What it finds it says in other words.
var lostRace = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([0-9.]+s\)\n\s+context deadline exceeded\nFAIL$`)
