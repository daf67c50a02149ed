-- +goose Up
-- What the audit log's own tables are held to, whoever writes to them.

-- A key is believed only because its private half, sealed, proves its public one: one without is nobody's. Rows that are
-- there are not asked, so that one of somebody's making does not stop the migration; it is not believed either way.
ALTER TABLE signing_key ADD CONSTRAINT signing_key_proof CHECK (private IS NOT NULL) NOT VALID;

-- +goose StatementBegin
-- audit_drop is the one way to delete entries: those behind the newest daily checkpoint before a time, with the
-- checkpoints before it, all at once. It says how many entries. What is younger than a week stays whoever asks, and
-- whatever a checkpoint says: SQL cannot tell who signed one, so what would go is asked how old it is itself.
CREATE OR REPLACE FUNCTION audit_drop(before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  young CONSTANT timestamptz := now() - interval '7 days';
  last bigint;
  dropped bigint;
  newest timestamptz;
BEGIN
  SELECT max(number) INTO last FROM audit_checkpoint WHERE daily AND at < least(before, young);
  IF last IS NULL OR last = (SELECT min(number) FROM audit_checkpoint) THEN
    RETURN 0;
  END IF;
  WITH gone AS (
    DELETE FROM audit_entry e USING (
      SELECT org, writer, max(seq) AS seq
      FROM audit_checkpoint c, unnest(c.orgs, c.writers, c.seqs) AS h (org, writer, seq)
      WHERE c.number <= last
      GROUP BY org, writer) AS h
    WHERE e.org_id = h.org AND e.writer = h.writer AND e.seq <= h.seq
    RETURNING e.at)
  SELECT count(*), max(at) INTO dropped, newest FROM gone;
  IF newest > young THEN
    RAISE EXCEPTION 'audit_drop: checkpoint % names an entry of %, which is younger than a week', last, newest;
  END IF;
  WITH gone AS (DELETE FROM audit_checkpoint WHERE number < last RETURNING at)
  SELECT max(at) INTO newest FROM gone;
  IF newest > young THEN
    RAISE EXCEPTION 'audit_drop: a checkpoint before % is of %, which is younger than a week', last, newest;
  END IF;
  RETURN dropped;
END $$;
-- +goose StatementEnd
