-- +goose Up
-- What makes a table a tenant's. Every later table of a tenant goes through tenant_table().

-- The organisation of the running transaction. The setting is the empty string, not NULL, on a connection that
-- had one before.
CREATE FUNCTION current_org() RETURNS uuid
LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('graft.org', true), '')::uuid $$;

-- +goose StatementBegin
-- tenant_table gives t the owner column's default and key, row-level security that also binds its owner, and the
-- grants. graft_owner has a policy of its own, else FORCE would hide every row from a backfill.
CREATE FUNCTION tenant_table(t regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ALTER COLUMN org_id SET NOT NULL, ALTER COLUMN org_id SET DEFAULT current_org()', t);
  EXECUTE format('ALTER TABLE %s ADD FOREIGN KEY (org_id) REFERENCES organisation (id) ON DELETE CASCADE', t);
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
  EXECUTE format('CREATE POLICY tenant ON %s TO graft_app USING (org_id = current_org()) WITH CHECK (org_id = current_org())', t);
  EXECUTE format('CREATE POLICY owner ON %s TO graft_owner USING (true) WITH CHECK (true)', t);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO graft_app', t);
END $$;
-- +goose StatementEnd

CREATE TABLE organisation (
  id         uuid PRIMARY KEY,
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX organisation_name_key ON organisation (lower(name));

ALTER TABLE organisation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON organisation TO graft_app USING (id = current_org()) WITH CHECK (id = current_org());
CREATE POLICY owner ON organisation TO graft_owner USING (true) WITH CHECK (true);
CREATE POLICY system ON organisation TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE ON organisation TO graft_app;
GRANT SELECT, INSERT, UPDATE ON organisation TO graft_system;

-- Which migrations ran; serve and readyz compare it with what the binary needs.
GRANT SELECT ON goose_db_version TO graft_system;
