package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// plant puts a row of c's organisation into every table of tenants and returns its agent.
func plant(t *testing.T, db *store.DB, c store.Caller) store.Agent {
	t.Helper()
	a, _ := storetest.Agent(t, db, c, "Worker")
	do(t, db, c, func(tx *store.Tx) error {
		if _, err := tx.Promote(t.Context(), a.ID, "builtin__reshape"); err != nil {
			return err
		}
		s := store.MCPSession{ID: store.NewID[store.SessionKind](db.Now()), AgentID: a.ID, Protocol: "2025-06-18", OpenedAt: db.Now(), LastSeenAt: db.Now()}
		if err := tx.RecordSessions(t.Context(), s); err != nil {
			return err
		}
		return tx.EndSession(t.Context(), a.ID, s.ID)
	})
	do(t, db, bearer(c, a), func(tx *store.Tx) error {
		session := store.NewID[store.SessionKind](db.Now())
		if err := tx.SetLevel(t.Context(), session, "debug"); err != nil {
			return err
		}
		return tx.SendMessage(t.Context(), session, store.MCPMessage{Kind: store.MessageCancel, Request: "1", Body: []byte{}})
	})
	plantCall(t, db, c, a)
	if err := db.System().AppendAudit(t.Context(), []store.AuditLink{link(db, c.Org, store.NewID[store.WriterKind](db.Now()), 1)}); err != nil {
		t.Fatal(err)
	}
	plantUpstream(t, db, c, a)
	plantGrant(t, db, c, a)
	plantConnection(t, db, c, a)
	do(t, db, c, func(tx *store.Tx) error {
		_, _, err := tx.CreateInvite(t.Context(), "guest@example.com", store.RoleMember)
		return err
	})
	return a
}

// plantCall leaves behind what a call can.
func plantCall(t *testing.T, db *store.DB, c store.Caller, a store.Agent) {
	t.Helper()
	do(t, db, bearer(c, a), func(tx *store.Tx) error {
		ask := store.Ask{Kind: store.AskApproval, AgentID: a.ID, Tool: "mail__send", Version: 1, Key: sum("key"), Digest: sum("digest")}
		if _, err := tx.OpenAsk(t.Context(), ask, func(store.AskID) []byte { return []byte("sealed") }); err != nil {
			return err
		}
		ended := db.Now()
		r := store.Run{ID: store.NewID[store.RunKind](ended), AgentID: a.ID, Tool: "mail__send", Version: 1, Status: store.RunSucceeded, StartedAt: ended, EndedAt: &ended}
		if err := tx.KeepRun(t.Context(), r); err != nil {
			return err
		}
		return tx.KeepResult(t.Context(), a.ID, store.NewID[store.ResultKind](ended), []byte("sealed"))
	})
	do(t, db, c, func(tx *store.Tx) error {
		return tx.Approve(t.Context(), a.ID, store.Approval{Tool: "mail__send", Version: 1, Decision: store.Deny})
	})
}

// two is a database with two organisations, a row of each in every table of tenants.
type two struct {
	dsn    string
	db     *store.DB
	a, b   store.Caller
	ofA    store.Agent
	ofB    store.Agent
	tables []string // of tenants
	conn   *pgx.Conn
}

func newTwo(t *testing.T, dsn string) two {
	t.Helper()
	w := two{dsn: dsn, db: storetest.Open(t, dsn, nil), conn: connect(t, dsn)}
	w.a, w.b = storetest.Organisation(t, w.db), storetest.Organisation(t, w.db)
	w.ofA, w.ofB = plant(t, w.db, w.a), plant(t, w.db, w.b)
	rows, err := w.conn.Query(t.Context(), tenants+`SELECT name FROM tenant ORDER BY name`, pgx.NamedArgs{"global": global})
	if err != nil {
		t.Fatal(err)
	}
	if w.tables, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	return w
}

// logins are the ways to the database that must make no difference.
var logins = map[string]func(testing.TB, string) string{
	"ordinary login": func(_ testing.TB, dsn string) string { return dsn },
	"superuser":      storetest.Superuser,
}

// asEveryLogin runs fn on a database of its own for each kind of login.
func asEveryLogin(t *testing.T, fn func(t *testing.T, w two)) {
	for name, login := range logins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fn(t, newTwo(t, login(t, storetest.PrivateURL(t))))
		})
	}
}

// try runs sql under role, in org unless that is zero, rolls back and says how many rows it touched or why not.
func (w two) try(t *testing.T, role string, org store.OrgID, sql string, args ...any) (rows int64, code string) {
	t.Helper()
	tx, err := w.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SET LOCAL ROLE `+role); err != nil {
		t.Fatal(err)
	}
	if !org.IsZero() {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('graft.org', $1::uuid::text, true)`, org); err != nil {
			t.Fatal(err)
		}
	}
	tag, err := tx.Exec(t.Context(), sql, args...)
	if err != nil && sqlstate(err) == "" {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected(), sqlstate(err)
}

