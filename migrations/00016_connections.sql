-- +goose Up
-- What a connection is made of, and which agents may use it.

-- The row of an upstream's connection has no scheme of its own: the upstream's headers are its credential. Revoking destroys the
-- credential; entering it again brings the connection back.
ALTER TABLE connection
  ADD COLUMN scheme         text NOT NULL DEFAULT '', -- '' of an upstream's
  ADD COLUMN config         jsonb NOT NULL DEFAULT '{}',   -- what the scheme needs and is no secret
  ADD COLUMN hosts          text[] NOT NULL DEFAULT '{}',  -- where its requests may go; the first is the primary one
  ADD COLUMN docs_url       text NOT NULL DEFAULT '',
  ADD COLUMN credential     bytea,                         -- sealed; null: not entered yet, destroyed, or none is needed
  ADD COLUMN version        integer NOT NULL DEFAULT 0,    -- counts up with the credential, a token's rotation included
  ADD COLUMN set_at         timestamptz,                   -- when a person last entered it
  ADD COLUMN set_by         uuid,                          -- null: the operator
  ADD COLUMN token_expires_at timestamptz,                 -- of a token that is refreshed
  ADD COLUMN refresh_until  timestamptz,                   -- one replica refreshes it, until then at most
  ADD COLUMN health         text NOT NULL DEFAULT 'unknown' CHECK (health IN ('unknown', 'ok', 'failing')),
  ADD COLUMN health_word    text NOT NULL DEFAULT '',      -- a reason word, while it is failing
  ADD COLUMN health_at      timestamptz,
  ADD COLUMN last_used_at   timestamptz,
  ADD COLUMN created_by     uuid,                          -- null: the operator, or what was made with an upstream
  ADD COLUMN revoked_by     uuid,
  ADD CONSTRAINT connection_hosts_check CHECK (upstream_id IS NOT NULL OR cardinality(hosts) BETWEEN 1 AND 20),
  ADD CONSTRAINT connection_kind_check CHECK ((upstream_id IS NULL) = (scheme <> '')),
  ADD CONSTRAINT connection_revoked_check CHECK (revoked_at IS NULL OR credential IS NULL),
  ADD FOREIGN KEY (org_id, set_by) REFERENCES member (org_id, user_id),
  ADD FOREIGN KEY (org_id, created_by) REFERENCES member (org_id, user_id),
  ADD FOREIGN KEY (org_id, revoked_by) REFERENCES member (org_id, user_id);

-- Which connections an agent may use: all is the organisation's shared ones and its user's own, listed those in agent_connection.
ALTER TABLE agent ADD COLUMN scope text NOT NULL DEFAULT 'all' CHECK (scope IN ('all', 'listed'));

CREATE TABLE agent_connection (
  org_id        uuid,
  agent_id      uuid NOT NULL,
  connection_id uuid NOT NULL,
  added_at      timestamptz NOT NULL,
  PRIMARY KEY (org_id, agent_id, connection_id),
  FOREIGN KEY (org_id, agent_id) REFERENCES agent (org_id, id),
  FOREIGN KEY (org_id, connection_id) REFERENCES connection (org_id, id)
);
SELECT tenant_table('agent_connection');
