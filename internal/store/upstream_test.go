package store_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// settings are what an upstream is made with in these tests.
var settings = store.UpstreamSettings{ConnectSeconds: 10, CallSeconds: 60}

// header spells a header's row out in place of sealing.
func header(text string) func(store.UpstreamID) ([]byte, error) {
	return func(id store.UpstreamID) ([]byte, error) { return []byte(id.String() + " " + text), nil }
}

func upstream(t *testing.T, db *store.DB, c store.Caller, name string, headers ...store.UpstreamHeader) store.Upstream {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) (store.Upstream, error) {
		return tx.CreateUpstream(t.Context(), name, "https://"+name+".example.com/mcp", settings, headers)
	})
}

// plantUpstream puts a row into every table that has to do with upstreams.
func plantUpstream(t *testing.T, db *store.DB, c store.Caller, a store.Agent) {
	t.Helper()
	u := upstream(t, db, c, "planted", store.UpstreamHeader{Name: "X-Key", Secrets: []string{"PLANTED"}, Seal: header("${PLANTED}")})
	record(t, db, c, u.ID, listed(0, "a", "1"))
	do(t, db, c, func(tx *store.Tx) error {
		if _, err := tx.SetSecret(t.Context(), "PLANTED", sealedAs("x")); err != nil {
			return err
		}
		return tx.SetListAll(t.Context(), a.ID, u.ID, true)
	})
}

// listed is a tool as a listing gives it.
func listed(position int, name, description string) store.UpstreamTool {
	sum := sha256.Sum256([]byte(name + description))
	return store.UpstreamTool{
		Original: name, Name: name, Position: int32(position), Description: description, InputSchema: []byte(`{"type":"object"}`), Hash: sum[:],
	}
}

func record(t *testing.T, db *store.DB, c store.Caller, id store.UpstreamID, list ...store.UpstreamTool) bool {
	t.Helper()
	return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.RecordListing(t.Context(), id, list, "") })
}

