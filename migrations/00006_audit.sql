-- +goose Up
-- The audit log: entries in hash chains, signed checkpoints of their heads, and the keys that sign.

-- Keys that the gateway signs with: checkpoints of the audit log, access tokens. A public key stays when its key
-- retires, so that what it signed can still be verified.
CREATE TABLE signing_key (
  kid         uuid PRIMARY KEY,
  purpose     text NOT NULL CHECK (purpose IN ('audit', 'token')),
  alg         text NOT NULL CHECK (alg = 'EdDSA'),
  public      bytea NOT NULL CHECK (length(public) = 32),
  private     bytea, -- the seed, sealed; NULL once it was shredded
  state       text NOT NULL CHECK (state IN ('next', 'active', 'retiring', 'retired')),
  created_at  timestamptz NOT NULL,
  active_at   timestamptz,
  retiring_at timestamptz,
  retired_at  timestamptz,
  CHECK (private IS NOT NULL OR state = 'retired')
);
CREATE UNIQUE INDEX signing_key_next_key ON signing_key (purpose) WHERE state = 'next';
CREATE UNIQUE INDEX signing_key_active_key ON signing_key (purpose) WHERE state = 'active';
GRANT SELECT, INSERT ON signing_key TO graft_system;

-- One thing that was done, or is about to be. Each entry's hash covers everything in it and the hash before it in its
-- chain, which is that of one organisation and one writer.
CREATE TABLE audit_entry (
  org_id        uuid,
  writer        uuid NOT NULL,
  seq           bigint NOT NULL CHECK (seq > 0),
  heads         bytea, -- in a chain's first entry: where the organisation's other chains stood, 56 bytes each
  hash          bytea NOT NULL CHECK (length(hash) = 32),
  run_id        uuid,
  kind          text NOT NULL CHECK (kind IN ('intent', 'call', 'decision', 'change')),
  at            timestamptz NOT NULL,
  via           text NOT NULL,
  agent_id      uuid,
  user_id       uuid,
  tool          text NOT NULL,
  version       bigint NOT NULL,
  source        text NOT NULL,
  connection_id uuid,
  digest        bytea, -- SHA-256 of the canonical arguments
  outcome       text NOT NULL, -- '' of an intent
  took          bigint NOT NULL, -- microseconds
  line          text NOT NULL CHECK (length(line) <= 500),
  PRIMARY KEY (org_id, writer, seq)
);
CREATE INDEX audit_entry_at_idx ON audit_entry (org_id, at, writer, seq);
CREATE INDEX audit_entry_run_idx ON audit_entry (org_id, run_id) WHERE run_id IS NOT NULL;
-- Where chains begin: few, so finding them costs the way of a call nothing.
CREATE INDEX audit_entry_begin_idx ON audit_entry (at) WHERE seq = 1;
CREATE INDEX audit_entry_begin_org_idx ON audit_entry (org_id, at) WHERE seq = 1;
SELECT tenant_table('audit_entry');
-- Nobody changes an entry, and graft_app makes none.
REVOKE INSERT, UPDATE, DELETE ON audit_entry FROM graft_app;
CREATE POLICY system ON audit_entry TO graft_system USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON audit_entry TO graft_system;

-- Where every chain stood at a time, signed. Each names the hash of the one before and of the last daily one before.
-- Those that are not daily are thinned once a daily one has followed.
CREATE TABLE audit_checkpoint (
  number    bigint PRIMARY KEY CHECK (number > 0),
  at        timestamptz NOT NULL,
  daily     boolean NOT NULL,
  previous  bytea NOT NULL, -- 32 zeros in the first
  base      bytea NOT NULL, -- likewise
  orgs      uuid[] NOT NULL,
  writers   uuid[] NOT NULL,
  seqs      bigint[] NOT NULL,
  hashes    bytea[] NOT NULL,
  hash      bytea NOT NULL CHECK (length(hash) = 32),
  kid       uuid NOT NULL REFERENCES signing_key (kid),
  signature bytea NOT NULL CHECK (length(signature) = 64)
);
GRANT SELECT, INSERT ON audit_checkpoint TO graft_system;

-- +goose StatementBegin
-- audit_drop is the one way to delete entries: those behind the newest daily checkpoint before a time, with the
-- checkpoints before it, all at once. It says how many entries. What is younger than a week stays whoever asks.
CREATE FUNCTION audit_drop(before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  last bigint;
  dropped bigint;
BEGIN
  SELECT max(number) INTO last FROM audit_checkpoint WHERE daily AND at < least(before, now() - interval '7 days');
  IF last IS NULL OR last = (SELECT min(number) FROM audit_checkpoint) THEN
    RETURN 0;
  END IF;
  DELETE FROM audit_entry e USING (
    SELECT org, writer, max(seq) AS seq
    FROM audit_checkpoint c, unnest(c.orgs, c.writers, c.seqs) AS h (org, writer, seq)
    WHERE c.number <= last
    GROUP BY org, writer) AS h
  WHERE e.org_id = h.org AND e.writer = h.writer AND e.seq <= h.seq;
  GET DIAGNOSTICS dropped = ROW_COUNT;
  DELETE FROM audit_checkpoint WHERE number < last;
  RETURN dropped;
END $$;

-- audit_thin deletes the checkpoints between the daily ones that a newer daily one follows.
CREATE FUNCTION audit_thin() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  thinned bigint;
BEGIN
  DELETE FROM audit_checkpoint WHERE NOT daily AND number < (SELECT max(number) FROM audit_checkpoint WHERE daily);
  GET DIAGNOSTICS thinned = ROW_COUNT;
  RETURN thinned;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_drop(timestamptz), audit_thin() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_drop(timestamptz), audit_thin() TO graft_system;
