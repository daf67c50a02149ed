package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// company is an organisation with a caller of every kind.
type company struct {
	db                                    *store.DB
	owner, admin, maker, other, auditor   store.Caller
	cli, job                              store.Caller
	agent                                 store.Agent // of maker
	self, sibling, stranger, auditorAgent store.Caller
}

func newCompany(t *testing.T) company {
	t.Helper()
	db, owner := storetest.New(t)
	co := company{
		db: db, owner: owner,
		admin: storetest.Member(t, db, owner, store.RoleAdmin), maker: storetest.Member(t, db, owner, store.RoleMember),
		other: storetest.Member(t, db, owner, store.RoleMember), auditor: storetest.Member(t, db, owner, store.RoleMember),
		cli: store.Caller{Org: owner.Org, Role: store.RoleOwner, Via: store.ViaCLI}, job: store.Caller{Org: owner.Org, Via: store.ViaJob},
	}
	co.agent, _ = storetest.Agent(t, db, co.maker, "Worker")
	siblings, _ := storetest.Agent(t, db, co.maker, "Sibling")
	strangers, _ := storetest.Agent(t, db, co.other, "Stranger")
	auditors := must(t, db, co.cli, func(tx *store.Tx) (store.Agent, error) {
		a, _, err := tx.CreateAgent(t.Context(), "Of the auditor", co.auditor.User)
		return a, err
	})
	// Auditors make no agents, but a member who has some may become one.
	if _, err := connect(t, storetest.Superuser(t, storetest.URL(t))).Exec(t.Context(), `UPDATE member SET role = 'auditor' WHERE user_id = $1`, co.auditor.User); err != nil {
		t.Fatal(err)
	}
	co.auditor.Role = store.RoleAuditor
	co.self, co.sibling, co.stranger = bearer(co.maker, co.agent), bearer(co.maker, siblings), bearer(co.other, strangers)
	co.auditorAgent = bearer(co.auditor, auditors)
	return co
}

// outcome is the one word for how a caller fared.
func outcome(err error) string {
	var r *reason.Refusal
	switch {
	case err == nil:
		return "yes"
	case errors.As(err, &r):
		return string(r.Word)
	}
	return err.Error()
}

// TestWhoMaySeeAndChangeAnAgent is the table of roles, for an agent that a member made.
func TestWhoMaySeeAndChangeAnAgent(t *testing.T) {
	t.Parallel()
	co := newCompany(t)
	stranger := storetest.Organisation(t, co.db)
	session := store.MCPSession{ID: store.NewID[store.SessionKind](co.db.Now()), AgentID: co.agent.ID, Protocol: "2025-06-18", OpenedAt: co.db.Now(), LastSeenAt: co.db.Now()}
	do(t, co.db, co.self, func(tx *store.Tx) error { return tx.RecordSessions(t.Context(), session) })
	id := co.agent.ID
	for _, tt := range []struct {
		name   string
		caller store.Caller
		see    string // the agent, its working set and its sessions
		set    string // its working set, or the end of a session
		change string // its token, its life
	}{
		{"owner", co.owner, "yes", "yes", "yes"},
		{"admin", co.admin, "yes", "yes", "yes"},
		{"maker", co.maker, "yes", "yes", "yes"},
		{"another member", co.other, "not_found", "not_found", "not_found"},
		{"auditor", co.auditor, "yes", "forbidden", "forbidden"},
		{"CLI", co.cli, "yes", "yes", "yes"},
		{"job", co.job, "yes", "yes", "yes"},
		{"the agent itself", co.self, "yes", "yes", "forbidden"},
		{"its maker's other agent", co.sibling, "yes", "forbidden", "forbidden"},
		{"another member's agent", co.stranger, "not_found", "not_found", "not_found"},
		{"an auditor's agent", co.auditorAgent, "not_found", "not_found", "not_found"},
		{"owner of another organisation", stranger, "not_found", "not_found", "not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, op := range []struct {
				name, want string
				fn         func(tx *store.Tx) error
			}{
				{"Agent", tt.see, func(tx *store.Tx) error { _, err := tx.Agent(t.Context(), id); return err }},
				{"AgentByName", tt.see, func(tx *store.Tx) error { _, err := tx.AgentByName(t.Context(), "worker"); return err }},
				{"WorkingSet", tt.see, func(tx *store.Tx) error { _, err := tx.WorkingSet(t.Context(), id); return err }},
				{"Sessions", tt.see, func(tx *store.Tx) error { _, err := tx.Sessions(t.Context(), id, 9); return err }},
				{"Promote", tt.set, func(tx *store.Tx) error { _, err := tx.Promote(t.Context(), id, "a__b"); return err }},
				{"Demote", tt.set, func(tx *store.Tx) error { _, err := tx.Demote(t.Context(), id, "a__b"); return err }},
				{"EndSession", tt.set, func(tx *store.Tx) error { return tx.EndSession(t.Context(), id, session.ID) }},
				{"RenewAgentToken", tt.change, func(tx *store.Tx) error { _, err := tx.RenewAgentToken(t.Context(), id); return err }},
				{"RevokeAgent", tt.change, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), id) }},
			} {
				err := co.db.As(t.Context(), tt.caller, func(tx *store.Tx) error {
					if err := op.fn(tx); err != nil {
						return err
					}
					return errUndo
				})
				if errors.Is(err, errUndo) {
					err = nil
				}
				if got := outcome(err); got != op.want {
					t.Errorf("%s() = %s, want %s", op.name, got, op.want)
				}
			}
			listed := must(t, co.db, tt.caller, func(tx *store.Tx) ([]store.Agent, error) { return tx.Agents(t.Context(), store.AgentFilter{}) })
			got := "not_found"
			for _, a := range listed {
				if a.ID == id {
					got = "yes"
				}
			}
			if got != tt.see {
				t.Errorf("Agents() lists it: %s, want %s", got, tt.see)
			}
		})
	}
}

