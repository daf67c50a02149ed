-- +goose Up
-- Agents, the static tokens that resolve to them, their working set, and their MCP sessions.

CREATE TABLE agent (
  org_id                uuid,
  id                    uuid PRIMARY KEY,
  user_id               uuid NOT NULL, -- who made it
  name                  text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  advanced_tools        boolean NOT NULL,
  created_at            timestamptz NOT NULL,
  last_used_at          timestamptz,
  sessions_ended_before timestamptz, -- MCP sessions opened before this have ended
  revoked_at            timestamptz,
  revoked_by            uuid,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, user_id) REFERENCES member (org_id, user_id),
  FOREIGN KEY (org_id, revoked_by) REFERENCES member (org_id, user_id)
);
CREATE UNIQUE INDEX agent_name_key ON agent (org_id, lower(name)) WHERE revoked_at IS NULL;
SELECT tenant_table('agent');
CREATE POLICY system ON agent FOR SELECT TO graft_system USING (true);
GRANT SELECT ON agent TO graft_system;

-- The hash is of 256 random bits: equal hashes do not happen, and a unique constraint across organisations is not needed.
CREATE TABLE agent_token (
  org_id     uuid,
  id         uuid PRIMARY KEY,
  agent_id   uuid NOT NULL,
  hash       bytea NOT NULL CHECK (length(hash) = 32),
  hint       text NOT NULL, -- the last four characters before the checksum, to recognise it by
  created_at timestamptz NOT NULL,
  ended_at   timestamptz,
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX agent_token_hash_idx ON agent_token (hash);
CREATE UNIQUE INDEX agent_token_live_key ON agent_token (org_id, agent_id) WHERE ended_at IS NULL;
SELECT tenant_table('agent_token');
CREATE POLICY system ON agent_token FOR SELECT TO graft_system USING (true);
GRANT SELECT ON agent_token TO graft_system;

CREATE TABLE working_set (
  org_id      uuid,
  agent_id    uuid NOT NULL,
  tool        text NOT NULL, -- the wire name
  cause       text NOT NULL CHECK (cause IN ('agent', 'person')),
  promoted_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, agent_id, tool),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
SELECT tenant_table('working_set');

-- For people only; a request is never accepted or refused by this table.
CREATE TABLE mcp_session (
  org_id         uuid,
  id             uuid NOT NULL,
  agent_id       uuid NOT NULL,
  client_name    text NOT NULL DEFAULT '',
  client_version text NOT NULL DEFAULT '',
  protocol       text NOT NULL,
  address        text NOT NULL DEFAULT '',
  opened_at      timestamptz NOT NULL,
  last_seen_at   timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX mcp_session_agent_idx ON mcp_session (org_id, agent_id, last_seen_at);
SELECT tenant_table('mcp_session');

-- Sessions that were ended before their time: by DELETE, or by a person. Whoever ends one for an agent ends none of
-- another's.
CREATE TABLE mcp_session_end (
  org_id    uuid,
  agent_id  uuid NOT NULL,
  id        uuid NOT NULL,
  opened_at timestamptz NOT NULL,
  ended_at  timestamptz NOT NULL,
  PRIMARY KEY (org_id, agent_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX mcp_session_end_agent_idx ON mcp_session_end (org_id, agent_id, opened_at);
SELECT tenant_table('mcp_session_end');
