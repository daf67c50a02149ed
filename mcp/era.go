package mcp

import (
	"slices"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
)

// An era is one of the two shapes of the protocol. Both live on one URL, and which one a request belongs to is decided
// by that request alone.
type era int

const (
	// sessions: initialize, Mcp-Session-Id, the GET stream, DELETE. 2025-03-26 to 2025-11-25.
	sessions era = iota
	// stateless: _meta on every request, server/discover, subscriptions/listen. 2026-07-28.
	stateless
)

// modern is the protocol version of the stateless era.
const modern = mcpgo.ProtocolVersion20260728

// versions are the protocol versions of the sessions era, oldest first. An id holds an index into them, so one is
// only ever appended.
var versions = []string{mcpgo.ProtocolVersion20250326, mcpgo.ProtocolVersion20250618, mcpgo.ProtocolVersion20251125}

// supported are all versions, newest first.
var supported = func() []string {
	s := append(slices.Clone(versions), modern)
	slices.Reverse(s)
	return s
}()

// negotiate picks the version to answer initialize with: the one asked for, else the newest that has initialize (MCP
// 2025-11-25, Lifecycle, Version Negotiation).
func negotiate(asked string) string {
	if slices.Contains(versions, asked) {
		return asked
	}
	return versions[len(versions)-1]
}

// eraOf reads the MCP-Protocol-Version header. An absent one means the sessions era, and there any of its versions
// does, whichever the session negotiated.
func eraOf(header string) (era, error) {
	switch {
	case header == "" || slices.Contains(versions, header):
		return sessions, nil
	case header == modern:
		return stateless, nil
	}
	return sessions, unsupported(header)
}

func unsupported(version string) error {
	return reason.Refuse(reason.VersionUnsupported, "Protocol version %q is not spoken here. Use one of %s.", clip(version), strings.Join(supported, ", ")).
		With("supported", supported).With("requested", clip(version))
}

func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
