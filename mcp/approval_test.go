package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// A mailbox is a source with one tool that writes. It counts, and looks what the audit has when it runs.
type mailbox struct {
	db      *store.DB
	version atomic.Int64
	sent    atomic.Int64
	mu      sync.Mutex
	audited []string // kinds and outcomes that stood written when the tool ran
}

func (m *mailbox) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	return []catalog.Tool{{
		Vendor: "mail", Name: "send", Title: "Send", Description: "Sends.", Version: int(m.version.Load()),
		InputSchema: jsontext.Value(`{"type":"object","properties":{"to":{"type":"string"}}}`),
	}}, nil
}

func (m *mailbox) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	m.sent.Add(1)
	entries, err := steps(ctx, m.db, r.Caller)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audited = entries
	return catalog.Output{Value: jsontext.Value(`"sent"`)}, err
}

// steps are the kinds and outcomes of what is written of the mailbox's tool, newest first.
func steps(ctx context.Context, db *store.DB, c store.Caller) (list []string, err error) {
	err = db.As(ctx, c, func(tx *store.Tx) error {
		links, err := tx.AuditEntries(ctx, store.AuditFilter{Tool: "mail__send"})
		list = nil
		for _, l := range links {
			list = append(list, strings.TrimSpace(string(l.Kind)+" "+l.Outcome))
		}
		return err
	})
	return list, err
}

// A correspondent is an agent that sends mail, and the person who is asked.
type correspondent struct {
	*client
	k     *servertest.Kit
	box   *mailbox
	agent store.Agent
}

func newCorrespondent(t *testing.T) *correspondent {
	t.Helper()
	box := &mailbox{db: storetest.Open(t, storetest.URL(t), nil)}
	box.version.Store(1)
	k := servertest.Start(t, servertest.Options{Sources: []catalog.Source{box}})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	return &correspondent{c, k, box, agent}
}

// send calls the tool at one replica.
func (c *correspondent) send(replica int, to string) result {
	c.t.Helper()
	return c.at(c.k, replica).call("mail__send", `{"to":"`+to+`"}`)
}

func (c *correspondent) sends(replica int, to string) {
	c.t.Helper()
	if got := c.send(replica, to); got.IsError || got.text() != `"sent"` {
		c.t.Errorf("replica %d = %s, want it sent", replica, got.text())
	}
}

// asks calls, and wants the call to wait for a person.
func (c *correspondent) asks(replica int, to string) store.AskID {
	c.t.Helper()
	got := c.send(replica, to)
	var in struct {
		Error, Reason, URL, AskID string
		ExpiresAt                 time.Time
	}
	if err := json.Unmarshal(got.Structured, &in); err != nil || !got.IsError || in.Error != "awaiting_approval" || in.Reason != in.Error {
		c.t.Fatalf("replica %d = %s (%v), want awaiting_approval", replica, got.text(), err)
	}
	id, err := store.ParseID[store.AskKind](in.AskID)
	if err != nil || !strings.HasPrefix(in.URL, c.k.URL+"/asks/"+in.AskID) || time.Until(in.ExpiresAt) < time.Hour {
		c.t.Errorf("awaiting_approval = %s", got.text())
	}
	return id
}

func (c *correspondent) refused(replica int, to, want string) {
	c.t.Helper()
	if got := c.send(replica, to); !got.IsError || !strings.Contains(got.text(), `"reason":"`+want+`"`) {
		c.t.Errorf("replica %d = %s, want %s", replica, got.text(), want)
	}
}

