package mcp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// SessionLife is how long a session id is taken, counted from initialize. The keys it is sealed under are kept as long.
const SessionLife = 30 * 24 * time.Hour

// A session is what its id says: nothing is kept of it in memory.
type session struct {
	id      store.SessionID // when it was opened, and a nonce
	agent   store.AgentID
	version string
	can     capability
}

// capability is the set of the client's capabilities that we act on.
type capability byte

const (
	canElicitForm capability = 1 << iota
	canElicitURL
	canTask // of the stateless era alone
)

// elicits reads a client's elicitation capability. {} means form (MCP 2025-11-25, Elicitation, Capabilities).
func elicits(e *mcpgo.ElicitationCapability) capability {
	if e == nil {
		return 0
	}
	var can capability
	if e.Form != nil || e.URL == nil {
		can |= canElicitForm
	}
	if e.URL != nil {
		can |= canElicitURL
	}
	return can
}

// sessionFormat is the first byte of a session id's content.
const sessionFormat = 1

// maxSessionID is more than an id of ours has, and saves work on one that is not.
const maxSessionID = 400

func (h *Handler) sealSession(s session) string {
	id, agent := s.id.Bytes(), s.agent.Bytes()
	b := []byte{sessionFormat, byte(slices.Index(versions, s.version)), byte(s.can)}
	b = append(append(b, id[:]...), agent[:]...)
	return base64.RawURLEncoding.EncodeToString(h.c.Sessions.Seal(nil, b))
}

// openSession reads a session id for the caller. One that does not open, or is too old, is session_not_found; one
// that another agent opened is session_mismatch. A session id is not a credential: the caller has one of its own.
func (h *Handler) openSession(raw string, c store.Caller) (session, error) {
	s, err := h.parseSession(raw)
	switch {
	case err != nil:
		return session{}, errEnded
	case s.agent != c.Agent:
		return session{}, reason.Refuse(reason.SessionMismatch, "The session was opened by another agent's token. Call initialize.")
	case h.now().Sub(s.id.Time()) > SessionLife:
		return session{}, errEnded
	}
	return s, nil
}

func (h *Handler) parseSession(raw string) (session, error) {
	if len(raw) > maxSessionID {
		return session{}, fmt.Errorf("session id of %d bytes", len(raw))
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(raw)
	if err != nil {
		return session{}, err
	}
	b, err := h.c.Sessions.Open(nil, sealed)
	if err != nil {
		return session{}, err
	}
	if len(b) != 3+16+16 || b[0] != sessionFormat || int(b[1]) >= len(versions) {
		return session{}, vault.ErrSealed
	}
	return session{
		version: versions[b[1]],
		can:     capability(b[2]),
		id:      store.IDFromBytes[store.SessionKind]([16]byte(b[3:19])),
		agent:   store.IDFromBytes[store.AgentKind]([16]byte(b[19:35])),
	}, nil
}
