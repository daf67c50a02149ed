// Command graft is the whole gateway in one binary: it serves, and it is the operator's hand on the same database
// while it does. Every subcommand opens the database that serve uses, acts, and is done; its result is on stdout and
// everything else on stderr.
//
// What must hold:
//   - The environment is read here and nowhere else, once, into structs.
//   - A wrong setting is reported by its name, all of them together, with exit code 2; any other failure is exit code 1.
//   - A token or key that a command prints stands alone on stdout, so that it can be piped.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the grammar: commands, flags, environment and help in one place.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Start the gateway: on a private Postgres, or on GRAFT_DATABASE_URL."`
	Migrate migrateCmd `cmd:"" help:"Bring the database schema up to this version."`
	Doctor  doctorCmd  `cmd:"" help:"Check the whole set-up and say how to mend what is wrong."`
	Health  healthCmd  `cmd:"" help:"Ask the gateway on this machine whether it is alive. For container health checks."`
	User    struct {
		Add userAddCmd `cmd:"" help:"Make what is missing of a user and print a fresh one-time sign-in link."`
	} `cmd:"" help:"People."`
	Agent struct {
		Add    agentAddCmd    `cmd:"" help:"Make an agent and print its static token, alone on stdout."`
		List   agentListCmd   `cmd:"" help:"List agents."`
		Revoke agentRevokeCmd `cmd:"" help:"Revoke an agent: its token stops at once."`
	} `cmd:"" help:"Agents."`
	Key struct {
		New keyNewCmd `cmd:"" help:"Print a new master key."`
	} `cmd:"" help:"Master keys."`
	Version kong.VersionFlag `help:"Print the version."`
}

// A program is the world a command acts in.
type program struct {
	stdout, stderr io.Writer
	version        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], &program{stdout: os.Stdout, stderr: os.Stderr, version: version()}))
}

// errConfig marks settings that are wrong; they end the process with 2.
type errConfig struct{ error }

func run(ctx context.Context, args []string, p *program) int {
	var grammar cli
	exit := -1
	k, err := kong.New(&grammar, kong.Name("graft"), kong.Description("A hosted, multi-tenant MCP gateway."),
		kong.UsageOnError(), kong.Writers(p.stdout, p.stderr), kong.Exit(func(code int) { exit = code }),
		kong.Vars{"version": p.version}, kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		_, _ = fmt.Fprintln(p.stderr, "graft:", err)
		return 1
	}
	parsed, err := k.Parse(args)
	if exit >= 0 { // --help and --version have been answered
		return exit
	}
	if err == nil {
		err = parsed.Run()
	} else {
		err = errConfig{err}
	}
	var config errConfig
	switch {
	case err == nil:
		return 0
	case errors.As(err, &config):
		_, _ = fmt.Fprintf(p.stderr, "graft: %v\n", err)
		return 2
	case errors.Is(err, errSilent):
		return 1
	}
	_, _ = fmt.Fprintf(p.stderr, "graft: %v\n", words(err))
	return 1
}

// errSilent ends a command with 1 that has said on its own what is wrong.
var errSilent = errors.New("failed")

// version is the module's, or that of the commit the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "0.0.0-" + s.Value[:12]
		}
	}
	return "0.0.0-dev"
}
