-- +goose Up
-- A refresh is what clients do most often, so it writes little: the token that retires changes no column of an index and stays on its
-- page, its grant is not written at all, and what is kept for a moment only has a table of its own. The table is made anew, with what it
-- holds: no release has had it as it was.
CREATE TABLE token_before AS TABLE oauth_token;
DROP TABLE oauth_token;

-- Refresh tokens. One that has retired stays as long as its grant, so that its reuse is noticed. Half of each page is for the tokens on
-- it to retire in. A row's grant goes with its organisation, and the row with its grant.
CREATE TABLE oauth_token (
  org_id     uuid,
  hash       bytea NOT NULL CHECK (length(hash) = 32),
  grant_id   uuid NOT NULL,
  created_at timestamptz NOT NULL,
  rotated    boolean NOT NULL, -- given for a token, not for a code: its grant was refreshed then
  retired_at timestamptz, -- in no index
  PRIMARY KEY (org_id, hash),
  FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grant (org_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX oauth_token_hash_idx ON oauth_token (hash);
CREATE INDEX oauth_token_grant_idx ON oauth_token (org_id, grant_id, created_at);
CREATE INDEX oauth_token_created_idx ON oauth_token (created_at);
SELECT tenant_table('oauth_token');
ALTER TABLE oauth_token DROP CONSTRAINT oauth_token_org_id_fkey;
CREATE POLICY system ON oauth_token TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT (hash, grant_id, org_id, created_at, retired_at), DELETE ON oauth_token TO graft_system;
INSERT INTO oauth_token (org_id, hash, grant_id, created_at, rotated, retired_at)
  SELECT org_id, hash, grant_id, created_at,
         EXISTS (SELECT FROM token_before b WHERE (b.org_id, b.grant_id, b.retired_at) = (t.org_id, t.grant_id, t.created_at)), retired_at
  FROM token_before t;

-- The answers that retired tokens lately, each sealed under a key that only the retired token gives, for as long as it may be asked for
-- again. There are few, and none for long.
CREATE TABLE oauth_answer (
  org_id   uuid,
  hash     bytea NOT NULL CHECK (length(hash) = 32), -- of the retired token
  grant_id uuid NOT NULL,
  answer   bytea NOT NULL,
  made_at  timestamptz NOT NULL,
  PRIMARY KEY (org_id, hash),
  FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grant (org_id, id) ON DELETE CASCADE
);
SELECT tenant_table('oauth_answer');
ALTER TABLE oauth_answer DROP CONSTRAINT oauth_answer_org_id_fkey;
CREATE POLICY system ON oauth_answer TO graft_system USING (true);
GRANT SELECT (made_at), DELETE ON oauth_answer TO graft_system;
INSERT INTO oauth_answer (org_id, hash, grant_id, answer, made_at)
  SELECT org_id, hash, grant_id, answer, retired_at FROM token_before WHERE answer IS NOT NULL;

DROP TABLE token_before;
