-- +goose Up
-- The authorization server: clients, what they ask for, and the grants that people make of it.

-- Programs that registered (RFC 7591). They belong to no organisation: which they may act in, a grant says.
CREATE TABLE oauth_client (
  id               uuid PRIMARY KEY,
  name             text NOT NULL CHECK (length(name) <= 200), -- as it calls itself, which proves nothing
  redirect_uris    text[] NOT NULL CHECK (cardinality(redirect_uris) BETWEEN 1 AND 10),
  auth_method      text NOT NULL CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
  secret           bytea CHECK (length(secret) = 32), -- SHA-256
  application_type text NOT NULL DEFAULT '' CHECK (application_type IN ('', 'web', 'native')),
  created_at       timestamptz NOT NULL,
  last_used_at     timestamptz NOT NULL,
  CHECK ((auth_method = 'none') = (secret IS NULL))
);
CREATE INDEX oauth_client_use_idx ON oauth_client (last_used_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON oauth_client TO graft_system;

-- Client ID metadata documents as they were last read and found good.
CREATE TABLE client_document (
  url         text PRIMARY KEY CHECK (length(url) <= 2048),
  document    jsonb NOT NULL,
  fetched_at  timestamptz NOT NULL,
  fresh_until timestamptz NOT NULL -- by its cache headers, within bounds of ours
);
GRANT SELECT, INSERT, UPDATE, DELETE ON client_document TO graft_system;

-- What a client asked for at the authorization endpoint, until a person has answered. It is known by 256 random bits and
-- bound to one browser.
CREATE TABLE oauth_request (
  hash         bytea PRIMARY KEY CHECK (length(hash) = 32),
  browser      bytea NOT NULL CHECK (length(browser) = 32),
  form         text NOT NULL,    -- what its form must repeat
  query        text NOT NULL CHECK (length(query) <= 16384), -- as it came
  proven       jsonb,            -- once client and redirect URI are; see consent.Request
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL,
  answered_at  timestamptz
);
CREATE INDEX oauth_request_expiry_idx ON oauth_request (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON oauth_request TO graft_system;
-- Whoever allows one spends it in the transaction that makes the grant.
GRANT SELECT (hash, expires_at, answered_at), UPDATE (answered_at) ON oauth_request TO graft_app;

-- What a consent made. It stays when it has ended, so that people see that it was there and how it ended.
CREATE TABLE oauth_grant (
  org_id            uuid,
  id                uuid PRIMARY KEY,
  agent_id          uuid NOT NULL,
  user_id           uuid NOT NULL, -- who consented
  client_id         text NOT NULL CHECK (length(client_id) <= 2048), -- of a registration, or a document's URL
  registration      uuid, -- the same as a key, of one that registered
  client_name       text NOT NULL,
  client_document   jsonb, -- the document as it was then
  redirect_uri      text NOT NULL CHECK (length(redirect_uri) <= 2048),
  scope             text NOT NULL,
  created_at        timestamptz NOT NULL,
  last_refreshed_at timestamptz,
  ended_at          timestamptz,
  ended_by          uuid,
  cause             text CHECK (cause IN ('person', 'client', 'code_reuse', 'token_reuse', 'agent', 'member')),
  CHECK ((ended_at IS NULL) = (cause IS NULL)),
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id),
  FOREIGN KEY (org_id, user_id) REFERENCES member (org_id, user_id),
  FOREIGN KEY (org_id, ended_by) REFERENCES member (org_id, user_id)
);
CREATE INDEX oauth_grant_agent_idx ON oauth_grant (org_id, agent_id);
CREATE INDEX oauth_grant_client_idx ON oauth_grant (client_id) WHERE ended_at IS NULL;
SELECT tenant_table('oauth_grant');
CREATE POLICY system ON oauth_grant FOR SELECT TO graft_system USING (true);
GRANT SELECT ON oauth_grant TO graft_system;

-- Authorization codes (RFC 6749 §4.1.2): ten minutes, once.
CREATE TABLE oauth_code (
  org_id       uuid,
  hash         bytea NOT NULL CHECK (length(hash) = 32),
  grant_id     uuid NOT NULL,
  redirect_uri text NOT NULL,
  challenge    text NOT NULL CHECK (length(challenge) = 43), -- S256 (RFC 7636 §4.2)
  tries        integer NOT NULL DEFAULT 0, -- verifiers that did not fit
  expires_at   timestamptz NOT NULL,
  used_at      timestamptz,
  PRIMARY KEY (org_id, hash),
  FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grant (org_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_code_hash_idx ON oauth_code (hash);
CREATE INDEX oauth_code_expiry_idx ON oauth_code (expires_at);
SELECT tenant_table('oauth_code');
CREATE POLICY system ON oauth_code TO graft_system USING (true);
GRANT SELECT (hash, grant_id, org_id, expires_at), DELETE ON oauth_code TO graft_system;

-- Refresh tokens. One that has retired stays as long as its grant, so that its reuse is noticed; the answer that retired it
-- is sealed under a key that only the token itself gives, for as long as it may be asked for again.
CREATE TABLE oauth_token (
  org_id     uuid,
  hash       bytea NOT NULL CHECK (length(hash) = 32),
  grant_id   uuid NOT NULL,
  created_at timestamptz NOT NULL,
  retired_at timestamptz,
  answer     bytea,
  PRIMARY KEY (org_id, hash),
  FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grant (org_id, id) ON DELETE CASCADE,
  CHECK (answer IS NULL OR retired_at IS NOT NULL)
);
CREATE INDEX oauth_token_hash_idx ON oauth_token (hash);
CREATE INDEX oauth_token_grant_idx ON oauth_token (org_id, grant_id);
CREATE INDEX oauth_token_retired_idx ON oauth_token (retired_at);
CREATE INDEX oauth_grant_ended_idx ON oauth_grant (ended_at);
CREATE INDEX oauth_token_answer_idx ON oauth_token (retired_at) WHERE answer IS NOT NULL;
SELECT tenant_table('oauth_token');
CREATE POLICY system ON oauth_token TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT (hash, grant_id, org_id, retired_at, answer), UPDATE (answer), DELETE ON oauth_token TO graft_system;

-- Access tokens that were revoked before they ran out (RFC 7009 §2.1), until they would have.
CREATE TABLE oauth_denied (
  org_id     uuid,
  jti        uuid NOT NULL,
  grant_id   uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, jti),
  FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grant (org_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_denied_expiry_idx ON oauth_denied (expires_at);
SELECT tenant_table('oauth_denied');
CREATE POLICY system ON oauth_denied TO graft_system USING (true);
GRANT SELECT, DELETE ON oauth_denied TO graft_system;

-- Signing keys take turns.
GRANT UPDATE (state, active_at, retiring_at, retired_at) ON signing_key TO graft_system;
