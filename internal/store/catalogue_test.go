package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/store/storetest"
)

// global matches the tables that belong to no organisation. Every other table is a tenant's.
const global = `^(organisation|user_account|user_passkey|user_identity|signin_link|web_session|oauth_client|oauth_request|` +
	`client_document|signing_key|seal_key|revocation|replica|audit_checkpoint|river_.+|goose_.+)$`

// granted is what the roles may do beyond what graft_app may on every table of a tenant.
var granted = []string{
	"graft_app: SELECT on organisation",
	"graft_app: UPDATE on organisation",
	"graft_app: SELECT (id) on user_account",
	"graft_app: SELECT (email) on user_account",
	"graft_app: SELECT (name) on user_account",
	"graft_app: SELECT (created_at) on user_account",

	// The queue: row-level security shows graft_app the jobs of its own organisation.
	"graft_app: SELECT on river_job",
	"graft_app: INSERT on river_job",
	"graft_app: UPDATE on river_job",
	"graft_app: USAGE on river_job_id_seq",
	"graft_system: SELECT on river_job",
	"graft_system: INSERT on river_job",
	"graft_system: UPDATE on river_job",
	"graft_system: DELETE on river_job",
	"graft_system: USAGE on river_job_id_seq",
	"graft_system: SELECT on river_leader",
	"graft_system: INSERT on river_leader",
	"graft_system: UPDATE on river_leader",
	"graft_system: DELETE on river_leader",
	"graft_system: SELECT on river_notification",
	"graft_system: INSERT on river_notification",
	"graft_system: UPDATE on river_notification",
	"graft_system: DELETE on river_notification",
	"graft_system: USAGE on river_notification_id_seq",
	"graft_system: SELECT on river_queue",
	"graft_system: INSERT on river_queue",
	"graft_system: UPDATE on river_queue",
	"graft_system: DELETE on river_queue",

	"graft_system: SELECT on agent",
	"graft_system: SELECT on agent_token",
	"graft_system: SELECT (expires_at) on ask",
	"graft_system: DELETE on ask",
	"graft_system: SELECT on audit_checkpoint",
	"graft_system: INSERT on audit_checkpoint",
	"graft_system: SELECT on audit_entry",
	"graft_system: INSERT on audit_entry",
	"graft_system: SELECT on goose_db_version",
	"graft_system: SELECT on invite",
	"graft_system: DELETE on invite",
	"graft_system: SELECT on member",
	"graft_system: INSERT on member",
	"graft_system: UPDATE (role) on member",
	"graft_system: UPDATE (created_at) on member",
	"graft_system: UPDATE (removed_at) on member",
	"graft_system: SELECT on organisation",
	"graft_system: INSERT on organisation",
	"graft_system: UPDATE on organisation",
	"graft_system: DELETE on organisation",
	"graft_system: SELECT (expires_at) on result",
	"graft_system: DELETE on result",
	"graft_system: SELECT (expires_at) on run",
	"graft_system: DELETE on run",
	"graft_system: SELECT on seal_key",
	"graft_system: INSERT on seal_key",
	"graft_system: DELETE on seal_key",
	"graft_system: SELECT on signing_key",
	"graft_system: INSERT on signing_key",
	"graft_system: UPDATE (state) on signing_key",
	"graft_system: UPDATE (active_at) on signing_key",
	"graft_system: UPDATE (retiring_at) on signing_key",
	"graft_system: UPDATE (retired_at) on signing_key",

	// The authorization server: clients and requests belong to no organisation, and whose a code or a token is has to be
	// found before anything else. Whoever allows a request spends it with the grant that they make.
	"graft_app: SELECT (hash) on oauth_request",
	"graft_app: SELECT (expires_at) on oauth_request",
	"graft_app: SELECT (answered_at) on oauth_request",
	"graft_app: UPDATE (answered_at) on oauth_request",
	"graft_system: SELECT (made_at) on oauth_answer",
	"graft_system: DELETE on oauth_answer",
	"graft_system: SELECT on client_document",
	"graft_system: INSERT on client_document",
	"graft_system: UPDATE on client_document",
	"graft_system: DELETE on client_document",
	"graft_system: SELECT on oauth_client",
	"graft_system: INSERT on oauth_client",
	"graft_system: UPDATE on oauth_client",
	"graft_system: DELETE on oauth_client",
	"graft_system: SELECT (org_id) on oauth_code",
	"graft_system: SELECT (hash) on oauth_code",
	"graft_system: SELECT (grant_id) on oauth_code",
	"graft_system: SELECT (expires_at) on oauth_code",
	"graft_system: DELETE on oauth_code",
	"graft_system: SELECT on oauth_denied",
	"graft_system: DELETE on oauth_denied",
	"graft_system: SELECT on oauth_grant",
	"graft_system: SELECT on oauth_request",
	"graft_system: INSERT on oauth_request",
	"graft_system: UPDATE on oauth_request",
	"graft_system: DELETE on oauth_request",
	"graft_system: SELECT (org_id) on oauth_token",
	"graft_system: SELECT (hash) on oauth_token",
	"graft_system: SELECT (grant_id) on oauth_token",
	"graft_system: SELECT (created_at) on oauth_token",
	"graft_system: SELECT (retired_at) on oauth_token",
	"graft_system: DELETE on oauth_token",

	"graft_system: SELECT on signin_link",
	"graft_system: INSERT on signin_link",
	"graft_system: UPDATE on signin_link",
	"graft_system: DELETE on signin_link",
	"graft_system: SELECT on user_account",
	"graft_system: INSERT on user_account",
	"graft_system: UPDATE on user_account",
	"graft_system: SELECT on user_identity",
	"graft_system: INSERT on user_identity",
	"graft_system: UPDATE on user_identity",
	"graft_system: DELETE on user_identity",
	"graft_system: SELECT on user_passkey",
	"graft_system: INSERT on user_passkey",
	"graft_system: UPDATE on user_passkey",
	"graft_system: DELETE on user_passkey",
	"graft_system: SELECT on web_session",
	"graft_system: INSERT on web_session",
	"graft_system: UPDATE on web_session",
	"graft_system: DELETE on web_session",
}