func (c *correspondent) answer(id store.AskID, allow, every bool) {
	c.t.Helper()
	err := c.k.DB.As(c.t.Context(), c.k.Owner, func(tx *store.Tx) error {
		_, err := tx.AnswerAsk(c.t.Context(), id, allow, every)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *correspondent) sent(want int64) {
	c.t.Helper()
	if got := c.box.sent.Load(); got != want {
		c.t.Errorf("sent %d times, want %d", got, want)
	}
}

// audited waits until what is written of the tool is want, oldest first.
func (c *correspondent) audited(want ...string) {
	c.t.Helper()
	var got []string
	eventually(c.t, "the audit has "+strings.Join(want, ", "), func() bool {
		newest, err := steps(c.t.Context(), c.k.DB, c.k.Owner)
		if err != nil {
			c.t.Fatal(err)
		}
		got = nil
		for n := range newest {
			got = append(got, newest[len(newest)-1-n])
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

func TestAWriteAsksOnceAndTheAnswerHolds(t *testing.T) {
	t.Parallel()
	c := newCorrespondent(t)
	id := c.asks(0, "ana")
	if again := c.asks(1, "ana"); again != id {
		t.Errorf("the same call again asks %s, want the same ask %s", again, id)
	}
	if other := c.asks(0, "bob"); other != id {
		t.Errorf("other arguments ask %s, want the ask for the tool %s", other, id)
	}
	c.sent(0)
	c.answer(id, true, false)
	c.sends(0, "ana")
	c.sends(1, "ana")
	c.sends(1, "bob")
	c.sent(3)
	// When the tool ran the last time, that it would was written down; what came of it was not yet.
	c.box.mu.Lock()
	if seen := c.box.audited; len(seen) == 0 || seen[0] != "intent" {
		t.Errorf("when the tool ran, the last in the audit was %q, want its intent", seen)
	}
	c.box.mu.Unlock()
	c.audited("call awaiting_approval", "call awaiting_approval", "call awaiting_approval",
		"intent", "call ok", "intent", "call ok", "intent", "call ok")

	c.box.version.Add(1)
	c.k.Restart() // so that the catalogue is read anew on both
	next := c.asks(0, "ana")
	if next == id {
		t.Error("another version is the ask of the one before")
	}
	c.refusedUntil(next)
	c.sent(3)
}

// refusedUntil denies, and wants that to hold for the tool.
func (c *correspondent) refusedUntil(id store.AskID) {
	c.t.Helper()
	c.answer(id, false, false)
	for replica := range 2 {
		c.refused(replica, "ana", "tool_denied")
		c.refused(replica, "bob", "tool_denied")
	}
}

func TestANoHoldsForTheTool(t *testing.T) {
	t.Parallel()
	c := newCorrespondent(t)
	c.refusedUntil(c.asks(1, "ana"))
	c.box.version.Add(1)
	c.k.Restart()
	c.refused(0, "ana", "tool_denied")
	c.sent(0)
}

// An answer for one call is used by one call, however many race for it.
func TestAskingEveryTimeIsForExactlyThatCall(t *testing.T) {
	t.Parallel()
	c := newCorrespondent(t)
	c.answer(c.asks(0, "ana"), true, true)
	// That yes was for the call that asked; the next ones are asked about one by one.
	race := func(to string) (ran int64) {
		before := c.box.sent.Load()
		var beside sync.WaitGroup
		for n := range 20 {
			beside.Go(func() { c.send(n%2, to) })
		}
		beside.Wait()
		return c.box.sent.Load() - before
	}
	if got := race("ana"); got != 1 {
		t.Errorf("of 20 calls that raced for one yes %d ran", got)
	}
	id := c.asks(0, "ana")
	if other := c.asks(1, "bob"); other == id {
		t.Error("other arguments are the same ask")
	}
	c.answer(id, true, true)
	c.asks(1, "bob")
	if got := race("ana"); got != 1 {
		t.Errorf("of 20 calls that raced for the second yes %d ran", got)
	}
	id = c.asks(0, "ana")
	c.answer(id, false, false)
	c.refused(1, "ana", "approval_declined")
	if next := c.asks(0, "ana"); next == id {
		t.Error("a no that was used is asked about again under its own id")
	}
	c.sent(2)
}