func TestAnUpstreamIsMadeChangedAndRevoked(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	u := upstream(t, db, c, "github", store.UpstreamHeader{Name: "Authorization", Secrets: []string{"TOKEN"}, Seal: header("a")})
	if u.State != store.UpstreamNew || u.Connection.IsZero() || u.CreatedBy == "" || u.ListAll != nil || u.LastListedAt != nil {
		t.Errorf("CreateUpstream() = %+v, want a new one with a connection", u)
	}
	if diff := cmp.Diff([][]string{{"Authorization"}, {"TOKEN"}}, [][]string{u.Headers, u.Unset}); diff != "" {
		t.Errorf("headers and unset secrets (-want +got):\n%s", diff)
	}
	_, err := in(t, db, c, func(tx *store.Tx) (store.Upstream, error) {
		return tx.CreateUpstream(t.Context(), "github", "https://example.com", settings, nil)
	})
	if outcome(err) != "name_taken" {
		t.Errorf("CreateUpstream() of a taken name = %v, want name_taken", err)
	}
	twice := store.UpstreamHeader{Name: "X-Key", Seal: header("b")}
	if err := db.As(t.Context(), c, func(tx *store.Tx) error {
		return tx.SetUpstreamHeaders(t.Context(), u.ID, []store.UpstreamHeader{twice, twice})
	}); outcome(err) != "input_invalid" {
		t.Errorf("SetUpstreamHeaders() with one twice = %v, want input_invalid", err)
	}
	do(t, db, c, func(tx *store.Tx) error {
		return tx.SetUpstreamHeaders(t.Context(), u.ID, []store.UpstreamHeader{twice})
	})
	yes := true
	for _, bad := range []store.UpstreamSettings{{CallSeconds: 60}, {ConnectSeconds: 10}, {ConnectSeconds: 10, CallSeconds: 3601}, {ConnectSeconds: 10, CallSeconds: 60, ExcludeTools: []string{"a\x00b"}}} {
		if err := db.As(t.Context(), c, func(tx *store.Tx) error { return tx.ChangeUpstream(t.Context(), u.ID, bad) }); outcome(err) != "input_invalid" {
			t.Errorf("ChangeUpstream(%+v) = %v, want input_invalid", bad, err)
		}
	}
	do(t, db, c, func(tx *store.Tx) error {
		return tx.ChangeUpstream(t.Context(), u.ID, store.UpstreamSettings{TrustHints: true, ExcludeTools: []string{"rm"}, ListAll: &yes, ConnectSeconds: 5, CallSeconds: 90})
	})
	got := must(t, db, c, func(tx *store.Tx) (store.Upstream, error) { return tx.Upstream(t.Context(), u.ID) })
	want := u
	want.TrustHints, want.ExcludeTools, want.ListAll, want.ConnectSeconds, want.CallSeconds = true, []string{"rm"}, &yes, 5, 90
	want.Headers, want.Unset = []string{"X-Key"}, []string{}
	if diff := cmp.Diff(want, got, sameIDs); diff != "" {
		t.Errorf("Upstream() after changes (-want +got):\n%s", diff)
	}

	record(t, db, c, u.ID, listed(0, "search", "one"))
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) })
	view := must(t, db, c, func(tx *store.Tx) (store.UpstreamView, error) { return tx.UpstreamView(t.Context()) })
	if len(view.Upstreams)+len(view.Tools)+len(view.Headers) != 0 {
		t.Errorf("UpstreamView() after RevokeUpstream() = %+v, want nothing", view)
	}
	for name, do := range map[string]func(*store.Tx) error{
		"RevokeUpstream":       func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) },
		"ChangeUpstream":       func(tx *store.Tx) error { return tx.ChangeUpstream(t.Context(), u.ID, settings) },
		"SetUpstreamHeaders":   func(tx *store.Tx) error { return tx.SetUpstreamHeaders(t.Context(), u.ID, nil) },
		"DescribeUpstreamTool": func(tx *store.Tx) error { return tx.DescribeUpstreamTool(t.Context(), u.ID, "search", "x") },
		"RecordListing":        func(tx *store.Tx) error { _, err := tx.RecordListing(t.Context(), u.ID, nil, ""); return err },
		"RecordListingFailure": func(tx *store.Tx) error { _, err := tx.RecordListingFailure(t.Context(), u.ID, "", ""); return err },
		"UpstreamByName":       func(tx *store.Tx) error { _, err := tx.UpstreamByName(t.Context(), "github"); return err },
	} {
		if err := db.As(t.Context(), c, do); outcome(err) != "not_found" {
			t.Errorf("%s() of a revoked upstream = %v, want not_found", name, err)
		}
	}
	all := must(t, db, c, func(tx *store.Tx) ([]store.Upstream, error) { return tx.Upstreams(t.Context()) })
	if len(all) != 1 || all[0].RevokedAt == nil || all[0].RevokedBy == "" || len(all[0].Headers) != 0 {
		t.Errorf("Upstreams() = %+v, want the revoked one without headers", all)
	}
	if next := upstream(t, db, c, "github"); next.ID == u.ID {
		t.Error("CreateUpstream() of a name that is free again gave the old one")
	}
}

func TestUpstreamsAreChangedByWhoManages(t *testing.T) {
	t.Parallel()
	db, owner := storetest.New(t)
	u := upstream(t, db, owner, "demo")
	agent, _ := storetest.Agent(t, db, owner, "Worker")
	for _, c := range []store.Caller{
		storetest.Member(t, db, owner, store.RoleMember), storetest.Member(t, db, owner, store.RoleAuditor), bearer(owner, agent),
	} {
		for name, do := range map[string]func(*store.Tx) error{
			"CreateUpstream": func(tx *store.Tx) error {
				_, err := tx.CreateUpstream(t.Context(), "other", "https://example.com", settings, nil)
				return err
			},
			"ChangeUpstream":       func(tx *store.Tx) error { return tx.ChangeUpstream(t.Context(), u.ID, settings) },
			"SetUpstreamHeaders":   func(tx *store.Tx) error { return tx.SetUpstreamHeaders(t.Context(), u.ID, nil) },
			"DescribeUpstreamTool": func(tx *store.Tx) error { return tx.DescribeUpstreamTool(t.Context(), u.ID, "a", "b") },
			"RevokeUpstream":       func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) },
		} {
			if err := db.As(t.Context(), c, do); outcome(err) != "forbidden" {
				t.Errorf("%s() by %s %s = %v, want forbidden", name, c.Via, c.Role, err)
			}
		}
	}
	stranger := storetest.Organisation(t, db)
	if err := db.As(t.Context(), stranger, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) }); outcome(err) != "not_found" {
		t.Errorf("RevokeUpstream() of another organisation = %v, want not_found", err)
	}
}