// lent are the functions that run with the rights of their owner: what no role may do but in this one way.
var lent = []string{"audit_drop", "audit_thin"}

// tenants begins a query with the tables of tenants; org is the number of their column org_id.
const tenants = `
	WITH RECURSIVE tenant AS (
		SELECT oid, relname::text AS name, relrowsecurity, relforcerowsecurity,
		       (SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND attname = 'org_id' AND NOT attisdropped) AS org
		FROM pg_class c
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname !~ @global)
	`

// rules are questions to the catalogue whose every answer is a fault.
var rules = []string{
	// All tables are where the other rules look.
	`SELECT nspname || '.' || relname || ': lies outside the schema public'
	 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	 WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'public') AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')`,

	// A table of a tenant says whose each row is, and fills that in itself.
	tenants + `SELECT name || ': is neither in the list of global tables nor has org_id' FROM tenant WHERE org IS NULL`,
	tenants + `SELECT name || ': org_id is not uuid NOT NULL DEFAULT current_org()'
	 FROM tenant t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = org
	 LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = org
	 WHERE NOT (attnotnull AND atttypid = 'uuid'::regtype AND coalesce(pg_get_expr(adbin, adrelid), '') = 'current_org()')`,
	// A row goes with its organisation, by itself or with a row of another tenant's table that does.
	tenants + `, goes AS (
		SELECT t.oid FROM pg_constraint JOIN tenant t ON t.oid = conrelid
		WHERE contype = 'f' AND confrelid = 'organisation'::regclass AND conkey = ARRAY[org] AND confdeltype = 'c'
		UNION
		SELECT conrelid FROM pg_constraint JOIN goes ON goes.oid = confrelid
		WHERE contype = 'f' AND confdeltype = 'c'
		  AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey) AND NOT attnotnull))
	 SELECT name || ': org_id does not go with its organisation (foreign key ON DELETE CASCADE)'
	 FROM tenant WHERE org IS NOT NULL AND oid NOT IN (SELECT oid FROM goes)`,

	// Row-level security is on, for its owner too, and lets nobody in but the three roles.
	tenants + `SELECT name || ': row-level security is not enabled' FROM tenant WHERE org IS NOT NULL AND NOT relrowsecurity`,
	tenants + `SELECT name || ': row-level security is not forced' FROM tenant WHERE org IS NOT NULL AND NOT relforcerowsecurity`,
	tenants + `SELECT name || ': no policy tenant that shows graft_app its own organisation'
	 FROM tenant
	 WHERE org IS NOT NULL AND NOT EXISTS (
		SELECT FROM pg_policies
		WHERE schemaname = 'public' AND tablename = name AND policyname = 'tenant' AND permissive = 'PERMISSIVE' AND cmd = 'ALL'
		  AND roles = '{graft_app}' AND qual = '(org_id = current_org())' AND with_check = '(org_id = current_org())')`,
	tenants + `SELECT name || ': no policy owner that shows graft_owner every row'
	 FROM tenant
	 WHERE org IS NOT NULL AND NOT EXISTS (
		SELECT FROM pg_policies
		WHERE schemaname = 'public' AND tablename = name AND policyname = 'owner' AND permissive = 'PERMISSIVE' AND cmd = 'ALL'
		  AND roles = '{graft_owner}' AND qual = 'true' AND with_check = 'true')`,
	tenants + `SELECT name || ': policy ' || policyname || ' lets in ' || array_to_string(roles, ', ')
	 FROM tenant JOIN pg_policies ON schemaname = 'public' AND tablename = name
	 WHERE policyname NOT IN ('tenant', 'owner') AND roles <> '{graft_system}'`,

	// Foreign keys are checked without row-level security, and a unique index tells of other rows.
	tenants + `SELECT a.name || ': foreign key ' || conname || ' may cross organisations'
	 FROM pg_constraint JOIN tenant a ON a.oid = conrelid JOIN tenant b ON b.oid = confrelid
	 WHERE contype = 'f' AND NOT EXISTS (SELECT FROM unnest(conkey, confkey) AS k (mine, theirs) WHERE mine = a.org AND theirs = b.org)`,
	tenants + `SELECT name || ': unique index ' || indexrelid::regclass || ' does not lead with org_id'
	 FROM tenant t JOIN pg_index ON indrelid = t.oid
	 LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = indkey[0]
	 WHERE (indisunique OR indisexclusion) AND indkey[0] <> org
	   AND NOT (indisprimary AND indnkeyatts = 1 AND attname = 'id' AND atttypid = 'uuid'::regtype)`,

	// Nothing lends its owner's rights.
	`SELECT relname || ': a view without security_invoker'
	 FROM pg_class
	 WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' AND NOT coalesce(reloptions && '{security_invoker=true,security_invoker=on}', false)`,
	`SELECT relname || ': row-level security does not reach a materialised view or a foreign table'
	 FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('m', 'f')`,
	`SELECT proname || ': a SECURITY DEFINER function'
	 FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
	 WHERE prosecdef AND nspname !~ '^pg_' AND nspname <> 'information_schema' AND proname <> ALL (@lent)`,
	`SELECT proname || ': a SECURITY DEFINER function that anybody may call, or whose search_path its caller chooses'
	 FROM pg_proc
	 WHERE proname = ANY (@lent) AND (has_function_privilege('graft_app', oid, 'EXECUTE') OR NOT coalesce(proconfig @> '{"search_path=public, pg_temp"}', false))`,
	`SELECT relname || ': belongs to ' || relowner::regrole
	 FROM pg_class
	 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relowner <> 'graft_owner'::regrole`,
	`SELECT proname || ': belongs to ' || proowner::regrole
	 FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> 'graft_owner'::regrole`,

	// The roles can do what was granted to them and nothing else.
	tenants + `, acl AS (
		SELECT oid, relowner, relacl AS acl, '' AS col FROM pg_class WHERE relnamespace = 'public'::regnamespace
		UNION ALL
		SELECT attrelid, relowner, attacl, ' (' || attname || ')'
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'public'::regnamespace),
	 grants AS (
		SELECT acl.oid, grantee, privilege_type,
		       CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END || ': ' || privilege_type || col || ' on ' || acl.oid::regclass AS line
		FROM acl, aclexplode(acl.acl) WHERE grantee <> relowner)
	 SELECT line FROM grants
	 WHERE line <> ALL (@granted)
	   AND NOT (grantee = 'graft_app'::regrole AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') AND oid IN (SELECT oid FROM tenant))`,
	`SELECT rolname || ': can log in, or has a right that passes row-level security by'
	 FROM pg_roles
	 WHERE rolname IN ('graft_owner', 'graft_app', 'graft_system')
	   AND (rolcanlogin OR rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)`,
	`SELECT member::regrole || ': is a member of ' || roleid::regrole
	 FROM pg_auth_members WHERE member IN ('graft_owner'::regrole, 'graft_app'::regrole, 'graft_system'::regrole)`,
	`SELECT r || ': may make tables in the schema public'
	 FROM unnest(ARRAY['graft_app', 'graft_system']) AS r WHERE has_schema_privilege(r, 'public', 'CREATE')`,
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// faults is what the catalogue has against the rules, in order.
func faults(t *testing.T, q querier) []string {
	t.Helper()
	found := []string{}
	for _, rule := range rules {
		rows, err := q.Query(t.Context(), rule, pgx.NamedArgs{"global": global, "granted": granted, "lent": lent})
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		found = append(found, lines...)
	}
	slices.Sort(found)
	return found
}

func TestCatalogueHoldsTheRulesOfTenancy(t *testing.T) {
	t.Parallel()
	if got := faults(t, connect(t, storetest.PrivateURL(t))); len(got) > 0 {
		t.Errorf("faults() = %d, want none:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestEveryGrantOnTheListIsThere(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.PrivateURL(t))
	for _, line := range granted {
		role, rest, _ := strings.Cut(line, ": ")
		privilege, table, _ := strings.Cut(rest, " on ")
		privilege, column, _ := strings.Cut(privilege, " (")
		var has bool
		err := conn.QueryRow(t.Context(), `
			SELECT CASE WHEN $3 = 'USAGE' THEN has_sequence_privilege($1, $2, $3) WHEN $4 = '' THEN has_table_privilege($1, $2, $3)
			            ELSE has_column_privilege($1, $2, $4, $3) END`,
			role, table, privilege, strings.TrimSuffix(column, ")")).Scan(&has)
		if err != nil || !has {
			t.Errorf("%q is granted = %v, %v, want true", line, has, err)
		}
	}
}

// TestCatalogueRulesBite breaks each rule in a transaction and looks for exactly that fault.
func TestCatalogueRulesBite(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.Superuser(t, storetest.PrivateURL(t)))
	const made = `CREATE TABLE wrong (org_id uuid, id uuid PRIMARY KEY, agent_id uuid, name text); SELECT tenant_table('wrong'); `
	for _, tt := range []struct {
		name, sql string
		want      []string
	}{
		{"a table made as it should be", made, nil},
		{"no org_id", `CREATE TABLE wrong (id uuid PRIMARY KEY)`, []string{"wrong: is neither in the list of global tables nor has org_id"}},
		{"a planned global table", `CREATE TABLE replica (id uuid PRIMARY KEY); CREATE TABLE river_other (id bigint PRIMARY KEY)`, nil},
		{"a name that begins like a global one", `CREATE TABLE organisation_note (id uuid PRIMARY KEY)`, []string{"organisation_note: is neither in the list of global tables nor has org_id"}},
		{"made by hand", `CREATE TABLE wrong (org_id uuid, id uuid PRIMARY KEY)`, []string{
			"wrong: no policy owner that shows graft_owner every row",
			"wrong: no policy tenant that shows graft_app its own organisation",
			"wrong: org_id does not go with its organisation (foreign key ON DELETE CASCADE)",
			"wrong: org_id is not uuid NOT NULL DEFAULT current_org()",
			"wrong: row-level security is not enabled",
			"wrong: row-level security is not forced",
		}},
		{"another schema", `RESET ROLE; CREATE SCHEMA side; CREATE TABLE side.wrong (id uuid)`, []string{"side.wrong: lies outside the schema public"}},

		{"org_id may be null", made + `ALTER TABLE wrong ALTER org_id DROP NOT NULL`, []string{"wrong: org_id is not uuid NOT NULL DEFAULT current_org()"}},
		{"org_id has no default", made + `ALTER TABLE wrong ALTER org_id DROP DEFAULT`, []string{"wrong: org_id is not uuid NOT NULL DEFAULT current_org()"}},
		{"org_id has another default", made + `ALTER TABLE wrong ALTER org_id SET DEFAULT gen_random_uuid()`, []string{"wrong: org_id is not uuid NOT NULL DEFAULT current_org()"}},
		{"no key to the organisation", made + `ALTER TABLE wrong DROP CONSTRAINT wrong_org_id_fkey`, []string{"wrong: org_id does not go with its organisation (foreign key ON DELETE CASCADE)"}},
		{
			"a key that keeps the organisation",
			made + `ALTER TABLE wrong DROP CONSTRAINT wrong_org_id_fkey, ADD FOREIGN KEY (org_id) REFERENCES organisation`,
			[]string{"wrong: org_id does not go with its organisation (foreign key ON DELETE CASCADE)"},
		},
		{
			"with a row that goes",
			made + `ALTER TABLE wrong DROP CONSTRAINT wrong_org_id_fkey, ALTER agent_id SET NOT NULL, ADD FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id) ON DELETE CASCADE`,
			nil,
		},
		{
			"with a row that need not be there",
			made + `ALTER TABLE wrong DROP CONSTRAINT wrong_org_id_fkey, ADD FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id) ON DELETE CASCADE`,
			[]string{"wrong: org_id does not go with its organisation (foreign key ON DELETE CASCADE)"},
		},
		{
			"with a row that keeps it",
			made + `ALTER TABLE wrong DROP CONSTRAINT wrong_org_id_fkey, ALTER agent_id SET NOT NULL, ADD FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)`,
			[]string{"wrong: org_id does not go with its organisation (foreign key ON DELETE CASCADE)"},
		},

		{"row-level security off", made + `ALTER TABLE wrong DISABLE ROW LEVEL SECURITY`, []string{"wrong: row-level security is not enabled"}},
		{"not forced", made + `ALTER TABLE wrong NO FORCE ROW LEVEL SECURITY`, []string{"wrong: row-level security is not forced"}},
		{"no policy of the tenant", made + `DROP POLICY tenant ON wrong`, []string{"wrong: no policy tenant that shows graft_app its own organisation"}},
		{"a policy without check", made + `DROP POLICY tenant ON wrong; CREATE POLICY tenant ON wrong TO graft_app USING (org_id = current_org())`, []string{"wrong: no policy tenant that shows graft_app its own organisation"}},
		{"a policy that lets anything be written", made + `ALTER POLICY tenant ON wrong WITH CHECK (true)`, []string{"wrong: no policy tenant that shows graft_app its own organisation"}},
		{"a policy that shows anything", made + `ALTER POLICY tenant ON wrong USING (true)`, []string{"wrong: no policy tenant that shows graft_app its own organisation"}},
		{"a policy of everybody", made + `ALTER POLICY tenant ON wrong TO PUBLIC`, []string{"wrong: no policy tenant that shows graft_app its own organisation"}},
		{"no policy of the owner", made + `DROP POLICY owner ON wrong`, []string{"wrong: no policy owner that shows graft_owner every row"}},
		{"one policy more", made + `CREATE POLICY extra ON wrong FOR SELECT USING (true)`, []string{"wrong: policy extra lets in public"}},
		{"one policy more, of both", made + `CREATE POLICY system ON wrong TO graft_system, graft_app USING (true)`, []string{"wrong: policy system lets in graft_app, graft_system"}},
		{"a policy of the system", made + `CREATE POLICY system ON wrong TO graft_system USING (true)`, nil},

		{"a foreign key of one column", made + `ALTER TABLE wrong ADD FOREIGN KEY (agent_id) REFERENCES agent`, []string{"wrong: foreign key wrong_agent_id_fkey may cross organisations"}},
		{"a composite foreign key", made + `ALTER TABLE wrong ADD FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)`, nil},
		{
			"a foreign key with org_id on one side",
			made + `ALTER TABLE wrong ADD UNIQUE (org_id, agent_id); CREATE TABLE other (org_id uuid, id uuid PRIMARY KEY, wrong_id uuid,
				FOREIGN KEY (wrong_id, org_id) REFERENCES wrong (org_id, agent_id)); SELECT tenant_table('other')`,
			[]string{"other: foreign key other_wrong_id_org_id_fkey may cross organisations"},
		},
		{"a unique name", made + `ALTER TABLE wrong ADD UNIQUE (name)`, []string{"wrong: unique index wrong_name_key does not lead with org_id"}},
		{"a unique expression", made + `CREATE UNIQUE INDEX wrong_idx ON wrong (lower(name), org_id)`, []string{"wrong: unique index wrong_idx does not lead with org_id"}},
		{"org_id last", made + `CREATE UNIQUE INDEX wrong_idx ON wrong (name, org_id)`, []string{"wrong: unique index wrong_idx does not lead with org_id"}},
		{"a unique id that is not the primary key", made + `CREATE UNIQUE INDEX wrong_idx ON wrong (agent_id)`, []string{"wrong: unique index wrong_idx does not lead with org_id"}},
		{
			"a primary key that can be guessed",
			`CREATE TABLE wrong (org_id uuid, id bigint PRIMARY KEY); SELECT tenant_table('wrong')`,
			[]string{"wrong: unique index wrong_pkey does not lead with org_id"},
		},
		{"an exclusion", made + `ALTER TABLE wrong ADD EXCLUDE (name WITH =)`, []string{"wrong: unique index wrong_name_excl does not lead with org_id"}},
		{"a unique name in the organisation", made + `CREATE UNIQUE INDEX wrong_idx ON wrong (org_id, lower(name)) WHERE name <> ''; CREATE INDEX ON wrong (name)`, nil},

		{"a view", `CREATE VIEW wrong AS SELECT * FROM agent`, []string{"wrong: a view without security_invoker"}},
		{"a view with another option", `CREATE VIEW wrong WITH (security_barrier = true) AS SELECT * FROM agent`, []string{"wrong: a view without security_invoker"}},
		{"a view with its reader's rights", `CREATE VIEW wrong WITH (security_invoker = true) AS SELECT * FROM agent`, nil},
		{"a materialised view", `CREATE MATERIALIZED VIEW wrong AS SELECT id FROM agent`, []string{"wrong: row-level security does not reach a materialised view or a foreign table"}},
		{"a function with its owner's rights", `CREATE FUNCTION wrong() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM agent'`, []string{"wrong: a SECURITY DEFINER function"}},
		{"a lent function for everybody", `GRANT EXECUTE ON FUNCTION audit_thin() TO PUBLIC`, []string{"audit_thin: a SECURITY DEFINER function that anybody may call, or whose search_path its caller chooses"}},
		{"a lent function whose search_path is open", `ALTER FUNCTION audit_thin() RESET search_path`, []string{"audit_thin: a SECURITY DEFINER function that anybody may call, or whose search_path its caller chooses"}},
		{"a table of the login", `RESET ROLE; ` + made + `ALTER TABLE wrong OWNER TO graft_test_login`, []string{"wrong: belongs to graft_test_login"}},
		{"a function of the login", `RESET ROLE; CREATE FUNCTION wrong() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION wrong OWNER TO graft_test_login`, []string{"wrong: belongs to graft_test_login"}},

		{"a global table for graft_app", `GRANT SELECT ON web_session TO graft_app`, []string{"graft_app: SELECT on web_session"}},
		{"a new organisation by graft_app", `GRANT INSERT ON organisation TO graft_app`, []string{"graft_app: INSERT on organisation"}},
		{"the password for graft_app", `GRANT SELECT (password) ON user_account TO graft_app`, []string{"graft_app: SELECT (password) on user_account"}},
		{"TRUNCATE, which no policy binds", `GRANT TRUNCATE ON agent TO graft_app`, []string{"graft_app: TRUNCATE on agent"}},
		{"a tenant's table for graft_system", `GRANT SELECT ON working_set TO graft_system`, []string{"graft_system: SELECT on working_set"}},
		{"a change by graft_system", `GRANT UPDATE (name), DELETE ON agent TO graft_system`, []string{"graft_system: DELETE on agent", "graft_system: UPDATE (name) on agent"}},
		{"a table for everybody", `GRANT SELECT ON agent TO PUBLIC`, []string{"PUBLIC: SELECT on agent"}},
		{"a table for the login", `GRANT SELECT ON agent TO graft_test_login`, []string{"graft_test_login: SELECT on agent"}},

		{"a role that can log in", `RESET ROLE; ALTER ROLE graft_app LOGIN`, []string{"graft_app: can log in, or has a right that passes row-level security by"}},
		{"a role that no policy binds", `RESET ROLE; ALTER ROLE graft_system BYPASSRLS`, []string{"graft_system: can log in, or has a right that passes row-level security by"}},
		{"a superuser", `RESET ROLE; ALTER ROLE graft_owner SUPERUSER`, []string{"graft_owner: can log in, or has a right that passes row-level security by"}},
		{"a role in another", `RESET ROLE; GRANT graft_owner TO graft_app`, []string{"graft_app: is a member of graft_owner"}},
		{"a schema for everybody", `RESET ROLE; GRANT CREATE ON SCHEMA public TO PUBLIC`, []string{"graft_app: may make tables in the schema public", "graft_system: may make tables in the schema public"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if _, err := tx.Exec(t.Context(), `SET LOCAL ROLE graft_owner; `+tt.sql+`; RESET ROLE`); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{}, tt.want...), faults(t, tx)); diff != "" {
				t.Errorf("faults() after %s (-want +got):\n%s", tt.sql, diff)
			}
		})
	}
}
