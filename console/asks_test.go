package console_test

import (
	"net/http"
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

// An asking is an agent whose call waits for a person.
type asking struct {
	t     *testing.T
	s     *house
	agent store.Caller
	a     store.Agent
}

// asks makes an agent of owner's that has somebody to ask.
func (s *house) asks(t *testing.T, owner store.Caller, name string) *asking {
	t.Helper()
	a, _ := storetest.Agent(t, s.db, owner, name)
	return &asking{t, s, store.Caller{Org: owner.Org, User: owner.User, Agent: a.ID, Role: owner.Role, Via: store.ViaBearer}, a}
}

// call is one of a tool on a connection, with arguments.
func (q *asking) call(connection store.ConnectionID, args string) approval.Call {
	return approval.Call{
		Subject: approval.Subject{Tool: "mail__send", Version: 2, Connection: connection}, Run: store.NewID[store.RunKind](time.Now()), Digest: rpc.Digest(jsontext.Value(args)),
		Shown: approval.Shown{Description: "Sends <b>one</b> letter.", Kind: "upstream", Vendor: "mail", Name: "send", Destructive: true, Arguments: jsontext.Value(args)},
	}
}

// settle is what the call is refused with; nil lets it pass.
func (q *asking) settle(c approval.Call) *reason.Refusal {
	q.t.Helper()
	if err := q.s.desk.Settle(q.t.Context(), q.agent, c); err != nil {
		return reason.Of(err)
	}
	return nil
}

// link is the path that a person is given for a call, with its mark, and without it.
func (q *asking) link(c approval.Call) (marked, bare string) {
	q.t.Helper()
	r := q.settle(c)
	if r == nil || r.Word != reason.AwaitingApproval {
		q.t.Fatalf("Settle() = %v, want it to wait for a person", r)
	}
	marked = strings.TrimPrefix(r.Details["url"].(string), "https://graft.example.org")
	bare, _, _ = strings.Cut(marked, "?")
	return marked, bare
}

func TestAnAskShowsTheCallAndIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	var up store.Upstream
	s.as(t, owner, func(tx *store.Tx) (err error) {
		up, err = tx.CreateUpstream(t.Context(), "mail", "https://mcp.mail.example/v1/mcp", store.UpstreamSettings{ConnectSeconds: 1, CallSeconds: 1}, nil)
		return err
	})
	q := s.asks(t, owner, "hermes")
	c := q.call(up.Connection, `{"to":"ana@example.org","cents":9007199254740993,"text":"one\ntwo \u202e<script>","to_all":[true]}`)
	marked, bare := q.link(c)
	b := s.signedIn(t, owner)

	inbox := b.get("/asks")
	wantStatus(t, inbox, http.StatusOK)
	wantText(t, inbox, `href="`+bare+`"`, "hermes wants to use", `<span class="vh">waiting: </span>1`)
	p := b.get(marked)
	wantStatus(t, p, http.StatusOK)
	wantText(t, p, "Let hermes use mail__send?", "mcp.mail.example", "/v1/mcp", "ana@example.org", "9007199254740993", "one\ntwo", "[true]",
		"Sends &lt;b&gt;one&lt;/b&gt; letter.", "May change or destroy things", "version 2", `value="allow"`, `value="deny"`, `name="every"`)
	wantNoText(t, p, "\u202e", "<script>")
	if got := q.settle(c); got == nil || got.Word != reason.AwaitingApproval {
		t.Fatalf("after looking, the call is answered %v, want it to wait", got)
	}

	wantRedirect(t, b.post(bare, "t", markOf(marked), "answer", "allow"), bare)
	p = b.get(bare)
	wantText(t, p, "hermes may use mail__send", "It holds for version 2")
	wantNoText(t, p, `value="allow"`)
	if got := q.settle(c); got != nil {
		t.Errorf("after Allow the call is refused with %v, want it to pass", got)
	}
	wantText(t, b.get("/asks"), "Nothing waits for you")

	again := b.post(bare, "answer", "deny")
	wantStatus(t, again, http.StatusGone)
	wantText(t, again, "hermes may use mail__send")
	if got := q.settle(c); got != nil {
		t.Errorf("a second answer changed the first: %v", got)
	}
}

func markOf(link string) string {
	_, mark, _ := strings.Cut(link, "?t=")
	return mark
}

