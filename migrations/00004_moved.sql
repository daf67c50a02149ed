-- +goose Up
-- What replicas tell one another, and what a client set on a session.

-- A message for the replica on which a request of a session waits: the answer to what it was asked, or a
-- cancellation. The bus says that there is one; the row is it. Kept for ten minutes.
CREATE TABLE mcp_message (
  org_id     uuid,
  id         uuid NOT NULL,
  agent_id   uuid NOT NULL,
  session_id uuid NOT NULL,
  kind       text NOT NULL CHECK (kind IN ('answer', 'cancel')),
  request    text NOT NULL, -- the id of the request it is for, as JSON
  body       bytea NOT NULL, -- sealed; empty for a cancellation
  created_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX mcp_message_session_idx ON mcp_message (org_id, session_id);
CREATE INDEX mcp_message_created_idx ON mcp_message (org_id, created_at);
SELECT tenant_table('mcp_message');

-- The level a client asked its session's log messages at.
CREATE TABLE mcp_session_level (
  org_id     uuid,
  id         uuid NOT NULL,
  agent_id   uuid NOT NULL,
  level      text NOT NULL CHECK (level IN ('debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency')),
  set_at     timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX mcp_session_level_agent_idx ON mcp_session_level (org_id, agent_id);
SELECT tenant_table('mcp_session_level');

-- Only an organisation is deleted, with everything that is its own.
GRANT DELETE ON organisation TO graft_system;
