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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/server"
)

// cli is the grammar: commands, flags, environment and help in one place.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Start the gateway: on a private Postgres, or on GRAFT_DATABASE_URL."`
	Migrate migrateCmd `cmd:"" help:"Bring the database schema up to this version."`
	Doctor  doctorCmd  `cmd:"" help:"Check the whole set-up and say how to mend what is wrong."`
	Health  healthCmd  `cmd:"" help:"Ask the gateway on this machine whether it is alive. For container health checks."`
	User    struct {
		Add    userAddCmd    `cmd:"" help:"Make what is missing of a user and print a fresh one-time sign-in link."`
		Link   userLinkCmd   `cmd:"" help:"Print a fresh one-time sign-in link for somebody who has an account."`
		Role   userRoleCmd   `cmd:"" help:"Give a member another role."`
		Remove userRemoveCmd `cmd:"" help:"Remove a member: their agents and sessions end at once."`
	} `cmd:"" help:"People."`
	Agent struct {
		Add    agentAddCmd    `cmd:"" help:"Make an agent and print its static token, alone on stdout."`
		List   agentListCmd   `cmd:"" help:"List agents."`
		Revoke agentRevokeCmd `cmd:"" help:"Revoke an agent: its token stops at once."`
	} `cmd:"" help:"Agents."`
	Secret struct {
		Set  secretSetCmd  `cmd:"" help:"Set a secret to what is on stdin."`
		List secretListCmd `cmd:"" help:"List secrets, without their values."`
		Rm   secretRmCmd   `cmd:"" help:"Destroy a secret."`
	} `cmd:"" help:"Secrets that upstreams' headers are filled with."`
	Upstream struct {
		Add      upstreamAddCmd      `cmd:"" help:"Add an MCP server, and list its tools once."`
		List     upstreamListCmd     `cmd:"" help:"List upstreams."`
		Rm       upstreamRmCmd       `cmd:"" help:"Revoke an upstream: its tools go at once."`
		Override upstreamOverrideCmd `cmd:"" help:"Put a description of your own in place of a tool's."`
	} `cmd:"" help:"MCP servers behind the gateway."`
	MCP struct {
		List  mcpListCmd  `cmd:"" help:"List the upstreams in use."`
		Test  mcpTestCmd  `cmd:"" help:"Connect to an upstream and list it anew."`
		Tools mcpToolsCmd `cmd:"" help:"List the tools of upstreams."`
	} `cmd:"" name:"mcp" help:"What is behind the gateway, as it sees it."`
	Audit struct {
		Verify auditVerifyCmd `cmd:"" help:"Walk the audit log and say whether it is as it was signed; the place and exit code 1 where it is not."`
		Export auditExportCmd `cmd:"" help:"Print the audit log, a line of JSON for each entry."`
	} `cmd:"" help:"The audit log."`
	Key struct {
		New          keyNewCmd          `cmd:"" help:"Print a new master key."`
		RotateTokens keyRotateTokensCmd `cmd:"" help:"Make the key that access tokens are signed with next."`
	} `cmd:"" help:"Keys."`
	Version kong.VersionFlag `help:"Print the version."`
}

// A program is the world a command acts in.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	version        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, version: version()}))
}

func run(ctx context.Context, args []string, p *program) int {
	var grammar cli
	exit := -1
	k, err := kong.New(&grammar, kong.Name("graft"), kong.Description("A hosted, multi-tenant MCP gateway."),
		kong.Writers(p.stdout, p.stderr), kong.Exit(func(code int) { exit = code }),
		kong.Vars{"version": p.version}, kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.TypeMapper(reflect.TypeFor[int32](), number),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		return p.fail(err)
	}
	if len(args) == 0 { // what there is to do, to somebody who has not said what
		k.Stdout = p.stderr
		_, _ = k.Parse([]string{"--help"})
		return 2
	}
	parsed, err := k.Parse(args)
	if exit >= 0 { // --help and --version have been answered
		return exit
	}
	if err != nil {
		return p.fail(err)
	}
	return p.fail(parsed.Run())
}

// fail says what went wrong and returns the exit code: 2 for what was typed or set, 1 for anything else.
func (p *program) fail(err error) int {
	var wrong server.Wrong
	var parse *kong.ParseError
	var refusal *reason.Refusal
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return 1
	case errors.As(err, &wrong):
		p.say("graft: %s wrong:", count(len(wrong), "setting is", "settings are"))
		for _, line := range wrong {
			p.say("  %s", line)
		}
		return 2
	case errors.As(err, &parse):
		p.say("graft: %s", sentence(err.Error()))
		p.say("Run %q for what there is.", usageOf(parse))
		return 2
	case errors.As(err, &refusal) && refusal.Word == reason.InputInvalid:
		p.say("graft: %s", sentence(words(err)))
		return 2
	}
	p.say("graft: %s", sentence(words(err)))
	return 1
}

// usageOf is the help of the command that was reached.
func usageOf(err *kong.ParseError) string {
	at := err.Context.Model.Node
	if selected := err.Context.Selected(); selected != nil {
		at = selected
	}
	return at.FullPath() + " --help"
}

// say prints a line for people.
func (p *program) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, format+"\n", args...)
}

// print puts v on stdout as JSON.
func (p *program) print(v any) error { return json.NewEncoder(p.stdout).Encode(v) }

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