func TestEveryTimeIsForOneCall(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	q := s.asks(t, owner, "hermes")
	b := s.signedIn(t, owner)
	c := q.call(store.ConnectionID{}, `{"to":"a"}`)
	_, first := q.link(c)
	wantRedirect(t, b.post(first, "answer", "allow", "every", "yes"), first)
	wantText(t, b.get(first), "for this one call")
	if got := q.settle(c); got != nil {
		t.Fatalf("the call that was allowed is refused with %v", got)
	}
	wantText(t, b.get(first), "which has come")
	_, second := q.link(c)
	if second == first {
		t.Fatal("the next call found the answer of the first")
	}
	p := b.get(second)
	wantText(t, p, "your answer is for this call alone")
	wantNoText(t, p, `name="every"`)
	wantRedirect(t, b.post(second, "answer", "deny"), second)
	wantText(t, b.get(second), "hermes may not use mail__send", "Denied")
}

// Whoever may not answer an ask sees what a missing one looks like. A wrong mark is refused, but not who has none.
func TestWhoMayAnswerAnAsk(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	maker := storetest.Member(t, s.db, owner, store.RoleMember)
	people := map[string]struct {
		who  store.Caller
		want int
	}{
		"the owner":      {owner, http.StatusOK},
		"an admin":       {storetest.Member(t, s.db, owner, store.RoleAdmin), http.StatusOK},
		"who made it":    {maker, http.StatusOK},
		"another member": {storetest.Member(t, s.db, owner, store.RoleMember), http.StatusNotFound},
		"an auditor":     {storetest.Member(t, s.db, owner, store.RoleAuditor), http.StatusNotFound},
		"a stranger":     {storetest.Organisation(t, s.db), http.StatusNotFound},
	}
	for name, p := range people {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := s.asks(t, maker, "hermes for "+name)
			c := q.call(store.ConnectionID{}, `{"text":"CANARY-of-an-argument"}`)
			marked, bare := q.link(c)
			b := s.signedIn(t, p.who)
			nowhere := b.get("/nowhere")
			for path, want := range map[string]int{marked: p.want, bare: p.want, "/live" + bare: p.want, bare + "?t=wrong": http.StatusForbidden, bare + "?t=": http.StatusForbidden} {
				if p.want == http.StatusNotFound {
					want = http.StatusNotFound
				}
				if path == "/live"+bare && want == http.StatusOK {
					continue // a stream that goes on
				}
				got := b.get(path)
				if got.status != want {
					t.Errorf("GET %s = %d, want %d", path, got.status, want)
				}
				if want != http.StatusOK {
					wantNoText(t, got, "CANARY", "hermes", "mail__send")
				}
				if want == http.StatusNotFound && got.body != nowhere.body {
					t.Errorf("GET %s: %s\nwant the page of nothing", path, got.main())
				}
			}
			if got := strings.Contains(b.get("/asks").body, bare); got != (p.want == http.StatusOK) {
				t.Errorf("it is in the inbox: %v, want %v", got, p.want == http.StatusOK)
			}
			if got := b.post(bare, "t", "wrong", "answer", "allow"); got.status != http.StatusForbidden && got.status != http.StatusNotFound {
				t.Errorf("POST with a wrong mark = %d, want 403 or 404", got.status)
			}
			if got := q.settle(c); got == nil || got.Word != reason.AwaitingApproval {
				t.Fatalf("before an answer, the call is answered %v, want it to wait", got)
			}
			want := http.StatusSeeOther
			if p.want == http.StatusNotFound {
				want = http.StatusNotFound
			}
			if got := b.post(bare, "t", markOf(marked), "answer", "allow"); got.status != want {
				t.Errorf("POST = %d, want %d", got.status, want)
			}
			if passes := q.settle(c) == nil; passes != (p.want == http.StatusOK) {
				t.Errorf("the call passes: %v, want %v", passes, p.want == http.StatusOK)
			}
		})
	}
}

func TestAnAskThatEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)

	gone := s.asks(t, owner, "revoked")
	_, bare := gone.link(gone.call(store.ConnectionID{}, `{}`))
	s.as(t, owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), gone.a.ID) })
	wantText(t, b.get(bare), "This ask was withdrawn")
	wantStatus(t, b.post(bare, "answer", "allow"), http.StatusNotFound)

	late := s.asks(t, owner, "late")
	c := late.call(store.ConnectionID{}, `{}`)
	_, bare = late.link(c)
	p := b.post(bare, "answer", "perhaps")
	wantStatus(t, p, http.StatusUnprocessableEntity)
	wantText(t, p, "Nothing was answered", `value="allow"`)
	s.clock.advance(store.AskLife + time.Second)
	wantText(t, b.get(bare), "Nobody answered in time")
	p = b.post(bare, "answer", "allow")
	wantStatus(t, p, http.StatusGone)
	wantText(t, p, "Nobody answered in time")
	if got := late.settle(c); got == nil {
		t.Error("an answer that came too late let the call pass")
	}
}

func TestAnOpenAskClosesItselfWhenAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	q := s.asks(t, owner, "hermes")
	b := s.signedIn(t, owner)
	inbox := b.mustLive("/live/asks")
	wantIDs(t, inbox.take(1), "asks")
	_, bare := q.link(q.call(store.ConnectionID{}, `{}`))
	if got := inbox.take(1)["asks"]; !strings.Contains(got, bare) {
		t.Errorf("the inbox shows %q, want the new ask", got)
	}
	open := b.mustLive("/live" + bare)
	b.post(bare, "answer", "deny")
	got := open.take(2)
	wantIDs(t, got, "ask-decide", "ask-head")
	if !strings.Contains(got["ask-head"], "may not use") || strings.Contains(got["ask-decide"], "<form") {
		t.Errorf("after the answer the page gets %q", got)
	}
	if got := inbox.take(1)["asks"]; !strings.Contains(got, "Nothing waits for you") {
		t.Errorf("the inbox shows %q, want nothing", got)
	}
}

func TestLongAndOddArgumentsAreShownAsFarAsTheyGo(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	b := s.signedIn(t, owner)
	for name, c := range map[string]struct {
		args string
		want []string
	}{
		"none":      {`{}`, []string{"none"}},
		"no object": {`[1,2]`, []string{"1"}},
		"one long":  {`{"text":"` + strings.Repeat("x", 700) + `END"}`, []string{"103 characters more", "xEND"}},
		"deep":      {`{"deep":{"a":[{"b":null}]}}`, []string{`{&#34;a&#34;:[{&#34;b&#34;:null}]}`}},
		"too long":  {`{"text":"` + strings.Repeat("y", 70_000) + `"}`, []string{"this is the beginning", "yyyy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := s.asks(t, owner, name)
			marked, _ := q.link(q.call(store.ConnectionID{}, c.args))
			p := b.get(marked)
			wantStatus(t, p, http.StatusOK)
			wantText(t, p, c.want...)
		})
	}
}

func TestWhatWasAnsweredCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := storetest.Organisation(t, s.db)
	maker := storetest.Member(t, s.db, owner, store.RoleMember)
	b, own := s.signedIn(t, owner), s.signedIn(t, maker)
	q := s.asks(t, maker, "hermes")
	c := q.call(store.ConnectionID{}, `{}`)
	at := "/agents/" + q.a.ID.String()
	wantNoText(t, b.get(at), ">Answers<")
	_, bare := q.link(c)
	wantRedirect(t, b.post(bare, "answer", "deny"), bare)
	wantText(t, own.get(at), ">Answers<", "mail__<wbr>send", "denied, by Somebody", at+"/answers")
	if got := q.settle(c); got == nil || got.Word != reason.ToolDenied {
		t.Fatalf("after Deny the call is answered %v, want tool_denied", got)
	}
	auditor := s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleAuditor))
	wantNoText(t, auditor.get(at), at+"/answers")
	for _, who := range []*browser{auditor, s.signedIn(t, storetest.Member(t, s.db, owner, store.RoleMember)), s.signedIn(t, storetest.Organisation(t, s.db))} {
		if p := who.post(at+"/answers", "tool", "mail__send"); p.status != http.StatusNotFound && p.status != http.StatusForbidden {
			t.Errorf("POST = %d, want 403 or 404", p.status)
		}
	}
	wantRedirect(t, own.post(at+"/answers", "tool", "mail__send"), at)
	wantText(t, own.get(at), "mail__send asks again.")
	wantRedirect(t, own.post(at+"/answers", "tool", "mail__send"), at)
	q.link(c)
}
