-- +goose Up
-- People: an account is global, a member is an account's place in one organisation.

CREATE TABLE user_account (
  id         uuid PRIMARY KEY,
  email      text NOT NULL UNIQUE CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
  name       text NOT NULL DEFAULT '' CHECK (length(name) <= 80),
  password   text NOT NULL DEFAULT '', -- argon2id in PHC string form; empty: none set yet
  created_at timestamptz NOT NULL
);

CREATE TABLE member (
  org_id     uuid,
  user_id    uuid NOT NULL REFERENCES user_account (id),
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'auditor')),
  created_at timestamptz NOT NULL,
  removed_at timestamptz,
  PRIMARY KEY (org_id, user_id)
);
CREATE INDEX member_user_idx ON member (user_id);
SELECT tenant_table('member');
CREATE POLICY system ON member TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON member TO graft_system;

-- An organisation sees the accounts of its members and nothing else; the subquery is under member's own policy.
ALTER TABLE user_account ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON user_account FOR SELECT TO graft_app
  USING (EXISTS (SELECT FROM member m WHERE m.user_id = user_account.id));
CREATE POLICY owner ON user_account TO graft_owner USING (true) WITH CHECK (true);
CREATE POLICY system ON user_account TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT (id, email, name, created_at) ON user_account TO graft_app;
GRANT SELECT, INSERT, UPDATE ON user_account TO graft_system;

-- One-time links. A welcome link has no user and works while no user exists; a sign-in link is a user's.
CREATE TABLE signin_link (
  hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
  kind       text NOT NULL CHECK (kind IN ('welcome', 'signin')),
  user_id    uuid REFERENCES user_account (id),
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  used_at    timestamptz,
  CHECK ((kind = 'signin') = (user_id IS NOT NULL AND expires_at IS NOT NULL))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON signin_link TO graft_system;

CREATE TABLE web_session (
  hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
  user_id    uuid REFERENCES user_account (id),
  data       bytea NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX web_session_user_idx ON web_session (user_id);
CREATE INDEX web_session_expiry_idx ON web_session (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON web_session TO graft_system;

-- Data keys, wrapped by the master key: an organisation's own (org_id set; deleting it shreds what it sealed) and
-- the gateway's, by purpose.
CREATE TABLE seal_key (
  id         uuid PRIMARY KEY,
  purpose    text NOT NULL,
  org_id     uuid REFERENCES organisation (id) ON DELETE CASCADE,
  wrapped    bytea NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX seal_key_purpose_idx ON seal_key (purpose, org_id);
GRANT SELECT, INSERT, DELETE ON seal_key TO graft_system;
