-- +goose Up
-- MCP servers that we are a client of, and the secrets that their headers are filled with.

-- What ${NAME} in a header stands for. Removing one deletes its row: a secret has no history.
CREATE TABLE secret (
  org_id uuid,
  id     uuid PRIMARY KEY,
  name   text NOT NULL CHECK (name ~ '^[A-Z][A-Z0-9_]{0,63}$'),
  value  bytea NOT NULL, -- sealed
  set_at timestamptz NOT NULL,
  set_by uuid, -- NULL: the operator, with the CLI
  FOREIGN KEY (org_id, set_by) REFERENCES member (org_id, user_id)
);
CREATE UNIQUE INDEX secret_name_key ON secret (org_id, name);
SELECT tenant_table('secret');

CREATE TABLE upstream (
  org_id          uuid,
  id              uuid PRIMARY KEY,
  name            text NOT NULL CHECK (name ~ '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' AND length(name) <= 24),
  url             text NOT NULL,
  trust_hints     boolean NOT NULL, -- what it says of a tool's effects is believed
  include_tools   text[] NOT NULL, -- its own names; empty: all
  exclude_tools   text[] NOT NULL, -- wins
  list_all        boolean, -- whether agents are shown all its tools, unless agent_upstream says otherwise; NULL until it was listed
  connect_seconds integer NOT NULL CHECK (connect_seconds BETWEEN 1 AND 60),
  call_seconds    integer NOT NULL CHECK (call_seconds BETWEEN 1 AND 3600),
  created_at      timestamptz NOT NULL,
  created_by      uuid, -- NULL: the operator, with the CLI
  revoked_at      timestamptz,
  revoked_by      uuid,
  state           text NOT NULL CHECK (state IN ('new', 'ok', 'failing')),
  tried_at        timestamptz, -- when somebody last began to list it
  last_listed_at  timestamptz,
  last_error_word text NOT NULL DEFAULT '', -- a reason word
  last_error      text NOT NULL DEFAULT '', -- our own sentence, never its
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, created_by) REFERENCES member (org_id, user_id),
  FOREIGN KEY (org_id, revoked_by) REFERENCES member (org_id, user_id)
);
CREATE UNIQUE INDEX upstream_name_key ON upstream (org_id, name) WHERE revoked_at IS NULL;
SELECT tenant_table('upstream');

-- A template is sealed whole: people paste tokens where ${NAME} was meant. Which names it holds is not secret.
CREATE TABLE upstream_header (
  org_id      uuid,
  upstream_id uuid NOT NULL,
  name        text NOT NULL,
  template    bytea NOT NULL, -- sealed
  secrets     text[] NOT NULL,
  set_at      timestamptz NOT NULL,
  PRIMARY KEY (org_id, upstream_id, name),
  FOREIGN KEY (org_id, upstream_id) REFERENCES upstream (org_id, id)
);
SELECT tenant_table('upstream_header');

-- What it listed. The texts are bytes because they are its own: Postgres refuses some that JSON allows.
CREATE TABLE upstream_tool (
  org_id          uuid,
  upstream_id     uuid NOT NULL,
  original        text NOT NULL, -- its own name for it
  name            text NOT NULL, -- what follows <upstream>__ on the wire
  position        integer NOT NULL, -- in its list
  title           text NOT NULL,
  description     text NOT NULL,
  input_schema    bytea NOT NULL,
  output_schema   bytea,
  annotations     bytea,
  hash            bytea NOT NULL CHECK (length(hash) = 32), -- of the definition as it was listed, space and order aside
  version         integer NOT NULL, -- counts up with the hash; goes on where an upstream of the same name had it
  override        text NOT NULL DEFAULT '', -- a description by a person; '': its own
  left_out        text NOT NULL, -- why it is not offered; '': it is
  first_listed_at timestamptz NOT NULL,
  changed_at      timestamptz NOT NULL,
  gone_at         timestamptz, -- it was not in the last list
  PRIMARY KEY (org_id, upstream_id, original),
  FOREIGN KEY (org_id, upstream_id) REFERENCES upstream (org_id, id)
);
SELECT tenant_table('upstream_tool');

-- One account of one vendor. An upstream with headers, or with none, has one that is shared.
CREATE TABLE connection (
  org_id       uuid,
  id           uuid PRIMARY KEY,
  vendor       text NOT NULL CHECK (vendor ~ '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' AND length(vendor) <= 24),
  display_name text NOT NULL,
  user_id      uuid, -- whose it is; NULL: shared
  upstream_id  uuid, -- NULL: of a vendor that is no MCP server
  created_at   timestamptz NOT NULL,
  revoked_at   timestamptz,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, user_id) REFERENCES member (org_id, user_id),
  FOREIGN KEY (org_id, upstream_id) REFERENCES upstream (org_id, id)
);
CREATE INDEX connection_upstream_idx ON connection (org_id, upstream_id);
SELECT tenant_table('connection');

-- An agent may be bound to one upstream: its list is that upstream's, under its own names.
ALTER TABLE agent ADD COLUMN passthrough uuid;
ALTER TABLE agent ADD FOREIGN KEY (org_id, passthrough) REFERENCES upstream (org_id, id);

-- Where an agent is shown otherwise than the upstream's list_all says.
CREATE TABLE agent_upstream (
  org_id      uuid,
  agent_id    uuid NOT NULL,
  upstream_id uuid NOT NULL,
  list_all    boolean NOT NULL,
  PRIMARY KEY (org_id, agent_id, upstream_id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id),
  FOREIGN KEY (org_id, upstream_id) REFERENCES upstream (org_id, id)
);
SELECT tenant_table('agent_upstream');