func TestAToolsVersionCountsItsDefinitions(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	u := upstream(t, db, c, "demo")
	tools := func(id store.UpstreamID) (lines []string) {
		for _, tool := range must(t, db, c, func(tx *store.Tx) ([]store.UpstreamTool, error) { return tx.UpstreamTools(t.Context(), id) }) {
			lines = append(lines, fmt.Sprintf("%s v%d gone:%t %s%s", tool.Original, tool.Version, tool.GoneAt != nil, tool.Description, tool.Override))
		}
		return lines
	}
	expect := func(when string, id store.UpstreamID, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, tools(id)); diff != "" {
			t.Errorf("tools %s (-want +got):\n%s", when, diff)
		}
	}
	if !record(t, db, c, u.ID, listed(0, "a", "1"), listed(1, "b", "1")) {
		t.Error("RecordListing() of new tools moved nothing")
	}
	clock.pass(time.Hour)
	if record(t, db, c, u.ID, listed(0, "a", "1"), listed(1, "b", "1")) {
		t.Error("RecordListing() of the same moved something")
	}
	now := must(t, db, c, func(tx *store.Tx) (store.Upstream, error) { return tx.Upstream(t.Context(), u.ID) })
	if !now.LastListedAt.Equal(db.Now()) || now.State != store.UpstreamOK || now.Tools != 2 || now.ListAll == nil || !*now.ListAll {
		t.Errorf("Upstream() after a listing = %+v, want two tools, all listed, listed now", now)
	}
	do(t, db, c, func(tx *store.Tx) error { return tx.DescribeUpstreamTool(t.Context(), u.ID, "a", " (ours)") })
	if !record(t, db, c, u.ID, listed(0, "a", "2")) {
		t.Error("RecordListing() of a change moved nothing")
	}
	expect("after a change and one less", u.ID, "a v2 gone:false 2 (ours)", "b v1 gone:true 1")
	left := listed(1, "b", "1")
	left.LeftOut = "Excluded."
	record(t, db, c, u.ID, listed(0, "a", "2"), left)
	expect("when the one comes back as it was", u.ID, "a v2 gone:false 2 (ours)", "b v1 gone:false 1")
	if now = must(t, db, c, func(tx *store.Tx) (store.Upstream, error) { return tx.UpstreamByName(t.Context(), "demo") }); now.Tools != 1 || now.LeftOut != 1 {
		t.Errorf("tools, left out = %d, %d, want 1, 1", now.Tools, now.LeftOut)
	}
	view := must(t, db, c, func(tx *store.Tx) (store.UpstreamView, error) { return tx.UpstreamView(t.Context()) })
	if len(view.Tools) != 1 || view.Tools[0].Original != "a" {
		t.Errorf("tools of the view = %v, want a alone", view.Tools)
	}

	// An approval is for a version: another upstream of the name counts on.
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), u.ID) })
	next := upstream(t, db, c, "demo")
	record(t, db, c, next.ID, listed(0, "a", "2"), listed(1, "c", "1"))
	expect("of the next upstream of that name", next.ID, "a v3 gone:false 2", "c v1 gone:false 1")
}

func TestManyToolsAreKeptAsTheyWere(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	u := upstream(t, db, c, "demo")
	many := make([]store.UpstreamTool, 450)
	for i := range many {
		many[i] = listed(i, fmt.Sprintf("tool-%03d", i), strings.Repeat("x", 100))
		many[i].InputSchema, many[i].OutputSchema = []byte(`{"description":"\u0000"}`), []byte(`{"type":"object"}`)
		many[i].Annotations = []byte(`{}`)
	}
	if !record(t, db, c, u.ID, many...) {
		t.Error("RecordListing() of 450 tools moved nothing")
	}
	got := must(t, db, c, func(tx *store.Tx) ([]store.UpstreamTool, error) { return tx.UpstreamTools(t.Context(), u.ID) })
	if len(got) != 450 || got[449].Original != "tool-449" || string(got[0].InputSchema) != `{"description":"\u0000"}` || got[0].OutputSchema == nil {
		t.Errorf("UpstreamTools() = %d, want 450 in order with their bytes as they were", len(got))
	}
}

