package approval_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/approval"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A bench is a desk, an agent that calls, and a person who answers.
type bench struct {
	t      *testing.T
	db     *store.DB
	desk   *approval.Desk
	person store.Caller
	agent  store.Caller
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, owner := storetest.New(t)
	a, _ := storetest.Agent(t, db, owner, "Caller")
	return &bench{
		t: t, db: db, desk: approval.NewDesk(db, storetest.Keyring(t, db), "https://graft.example.org"), person: owner,
		agent: store.Caller{Org: owner.Org, User: owner.User, Agent: a.ID, Role: owner.Role, Via: store.ViaBearer},
	}
}

func call(tool string, version int, args string) approval.Call {
	return approval.Call{
		Subject: approval.Subject{Tool: tool, Version: version}, Run: store.NewID[store.RunKind](time.Now()), Digest: rpc.Digest(jsontext.Value(args)),
		Shown: approval.Shown{Title: "Send", Kind: "upstream", Vendor: "mail", Name: "send", Arguments: jsontext.Value(args)},
	}
}

// settle is what the desk refuses a call with; nil lets it pass.
func (b *bench) settle(c approval.Call) *reason.Refusal {
	b.t.Helper()
	if err := b.desk.Settle(b.t.Context(), b.agent, c); err != nil {
		return reason.Of(err)
	}
	return nil
}

func (b *bench) wants(c approval.Call, want reason.Word) {
	b.t.Helper()
	_ = b.refusal(c, want)
}

func (b *bench) refusal(c approval.Call, want reason.Word) *reason.Refusal {
	b.t.Helper()
	r := b.settle(c)
	if r == nil || r.Word != want {
		b.t.Fatalf("Settle() = %v, want %s", r, want)
	}
	return r
}

func (b *bench) passes(c approval.Call) {
	b.t.Helper()
	if r := b.settle(c); r != nil {
		b.t.Fatalf("Settle() = %v, want it to pass", r)
	}
}

func askOf(t *testing.T, r *reason.Refusal) store.AskID {
	t.Helper()
	id, err := store.ParseID[store.AskKind](r.Details["askId"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bench) answer(id store.AskID, allow, every bool) {
	b.t.Helper()
	err := b.db.As(b.t.Context(), b.person, func(tx *store.Tx) error {
		_, err := tx.AnswerAsk(b.t.Context(), id, allow, every)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestAYesHoldsForTheVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.refusal(call("mail__send", 1, `{"to":"a"}`), reason.AwaitingApproval)
	again := b.refusal(call("mail__send", 1, `{"to":"b"}`), reason.AwaitingApproval)
	if r.Details["url"] != again.Details["url"] {
		t.Errorf("asked again with other arguments: %v, want the same ask %v", again.Details, r.Details)
	}
	b.answer(askOf(t, r), true, false)
	b.passes(call("mail__send", 1, `{"to":"c"}`))
	b.wants(call("mail__send", 2, `{"to":"c"}`), reason.AwaitingApproval)
	b.wants(call("mail__Send", 1, `{"to":"c"}`), reason.AwaitingApproval)
}

func TestANoHoldsForEveryVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answer(askOf(t, b.refusal(call("mail__send", 1, `{}`), reason.AwaitingApproval)), false, false)
	b.wants(call("mail__send", 1, `{}`), reason.ToolDenied)
	b.wants(call("mail__send", 7, `{"to":"a"}`), reason.ToolDenied)
}

func TestEveryCallAsksAndIsRunOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := call("mail__send", 1, `{"to":"a","n":1}`)
	b.answer(askOf(t, b.refusal(first, reason.AwaitingApproval)), true, true)
	b.wants(call("mail__send", 1, `{"to":"b","n":1}`), reason.AwaitingApproval)
	b.passes(call("mail__send", 1, ` {"n":1, "to":"a"} `)) // the same call, spelled otherwise
	r := b.refusal(first, reason.AwaitingApproval)
	b.answer(askOf(t, r), false, false)
	b.wants(first, reason.ApprovalDeclined)
	b.wants(first, reason.AwaitingApproval) // that no was for one call
}

func TestALinkShowsTheCallAndLeadsToTheAsk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.refusal(call("mail__send", 1, `{"to":"CANARY-of-an-argument"}`), reason.AwaitingApproval)
	u, err := url.Parse(r.Details["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	id := askOf(t, r)
	var ask store.Ask
	err = b.db.As(t.Context(), b.person, func(tx *store.Tx) (err error) {
		ask, err = tx.Ask(t.Context(), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "graft.example.org" || u.Path != "/asks/"+id.String() || !ask.Marked(u.Query().Get("t")) {
		t.Errorf("url = %s, want the ask's own with its mark", u)
	}
	if at, err := time.Parse(time.RFC3339, r.Details["expiresAt"].(string)); err != nil || time.Until(at) < 23*time.Hour {
		t.Errorf("expiresAt = %v, want a day from now", r.Details["expiresAt"])
	}
	if strings.Contains(string(ask.Body), "CANARY") {
		t.Error("the arguments stand in the row in clear")
	}
	shown, err := b.desk.Show(t.Context(), b.person, ask)
	if err != nil || string(shown.Arguments) != `{"to":"CANARY-of-an-argument"}` || shown.Vendor != "mail" {
		t.Errorf("Show() = %+v, %v, want the call", shown, err)
	}
	text, err := json.Marshal(rpc.ToolRefusal(r, ""))
	if err != nil || !strings.Contains(string(rpc.ToolRefusal(r, "")), `"error":"awaiting_approval"`) {
		t.Errorf("the answer to the agent is %s, want it to begin with what it awaits", text)
	}
}

// Numbers that differ only beyond what a float holds are different calls.
func TestEachCallIsItsOwnToTheLastDigit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := call("bank__pay", 1, `{"cents":9007199254740993}`)
	b.answer(askOf(t, b.refusal(first, reason.AwaitingApproval)), true, true)
	for _, args := range []string{`{"cents":9007199254740992}`, `{"cents":9007199254740993.0000000000000001}`, `{"Cents":9007199254740993}`, `{"cents":"9007199254740993"}`, `{"cents":[9007199254740993]}`} {
		b.wants(call("bank__pay", 1, args), reason.AwaitingApproval)
	}
	b.passes(first)
}

func TestOfLongArgumentsThePersonSeesTheBeginning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.refusal(call("mail__send", 1, `{"body":"`+strings.Repeat("x", 1<<20)+`"}`), reason.AwaitingApproval)
	id := askOf(t, r)
	var ask store.Ask
	err := b.db.As(t.Context(), b.person, func(tx *store.Tx) (err error) {
		ask, err = tx.Ask(t.Context(), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := b.desk.Show(t.Context(), b.person, ask); err != nil || !shown.Cut || !strings.HasPrefix(string(shown.Arguments), `"{\"body\":\"xxx`) || len(shown.Arguments) > 70_000 {
		t.Errorf("Show() of a megabyte = cut %v, %d bytes, %v, want its beginning", shown.Cut, len(shown.Arguments), err)
	}
}