// want fails the test unless sql touches that many rows, or is refused with that code.
func (w two) want(t *testing.T, role string, org store.OrgID, rows int64, code, sql string, args ...any) {
	t.Helper()
	gotRows, gotCode := w.try(t, role, org, sql, args...)
	if gotRows != rows || gotCode != code {
		t.Errorf("as %s: %s: %d rows %q, want %d rows %q", role, sql, gotRows, gotCode, rows, code)
	}
}

var nobody store.OrgID

const (
	refused = "42501" // insufficient_privilege, which a policy's check gives too
	noRow   = "23503" // foreign_key_violation
)

func TestAnOrganisationSeesItsOwnRowsAlone(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		for _, table := range w.tables {
			mine := number(t, connect(t, storetest.Superuser(t, w.dsn)), `SELECT count(*) FROM `+table+` WHERE org_id = $1`, w.a.Org)
			if mine == 0 {
				t.Errorf("%s holds no row to look for: let plant() put one there", table)
			}
			w.want(t, "graft_app", w.a.Org, mine, "", `SELECT FROM `+table)
			w.want(t, "graft_app", w.a.Org, 0, "", `SELECT FROM `+table+` WHERE org_id = $1`, w.b.Org)
			w.want(t, "graft_app", nobody, 0, "", `SELECT FROM `+table)
		}
		w.want(t, "graft_app", w.a.Org, 1, "", `SELECT FROM organisation`)
		w.want(t, "graft_app", nobody, 0, "", `SELECT FROM organisation`)
		w.want(t, "graft_app", w.a.Org, 0, "", `UPDATE organisation SET name = 'Mine' WHERE id = $1`, w.b.Org)
		w.want(t, "graft_app", w.a.Org, 0, refused, `UPDATE organisation SET id = $1`, w.b.Org)
		w.want(t, "graft_app", w.a.Org, 0, refused, `INSERT INTO organisation (id, name, created_at) VALUES (gen_random_uuid(), 'New', now())`)
	})
}

func TestAnOrganisationWritesItsOwnRowsAlone(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		super := connect(t, storetest.Superuser(t, w.dsn))
		for _, table := range w.tables {
			var row string
			if err := super.QueryRow(t.Context(), `SELECT to_jsonb(x) FROM `+table+` x WHERE org_id = $1 LIMIT 1`, w.a.Org).Scan(&row); err != nil {
				t.Fatalf("%s: %v", table, err)
			}
			insert := `INSERT INTO ` + table + ` SELECT (jsonb_populate_record(NULL::` + table + `, $1::jsonb || jsonb_build_object('org_id', $2::uuid))).*`
			w.want(t, "graft_app", nobody, 0, refused, insert, row, w.a.Org)
			w.want(t, "graft_app", nobody, 0, refused, insert, row, nil)
			w.want(t, "graft_app", w.a.Org, 0, refused, insert, row, w.b.Org)

			changed := "" // without touching a row
			if table == "audit_entry" {
				changed = refused // nobody changes the log
			}
			w.want(t, "graft_app", w.a.Org, 0, changed, `UPDATE `+table+` SET org_id = org_id WHERE org_id = $1`, w.b.Org)
			w.want(t, "graft_app", w.a.Org, 0, refused, `UPDATE `+table+` SET org_id = $1`, w.b.Org)
			w.want(t, "graft_app", w.a.Org, 0, changed, `DELETE FROM `+table+` WHERE org_id = $1`, w.b.Org)
			w.want(t, "graft_app", nobody, 0, changed, `UPDATE `+table+` SET org_id = org_id`)
			w.want(t, "graft_app", nobody, 0, changed, `DELETE FROM `+table)
			w.want(t, "graft_app", w.a.Org, 0, refused, `TRUNCATE `+table+` CASCADE`)
		}
	})
}