func TestAListingIsClaimedOnce(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	u := upstream(t, db, c, "demo")
	var all sync.WaitGroup
	won := make([]bool, 8)
	for n := range won {
		all.Go(func() {
			won[n] = must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.ClaimListing(t.Context(), u.ID, time.Minute) })
		})
	}
	all.Wait()
	if n := strings.Count(fmt.Sprint(won), "true"); n != 1 {
		t.Errorf("ClaimListing() = %v, want true once", won)
	}
	claim := func() bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) { return tx.ClaimListing(t.Context(), u.ID, time.Minute) })
	}
	clock.pass(time.Minute - time.Microsecond)
	if claim() {
		t.Error("ClaimListing() before its time = true")
	}
	clock.pass(time.Microsecond)
	if !claim() {
		t.Error("ClaimListing() at its time = false")
	}
	fail := func() bool {
		return must(t, db, c, func(tx *store.Tx) (bool, error) {
			return tx.RecordListingFailure(t.Context(), u.ID, "upstream_unavailable", "demo refused the connection.")
		})
	}
	if !fail() || fail() {
		t.Error("RecordListingFailure() = not news once and then none, want so")
	}
	got := must(t, db, c, func(tx *store.Tx) (store.Upstream, error) { return tx.Upstream(t.Context(), u.ID) })
	if got.State != store.UpstreamFailing || got.LastError != "demo refused the connection." || got.LastErrorWord != "upstream_unavailable" {
		t.Errorf("Upstream() after a failure = %+v, want its reason", got)
	}
	if !record(t, db, c, u.ID) {
		t.Error("RecordListing() after a failure is no news, want news: the tools are no longer stale")
	}
}

func TestAnAgentSeesUpstreamsAsItWasSaid(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	agent, _ := storetest.Agent(t, db, c, "Worker")
	other, _ := storetest.Agent(t, db, c, "Other")
	few, most := upstream(t, db, c, "few"), upstream(t, db, c, "most")
	record(t, db, c, few.ID, listed(0, "a", "1"))
	tools := make([]store.UpstreamTool, 21)
	for i := range tools {
		tools[i] = listed(i, fmt.Sprint("t", i), "")
	}
	record(t, db, c, most.ID, tools...)
	expect := func(id store.AgentID, passthrough string, names ...string) {
		t.Helper()
		got := must(t, db, c, func(tx *store.Tx) (store.AgentUpstreams, error) { return tx.AgentUpstreams(t.Context(), id) })
		if diff := cmp.Diff(store.AgentUpstreams{Passthrough: passthrough, Listed: append([]string{}, names...)}, got); diff != "" {
			t.Errorf("AgentUpstreams() (-want +got):\n%s", diff)
		}
	}
	expect(agent.ID, "", "few")
	do(t, db, c, func(tx *store.Tx) error {
		if err := tx.SetListAll(t.Context(), agent.ID, few.ID, false); err != nil {
			return err
		}
		if err := tx.SetListAll(t.Context(), agent.ID, most.ID, true); err != nil {
			return err
		}
		return tx.SetPassthrough(t.Context(), agent.ID, most.ID)
	})
	expect(agent.ID, "most", "most")
	expect(other.ID, "", "few")
	if a := must(t, db, c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), agent.ID) }); a.Passthrough != "most" {
		t.Errorf("Agent().Passthrough = %q, want most", a.Passthrough)
	}
	stranger := storetest.Organisation(t, db)
	theirs := upstream(t, db, stranger, "theirs")
	for name, do := range map[string]func(*store.Tx) error{
		"SetPassthrough": func(tx *store.Tx) error { return tx.SetPassthrough(t.Context(), agent.ID, theirs.ID) },
		"SetListAll":     func(tx *store.Tx) error { return tx.SetListAll(t.Context(), agent.ID, theirs.ID, true) },
	} {
		if err := db.As(t.Context(), c, do); outcome(err) != "not_found" {
			t.Errorf("%s() to another organisation's upstream = %v, want not_found", name, err)
		}
	}
	do(t, db, c, func(tx *store.Tx) error { return tx.RevokeUpstream(t.Context(), most.ID) })
	expect(agent.ID, "most")
	do(t, db, c, func(tx *store.Tx) error { return tx.SetPassthrough(t.Context(), agent.ID, store.UpstreamID{}) })
	expect(agent.ID, "")
}
