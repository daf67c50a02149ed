-- +goose Up
-- Who may join an organisation, and as what. A row is an open invite: joining and withdrawing delete it, and the audit
-- log says that it was there.
CREATE TABLE invite (
  org_id     uuid,
  id         uuid PRIMARY KEY,
  email      text NOT NULL CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'auditor')),
  hash       bytea NOT NULL CHECK (length(hash) = 32), -- of its link's token
  made_by    uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  UNIQUE (org_id, email),
  FOREIGN KEY (org_id, made_by) REFERENCES member (org_id, user_id)
);
CREATE INDEX invite_hash_idx ON invite (hash);
CREATE INDEX invite_expiry_idx ON invite (expires_at);
SELECT tenant_table('invite');
CREATE POLICY system ON invite TO graft_system USING (true);
GRANT SELECT, DELETE ON invite TO graft_system;

-- The last sign-in that began in this organisation. Null: none is known.
ALTER TABLE member ADD COLUMN signed_in_at timestamptz;

-- Somebody who was removed comes back by an invite, in their old row.
GRANT UPDATE (role, created_at, removed_at) ON member TO graft_system;
