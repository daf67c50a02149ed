package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// An asker is an agent that asks about one tool.
type asker struct {
	t     *testing.T
	db    *store.DB
	owner store.Caller
	self  store.Caller
	agent store.Agent
	clock *clock
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	owner := storetest.Organisation(t, db)
	agent, _ := storetest.Agent(t, db, owner, "Asker")
	return &asker{t, db, owner, bearer(owner, agent), agent, clock}
}

func sum(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

// about is a call of a tool with arguments; a call of a tool that asks every time is keyed by them.
func (k *asker) about(args string, every bool) store.Ask {
	key := "tool"
	if every {
		key += args
	}
	return store.Ask{Kind: store.AskApproval, AgentID: k.agent.ID, Tool: "mail__send", Version: 3, Key: sum(k.agent.ID.String() + key), Digest: sum(args), Every: every}
}

func (k *asker) open(args string, every bool) (store.Ask, error) {
	return in(k.t, k.db, k.self, func(tx *store.Tx) (store.Ask, error) {
		return tx.OpenAsk(k.t.Context(), k.about(args, every), func(id store.AskID) []byte { return []byte("body of " + id.String()) })
	})
}

func (k *asker) mustOpen(args string, every bool) store.Ask {
	k.t.Helper()
	a, err := k.open(args, every)
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

func (k *asker) answer(c store.Caller, id store.AskID, allow, every bool) (store.Ask, error) {
	return in(k.t, k.db, c, func(tx *store.Tx) (store.Ask, error) { return tx.AnswerAsk(k.t.Context(), id, allow, every) })
}

func (k *asker) take(args string) (bool, error) {
	return in(k.t, k.db, k.self, func(tx *store.Tx) (bool, error) {
		return tx.TakeAnswer(k.t.Context(), k.about(args, true), store.NewID[store.RunKind](k.clock.now()))
	})
}

func (k *asker) standing() []store.Approval {
	return must(k.t, k.db, k.self, func(tx *store.Tx) ([]store.Approval, error) { return tx.Approvals(k.t.Context(), k.agent.ID) })
}

func TestTheSameQuestionIsOneAsk(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	ids := make([]store.AskID, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			if a, err := k.open("{}", false); err != nil {
				t.Error(err)
			} else {
				ids[i] = a.ID
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id.IsZero() {
			t.Fatalf("asked 8 times at once, got asks %v, want one", ids)
		}
	}
	a := k.mustOpen("other arguments", false)
	if a.ID != ids[0] || !bytes.Equal(a.Body, []byte("body of "+a.ID.String())) || a.State != store.AskOpen || a.AgentName != "Asker" {
		t.Errorf("asked again = %+v, want the ask that is there", a)
	}
	if a.Mark == "" || !a.Marked(a.Mark) || a.Marked(a.Mark+"x") || a.Marked("") {
		t.Errorf("the mark %q does not tell its link from others", a.Mark)
	}
	k.clock.pass(store.AskLife + time.Second)
	if later := k.mustOpen("{}", false); later.ID == a.ID {
		t.Error("an ask whose time is over was not made anew")
	}
}

func TestAnAnswerStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asksEvery, allow, every bool
		want                    store.Decision
	}{
		"allow":                       {false, true, false, store.Allow},
		"allow and ask every time":    {false, true, true, store.AskEvery},
		"deny":                        {false, false, false, store.Deny},
		"allow one call":              {true, true, false, store.AskEvery},
		"deny one call":               {true, false, false, ""},
		"deny and ask every time too": {false, false, true, store.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newAsker(t)
			a, err := k.answer(k.owner, k.mustOpen("{}", c.asksEvery).ID, c.allow, c.every)
			if err != nil {
				t.Fatal(err)
			}
			wantState := store.AskDenied
			if c.allow {
				wantState = store.AskAllowed
			}
			if a.State != wantState || a.AnsweredAt == nil || a.AnsweredBy == "" {
				t.Errorf("AnswerAsk() = %+v, want it %s and by whom", a, wantState)
			}
			var want []store.Approval
			if c.want != "" {
				want = []store.Approval{{Tool: "mail__send", Version: 3, Decision: c.want, SetBy: k.owner.User, SetAt: k.db.Now()}}
			}
			if diff := cmp.Diff(want, k.standing(), cmpopts.EquateComparable(store.UserID{}, store.ConnectionID{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Approvals() (-want +got):\n%s", diff)
			}
			again, err := k.answer(k.owner, a.ID, !c.allow, false)
			if r := reason.Of(err); r.Word != reason.ApprovalExpired || again.State != wantState {
				t.Errorf("answered again: %v, %s, want it refused and still %s", err, again.State, wantState)
			}
			if diff := cmp.Diff(want, k.standing(), cmpopts.EquateComparable(store.UserID{}, store.ConnectionID{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Approvals() after a second answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerForOneCallIsUsedOnce(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	if _, err := k.take("a"); !store.IsAbsent(err) {
		t.Fatalf("TakeAnswer() without an ask = %v, want not_found", err)
	}
	a := k.mustOpen("a", true)
	if _, err := k.take("a"); !store.IsAbsent(err) {
		t.Fatalf("TakeAnswer() of an open ask = %v, want not_found", err)
	}
	if _, err := k.answer(k.owner, a.ID, true, false); err != nil {
		t.Fatal(err)
	}
	if _, err := k.take("b"); !store.IsAbsent(err) {
		t.Errorf("TakeAnswer() with other arguments = %v, want not_found", err)
	}
	var allowed atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ok, err := k.take("a")
			if ok {
				allowed.Add(1)
			} else if !store.IsAbsent(err) {
				t.Errorf("TakeAnswer() = %v, %v", ok, err)
			}
		})
	}
	all.Wait()
	if n := allowed.Load(); n != 1 {
		t.Errorf("20 calls took the answer %d times, want once", n)
	}
	if a := must(t, k.db, k.owner, func(tx *store.Tx) (store.Ask, error) { return tx.Ask(t.Context(), a.ID) }); a.ConsumedAt == nil {
		t.Error("the ask does not say that it was used")
	}
	if b := k.mustOpen("a", true); b.ID == a.ID {
		t.Error("the next call is not a new ask")
	}
}

// The yes to a tool's first call, with "ask every time", is for that call, also though its ask was for all of them.
func TestAskEveryTimeBindsTheAnswerToTheCallThatWasShown(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	if _, err := k.answer(k.owner, k.mustOpen("first", false).ID, true, true); err != nil {
		t.Fatal(err)
	}
	if ok, err := k.take("second"); ok || !store.IsAbsent(err) {
		t.Errorf("TakeAnswer() for another call = %v, %v, want not_found", ok, err)
	}
	if ok, err := k.take("first"); !ok || err != nil {
		t.Errorf("TakeAnswer() for the call shown = %v, %v, want true", ok, err)
	}
}

func TestAnAnswerWaitsADay(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	a := k.mustOpen("a", true)
	k.clock.pass(store.AskLife)
	got, err := k.answer(k.owner, a.ID, true, false)
	if r := reason.Of(err); r.Word != reason.ApprovalExpired || got.State != store.AskExpired {
		t.Errorf("answered a day later: %v, %s, want approval_expired", err, got.State)
	}
	b := k.mustOpen("a", true)
	if _, err := k.answer(k.owner, b.ID, true, false); err != nil {
		t.Fatal(err)
	}
	k.clock.pass(store.AskLife)
	if ok, err := k.take("a"); ok || !store.IsAbsent(err) {
		t.Errorf("an answer a day old was used: %v, %v", ok, err)
	}
}

func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	member := storetest.Member(t, k.db, k.owner, store.RoleMember)
	agent, _ := storetest.Agent(t, k.db, member, "Of a member")
	k.agent, k.self = agent, bearer(member, agent)
	a := k.mustOpen("{}", false)
	stranger := storetest.Organisation(t, k.db)
	for name, c := range map[string]struct {
		who  store.Caller
		sees bool
	}{
		"the agent's user": {member, true}, "an owner": {k.owner, true},
		"an admin":       {storetest.Member(t, k.db, k.owner, store.RoleAdmin), true},
		"another member": {storetest.Member(t, k.db, k.owner, store.RoleMember), false},
		"an auditor":     {storetest.Member(t, k.db, k.owner, store.RoleAuditor), false},
		"a stranger":     {stranger, false}, "the agent itself": {k.self, false},
	} {
		_, err := in(t, k.db, c.who, func(tx *store.Tx) (store.Ask, error) { return tx.Ask(t.Context(), a.ID) })
		if c.sees && err != nil || !c.sees && !store.IsAbsent(err) {
			t.Errorf("%s: Ask() = %v, sees it: %v", name, err, c.sees)
		}
		list := must(t, k.db, c.who, func(tx *store.Tx) ([]store.Ask, error) { return tx.OpenAsks(t.Context()) })
		n := must(t, k.db, c.who, func(tx *store.Tx) (int, error) { return tx.CountOpenAsks(t.Context()) })
		if c.sees != (len(list) == 1) || n != len(list) {
			t.Errorf("%s: OpenAsks() has %d and CountOpenAsks() says %d, sees it: %v", name, len(list), n, c.sees)
		}
		if c.sees {
			continue
		}
		if _, err := k.answer(c.who, a.ID, true, false); !store.IsAbsent(err) {
			t.Errorf("%s: AnswerAsk() = %v, want not_found", name, err)
		}
	}
	do(t, k.db, member, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agent.ID) })
	if _, err := k.answer(member, a.ID, true, false); !store.IsAbsent(err) {
		t.Errorf("AnswerAsk() for a revoked agent = %v, want not_found", err)
	}
}

func TestOpenAsksOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	var err error
	for n := range 300 {
		if _, err = k.open(string(rune('a'+n%26))+string(rune('a'+n/26)), true); err != nil {
			break
		}
	}
	if !errors.Is(err, &reason.Refusal{Word: reason.RateLimited}) {
		t.Errorf("300 asks of one agent: %v, want rate_limited", err)
	}
}

func TestStandingAnswersAreSetByWhoMayChangeTheAgent(t *testing.T) {
	t.Parallel()
	k := newAsker(t)
	allow := store.Approval{Tool: "mail__send", Version: 1, Decision: store.Allow}
	set := func(c store.Caller) error {
		return k.db.As(t.Context(), c, func(tx *store.Tx) error { return tx.Approve(t.Context(), k.agent.ID, allow) })
	}
	for name, c := range map[string]store.Caller{
		"another member": storetest.Member(t, k.db, k.owner, store.RoleMember), "a stranger": storetest.Organisation(t, k.db), "the agent": k.self,
	} {
		if err := set(c); err == nil {
			t.Errorf("%s set a standing answer", name)
		}
	}
	if err := set(k.owner); err != nil || len(k.standing()) != 1 {
		t.Fatalf("the owner set a standing answer: %v, %v", err, k.standing())
	}
	gone := must(t, k.db, k.owner, func(tx *store.Tx) (bool, error) { return tx.Unapprove(t.Context(), k.agent.ID, "mail__send") })
	if !gone || len(k.standing()) != 0 {
		t.Errorf("Unapprove() = %v and leaves %v", gone, k.standing())
	}
}