// errUndo rolls a transaction back that went well.
var errUndo = errors.New("undo")

func TestWhoMayMakeAgents(t *testing.T) {
	t.Parallel()
	co := newCompany(t)
	foreign := storetest.Organisation(t, co.db)
	for _, tt := range []struct {
		name   string
		caller store.Caller
		own    string
		others string // for a member who is someone else
	}{
		{"owner", co.owner, "yes", "yes"},
		{"admin", co.admin, "yes", "yes"},
		{"member", co.maker, "yes", "forbidden"},
		{"auditor", co.auditor, "forbidden", "forbidden"},
		{"CLI", co.cli, "not_found", "yes"}, // the CLI is nobody, so it names a user
		{"job", co.job, "not_found", "yes"},
		{"an agent", co.self, "forbidden", "forbidden"},
	} {
		for n, want := range []string{tt.own, tt.others} {
			_, err := in(t, co.db, tt.caller, func(tx *store.Tx) (string, error) {
				_, token, err := tx.CreateAgent(t.Context(), fmt.Sprintf("%d of %s", n, tt.name), []store.UserID{tt.caller.User, co.other.User}[n])
				return token, err
			})
			if got := outcome(err); got != want {
				t.Errorf("%s: CreateAgent() number %d = %s, want %s", tt.name, n, got, want)
			}
		}
		if got, want := tt.caller.MayMakeAgents(), tt.own != "forbidden"; got != want {
			t.Errorf("%s: MayMakeAgents() = %v, want %v", tt.name, got, want)
		}
		if got, want := tt.caller.MayChange(co.other.User), tt.others == "yes"; got != want {
			t.Errorf("%s: MayChange() what another member made = %v, want %v", tt.name, got, want)
		}
	}
	for _, c := range []store.Caller{co.owner, co.cli} {
		_, err := in(t, co.db, c, func(tx *store.Tx) (string, error) {
			_, token, err := tx.CreateAgent(t.Context(), "For a stranger", foreign.User)
			return token, err
		})
		if !store.IsAbsent(err) {
			t.Errorf("CreateAgent() for another organisation's member = %v, want %v", err, reason.NotFound)
		}
	}
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for _, role := range []store.Role{store.RoleOwner, store.RoleAdmin, store.RoleMember, store.RoleAuditor} {
		if got, err := store.ParseRole(string(role)); got != role || err != nil {
			t.Errorf("ParseRole(%q) = %q, %v, want itself", role, got, err)
		}
	}
	for _, s := range []string{"", "Owner", "king", " member"} {
		if _, err := store.ParseRole(s); outcome(err) != "input_invalid" {
			t.Errorf("ParseRole(%q) = %v, want input_invalid", s, err)
		}
	}
}

func TestTheContextCarriesTheCaller(t *testing.T) {
	t.Parallel()
	want := store.Caller{Org: store.NewID[store.OrgKind](newClock().now()), Via: store.ViaCLI}
	if got := store.CallerFrom(store.WithCaller(t.Context(), want)); got != want {
		t.Errorf("CallerFrom() = %v, want %v", got, want)
	}
	if got := store.CallerFrom(t.Context()); got != (store.Caller{}) {
		t.Errorf("CallerFrom() without one = %v, want the zero Caller", got)
	}
}

func TestATxKnowsItsCaller(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	do(t, db, c, func(tx *store.Tx) error {
		if got := tx.Caller(); got != c {
			t.Errorf("Caller() = %v, want %v", got, c)
		}
		return nil
	})
}
