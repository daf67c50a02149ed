package web

import (
	"regexp"
	"strconv"
	"strings"
)

// Connect is how one client is pointed at the gateway with a static token. The
// token itself is in none of it: each client reads GRAFT_TOKEN, or asks.
type Connect struct {
	Client string // "Claude Code"
	Where  string // what to do with Code; `backticks` are code
	Code   Code
	Check  string // how to see that it works; `backticks` are code
}

// ConnectBlocks returns the block of every client we know, for the gateway at
// url. Name is what the client shall call it, and begins the names of its tools
// there: a letter, then letters, digits, hyphens and
// underscores, else it is "graft".
//
// Seen to connect with the token in a header: Claude Code 2.1.197 and OpenClaw 2026.9.6. Seen to read its block and
// report bearer authentication: Codex 0.171.0. From their documentation: Cursor, VS Code, Hermes.
func ConnectBlocks(url, name string) []Connect {
	if !plainName.MatchString(name) {
		name = "graft"
	}
	return []Connect{
		claudeCode(url, name),
		codex(url, name),
		cursor(url, name),
		vsCode(url, name),
		hermes(url, name),
		openClaw(url, name),
		generic(url),
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)

// claudeCode keeps the variable's name, not its value, in ~/.claude.json: the
// single quotes keep the shell from filling it in.
func claudeCode(url, name string) Connect {
	return Connect{
		Client: "Claude Code",
		Where:  "Put the token in `GRAFT_TOKEN`, in your shell's profile, then run this. It holds for all your projects.",
		Code: Code{Label: "Claude Code command", Tokens: []Token{
			fn("claude"), txt(" mcp add "), opt("--transport"), txt(" http "), opt("--scope"), txt(" user " + name + " \\\n  " + word(url) + " \\\n  "),
			opt("--header"), txt(" "), str("'Authorization: Bearer ${GRAFT_TOKEN}'"),
		}},
		Check: "`claude mcp list` says that " + name + " is connected. In a session, `/mcp` lists its tools.",
	}
}

func codex(url, name string) Connect {
	return Connect{
		Client: "Codex",
		Where:  "Add this to `~/.codex/config.toml`. Codex reads the token from `GRAFT_TOKEN` whenever it starts.",
		Code: Code{Label: "Codex configuration", Tokens: []Token{
			key("[mcp_servers." + name + "]"), txt("\n"),
			fn("url"), txt(" = "), str(quote(url)), txt("\n"),
			fn("bearer_token_env_var"), txt(" = "), str(`"GRAFT_TOKEN"`),
		}},
		Check: "`codex mcp list` shows " + name + ". In a session, `/mcp` lists its tools.",
	}
}

func cursor(url, name string) Connect {
	return Connect{
		Client: "Cursor",
		Where:  "Add this to `~/.cursor/mcp.json`, or to `.cursor/mcp.json` for one project. Cursor reads `GRAFT_TOKEN` from the environment it was started in.",
		Code: Code{Label: "Cursor configuration", Tokens: []Token{
			txt("{\n  "), fn(`"mcpServers"`), txt(": {\n    "), fn(quote(name)), txt(": {\n      "),
			fn(`"url"`), txt(": "), str(quote(url)), txt(",\n      "),
			fn(`"headers"`), txt(": { "), fn(`"Authorization"`), txt(": "), str(`"Bearer ${env:GRAFT_TOKEN}"`),
			txt(" }\n    }\n  }\n}"),
		}},
		Check: "Restart Cursor. Its settings list " + name + " under MCP, with its tools.",
	}
}

func vsCode(url, name string) Connect {
	return Connect{
		Client: "VS Code",
		Where:  "Run “MCP: Open User Configuration” and add this, or save it as `.vscode/mcp.json` in one project. VS Code asks for the token once and keeps it.",
		Code: Code{Label: "VS Code configuration", Tokens: []Token{
			txt("{\n  "), fn(`"inputs"`), txt(": [\n    { "),
			fn(`"id"`), txt(": "), str(`"graft-token"`), txt(", "), fn(`"type"`), txt(": "), str(`"promptString"`), txt(",\n      "),
			fn(`"description"`), txt(": "), str(`"Graft token"`), txt(", "), fn(`"password"`), txt(": "), key("true"), txt(" }\n  ],\n  "),
			fn(`"servers"`), txt(": {\n    "), fn(quote(name)), txt(": {\n      "),
			fn(`"type"`), txt(": "), str(`"http"`), txt(",\n      "),
			fn(`"url"`), txt(": "), str(quote(url)), txt(",\n      "),
			fn(`"headers"`), txt(": { "), fn(`"Authorization"`), txt(": "), str(`"Bearer ${input:graft-token}"`),
			txt(" }\n    }\n  }\n}"),
		}},
		Check: "“MCP: List Servers” shows " + name + " as running. Its tools are in the chat's tool picker.",
	}
}

func hermes(url, name string) Connect {
	return Connect{
		Client: "Hermes",
		Where:  "Put `GRAFT_TOKEN=` and the token in `~/.hermes/.env`, and this in `~/.hermes/config.yaml`. A running Hermes takes it up with `/reload-mcp`.",
		Code: Code{Label: "Hermes configuration", Tokens: []Token{
			fn("mcp_servers"), txt(":\n  "), fn(name), txt(":\n    "),
			fn("url"), txt(": "), str(quote(url)), txt("\n    "),
			fn("headers"), txt(":\n      "),
			fn("Authorization"), txt(": "), str(`"Bearer ${GRAFT_TOKEN}"`),
		}},
		Check: "`hermes mcp test " + name + "` connects and counts the tools.",
	}
}

// openClaw needs the transport spelled out: without it, it speaks the older SSE.
func openClaw(url, name string) Connect {
	value := `{"url":` + quote(url) + `,"transport":"streamable-http","headers":{"Authorization":"Bearer ${GRAFT_TOKEN}"}}`
	return Connect{
		Client: "OpenClaw",
		Where:  "Put `GRAFT_TOKEN=` and the token in `~/.openclaw/.env`, then run this.",
		Code: Code{Label: "OpenClaw command", Wrap: true, Tokens: []Token{
			fn("openclaw"), txt(" mcp set " + name + " "), str(single(value)),
		}},
		Check: "`openclaw mcp probe " + name + "` connects and counts the tools.",
	}
}

func generic(url string) Connect {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}`
	return Connect{
		Client: "Other",
		Where:  "Any client that speaks MCP over streamable HTTP: give it the address, and the token in `Authorization: Bearer`. To try it by hand, put the token in `GRAFT_TOKEN` and run this.",
		Code: Code{Label: "curl command", Tokens: []Token{
			fn("curl"), txt(" "), opt("-sS"), txt(" " + word(url) + " \\\n  "),
			opt("-H"), txt(" "), str(`"Authorization: Bearer $GRAFT_TOKEN"`), txt(" \\\n  "),
			opt("-H"), txt(" "), str(`"Content-Type: application/json"`), txt(" \\\n  "),
			opt("-H"), txt(" "), str(`"Accept: application/json, text/event-stream"`), txt(" \\\n  "),
			opt("-d"), txt(" "), str(single(hello)),
		}},
		Check: "The answer holds `serverInfo`. A wrong token is answered 401.",
	}
}

func key(s string) Token { return Token{"k", s} }
func str(s string) Token { return Token{"s", s} }
func opt(s string) Token { return Token{"n", s} }
func fn(s string) Token  { return Token{"f", s} }
func txt(s string) Token { return Token{"", s} }

// quote is s in double quotes, as JSON, TOML and YAML all read it.
func quote(s string) string { return strconv.Quote(s) }

// single is s as one word of a shell, taken as it is.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// word is s as one word of a shell, bare where that is safe.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return single(s)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9:/._-]+$`)
