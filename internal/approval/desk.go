package approval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// A Desk puts calls to people and looks for their answers. Safe for concurrent use.
type Desk struct {
	db     *store.DB
	keys   *vault.Keyring
	origin string
}

// NewDesk makes a Desk whose links begin with origin.
func NewDesk(db *store.DB, keys *vault.Keyring, origin string) *Desk { return &Desk{db, keys, origin} }

// A Call is what a person is asked about.
type Call struct {
	Subject
	Run    store.RunID
	Digest []byte // of the arguments
	Shown  Shown
}

// Shown is what a person sees of a call. What is bound is the digest.
type Shown struct {
	Title       string         `json:"title,omitzero"`
	Description string         `json:"description,omitzero"`
	Kind        string         `json:"kind"`
	Vendor      string         `json:"vendor"`
	Name        string         `json:"name"` // as the source knows it
	Destructive bool           `json:"destructive"`
	Arguments   jsontext.Value `json:"arguments"`
	Cut         bool           `json:"cut,omitzero"` // they are too long to show: arguments is a string, their beginning
}

// maxShown bounds the arguments a person is shown, in bytes; of longer ones they see the beginning.
const maxShown = 64_000

// fit cuts arguments that are too long.
func (s *Shown) fit() {
	if len(s.Arguments) > maxShown {
		s.Arguments, s.Cut = rpc.AppendString(nil, strings.ToValidUTF8(string(s.Arguments[:maxShown]), "")), true
	}
}

// digest binds the arguments to the tool, its version and its connection.
func (c Call) digest() []byte {
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c.Tool))))
	_, _ = h.Write([]byte(c.Tool))
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(c.Version)))
	connection := c.Connection.Bytes()
	_, _ = h.Write(connection[:])
	_, _ = h.Write(c.Digest)
	return h.Sum(nil)
}

// key is the same for whatever one answer would settle.
func (c Call) key(agent store.AgentID, every bool) []byte {
	h := sha256.New()
	id := agent.Bytes()
	_, _ = h.Write(append([]byte(store.AskApproval), id[:]...))
	if every {
		_, _ = h.Write(c.digest())
		return h.Sum(nil)
	}
	c.Digest = nil
	_, _ = h.Write(c.digest())
	return h.Sum(nil)
}

// Settle lets a call pass that a person allowed since the standing answers were last read, or refuses it: as
// tool_denied, as approval_declined, or as awaiting_approval with the link to the ask, which is made unless it is there.
func (d *Desk) Settle(ctx context.Context, c store.Caller, call Call) error {
	box, err := d.box(ctx, c)
	if err != nil {
		return err
	}
	call.Shown.fit()
	body, err := json.Marshal(call.Shown)
	if err != nil {
		return fmt.Errorf("write ask: %w", err)
	}
	ask := store.Ask{
		Kind: store.AskApproval, AgentID: c.Agent, Tool: call.Tool, Version: call.Version, ConnectionID: call.Connection, Digest: call.digest(),
	}
	var waits, declined bool
	var open store.Ask
	err = d.db.As(ctx, c, func(tx *store.Tx) error {
		list, err := tx.Approvals(ctx, c.Agent)
		if err != nil {
			return err
		}
		waits, declined = false, false // this may run again
		verdict := Decide(call.Subject, NewStanding(list))
		switch verdict {
		case Pass:
			return nil
		case Denied:
			return refuseDenied(call.Tool)
		case AskEvery:
			allowed, err := tx.TakeAnswer(ctx, ask, call.Run)
			if declined = err == nil && !allowed; !store.IsAbsent(err) {
				return err // also where it is a no: the answer is used up
			}
		}
		waits = true
		ask.Every = verdict == AskEvery
		ask.Key = call.key(c.Agent, ask.Every)
		open, err = tx.OpenAsk(ctx, ask, func(id store.AskID) []byte { return box.Seal(place(id), body) })
		return err
	})
	if err == nil && declined {
		return reason.Refuse(reason.ApprovalDeclined, "A person answered no to this call of %s.", call.Tool)
	}
	if err != nil || !waits {
		return err
	}
	return d.awaiting(open)
}

func (d *Desk) awaiting(a store.Ask) *reason.Refusal {
	return reason.Refuse(reason.AwaitingApproval, "A person has to allow %s first. Give them the link, say what it is for, and call again with the same arguments once they have answered.", a.Tool).
		With("askId", a.ID.String()).With("url", d.Link(a)).With("expiresAt", a.ExpiresAt.Format(time.RFC3339))
}

// Link is where an ask is answered.
func (d *Desk) Link(a store.Ask) string {
	return d.origin + "/asks/" + a.ID.String() + "?t=" + url.QueryEscape(a.Mark)
}

// Show opens what a person is shown of an ask.
func (d *Desk) Show(ctx context.Context, c store.Caller, a store.Ask) (s Shown, err error) {
	box, err := d.box(ctx, c)
	if err != nil {
		return Shown{}, err
	}
	body, err := box.Open(place(a.ID), a.Body)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil {
		return Shown{}, fmt.Errorf("open %s: %w", a.ID, err)
	}
	return s, nil
}

func (d *Desk) box(ctx context.Context, c store.Caller) (*vault.Box, error) {
	box, err := d.keys.Box(ctx, c.Org.String(), "ask")
	if err != nil {
		return nil, fmt.Errorf("open asks: %w", err)
	}
	return box, nil
}

func place(id store.AskID) []byte { return []byte(id.String()) }

func refuseDenied(tool string) *reason.Refusal {
	return reason.Refuse(reason.ToolDenied, "A person denied this agent %s. It can be changed on the agent's page.", tool)
}