// TestForeignKeysDoNotCrossOrganisations: Postgres checks them without row-level security, for every role.
func TestForeignKeysDoNotCrossOrganisations(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		for _, role := range []string{"graft_app", "graft_owner"} {
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO agent (id, user_id, name, advanced_tools, created_at)
				VALUES (gen_random_uuid(), $1, 'Stolen', true, now())`, w.b.User)
			w.want(t, role, w.a.Org, 0, noRow, `UPDATE agent SET revoked_by = $1 WHERE id = $2`, w.b.User, w.ofA.ID)
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO agent_token (id, agent_id, hash, hint, created_at)
				VALUES (gen_random_uuid(), $1, sha256('x'), 'abcd', now())`, w.ofB.ID)
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO working_set (agent_id, tool, cause, promoted_at) VALUES ($1, 'a__b', 'agent', now())`, w.ofB.ID)
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO mcp_session (id, agent_id, protocol, opened_at, last_seen_at)
				VALUES (gen_random_uuid(), $1, '2025-06-18', now(), now())`, w.ofB.ID)
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO mcp_session_end (id, agent_id, opened_at, ended_at)
				VALUES (gen_random_uuid(), $1, now(), now())`, w.ofB.ID)
			w.want(t, role, w.a.Org, 0, noRow, `INSERT INTO invite (id, email, role, hash, made_by, created_at, expires_at)
				VALUES (gen_random_uuid(), 'x@example.com', 'member', sha256('x'), $1, now(), now())`, w.b.User)

			// The same statement with a row of one's own is taken.
			w.want(t, role, w.a.Org, 1, "", `INSERT INTO working_set (agent_id, tool, cause, promoted_at) VALUES ($1, 'a__b', 'agent', now())`, w.ofA.ID)
		}
	})
}

func TestAccountsAreSeenByTheirOrganisationWithoutPassword(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		w.want(t, "graft_app", w.a.Org, 1, "", `SELECT id, email, name, created_at FROM user_account`)
		w.want(t, "graft_app", w.a.Org, 1, "", `SELECT id FROM user_account WHERE id = $1`, w.a.User)
		w.want(t, "graft_app", w.a.Org, 0, "", `SELECT id FROM user_account WHERE id = $1`, w.b.User)
		w.want(t, "graft_app", nobody, 0, "", `SELECT id FROM user_account`)
		w.want(t, "graft_app", w.a.Org, 0, refused, `SELECT password FROM user_account`)
		w.want(t, "graft_app", w.a.Org, 0, refused, `SELECT FROM user_account WHERE password = ''`)
		w.want(t, "graft_app", w.a.Org, 0, refused, `SELECT user_account FROM user_account`)
		w.want(t, "graft_app", w.a.Org, 0, refused, `UPDATE user_account SET name = 'Someone'`)
		w.want(t, "graft_app", w.a.Org, 0, refused, `SELECT id FROM user_account FOR UPDATE`)
	})
}

func TestTheSystemRoleReadsWhatItsQuestionsNeed(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		read := []string{}
		for _, table := range w.tables {
			if _, code := w.try(t, "graft_system", nobody, `SELECT FROM `+table); code == "" {
				read = append(read, table)
			}
			w.want(t, "graft_system", nobody, 0, refused, `UPDATE `+table+` SET org_id = org_id`)
			if !slices.Contains([]string{"ask", "invite", "oauth_answer", "oauth_code", "oauth_denied", "oauth_token", "result", "run"}, table) { // whose rows run out
				w.want(t, "graft_system", nobody, 0, refused, `DELETE FROM `+table)
			}
		}
		for _, table := range []string{"ask", "oauth_answer", "result", "run"} {
			w.want(t, "graft_system", nobody, 0, refused, `SELECT org_id FROM `+table)
		}
		if diff := cmp.Diff([]string{
			"agent", "agent_token", "ask", "audit_entry", "invite", "member", "oauth_answer", "oauth_code", "oauth_denied", "oauth_grant", "oauth_token", "result", "run",
		}, read); diff != "" {
			t.Errorf("tables that graft_system reads (-want +got):\n%s", diff)
		}
		w.want(t, "graft_system", nobody, 2, "", `SELECT FROM agent`)
	})
}

// TestABackfillReachesEveryRow: FORCE binds the owner too, so without a policy of its own a migration would
// change nothing, and say so to nobody.
func TestABackfillReachesEveryRow(t *testing.T) {
	t.Parallel()
	asEveryLogin(t, func(t *testing.T, w two) {
		super := connect(t, storetest.Superuser(t, w.dsn))
		for _, table := range append([]string{"organisation", "user_account"}, w.tables...) {
			everyone := number(t, super, `SELECT count(*) FROM `+table)
			w.want(t, "graft_owner", nobody, everyone, "", `SELECT FROM `+table)
			key := map[string]string{"organisation": "id", "user_account": "id"}[table]
			if key == "" {
				key = "org_id"
			}
			w.want(t, "graft_owner", nobody, everyone, "", `UPDATE `+table+` SET `+key+` = `+key)
		}
	})
}

func TestAnOrganisationIsDeletedWithAllItsRows(t *testing.T) {
	t.Parallel()
	w := newTwo(t, storetest.PrivateURL(t))
	super := connect(t, storetest.Superuser(t, w.dsn))
	run(t, super, `SET ROLE graft_owner`)
	if _, err := super.Exec(t.Context(), `DELETE FROM organisation WHERE id = $1`, w.a.Org); err != nil {
		t.Fatal(err)
	}
	for _, table := range w.tables {
		left := map[store.OrgID]int64{
			w.a.Org: number(t, super, `SELECT count(*) FROM `+table+` WHERE org_id = $1`, w.a.Org),
			w.b.Org: number(t, super, `SELECT count(*) FROM `+table+` WHERE org_id = $1`, w.b.Org),
		}
		if left[w.a.Org] != 0 || left[w.b.Org] == 0 {
			t.Errorf("%s holds %v, want none of %s and some of %s", table, left, w.a.Org, w.b.Org)
		}
	}
}
