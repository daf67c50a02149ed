-- +goose Up
-- What a call leaves behind: the questions only a person can settle, their standing answers, and runs whose result waits.

-- A standing answer. A deny holds for the tool whatever its version and connection; an allow is for one version on one
-- connection; every means that each call asks.
CREATE TABLE approval (
  org_id        uuid,
  agent_id      uuid NOT NULL,
  tool          text NOT NULL, -- the wire name
  connection_id uuid,          -- null for a tool that needs none
  version       integer NOT NULL,
  decision      text NOT NULL CHECK (decision IN ('allow', 'deny', 'every')),
  set_by        uuid,          -- null for the operator
  set_at        timestamptz NOT NULL,
  expires_at    timestamptz,   -- null: holds until changed
  uses_left     integer CHECK (uses_left >= 0), -- null: any number
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id),
  FOREIGN KEY (org_id, set_by) REFERENCES member (org_id, user_id)
);
CREATE UNIQUE INDEX approval_key ON approval (org_id, agent_id, tool, connection_id) NULLS NOT DISTINCT;
SELECT tenant_table('approval');

-- Something only a person can settle. It is answered once, and an answer for one call is used by one call.
CREATE TABLE ask (
  org_id        uuid,
  id            uuid NOT NULL,
  kind          text NOT NULL CHECK (kind IN ('approval', 'connection', 'credential', 'scope', 'answer')),
  agent_id      uuid NOT NULL,
  tool          text NOT NULL DEFAULT '',
  version       integer NOT NULL DEFAULT 0,
  connection_id uuid,
  key           bytea NOT NULL CHECK (length(key) = 32), -- what is asked: asked again, it is the same ask
  digest        bytea,             -- of the arguments
  every         boolean NOT NULL,  -- an answer is for the call of exactly this digest, and for one of them
  mark          text NOT NULL,     -- stands in the link
  body          bytea NOT NULL,    -- sealed: what the person is shown
  state         text NOT NULL CHECK (state IN ('open', 'allowed', 'denied', 'withdrawn', 'expired')),
  created_at    timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  answered_at   timestamptz,
  answered_by   uuid,
  consumed_at   timestamptz,
  consumed_by   uuid,              -- the run that used the answer
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id),
  FOREIGN KEY (org_id, answered_by) REFERENCES member (org_id, user_id)
);
CREATE UNIQUE INDEX ask_open_key ON ask (org_id, key) WHERE state = 'open';
CREATE INDEX ask_digest_idx ON ask (org_id, agent_id, digest);
CREATE INDEX ask_agent_idx ON ask (org_id, agent_id, state, created_at);
CREATE INDEX ask_expiry_idx ON ask (expires_at);
SELECT tenant_table('ask');

-- A run whose result waits for somebody: it was detached, or its client had left before it ended.
CREATE TABLE run (
  org_id        uuid,
  id            uuid NOT NULL,
  agent_id      uuid NOT NULL,
  tool          text NOT NULL,
  version       integer NOT NULL,
  connection_id uuid,
  status        text NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'cancelled')),
  reason        text NOT NULL DEFAULT '', -- why it failed, where the gateway knows
  args          bytea,                    -- sealed
  result        bytea,                    -- sealed: what the caller would have been answered
  progress      text[] NOT NULL DEFAULT '{}',
  started_at    timestamptz NOT NULL,
  seen_at       timestamptz NOT NULL,     -- when the replica it runs on last said so
  ended_at      timestamptz,
  cancel        boolean NOT NULL DEFAULT false, -- somebody wants it to end
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX run_agent_idx ON run (org_id, agent_id, started_at);
CREATE INDEX run_expiry_idx ON run (expires_at);
SELECT tenant_table('run');

-- A value that was too long to answer with, whole.
CREATE TABLE result (
  org_id        uuid,
  id            uuid NOT NULL,
  agent_id      uuid NOT NULL,
  body          bytea NOT NULL, -- sealed
  created_at    timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id)
);
CREATE INDEX result_agent_idx ON result (org_id, agent_id, created_at);
CREATE INDEX result_expiry_idx ON result (expires_at);
SELECT tenant_table('result');

-- What ran out is deleted whoever's it is.
CREATE POLICY system_select ON run FOR SELECT TO graft_system USING (true);
CREATE POLICY system_delete ON run FOR DELETE TO graft_system USING (true);
GRANT SELECT (expires_at), DELETE ON run TO graft_system;
CREATE POLICY system_select ON result FOR SELECT TO graft_system USING (true);
CREATE POLICY system_delete ON result FOR DELETE TO graft_system USING (true);
GRANT SELECT (expires_at), DELETE ON result TO graft_system;
CREATE POLICY system_select ON ask FOR SELECT TO graft_system USING (true);
CREATE POLICY system_delete ON ask FOR DELETE TO graft_system USING (true);
GRANT SELECT (expires_at), DELETE ON ask TO graft_system;
